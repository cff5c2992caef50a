"""The best entries of every row of a sparse matrix, or those above a score; equal scores go to the lower column."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from labelwise.kernels.metrics import rank_rows
from labelwise.types import Csr, Ints

LONG_RANKING = 64
"""Past this many places per row a plain sort beats the kernel's insertion."""


def rank_best(matrix: Csr, k: int) -> tuple[Ints, Ints]:
    """The `k` best entries of every row: an indptr, and positions in `matrix.data`, best first in each row."""
    indptr = matrix.indptr.astype(np.int64)
    best_indptr = np.zeros_like(indptr)
    np.cumsum(np.minimum(np.diff(indptr), k), out=best_indptr[1:])
    if k > LONG_RANKING:
        keep = np.arange(matrix.nnz) - np.repeat(indptr[:-1], np.diff(indptr)) < k
        return best_indptr, rank_all(matrix)[keep]
    data = matrix.data if matrix.data.dtype in (np.float32, np.float64) else matrix.data.astype(np.float64)
    best = np.empty(best_indptr[-1], dtype=np.int64)
    rank_rows(indptr, matrix.indices, data, best_indptr, best)
    return best_indptr, best


def rank_all(matrix: Csr) -> Ints:
    """Positions in `matrix.data` of all entries, row by row, best first; equal scores by column."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return np.lexsort((matrix.indices, -matrix.data.astype(np.float64, copy=False), rows))


def keep_best(matrix: Csr, k: int) -> Csr:
    """The same rows with only their `k` best entries; the input is left as it was."""
    indptr, best = rank_best(matrix, k)
    kept = sp.csr_array((matrix.data[best], matrix.indices[best], indptr), shape=matrix.shape)
    kept.sort_indices()
    return kept


def at_least(matrix: Csr, score: float) -> Csr:
    """The same rows with only the entries of at least this score; the input is left as it was."""
    kept = matrix.data >= score
    indptr = np.concatenate(([0], np.cumsum(kept)))[matrix.indptr]
    return sp.csr_array((matrix.data[kept], matrix.indices[kept], indptr), shape=matrix.shape)


def mean_best(parts: Sequence[Csr], top_k: int) -> Csr:
    """(n_docs, n_labels) the best labels by the mean of several lists; one that a list does not have counts 0 there."""
    return keep_best(sp.csr_array(sum(parts[1:], start=parts[0]) * np.float32(1 / len(parts))), top_k)
