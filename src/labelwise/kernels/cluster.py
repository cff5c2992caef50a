"""Spherical k-means: scores of labels against centres, sums of labels, and the rows of a node in compact form."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def gather_rows(rows, indptr, indices, data, counts):
    """Copy some rows, their columns numbered anew, so that the work on them touches little memory.

    Columns that a single row has are folded into one, whose value is their length: products among the rows stay what
    they are, and a row has at most one such column of its own.

    Parameters
    ----------
    rows : (n_rows,) which ones
    indptr, indices, data : CSR rows, indices as uint32
    counts : (n_features,) int32, all zero, and zero again afterwards

    Returns
    -------
    new_indptr : (n_rows + 1,) int64
    new_indices : (nnz,) uint32
    new_data : (nnz,) float32
    n_columns : the new width
    """
    n_entries = 0
    for row in rows:
        cols = indices[indptr[row] : indptr[row + 1]]
        n_entries += cols.size
        for k in range(cols.size):
            counts[cols[k]] += 1
    new_indptr = np.zeros(rows.size + 1, np.int64)
    new_indices = np.empty(n_entries + rows.size, np.uint32)
    new_data = np.empty(n_entries + rows.size, np.float32)
    n_columns = n_done = 0
    for i in range(rows.size):
        cols = indices[indptr[rows[i]] : indptr[rows[i] + 1]]
        vals = data[indptr[rows[i]] : indptr[rows[i] + 1]]
        own = 0.0
        for k in range(cols.size):
            count = counts[cols[k]]
            if count == 1:
                own += np.float64(vals[k]) * vals[k]
                continue
            if count > 1:  # met for the first time: from now on the new number, as a negative one
                count = -1 - n_columns
                counts[cols[k]] = count
                n_columns += 1
            new_indices[n_done] = -1 - count
            new_data[n_done] = vals[k]
            n_done += 1
        if own > 0.0:
            new_indices[n_done] = n_columns
            new_data[n_done] = np.sqrt(own)
            n_columns += 1
            n_done += 1
        new_indptr[i + 1] = n_done
    for row in rows:
        cols = indices[indptr[row] : indptr[row + 1]]
        for k in range(cols.size):
            counts[cols[k]] = 0
    return new_indptr, new_indices[:n_done], new_data[:n_done], n_columns


@njit(cache=True, nogil=True, fastmath=True)
def score_rows(rows, indptr, indices, data, direction, scores_out):
    """Products of sparse rows with one dense vector.

    Parameters
    ----------
    rows : (n_rows,) which ones
    indptr, indices, data : CSR rows, indices as uint32
    direction : (n_features,) float32
    scores_out : (n_rows,) float32
    """
    for i in range(rows.size):
        cols = indices[indptr[rows[i]] : indptr[rows[i] + 1]]
        vals = data[indptr[rows[i]] : indptr[rows[i] + 1]]
        score = np.float32(0.0)
        for k in range(cols.size):
            score += vals[k] * direction[cols[k]]
        scores_out[i] = score


@njit(cache=True, nogil=True)
def add_rows(rows, indptr, indices, data, weights, sums_out):
    """Add sparse rows, each times its weight, to a dense vector.

    Parameters
    ----------
    rows : (n_rows,) which ones
    indptr, indices, data : CSR rows, indices as uint32
    weights : (n_rows,) float32; rows of weight zero cost nothing
    sums_out : (n_features,) float32
    """
    for i in range(rows.size):
        weight = weights[i]
        if weight == 0.0:
            continue
        cols = indices[indptr[rows[i]] : indptr[rows[i] + 1]]
        vals = data[indptr[rows[i]] : indptr[rows[i] + 1]]
        for k in range(cols.size):
            sums_out[cols[k]] += weight * vals[k]


@njit(cache=True, nogil=True, fastmath=True)
def score_dense(rows, Z, direction, scores_out):
    """`score_rows` for dense rows, Z of (n_labels, n_features) float32."""
    for i in range(rows.size):
        vals = Z[rows[i]]
        score = np.float32(0.0)
        for k in range(vals.size):
            score += vals[k] * direction[k]
        scores_out[i] = score


@njit(cache=True, nogil=True)
def add_dense(rows, Z, weights, sums_out):
    """`add_rows` for dense rows, Z of (n_labels, n_features) float32."""
    for i in range(rows.size):
        weight = weights[i]
        if weight == 0.0:
            continue
        vals = Z[rows[i]]
        for k in range(vals.size):
            sums_out[k] += weight * vals[k]


@njit(cache=True, nogil=True, fastmath=True)
def aim(left, total, direction_out):
    """The difference of two normalised centres, the first the sum `left`, the second the rest of `total`.

    Parameters
    ----------
    left, total : (n_features,) float32
    direction_out : (n_features,) float32

    Returns
    -------
    objective : the sum of the cosines of all members to their centre, members being of length one
    """
    a = b = 0.0
    for k in range(left.size):
        rest = total[k] - left[k]
        a += left[k] * left[k]
        b += rest * rest
    a, b = np.sqrt(a), np.sqrt(b)
    scale = np.float32(1.0 / a) if a > 0.0 else np.float32(0.0)
    rest_scale = np.float32(1.0 / b) if b > 0.0 else np.float32(0.0)
    for k in range(left.size):
        direction_out[k] = left[k] * scale - (total[k] - left[k]) * rest_scale
    return a + b
