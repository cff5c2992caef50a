"""Propensities of labels: the probability that a true label is recorded, whose inverse is the weight of the label."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from labelwise.config.settings import Count, NonNegative, Positive, checked_value, shown
from labelwise.errors import UsageError
from labelwise.metrics.relevance import count_labels
from labelwise.types import Csr, Floats, Ints

Family: TypeAlias = Literal["default", "wikipedia", "amazon"]

FAMILIES: dict[Family, tuple[float, float]] = {
    "default": (0.55, 1.5),
    "wikipedia": (0.5, 0.4),
    "amazon": (0.6, 2.6),
}
"""(a, b) of the propensity model by family of data set, as the Extreme Classification Repository uses them."""


def family_constants(family: Family) -> tuple[float, float]:
    """The (a, b) of a family, by its name."""
    if not isinstance(family, str) or family not in FAMILIES:
        raise UsageError(f"there is no family {shown(family)} of data sets; there are {', '.join(FAMILIES)}")
    return FAMILIES[family]


def inverse_propensity(
    train: Csr | Sequence[int] | Ints,
    a: float = FAMILIES["default"][0],
    b: float = FAMILIES["default"][1],
    *,
    n_docs: int | None = None,
) -> Floats:
    """(n_labels,) weight 1 / p of every label: the rarer the label in training, the larger its weight.

    1 / p_l = 1 + (ln N - 1) (b + 1)^a (N_l + b)^-a, for N training documents of which N_l have the label
    (Jain, Prabhu and Varma, KDD 2016, section 4). With fewer than three documents all weights are 1.

    Parameters
    ----------
    train
        (n_train, n_labels) training labels, or (n_labels,) the number of training documents of each label.
    a, b
        Constants of the model; `FAMILIES` has those of the usual data sets.
    n_docs
        Number of training documents, needed where `train` is counts.
    """
    a, b = checked_value(Positive, a, "a"), checked_value(NonNegative, b, "b")
    n_docs = checked_value(Count | None, n_docs, "n_docs")
    if n_docs is None:
        if not sp.issparse(train):
            raise UsageError("label counts do not include the number of training documents; pass n_docs as well")
        n_docs = train.shape[0]
    try:
        scale = max(np.log(max(n_docs, 1)) - 1, 0.0) * (b + 1) ** a
    except OverflowError as err:
        raise UsageError(f"a is {a} and b is {b}, which gives weights that are too large; see FAMILIES") from err
    weights: Floats = 1 + scale * (count_labels(train) + float(b)) ** -a
    return weights
