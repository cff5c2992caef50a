"""The recall of a matcher: the share of the true clusters that it finds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labelwise.types import Csr


def recall_at(found: Csr, M: Csr, tops: Sequence[int]) -> dict[int, float]:
    """The share of a document's true clusters among its best, in percent, averaged over documents that have any.

    Parameters
    ----------
    found : (n_docs, n_clusters) scores of the clusters that were found
    M : (n_docs, n_clusters) the true ones
    tops : how many of the best to look at
    """
    counts = np.diff(found.indptr)
    rows = np.repeat(np.arange(found.shape[0]), counts)
    order = np.lexsort((found.indices, -found.data, rows))
    rank = np.arange(found.nnz) - np.repeat(found.indptr[:-1], counts)
    keys = rows[order].astype(np.int64) * found.shape[1] + found.indices[order]
    true_rows = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))
    right = np.isin(keys, true_rows.astype(np.int64) * M.shape[1] + M.indices)
    n_true = np.diff(M.indptr)
    known = n_true > 0
    recalls = {}
    for top in tops:
        hits = np.bincount(rows[order][right & (rank < top)], minlength=M.shape[0])
        recalls[top] = float(100 * np.mean(hits[known] / n_true[known])) if known.any() else 0.0
    return recalls


def mean_recall(found: Csr, M: Csr, tops: Sequence[int], groups: Sequence[int]) -> float:
    """The mean of `recall_at` over cut-offs and over groups of clusters that lie side by side."""
    ends = np.cumsum(groups).tolist()
    recalls = [
        value
        for begin, end in zip([0, *ends[:-1]], ends, strict=True)
        for value in recall_at(Csr(found[:, begin:end]), Csr(M[:, begin:end]), tops).values()
    ]
    return float(np.mean(recalls))
