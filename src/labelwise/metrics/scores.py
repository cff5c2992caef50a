"""One function per metric, in percent. Definitions and conventions are in the docstring of `labelwise.metrics`."""

from collections.abc import Sequence

from labelwise.metrics.relevance import MarkedPredictions, Scored, check_k, mark_predictions
from labelwise.metrics.tally import RATIOS, check_weights, count_by_label, percent, tally_gains
from labelwise.types import Csr, Floats


def precision_at_k(Y: Csr, Y_pred: Scored, k: int = 5) -> float:
    """Percent of the k best predictions that are correct, averaged over documents.

    Parameters
    ----------
    Y
        (n_docs, n_labels) true labels.
    Y_pred
        (n_docs, n_labels) scores, or a `Predictions` object; every stored value is a prediction.
    k
        Number of best predictions that count; where there are fewer, the missing ones are wrong.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from labelwise import precision_at_k
    >>> Y = csr_array([[1, 1, 0], [0, 0, 1]])
    >>> precision_at_k(Y, csr_array([[0.9, 0.1, 0.5], [0.2, 0.8, 0]]), k=2)
    25.0
    """
    return _ratio("P", mark_predictions(Y, Y_pred, k), k)


def recall_at_k(Y: Csr, Y_pred: Scored, k: int = 5) -> float:
    """Percent of a document's true labels among its k best predictions, averaged over documents."""
    return _ratio("R", mark_predictions(Y, Y_pred, k), k)


def ndcg_at_k(Y: Csr, Y_pred: Scored, k: int = 5) -> float:
    """Normalised discounted cumulative gain of the k best predictions, in percent, averaged over documents."""
    return _ratio("nDCG", mark_predictions(Y, Y_pred, k), k)


def r_precision_at_k(Y: Csr, Y_pred: Scored, k: int = 5) -> float:
    """Percent of min(k, number of true labels) reached by the k best predictions, averaged over documents."""
    return _ratio("RP", mark_predictions(Y, Y_pred, k), k)


def psp_at_k(Y: Csr, Y_pred: Scored, inverse_propensity: Sequence[float] | Floats, k: int = 5) -> float:
    """Propensity-scored precision: the weight of the labels found, in percent of the best possible one.

    Parameters
    ----------
    inverse_propensity
        (n_labels,) weights of the labels, from `inverse_propensity`.
    """
    marked = mark_predictions(Y, Y_pred, k)
    return _ratio("PSP", marked, k, check_weights(inverse_propensity, Y.shape[1]))


def psndcg_at_k(Y: Csr, Y_pred: Scored, inverse_propensity: Sequence[float] | Floats, k: int = 5) -> float:
    """Propensity-scored nDCG, in percent of the best possible one; `inverse_propensity` as in `psp_at_k`."""
    marked = mark_predictions(Y, Y_pred, k)
    return _ratio("PSnDCG", marked, k, check_weights(inverse_propensity, Y.shape[1]))


def micro_f1(Y: Csr, Y_pred: Scored, *, k: int | None = None, threshold: float | None = None) -> float:
    """F1 in percent over all pairs of document and label.

    The predictions of a document are its `k` best labels with a score of at least `threshold`; without `k` and
    `threshold`, all stored labels.
    """
    marked = mark_predictions(Y, Y_pred, k, threshold=threshold)
    return _ratio("micro-F1", marked, marked.longest if k is None else k)


def macro_f1(Y: Csr, Y_pred: Scored, *, k: int | None = None, threshold: float | None = None) -> float:
    """F1 in percent, averaged over the labels that occur in Y; `k` and `threshold` as in `micro_f1`."""
    return count_by_label(mark_predictions(Y, Y_pred, k, threshold=threshold)).macro_f1()


def coverage_at_k(Y: Csr, Y_pred: Scored, k: int = 5) -> float:
    """Percent of the labels in Y that are predicted correctly, among the k best, for at least one document."""
    return count_by_label(mark_predictions(Y, Y_pred, k)).coverage()


def _ratio(name: str, marked: MarkedPredictions, k: int, weights: Floats | None = None) -> float:
    total, _ = tally_gains(marked, (check_k(k),), weights)
    numerator, denominator = RATIOS[name](total, 0)
    return percent(float(numerator.sum()), float(denominator.sum()))
