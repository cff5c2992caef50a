"""One function per metric, in percent. What each means, and its conventions, is told in `labelwise.metrics`."""

from collections.abc import Sequence

from labelwise.metrics.relevance import Judged, Scored, check_k, judge
from labelwise.metrics.tally import RATIOS, check_weights, count_by_label, percent, tally
from labelwise.types import Csr, Floats


def precision_at_k(Y: Csr, Y_pred: Scored, k: int = 5) -> float:
    """Percent of the k best predictions that are right, averaged over documents.

    Parameters
    ----------
    Y
        (n_docs, n_labels) true labels.
    Y_pred
        (n_docs, n_labels) scores; what is stored is predicted. A `Predictions` object will do.
    k
        How many of the best predictions to look at; where there are fewer, the missing ones are wrong.

    Examples
    --------
    >>> Y = csr_array([[1, 1, 0], [0, 0, 1]])
    >>> precision_at_k(Y, csr_array([[0.9, 0.1, 0.5], [0.2, 0.8, 0]]), k=2)
    25.0
    """
    return _ratio("P", judge(Y, Y_pred, k), k)


def recall_at_k(Y: Csr, Y_pred: Scored, k: int = 5) -> float:
    """Percent of a document's true labels among its k best predictions, averaged over documents."""
    return _ratio("R", judge(Y, Y_pred, k), k)


def ndcg_at_k(Y: Csr, Y_pred: Scored, k: int = 5) -> float:
    """Normalised discounted cumulative gain of the k best predictions, in percent, averaged over documents."""
    return _ratio("nDCG", judge(Y, Y_pred, k), k)


def r_precision_at_k(Y: Csr, Y_pred: Scored, k: int = 5) -> float:
    """Percent of min(k, number of true labels) reached by the k best predictions, averaged over documents."""
    return _ratio("RP", judge(Y, Y_pred, k), k)


def psp_at_k(Y: Csr, Y_pred: Scored, inverse_propensity: Sequence[float] | Floats, k: int = 5) -> float:
    """Propensity-scored precision: the weight of the labels found, in percent of the best that was possible.

    Parameters
    ----------
    inverse_propensity
        (n_labels,) weights of the labels, from `inverse_propensity`.
    """
    judged = judge(Y, Y_pred, k)
    return _ratio("PSP", judged, k, check_weights(inverse_propensity, Y.shape[1]))


def psndcg_at_k(Y: Csr, Y_pred: Scored, inverse_propensity: Sequence[float] | Floats, k: int = 5) -> float:
    """Propensity-scored nDCG, in percent of the best that was possible; `inverse_propensity` as in `psp_at_k`."""
    judged = judge(Y, Y_pred, k)
    return _ratio("PSnDCG", judged, k, check_weights(inverse_propensity, Y.shape[1]))


def micro_f1(Y: Csr, Y_pred: Scored, *, k: int | None = None, threshold: float | None = None) -> float:
    """F1 in percent over all pairs of document and label.

    Predicted are the `k` best of each document with a score of at least `threshold`; either may be left out,
    and without both everything that is stored is predicted.
    """
    judged = judge(Y, Y_pred, k, threshold=threshold)
    return _ratio("micro-F1", judged, judged.longest if k is None else k)


def macro_f1(Y: Csr, Y_pred: Scored, *, k: int | None = None, threshold: float | None = None) -> float:
    """F1 in percent of each label that occurs in Y, averaged over these; `k` and `threshold` as in `micro_f1`."""
    return count_by_label(judge(Y, Y_pred, k, threshold=threshold)).macro_f1()


def coverage_at_k(Y: Csr, Y_pred: Scored, k: int = 5) -> float:
    """Percent of the labels in Y that are rightly predicted for at least one document, within its k best."""
    return count_by_label(judge(Y, Y_pred, k)).coverage()


def _ratio(name: str, judged: Judged, k: int, weights: Floats | None = None) -> float:
    total, _ = tally(judged, (check_k(k),), weights)
    numerator, denominator = RATIOS[name](total, 0)
    return percent(float(numerator.sum()), float(denominator.sum()))
