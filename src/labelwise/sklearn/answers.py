"""Scores as scikit-learn wants them: indicator matrices, decision values and probabilities, sparse or dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.predictions.ranking import keep_best
from labelwise.types import Csr


def chosen_labels(probabilities: Csr, *, threshold: float | None, top_k: int | None) -> Csr:
    """(n_docs, n_labels) 1 where a label is likely enough and among the best."""
    kept = probabilities if top_k is None else keep_best(probabilities, top_k)
    good = np.ones(len(kept.data), np.bool_) if threshold is None else kept.data >= threshold
    rows = np.repeat(np.arange(kept.shape[0]), np.diff(kept.indptr))[good]
    ones = np.ones(int(good.sum()), np.int64)
    return Csr((ones, (rows, kept.indices[good])), shape=kept.shape)


def filled(scores: Csr) -> npt.NDArray[np.float64]:
    """Dense scores; what was not found counts as 0, or as the worst that was found where scores can be negative."""
    dense = np.zeros(scores.shape)
    rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    if scores.nnz and scores.data.min() < 0:
        worst = np.zeros(scores.shape[0])
        np.minimum.at(worst, rows, scores.data)
        dense += worst[:, None]
    dense[rows, scores.indices] = scores.data
    return dense


def shares(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Rows that sum to 1; equal shares where nothing was found."""
    total = probabilities.sum(axis=1, keepdims=True)
    equal = np.full_like(probabilities, 1 / probabilities.shape[1])
    np.divide(probabilities, total, out=equal, where=total > 0)
    return equal


def formed(matrix: Csr, *, sparse: bool) -> Any:
    """A matrix in the form that is wanted."""
    return sp.csr_matrix(matrix) if sparse else matrix.toarray()
