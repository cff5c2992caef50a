"""A table of terms: an open-addressing map from 64-bit hashes to term numbers, and work on the terms' bytes."""

import numpy as np

from labelwise.engines.kernel_cache import njit

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def find_terms(keys, values, hashes):
    """Numbers of the terms with these hashes, -1 for those the table does not hold.

    Parameters
    ----------
    keys : (capacity,) uint64, zero where empty; the capacity is a power of two
    values : (capacity,) int32
    hashes : (n,) uint64
    """
    found = np.empty(hashes.size, np.int64)
    mask = np.uint64(keys.size - 1)
    for i in range(hashes.size):
        h = hashes[i]
        slot = h & mask
        while keys[slot] != h and keys[slot] != _ZERO:
            slot = (slot + _ONE) & mask
        found[i] = values[slot] if keys[slot] == h else -1
    return found


@njit(cache=True, nogil=True)
def add_terms(hashes, n_terms, keys_out, values_out):
    """Numbers of the terms with these hashes; new ones are entered and numbered from `n_terms` on.

    The caller has made sure that the table keeps free slots.
    """
    found = np.empty(hashes.size, np.int64)
    mask = np.uint64(keys_out.size - 1)
    for i in range(hashes.size):
        h = hashes[i]
        slot = h & mask
        while keys_out[slot] != h and keys_out[slot] != _ZERO:
            slot = (slot + _ONE) & mask
        if keys_out[slot] == _ZERO:
            keys_out[slot] = h
            values_out[slot] = n_terms
            n_terms += 1
        found[i] = values_out[slot]
    return found


@njit(cache=True, nogil=True)
def eight_letters(letters, starts, ends, skip):
    """Bytes `skip` to `skip + 8` of every term as one big-endian number, padded with zeros.

    Parameters
    ----------
    letters : (n_bytes,) uint8
    starts, ends : (n_terms,) int64, the span of each term
    """
    keys = np.zeros(starts.size, np.uint64)
    for term in range(starts.size):
        begin = starts[term] + skip
        key = np.uint64(0)
        for i in range(8):
            key <<= np.uint64(8)
            if begin + i < ends[term]:
                key |= np.uint64(letters[begin + i])
        keys[term] = key
    return keys


@njit(cache=True, nogil=True)
def gather_letters(letters, starts, ends):
    """The bytes of the given spans, one after the other."""
    total = 0
    for term in range(starts.size):
        total += ends[term] - starts[term]
    gathered = np.empty(total, np.uint8)
    out = 0
    for term in range(starts.size):
        for i in range(starts[term], ends[term]):
            gathered[out] = letters[i]
            out += 1
    return gathered
