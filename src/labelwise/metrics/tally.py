"""The gains of each document, and each metric as a ratio of two sums over documents."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from labelwise.errors import DataError
from labelwise.kernels.metrics import (
    DCG,
    HITS,
    PREDICTED,
    WEIGHT,
    WEIGHTED_DCG,
    count_truth,
    gather_best,
    gather_gains,
)
from labelwise.metrics.relevance import MarkedPredictions
from labelwise.types import Floats, Ints

Ratio: TypeAlias = tuple[Floats, Floats]
"""(n_docs,) numerators and (n_docs,) denominators; the metric is the sum of the first over the sum of the second."""


@dataclass(frozen=True, eq=False)
class Tally:
    """The gains of the documents from the labels of one scope: all labels, or those of a bucket."""

    ks: tuple[int, ...]
    gains: Floats
    """(5, n_ks, n_docs) gains of the first k predictions; see `gather_gains`."""
    sizes: Ints
    """(n_docs,) number of true labels in this scope."""
    everyone: Floats
    """(n_docs,) ones."""
    counted: Floats
    """(n_docs,) 1 for the documents over which R, nDCG and RP are averaged."""
    ideal: Floats
    """(n_ks, n_docs) DCG of a perfect ranking, by the number of true labels of any scope."""
    best: Floats
    """(2, n_ks, n_docs) propensity-weighted gain of the best possible ranking, and its DCG over `ideal`."""


def tally_gains(
    marked: MarkedPredictions,
    ks: tuple[int, ...],
    weights: Floats | None = None,
    scope: Ints | None = None,
    n_scopes: int = 1,
) -> tuple[Tally, list[Tally]]:
    """Sum up the gains of documents over all labels, and over the labels of each scope.

    Parameters
    ----------
    ks
        Cut-offs, ascending.
    weights
        (n_labels,) inverse propensities; ones if None.
    scope
        (n_labels,) scope of every label, below `n_scopes`; one for all if None.
    """
    n_docs, n_labels = marked.n_docs, marked.n_labels
    # Labels past the end are known to the predictions only: never correct, and always in the last bucket.
    label_weights = np.ones(n_labels)
    label_scope = np.full(n_labels, n_scopes - 1, dtype=np.uint8)
    if weights is not None:
        label_weights[: weights.size] = weights
    if scope is not None:
        label_scope[: scope.size] = scope
    cuts = np.array(ks, dtype=np.int64)
    gains = np.zeros((n_scopes, 5, cuts.size, n_docs))
    gather_gains(marked.best_indptr, marked.best, marked.hits, label_scope, label_weights, cuts, gains)
    sizes = np.zeros((n_scopes, n_docs), dtype=np.int64)
    count_truth(marked.indptr, marked.truth, label_scope, sizes)
    best = np.zeros((2, cuts.size, n_docs))
    gather_best(marked.indptr, marked.truth, label_weights, cuts, best)

    all_sizes = np.diff(marked.indptr)
    ideal = np.stack([ideal_dcg(all_sizes, k) for k in ks])
    best[1] /= ideal
    everyone = np.ones(n_docs)
    total = Tally(ks, gains.sum(axis=0), all_sizes, everyone, everyone, ideal, best)
    scopes = [
        Tally(ks, gains[b], sizes[b], everyone, (sizes[b] > 0).astype(np.float64), ideal, best) for b in range(n_scopes)
    ]
    return total, scopes


def ideal_dcg(sizes: Ints, k: int) -> Floats:
    """(n_docs,) DCG@k of a perfect ranking of `sizes` true labels; 1 where there are none."""
    found = np.minimum(sizes, k)
    reached = np.cumsum(1 / np.log2(np.arange(2, found.max() + 2)))
    table: Floats = np.concatenate(([1.0], reached))[found]
    return table


def _precision(t: Tally, cut: int) -> Ratio:
    return t.gains[HITS, cut] / t.ks[cut], t.everyone


def _recall(t: Tally, cut: int) -> Ratio:
    return t.gains[HITS, cut] / np.maximum(t.sizes, 1), t.counted


def _r_precision(t: Tally, cut: int) -> Ratio:
    return t.gains[HITS, cut] / np.clip(t.sizes, 1, t.ks[cut]), t.counted


def _ndcg(t: Tally, cut: int) -> Ratio:
    return t.gains[DCG, cut] / ideal_dcg(t.sizes, t.ks[cut]), t.counted


def _psp(t: Tally, cut: int) -> Ratio:
    return t.gains[WEIGHT, cut], t.best[0, cut]


def _psndcg(t: Tally, cut: int) -> Ratio:
    return t.gains[WEIGHTED_DCG, cut] / t.ideal[cut], t.best[1, cut]


def _micro_f1(t: Tally, cut: int) -> Ratio:
    return 2 * t.gains[HITS, cut], t.gains[PREDICTED, cut] + t.sizes


RATIOS: dict[str, Callable[[Tally, int], Ratio]] = {
    "P": _precision,
    "R": _recall,
    "nDCG": _ndcg,
    "RP": _r_precision,
    "PSP": _psp,
    "PSnDCG": _psndcg,
    "micro-F1": _micro_f1,
}
"""Metrics that are ratios of sums over documents, by name; those with PS need inverse propensities."""

METRICS = (*RATIOS, "macro-F1", "coverage")
"""All metrics, in the order in which they are shown; the last two are means over labels."""


def percent(numerator: float, denominator: float) -> float:
    """A share in percent, nan if the denominator is 0."""
    return 100 * numerator / denominator if denominator else float("nan")


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Number of documents for which each label is true, is predicted among the first k, and both."""

    true: Ints
    predicted: Ints
    correct: Ints

    def macro_f1(self, among: Ints | None = None) -> float:
        """Mean F1 in percent of the labels that occur in the truth (and in the mask `among`)."""
        kept = self.true > 0 if among is None else (self.true > 0) & among
        f1 = 2 * self.correct[kept] / (self.predicted[kept] + self.true[kept])
        return percent(float(f1.sum()), f1.size)

    def coverage(self, among: Ints | None = None) -> float:
        """Percent of the labels in the truth (and in the mask `among`) that are predicted correctly at least once."""
        kept = self.true > 0 if among is None else (self.true > 0) & among
        return percent(int(np.count_nonzero(self.correct[kept])), int(np.count_nonzero(kept)))


def count_by_label(marked: MarkedPredictions, k: int | None = None) -> LabelCounts:
    """(n_labels,) counts over the first k predictions of each document, over all predictions if None."""
    seen = slice(None) if k is None else marked.ranks < k
    best, hits = marked.best[seen], marked.hits[seen].astype(bool)
    return LabelCounts(*(np.bincount(labels, minlength=marked.n_labels) for labels in (marked.truth, best, best[hits])))


def check_weights(weights: Sequence[float] | Floats, n_labels: int) -> Floats:
    """Inverse propensities as an array, one per label of the truth."""
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as err:
        raise DataError("inverse_propensity holds something else than numbers; give one for each label") from err
    if array.shape != (n_labels,):
        raise DataError(
            f"inverse_propensity has shape {array.shape} but Y has {n_labels} columns; "
            "compute it from training labels with the same columns"
        )
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise DataError("inverse_propensity holds a weight that is not a finite number above 0")
    return array
