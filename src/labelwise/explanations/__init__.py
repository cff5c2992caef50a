"""Why a model gives a text a label: words, the path through the tree, similar documents."""

import sys
from types import ModuleType

from labelwise.explanations.explainer import explain
from labelwise.explanations.neighbours import Neighbours
from labelwise.explanations.result import (
    EmbeddingShare,
    Explanation,
    MemberExplanation,
    Neighbour,
    Path,
    PathStep,
    Word,
)

__all__ = [
    "EmbeddingShare",
    "Explanation",
    "MemberExplanation",
    "Neighbour",
    "Neighbours",
    "Path",
    "PathStep",
    "Word",
    "explain",
]


class _Room(ModuleType):
    """Importing a room binds its name in the package: `labelwise.explain`, the function, may turn out to be this."""

    __call__ = staticmethod(explain)


sys.modules[__name__].__class__ = _Room
