"""Metrics of predictions: P, R, nDCG, RP, PSP, PSnDCG at k, micro and macro F1, label coverage. All in percent.

The truth ``Y`` and the scores ``Y_pred`` are (n_docs, n_labels) sparse. In Y, every stored value except 0 counts as 1.
In Y_pred, every stored value is a prediction, explicit zeros and negative scores too; the k best of a row count, equal
scores by column. Where a row has fewer than k predictions, the missing ones are wrong. Let h be the number of correct
labels among the first k of a document, t the number of its true labels, and a "gain" the sum of 1 / log2(1 + rank)
over the ranks of the correct ones.

============ =================================== ==========================================================
metric       of a document                       over documents
============ =================================== ==========================================================
P@k          h / k                               mean
R@k          h / t                               mean
nDCG@k       gain / gain of min(k, t) correct    mean
RP@k         h / min(k, t)                       mean; R-precision as EURLEX57K's authors use it
PSP@k        weight of the correct labels        sum, over the sum of the k heaviest true labels' weights
PSnDCG@k     weighted gain / gain of min(k, t)   sum, over that sum for the true labels, heaviest first
micro-F1@k   2 h                                 sum, over the sum of t + number of predictions
============ =================================== ==========================================================

- A document without true labels counts 0 in every mean; it is not left out.
- The weight of a label is its inverse propensity (`inverse_propensity`). PSP and PSnDCG are normalised by the best
  possible ranking of the whole test set, as the Extreme Classification Repository does: one ratio of sums, not a
  mean of ratios.
- macro-F1@k is the mean F1 of the labels that occur in Y, coverage@k the share of these labels that is correctly
  predicted for at least one document. Neither is a sum over documents; a resample would miss a third of the labels
  that occur once, and its figure would be too low, so these two metrics have no interval.
- A figure is nan where there is nothing to measure, such as PSP without any true label.

**By label frequency** (`BUCKETS`), over the labels of a bucket only: P, PSP and PSnDCG count correct predictions of
these labels and keep the denominator, so that the buckets add up to the whole. R, nDCG and RP take the true labels of
the bucket as the truth, are averaged over the documents that have one, and keep the ranks of the whole list (a tail
label at rank 3 is at rank 3, so nDCG need not reach 100). micro-F1 takes predictions and true labels of the bucket;
macro-F1 and coverage its labels.

**Intervals** are 95 % percentile intervals of the bootstrap over documents: they cover the choice of test documents,
not that of training runs.

**Calibration** is a property of probabilities: how many of the labels with a probability of 80 % are correct? Every
stored prediction counts once, whatever its rank. The predictions are put into bins by their probability, and the error
is the mean distance between the mean probability of a bin and its share of correct predictions, weighted by the size of
the bins: 0 is perfect, and the more bins, the more random noise adds to the error.
"""

from labelwise.metrics.buckets import BUCKETS
from labelwise.metrics.calibration import calibration_error, reliability_curve
from labelwise.metrics.evaluation import Bucket, Evaluation, Score, evaluate
from labelwise.metrics.intervals import Difference
from labelwise.metrics.paired import Comparison, compare
from labelwise.metrics.propensity import FAMILIES, Family, inverse_propensity
from labelwise.metrics.scores import (
    coverage_at_k,
    macro_f1,
    micro_f1,
    ndcg_at_k,
    precision_at_k,
    psndcg_at_k,
    psp_at_k,
    r_precision_at_k,
    recall_at_k,
)

__all__ = [
    "BUCKETS",
    "FAMILIES",
    "Bucket",
    "Comparison",
    "Difference",
    "Evaluation",
    "Family",
    "Score",
    "calibration_error",
    "compare",
    "coverage_at_k",
    "evaluate",
    "inverse_propensity",
    "macro_f1",
    "micro_f1",
    "ndcg_at_k",
    "precision_at_k",
    "psndcg_at_k",
    "psp_at_k",
    "r_precision_at_k",
    "recall_at_k",
    "reliability_curve",
]
