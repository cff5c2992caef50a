"""Checks of large saved arrays in one pass each: what other kernels rely on without looking."""

import numpy as np

from labelwise.engines.kernel_cache import njit

ROWS_FALL, ROWS_END, CHILD_TOO_LARGE, FEATURE_TOO_LARGE = 1, 2, 3, 4
"""What `wrong_block` finds: features or ends of rows that do not rise; rows that end elsewhere than the entries of
their block; an entry of a child, and a row of a feature, that there is not."""
TABLE_VALUES, TABLE_FULL, TABLE_CROWDED = 1, 2, 3
"""What `wrong_table` finds: values that are no numbers of terms, or the same twice; more than half of the slots filled;
a key that cannot be found from where the search for it begins, or many filled slots in a row."""

_ZERO = np.uint64(0)


@njit(cache=True, nogil=True)
def wrong_block(child_indptr, row_indptr, row_feature, row_end, entry_indptr, entry_child, n_features):
    """The first block of a level whose rows or entries do not fit, and what is wrong with it: -1 and 0 for none.

    Parameters
    ----------
    child_indptr, row_indptr, row_feature, row_end, entry_indptr, entry_child
        Arrays of LevelWeights; each indptr rises from 0 to the length of its array.
    n_features : int
    """
    for parent in range(child_indptr.size - 1):
        n_children = child_indptr[parent + 1] - child_indptr[parent]
        n_entries = entry_indptr[parent + 1] - entry_indptr[parent]
        features = row_feature[row_indptr[parent] : row_indptr[parent + 1]]
        ends = row_end[row_indptr[parent] : row_indptr[parent + 1]]
        children = entry_child[entry_indptr[parent] : entry_indptr[parent + 1]]
        n_falls = 0
        for row in range(1, features.size):
            n_falls += (features[row] <= features[row - 1]) | (ends[row] < ends[row - 1])
        if n_falls:
            return parent, ROWS_FALL
        if (np.int64(ends[ends.size - 1]) if ends.size else 0) != n_entries:
            return parent, ROWS_END
        if features.size and np.int64(features[features.size - 1]) >= n_features:
            return parent, FEATURE_TOO_LARGE
        if children.size:
            largest = children[0]
            for entry in range(children.size):
                largest = max(largest, children[entry])
            if np.int64(largest) >= n_children:
                return parent, CHILD_TOO_LARGE
    return -1, 0


@njit(cache=True, nogil=True)
def largest_bits(bits, mask):
    """The largest of `bits & mask`: of floats seen as whole numbers without their sign, the bits of the largest one.

    Infinity has more bits than any number, and NaN more than infinity, so that a comparison finds both.

    Parameters
    ----------
    bits : (n,) uint16 or uint32
    mask : of the same type, all bits but the sign's
    """
    largest = bits.dtype.type(0)
    for i in range(bits.size):
        largest = max(largest, bits.dtype.type(bits[i] & mask))
    return largest


@njit(cache=True, nogil=True)
def wrong_table(keys, values, n_terms, longest):
    """What is wrong with the hash table of a vocabulary: 0 for nothing.

    Parameters
    ----------
    keys : (capacity,) uint64, zero where empty; the capacity is a power of two
    values : (capacity,) int32
    n_terms : int
    longest : int, the most filled slots in a row
    """
    capacity = keys.size
    mask = np.uint64(capacity - 1)
    seen = np.zeros(n_terms, np.bool_)
    n_filled = 0
    before = 0  # filled slots before the first one, which the search reaches round the end
    while before < capacity and keys[capacity - 1 - before] != _ZERO:
        before += 1
    run = before
    for slot in range(capacity):
        key = keys[slot]
        if key == _ZERO:
            run = 0
            continue
        value = values[slot]
        if value < 0 or value >= n_terms or seen[value]:
            return TABLE_VALUES
        seen[value] = True
        n_filled += 1
        if 2 * n_filled > capacity:
            return TABLE_FULL
        if run > longest or np.int64((np.uint64(slot) - key) & mask) > run:
            return TABLE_CROWDED
        run += 1
    return 0
