"""Which documents a label's model learns from: those of its cluster.

A document that has a label of a cluster is a *teacher-forcing* negative (TFN) for the cluster's other labels; one that
the matcher would send to the cluster is a *matcher-aware* negative (MAN), the kind met when predicting (paper, 3.3).
"""

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.types import Csr


def teacher_forcing(Y: Csr, parents: npt.NDArray[np.int32], n_parents: int) -> Csr:
    """M = binarise(Y C): the parents of each document's labels.

    Parameters
    ----------
    Y : (n_docs, n_labels)
    parents : (n_labels,) the parent of each label

    Returns
    -------
    M : (n_docs, n_parents), 1 where a document has a label below the parent
    """
    # Summing duplicates moves indptr in place: Y keeps its own.
    M = sp.csr_array((np.ones(Y.nnz, np.float32), parents[Y.indices], Y.indptr.copy()), shape=(Y.shape[0], n_parents))
    M.sum_duplicates()
    M.data[:] = 1
    return M


def matcher_aware(scores: Csr, top_b: int | None = None) -> Csr:
    """The `top_b` parents with the highest scores of each document, or all that have one, as a 0/1 matrix."""
    if top_b is None:
        return sp.csr_array((np.ones(scores.nnz, np.float32), scores.indices, scores.indptr), shape=scores.shape)
    counts = np.diff(scores.indptr)
    rows = np.repeat(np.arange(scores.shape[0]), counts)
    order = np.lexsort((scores.indices, -scores.data, rows))
    rank = np.arange(scores.nnz) - np.repeat(scores.indptr[:-1], counts)
    kept = order[rank < top_b]
    return sp.csr_array((np.ones(len(kept), np.float32), (rows[kept], scores.indices[kept])), shape=scores.shape)


def both(teacher: Csr, matcher: Csr) -> Csr:
    """The union of two 0/1 matrices."""
    M = sp.csr_array(teacher + matcher)
    M.sort_indices()  # which they are not where those of a matrix were not
    M.data[:] = 1
    return M
