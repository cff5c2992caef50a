"""How linear models are trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from labelwise.config.settings import Count, NonNegative, Positive, Settings

Negatives: TypeAlias = Literal["tfn", "man", "tfn+man"]
"""Whose documents are hard negatives of a label: teacher-forcing negatives, those of its true cluster; matcher-aware
negatives, those that the matcher sends there; or both."""
RankerLoss: TypeAlias = Literal["squared-hinge", "hinge", "logistic"]
"""Losses of the linear models; `labelwise.kernels.solver` has their formulas."""
COSTS = (1e-30, 1e30)
"""The least and the largest cost, with or without the factor of the positive documents: the solver has 32-bit costs."""


@dataclass(frozen=True, kw_only=True)
class RankerConfig(Settings):
    """How the linear models of one level are trained and kept."""

    ALIASES: ClassVar[Mapping[str, Mapping[Any, Any]]] = {
        "negatives": {"teacher": "tfn", "matcher": "man", "both": "tfn+man", "man+tfn": "tfn+man"}
    }

    loss: RankerLoss = "squared-hinge"
    """Squared hinge as in the paper, hinge, or logistic, which makes a probabilistic label tree."""
    cost: Positive = 1.0
    """Regularisation constant: liblinear's C."""
    positive_weight: Positive = 1.0
    """Cost multiplier for violations by positive documents."""
    negatives: Negatives = "tfn"
    """Hard negatives: teacher-forcing (tfn: documents of the true cluster), matcher-aware (man: documents that the
    matcher sends to the cluster), or both (tfn+man)."""
    bias: NonNegative = 1.0
    """Value of the constant feature that carries the bias; 0 for none."""
    tolerance: Positive = 0.3
    """A label has converged when its projected gradients span less than this: liblinear's eps."""
    max_sweeps: Count = 20
    """Most passes over the documents."""
    matcher_sweeps: Count = 4
    """Most passes after the matcher-aware negatives have joined the teacher-forcing ones, which are solved first."""
    threshold: NonNegative = 0.1
    """Weights smaller than this are dropped."""
    max_weights: Count | None = None
    """Most weights kept for a label, the largest ones."""
    half_precision: bool = True
    """Keep weights as 16-bit floats; sums are 32-bit in any case."""

    def problems(self) -> Iterator[str]:
        """The solver computes with 32-bit costs."""
        least, largest = COSTS
        if not least <= self.cost <= largest:
            yield f"cost is {self.cost}; it must be from {least:g} to {largest:g}"
        elif not least <= self.cost * self.positive_weight <= largest:
            yield (
                f"positive_weight is {self.positive_weight} and cost is {self.cost}; their product must be from "
                f"{least:g} to {largest:g}"
            )
