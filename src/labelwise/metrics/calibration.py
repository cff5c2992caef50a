"""Calibration of probabilities: the expected calibration error, and the reliability curve that it is computed from."""

from typing import Annotated

import numpy as np

from labelwise.config.settings import Range, checked_value
from labelwise.errors import DataError
from labelwise.metrics.relevance import Scored, mark_predictions
from labelwise.types import Csr, Floats, Ints

Bins = Annotated[int, Range(at_least=1, at_most=1_000_000)]
"""A number of bins; more of them than predictions are empty."""


def calibration_error(Y: Csr, Y_pred: Scored, *, bins: int = 15, equal_mass: bool = True) -> float:
    """Expected calibration error, in percent: the mean distance of probabilities from the share that is correct.

    Parameters
    ----------
    Y
        (n_docs, n_labels) true labels.
    Y_pred
        (n_docs, n_labels) probabilities, or a `Predictions` object; every stored one counts.
    bins
        Number of bins over which the distance is averaged.
    equal_mass
        Use bins with equal numbers of predictions, not bins of equal width. Most predictions of a top-k list have low
        probabilities, so bins of equal width measure the high ones by a handful of predictions.

    Returns
    -------
    error
        In percent; nan if nothing is predicted.

    Examples
    --------
    Of two labels at 80 %, one is correct:

    >>> Y = csr_array([[1, 0], [0, 0]])
    >>> calibration_error(Y, csr_array([[0.8, 0], [0, 0.8]]))
    30.0
    """
    probability, right, count = reliability_curve(Y, Y_pred, bins, equal_mass=equal_mass)
    if count.size == 0:
        return float("nan")
    return float(100 * np.average(np.abs(probability - right), weights=count))


def reliability_curve(
    Y: Csr, Y_pred: Scored, bins: int = 15, *, equal_mass: bool = True
) -> tuple[Floats, Floats, Ints]:
    """Mean probability, share of correct predictions and number of predictions of each bin, by ascending probability.

    Equal probabilities share a bin, and empty bins are left out, so there may be fewer than `bins`. Parameters are
    those of `calibration_error`.

    Returns
    -------
    probability, right, count
        (n_bins,) each, the first two between 0 and 1.
    """
    bins = checked_value(Bins, bins, "bins")
    marked = mark_predictions(Y, Y_pred, None)
    probabilities = marked.scores.astype(np.float64)
    if probabilities.size == 0:
        return np.empty(0), np.empty(0), np.empty(0, dtype=np.int64)
    low, high = probabilities.min(), probabilities.max()
    if low < 0 or high > 1:
        raise DataError(
            f"Y_pred has the score {low if low < 0 else high:g}, which is not a probability; "
            "turn scores into probabilities first: Calibrator.fit on held-out predictions, then transform_matrix"
        )
    inner = np.linspace(0, 1, bins + 1)[1:-1]
    edges = np.quantile(probabilities, inner) if equal_mass else inner
    found = np.searchsorted(edges, probabilities)
    count = np.bincount(found, minlength=bins)
    used = count > 0
    mean = np.bincount(found, weights=probabilities, minlength=bins)[used] / count[used]
    right = np.bincount(found, weights=marked.hits, minlength=bins)[used] / count[used]
    return mean, right, count[used]
