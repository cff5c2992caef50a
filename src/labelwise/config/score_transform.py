"""Score transforms: how the scores of the nodes along the path from the root to a label become one score.

`TRANSFORMS` is the table of all transforms. Each turns a node's score s into a factor from 0 to 1, and the score of a
label is the product of the factors along its path (the paper's sigma), computed as a sum of logarithms.
`labelwise.kernels.beam` computes the same logarithms for all nodes of a beam, by the kernel code in the table.
The table is part of the configuration, because configurations check themselves with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from labelwise.types import Csr

ScoreTransform: TypeAlias = Literal["l1-hinge", "l2-hinge", "l3-hinge", "l4-hinge", "sigmoid", "ranker-only"]
"""How scores along the path to a label become one: the product of exp(-max(0, 1 - s)^p) or of sigmoids, or the label's
own score alone, the scores above only choosing the clusters."""

Values: TypeAlias = npt.NDArray[np.floating[Any]]

RAW, HINGE, SIGMOID = 0, 1, 2
"""Codes of the kernel: the score itself, and the formulas of hinges and of the sigmoid."""


@dataclass(frozen=True)
class Transform:
    """One score transform."""

    formula: str
    """The factor of a score s, in words for explanations."""
    kernel: tuple[int, int]
    """The code of the formula in `labelwise.kernels.beam`, and its power."""
    logarithm: Callable[[Values], Values] | None
    """The logarithm of the factors of some scores: the plain numpy twin of the kernel. None where the label's own score
    counts alone: such scores have no bounds, and the factors of the nodes above are those of `DEFAULT_TRANSFORM`."""
    pecos: str
    """What PECOS calls it: the post-processor of a model."""

    @property
    def bounded(self) -> bool:
        """Whether scores are between 0 and 1, which also means that the scores of several trees can be averaged."""
        return self.logarithm is not None


def _hinge(power: int) -> Transform:
    return Transform(
        formula=f"exp(-max(0, 1 - s)^{power})",
        kernel=(HINGE, power),
        logarithm=lambda scores: -(np.maximum(1 - scores, 0) ** power),
        pecos=f"l{power}-hinge",
    )


TRANSFORMS: dict[ScoreTransform, Transform] = {
    "l1-hinge": _hinge(1),
    "l2-hinge": _hinge(2),
    "l3-hinge": _hinge(3),
    "l4-hinge": _hinge(4),
    "sigmoid": Transform("1 / (1 + exp(-s))", (SIGMOID, 0), lambda scores: -np.logaddexp(0, -scores), "sigmoid"),
    "ranker-only": Transform("s", (RAW, 0), None, "noop"),
}
"""All score transforms, by the names that `ScoreTransform` lists."""

DEFAULT_TRANSFORM: ScoreTransform = "l3-hinge"
"""The paper's choice."""


def bounded(scores: Csr, *, logistic: bool) -> Csr:
    """Scores between 0 and 1: by the logistic function, for scores without bounds; others are cut off at 0 and 1."""
    data = 1 / (1 + np.exp(-scores.data.astype(np.float64))) if logistic else np.clip(scores.data, 0, 1)
    return Csr((data, scores.indices, scores.indptr), shape=scores.shape)
