"""Explanations: why a model gives a text a label, by words, by the path through the tree and by similar documents."""

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
