"""Trained weights to their sparse form."""

import numpy as np

from labelwise.engines.kernel_cache import njit


@njit(cache=True, nogil=True)
def prune_block(W, order, limits):
    """The weights of a block that reach their label's limit, row by row.

    Parameters
    ----------
    W : (n_local, n_labels) float32
    order : (n_local,) the rows in the order wanted
    limits : (n_labels,) float32, least absolute value of a label's weights; zeros are dropped in any case

    Returns
    -------
    rows : (n_rows,) int64, the rows of W with any weight left
    ends : (n_rows,) uint32, where each row's entries end
    children : (n_entries,) uint32
    values : (n_entries,) float32
    """
    n_entries = 0
    n_rows = 0
    for at in range(order.size):
        w = W[order[at]]
        before = n_entries
        for c in range(w.size):
            n_entries += (abs(w[c]) >= limits[c]) & (w[c] != 0)
        n_rows += n_entries > before
    rows = np.empty(n_rows, np.int64)
    ends = np.empty(n_rows, np.uint32)
    children = np.empty(n_entries, np.uint32)
    values = np.empty(n_entries, np.float32)
    entry = 0
    row = 0
    for at in range(order.size):
        w = W[order[at]]
        before = entry
        for c in range(w.size):
            if abs(w[c]) >= limits[c] and w[c] != 0:
                children[entry] = c
                values[entry] = w[c]
                entry += 1
        if entry > before:
            rows[row] = order[at]
            ends[row] = entry
            row += 1
    return rows, ends, children, values


@njit(cache=True, nogil=True)
def mark_labels(indptr, indices, rows, parents, places, parent, signs_out):
    """Set signs_out[i, place] to 1 for every label of document rows[i] that is a child of `parent`.

    Parameters
    ----------
    indptr, indices : Y, CSR
    rows : (n_rows,) int64
    parents : (n_labels,) int32, the parent of each label
    places : (n_labels,) int32, its place among the parent's children
    parent : int
    signs_out : (n_rows, n_children) int8, preset to -1; labels whose place is outside, or preset to 0, are passed over
    """
    for i in range(rows.size):
        for k in range(indptr[rows[i]], indptr[rows[i] + 1]):
            label = indices[k]
            place = places[label]
            if parents[label] == parent and 0 <= place < signs_out.shape[1] and signs_out[i, place] != 0:
                signs_out[i, place] = 1
