"""Why a model gives a text a label: words, the path through the tree, similar documents."""

import sys
from types import ModuleType

from labelwise.explanations.explainer import explain
from labelwise.explanations.neighbours import Neighbours
from labelwise.explanations.result import Explanation, Member, Neighbour, Neural, Path, Step, Word

__all__ = ["Explanation", "Member", "Neighbour", "Neighbours", "Neural", "Path", "Step", "Word", "explain"]


class _Room(ModuleType):
    """Importing a room binds its name in the package: `labelwise.explain`, the function, may turn out to be this."""

    __call__ = staticmethod(explain)


sys.modules[__name__].__class__ = _Room
