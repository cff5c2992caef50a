"""Hashed terms to weighted CSR rows: `tally` counts them per document, `arrange` lays the counts out as rows with
sorted columns, `weigh` makes tf-idf values of them.
"""

import numpy as np

from labelwise.engines.kernel_cache import njit

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def tally(hashes, indptr):
    """Count the terms of every document.

    Parameters
    ----------
    hashes : (n_tokens,) uint64, none zero
    indptr : (n_docs + 1,) int64

    Returns
    -------
    pair_indptr : (n_docs + 1,) int64
    pair_term : (n_pairs,) int32, block-local term numbers in order of first appearance
    pair_count : (n_pairs,) int32
    first : (n_terms,) int64, the token at which each term appeared first
    """
    n_docs = indptr.size - 1
    pair_indptr = np.zeros(n_docs + 1, np.int64)
    pair_term = np.empty(hashes.size, np.int32)
    pair_count = np.empty(hashes.size, np.int32)
    first = np.empty(hashes.size, np.int64)
    capacity = 64
    while capacity < 2 * hashes.size and capacity < 32768:
        capacity *= 2
    mask = np.uint64(capacity - 1)
    slot_hash = np.zeros(capacity, np.uint64)
    slot_pair = np.empty(capacity, np.int32)  # the latest pair of the slot's term
    n_pairs = 0
    n_terms = 0
    for doc in range(n_docs):
        doc_begin = n_pairs
        for token in range(indptr[doc], indptr[doc + 1]):
            h = hashes[token]
            slot = h & mask
            while slot_hash[slot] != h and slot_hash[slot] != _ZERO:
                slot = (slot + _ONE) & mask
            if slot_hash[slot] == h:
                pair = slot_pair[slot]
                if pair >= doc_begin:
                    pair_count[pair] += 1
                    continue
                pair_term[n_pairs] = pair_term[pair]
            else:
                slot_hash[slot] = h
                first[n_terms] = token
                pair_term[n_pairs] = n_terms
                n_terms += 1
            pair_count[n_pairs] = 1
            slot_pair[slot] = n_pairs
            n_pairs += 1
            if 2 * n_terms > capacity:
                old_hash, old_pair = slot_hash, slot_pair
                capacity *= 2
                mask = np.uint64(capacity - 1)
                slot_hash = np.zeros(capacity, np.uint64)
                slot_pair = np.empty(capacity, np.int32)
                for old in range(old_hash.size):
                    h = old_hash[old]
                    if h != _ZERO:
                        slot = h & mask
                        while slot_hash[slot] != _ZERO:
                            slot = (slot + _ONE) & mask
                        slot_hash[slot] = h
                        slot_pair[slot] = old_pair[old]
        pair_indptr[doc + 1] = n_pairs
    return pair_indptr, pair_term[:n_pairs].copy(), pair_count[:n_pairs].copy(), first[:n_terms].copy()


@njit(cache=True, nogil=True)
def arrange(pair_indptr, pair_term, pair_count, columns, order, indices_out, data_out):
    """Lay counted pairs out as CSR rows with ascending columns; terms without a column are left out.

    Sorting is done once per block over its terms instead of once per document: pairs are first gathered by
    term, then dealt out to their documents in column order.

    Parameters
    ----------
    pair_indptr, pair_term, pair_count : as `tally` returns them
    columns : (n_terms,) int64, -1 for a term that is left out
    order : (n_kept,) int64, the terms that have a column, by ascending column
    indices_out, data_out : (n_kept_pairs,) columns and counts

    Returns
    -------
    indptr : (n_docs + 1,) int64
    """
    n_docs = pair_indptr.size - 1
    indptr = np.zeros(n_docs + 1, np.int64)
    slot = np.zeros(columns.size + 1, np.int64)  # where the pairs of a term begin
    for doc in range(n_docs):
        for pair in range(pair_indptr[doc], pair_indptr[doc + 1]):
            term = pair_term[pair]
            if columns[term] >= 0:
                slot[term + 1] += 1
                indptr[doc + 1] += 1
    for term in range(columns.size):
        slot[term + 1] += slot[term]
    for doc in range(n_docs):
        indptr[doc + 1] += indptr[doc]
    if n_docs == 1:
        # one document: every term has one pair, numbered as the term
        for k in range(order.size):
            indices_out[k] = columns[order[k]]
            data_out[k] = pair_count[order[k]]
        return indptr
    docs = np.empty(indptr[n_docs], np.int32)
    counts = np.empty(indptr[n_docs], np.int32)
    fill = slot[:-1].copy()
    for doc in range(n_docs):
        for pair in range(pair_indptr[doc], pair_indptr[doc + 1]):
            term = pair_term[pair]
            if columns[term] >= 0:
                docs[fill[term]] = doc
                counts[fill[term]] = pair_count[pair]
                fill[term] += 1
    place = indptr[:-1].copy()
    for k in range(order.size):
        term = order[k]
        column = columns[term]
        for pair in range(slot[term], slot[term + 1]):
            at = place[docs[pair]]
            indices_out[at] = column
            data_out[at] = counts[pair]
            place[docs[pair]] = at + 1
    return indptr


@njit(cache=True, nogil=True)
def weigh(indptr, indices, idf, opening, opening_weight, sublinear, norm, data_out):
    """Turn counts into tf-idf values, in place.

    Parameters
    ----------
    indptr, indices : CSR rows
    idf : (n_features,) float32, or empty for none
    opening : (n_features,) bool, terms of a text's opening; or empty for none
    opening_weight : length of a row's opening before the whole row is scaled, where its other terms have length one
    sublinear : use 1 + ln(count)
    norm : 0, 1 or 2; rows are scaled to length one in that norm unless it is 0, where the opening is just multiplied
    data_out : (nnz,) float32, counts in, values out
    """
    logs = np.empty(64, np.float64)
    for count in range(1, 64):
        logs[count] = 1.0 + np.log(count)
    for row in range(indptr.size - 1):
        cols = indices[indptr[row] : indptr[row + 1]]
        vals = data_out[indptr[row] : indptr[row + 1]]
        total = 0.0
        total_opening = 0.0
        for k in range(cols.size):
            value = np.float64(vals[k])
            if sublinear:
                value = logs[np.int64(value)] if value < 64.0 else 1.0 + np.log(value)
            if idf.size:
                value *= idf[cols[k]]
            size = value * value if norm == 2 else value
            if opening.size and opening[cols[k]]:
                total_opening += size
            else:
                total += size
            vals[k] = value
        scale, scale_opening = _scales(total, total_opening, opening_weight, norm)
        for k in range(vals.size):
            vals[k] *= scale_opening if opening.size and opening[cols[k]] else scale


@njit(cache=True, nogil=True)
def _scales(total, total_opening, opening_weight, norm):
    """What the values of a row and those of its opening are multiplied by, from the sums of their sizes."""
    if not norm:
        return 1.0, opening_weight
    length = np.sqrt(total) if norm == 2 else total
    length_opening = np.sqrt(total_opening) if norm == 2 else total_opening
    if length_opening == 0.0:
        return 1.0 / length if length > 0.0 else 1.0, 0.0
    if length == 0.0:
        return 0.0, 1.0 / length_opening
    whole = np.sqrt(1.0 + opening_weight * opening_weight) if norm == 2 else 1.0 + opening_weight
    return 1.0 / (length * whole), opening_weight / (length_opening * whole)
