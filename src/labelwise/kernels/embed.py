"""Labels as sums of the features of their documents."""

import numpy as np

from labelwise.engines.kernel_cache import njit

_WORD = np.uint32(6)
_BIT = np.uint64(63)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)

# Multiplying a single bit by a de Bruijn number brings a different pattern to the top for each of its 64 places.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_TOP = np.uint64(58)
_PLACE = np.empty(64, np.int64)
with np.errstate(over="ignore"):
    _PLACE[[int((_ONE << np.uint64(place)) * _DE_BRUIJN >> _TOP) for place in range(64)]] = np.arange(64)


@njit(cache=True, nogil=True)
def sum_rows(docs_indptr, docs, votes, X_indptr, X_indices, X_data, n_features):
    """Sum the feature rows of each label's documents and scale the sums to length one.

    The sum of a label is gathered in a dense vector; a bit per feature tells what was touched, and reading the bits
    in their order gives sorted columns without a sort. Cost: a step per (label, document, feature), and a look at
    n_features / 64 words per label.

    Parameters
    ----------
    docs_indptr, docs : documents of each label of a block, (n_block + 1,) and uint32
    votes : (docs.size,) float32, the weight of each of these documents
    X_indptr, X_indices, X_data : features of all documents, indices as uint32
    n_features : width of X

    Returns
    -------
    indptr : (n_block + 1,) int64
    indices : (nnz,) int32, ascending within a row
    data : (nnz,) float32
    """
    n_block = docs_indptr.size - 1
    indptr = np.zeros(n_block + 1, np.int64)
    capacity = 1024
    indices, data = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
    total = np.zeros(n_features, np.float32)
    touched = np.zeros(n_features // 64 + 1, np.uint64)
    n_done = 0
    for label in range(n_block):
        for k in range(docs_indptr[label], docs_indptr[label + 1]):
            doc, vote = docs[k], votes[k]
            cols, vals = X_indices[X_indptr[doc] : X_indptr[doc + 1]], X_data[X_indptr[doc] : X_indptr[doc + 1]]
            for j in range(cols.size):
                total[cols[j]] += vote * vals[j]
                touched[cols[j] >> _WORD] |= _ONE << (np.uint64(cols[j]) & _BIT)
        begin = n_done
        square = 0.0
        for word in range(touched.size):
            bits = touched[word]
            if bits == _ZERO:
                continue
            touched[word] = _ZERO
            if n_done + 64 > capacity:
                capacity *= 2
                indices_old, data_old = indices, data
                indices, data = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
                indices[:n_done] = indices_old[:n_done]
                data[:n_done] = data_old[:n_done]
            while bits != _ZERO:
                lowest = bits & (~bits + _ONE)
                bits ^= lowest
                column = 64 * word + _PLACE[(lowest * _DE_BRUIJN) >> _TOP]
                value = total[column]
                if value != 0.0:  # else its documents cancel out
                    total[column] = 0.0
                    indices[n_done] = column
                    data[n_done] = value
                    square += np.float64(value) * value
                    n_done += 1
        if square > 0.0:
            scale = np.float32(1.0 / np.sqrt(square))
            for k in range(begin, n_done):
                data[k] *= scale
        indptr[label + 1] = n_done
    return indptr, indices[:n_done].copy(), data[:n_done].copy()
