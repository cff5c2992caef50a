"""Predictions against the truth: checked, ranked, and each marked as correct or wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from labelwise.config.settings import Count, checked_value
from labelwise.errors import DataError, UsageError
from labelwise.features.matrices import check_finite, check_label_values, checked_csr, sorted_copy
from labelwise.features.texts import is_collection, type_and_value
from labelwise.kernels.metrics import mark_hits
from labelwise.predictions import Predictions
from labelwise.predictions.ranking import at_least, rank_best
from labelwise.types import Csr, Floats, Ints

Scored: TypeAlias = Csr | Predictions
"""(n_docs, n_labels) scores of the best labels, as a matrix or as the `Predictions` of a model."""


@dataclass(frozen=True, eq=False)
class MarkedPredictions:
    """Ranked predictions and the truth as flat arrays: row i of an array is ``array[indptr[i]:indptr[i + 1]]``."""

    n_labels: int
    """Columns of the wider of both matrices; labels that only the predictions know follow those of the truth."""
    indptr: Ints
    """(n_docs + 1,) rows of `truth`."""
    truth: Ints
    """True labels, ascending in each row; uint32, as are the ranked ones."""
    best_indptr: Ints
    """(n_docs + 1,) rows of `best`, `hits` and `scores`."""
    best: Ints
    """Predicted labels, best first in each row."""
    hits: Ints
    """1 where the predicted label is true; uint8."""
    scores: Floats
    """Score of each predicted label."""

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return self.indptr.size - 1

    @property
    def longest(self) -> int:
        """Largest number of predictions of a document, at least 1: a cut-off that cuts nothing."""
        return max(1, int(np.diff(self.best_indptr).max()))

    @cached_property
    def ranks(self) -> Ints:
        """Position of each predicted label in its row, from 0."""
        return np.arange(self.best.size) - np.repeat(self.best_indptr[:-1], np.diff(self.best_indptr))

    @cached_property
    def digest(self) -> str:
        """Hash of the truth, by which two evaluations of the same documents are recognised."""
        seen = blake2b(digest_size=16)
        seen.update(self.indptr.tobytes())
        seen.update(self.truth.tobytes())
        return seen.hexdigest()


def mark_predictions(Y: Csr, Y_pred: Scored, k: int | None, *, threshold: float | None = None) -> MarkedPredictions:
    """Rank the predictions and mark the correct ones. Neither input is changed.

    Parameters
    ----------
    Y
        (n_docs, n_labels) true labels; every stored value except 0 counts as 1.
    Y_pred
        (n_docs, n_labels) scores, in any order in a row; every stored value is a prediction, zeros and negative scores
        too.
    k
        Keep the k best predictions of each row; if None, all of them, unranked.
    threshold
        Keep only predictions with at least this score.
    """
    matrix, known = (Y_pred.matrix, Y_pred.n_known) if isinstance(Y_pred, Predictions) else (Y_pred, None)
    truth, scored = _canonical(Y, "Y", binary=True), _canonical(matrix, "Y_pred", binary=False)
    if truth.shape[0] != scored.shape[0]:
        raise DataError(
            f"Y_pred has {scored.shape[0]} rows but Y has {truth.shape[0]}; "
            "pass the predictions of the documents that Y describes, in the same order"
        )
    if truth.shape[0] == 0:
        raise DataError("Y has no rows; there is nothing to evaluate")
    if truth.shape[1] != (scored.shape[1] if known is None else known):
        raise DataError(
            f"Y_pred has {scored.shape[1] if known is None else known} columns but Y has {truth.shape[1]}; "
            "lay both over the same labels, in the same order: Dataset.with_labels and Predictions.with_labels do it"
        )
    if threshold is not None:
        threshold = checked_value(float, threshold, "threshold")
        scored = at_least(scored, threshold)
    best_indptr: Ints
    if k is None:
        best_indptr, best, scores = scored.indptr.astype(np.int64), scored.indices, scored.data
    else:
        best_indptr, positions = rank_best(scored, check_k(k))
        best, scores = scored.indices[positions], scored.data[positions]
    indptr = truth.indptr.astype(np.int64)
    # Kernels want unsigned labels; scipy makes them int64 wherever indptr is.
    labels, ranked = (found.astype(np.int32, copy=False).view(np.uint32) for found in (truth.indices, best))
    hits = np.empty(ranked.size, dtype=np.uint8)
    mark_hits(indptr, labels, best_indptr, ranked, hits)
    return MarkedPredictions(max(truth.shape[1], scored.shape[1]), indptr, labels, best_indptr, ranked, hits, scores)


def check_k(k: int) -> int:
    """A checked cut-off as an int."""
    found: int = checked_value(Count, k, "k")
    return found


def check_ks(ks: Sequence[int]) -> tuple[int, ...]:
    """Checked cut-offs, ascending and distinct."""
    if not is_collection(ks):
        raise UsageError(f"ks is {type_and_value(ks)}; give a list of cut-offs, such as (1, 3, 5)")
    ks = list(ks)
    if not ks:
        raise UsageError("ks is empty; give at least one cut-off, such as (1, 3, 5)")
    return tuple(sorted({check_k(k) for k in ks}))


def checked_truth(Y: Csr, name: str = "Y") -> Csr:
    """True labels as CSR of ones, sorted and without duplicates."""
    return _canonical(Y, name, binary=True)


def count_labels(train: Csr | Sequence[int] | Ints, *, name: str = "Y_train") -> Ints:
    """(n_labels,) number of training documents of each label, from the training label matrix or from counts."""
    if sp.issparse(train):
        csr = _canonical(train, name, binary=True)
        return np.bincount(csr.indices, minlength=csr.shape[1])
    try:
        counts = np.asarray(train)
    except ValueError as err:  # lists of different lengths
        raise DataError(f"{name} is neither a sparse label matrix nor a list of label counts") from err
    if counts.ndim != 1 or counts.dtype.kind not in "iuf" or (counts < 0).any():
        raise DataError(f"{name} is neither a sparse label matrix nor a list of label counts, one 0 or more per label")
    return counts


def _canonical(matrix: Csr, name: str, *, binary: bool) -> Csr:
    """The matrix as CSR, sorted and without duplicates; a copy unless it is so already."""
    csr, is_sorted = checked_csr(matrix, name)
    if binary:
        check_label_values(csr, name)
    else:
        check_finite(csr, name, "leave an entry out where there is no prediction")
    if binary and not csr.data.all():
        csr = sp.csr_array((csr.data.copy(), csr.indices.copy(), csr.indptr.copy()), shape=csr.shape)
        csr.eliminate_zeros()
    if binary:
        csr = sp.csr_array((np.ones(csr.indices.size, dtype=np.float32), csr.indices, csr.indptr), shape=csr.shape)
    return csr if is_sorted else sorted_copy(csr)
