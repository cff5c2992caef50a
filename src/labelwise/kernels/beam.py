"""Beam search through a tree of linear models: score the children of the best nodes, level by level.

At every level a batch of documents is sorted by the nodes of their beams, so that a node's weights serve all its
documents while they lie in the cache. The weights of a document's features are found by a table over all features
where a node has many documents, and in buckets of the node's sorted features where it has few.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

RAW, HINGE, SIGMOID = 0, 1, 2

_FAST = {"contract", "nsz", "arcp"}
_ZERO, _ONE = np.float32(0), np.float32(1)


def as_float(value):
    """A weight as float32; 16-bit floats come as uint16, since numba has no float16 on CPUs."""
    return np.uint16(value).view(np.float16).astype(np.float32) if isinstance(value, np.uint16) else value


@intrinsic
def _half_to_float(context, bits):
    def generate(context, builder, signature, arguments):
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


@overload(as_float, inline="always")
def _as_float(value):
    if value == types.uint16:
        return lambda value: _half_to_float(value)
    return lambda value: value


@njit(cache=True, nogil=True)
def make_buckets(row_indptr, row_feature, n_features):
    """An index over every block's sorted features: the first row of each run of 2^shift feature numbers.

    Returns
    -------
    shifts : (n_parents,) uint32, chosen so that a bucket holds about four rows
    bucket_indptr : (n_parents + 1,) int64
    first_row : (n_buckets,) uint32, counted from the block's first row; a block's last bucket is its end
    """
    n_parents = row_indptr.size - 1
    shifts = np.zeros(n_parents, np.uint32)
    bucket_indptr = np.zeros(n_parents + 1, np.int64)
    for parent in range(n_parents):
        n_rows = row_indptr[parent + 1] - row_indptr[parent]
        shift = 0
        while (n_features >> shift) > n_rows // 4 + 1:
            shift += 1
        shifts[parent] = shift
        bucket_indptr[parent + 1] = bucket_indptr[parent] + (n_features >> shift) + 2
    first_row = np.empty(bucket_indptr[n_parents], np.uint32)
    for parent in range(n_parents):
        features = row_feature[row_indptr[parent] : row_indptr[parent + 1]]
        buckets = first_row[bucket_indptr[parent] : bucket_indptr[parent + 1]]
        row = 0
        for bucket in range(buckets.size):
            while row < features.size and np.int64(features[row]) >> np.int64(shifts[parent]) < bucket:
                row += 1
            buckets[bucket] = row
    return shifts, bucket_indptr, first_row


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_row(value, children, values, scores_out):
    for k in range(children.size):
        scores_out[children[k]] += value * as_float(values[k])


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_full_row(value, values, scores_out):
    for c in range(scores_out.size):
        scores_out[c] += value * values[c]


@njit(cache=True, nogil=True)
def spread_rows(weights, share):
    """Rows with weights for many of their children, written out in full: adding those up needs no look at who they are.

    Parameters
    ----------
    weights : the arrays of LevelWeights, in order, 16-bit floats viewed as uint16
    share : the least share of a parent's children that makes a row worth it

    Returns
    -------
    place : (n_rows,) int32, the row's place in `full`, -1 for the others
    full : (n_full, largest number of children) float32
    """
    child_indptr, _, row_indptr, row_feature, row_end, entry_indptr, entry_child, entry_value, _ = weights
    place = np.full(row_feature.size, -1, np.int32)
    n_full = 0
    largest = 0
    for parent in range(child_indptr.size - 1):
        n_children = child_indptr[parent + 1] - child_indptr[parent]
        largest = max(largest, n_children)
        begin = np.int64(0)
        for row in range(row_indptr[parent], row_indptr[parent + 1]):
            end = np.int64(row_end[row])
            if end - begin >= share * n_children and n_children >= 8:
                place[row] = n_full
                n_full += 1
            begin = end
    full = np.zeros((n_full, largest), np.float32)
    for parent in range(child_indptr.size - 1):
        first = entry_indptr[parent]
        begin = np.int64(0)
        for row in range(row_indptr[parent], row_indptr[parent + 1]):
            end = np.int64(row_end[row])
            if place[row] >= 0:
                for entry in range(first + begin, first + end):
                    full[place[row], entry_child[entry]] = as_float(entry_value[entry])
            begin = end
    return place, full


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_dense(features, weights, scores_out):
    """The dense features' part; weights is (n_children, n_dense)."""
    for c in range(scores_out.size):
        w = weights[c]
        total = _ZERO
        for j in range(features.size):
            total += features[j] * w[j]
        scores_out[c] += total


@njit(cache=True, nogil=True, fastmath=_FAST)
def _transform(kind, power, above, scores_out):
    """Scores between 0 and 1 as logarithms, so that products are sums, and the parent's added; RAW stays as it is."""
    if kind == HINGE:
        for c in range(scores_out.size):
            gap = max(_ONE - scores_out[c], _ZERO)
            total = gap
            for _ in range(power - 1):
                total *= gap
            scores_out[c] = above - total
    elif kind == SIGMOID:
        for c in range(scores_out.size):
            score = scores_out[c]
            scores_out[c] = above + (-np.float32(np.log1p(np.exp(-score))) if score > np.float32(-30) else score)
    else:
        for c in range(scores_out.size):
            scores_out[c] += above


@njit(cache=True, nogil=True)
def score_children(weights, documents, beam, beam_scores, combine, lookup, scores_out):
    """Scores of all children of every document's beam.

    Parameters
    ----------
    weights : the arrays of LevelWeights, in order, 16-bit floats viewed as uint16
    documents : (indptr, indices uint32, data, dense)
    beam : (n_docs, width) int32, parents, -1 where a document has fewer
    beam_scores : (n_docs, width) float32, their scores as logarithms
    combine : (kind, power, alone)
        How a score is transformed (RAW, HINGE, SIGMOID); alone: the parents' scores do not count.
    lookup : (table, shifts, bucket_indptr, first_row, place, full)
        table is (n_features,) int32, all -1 before and after; with a single parent, its row of each feature, -1 for
        none. The others are as `make_buckets` and `spread_rows` return them.
    scores_out : (n_docs, width * largest number of children) float32; the children of the beam's j-th parent from
        j * largest on, the rest is left as it is
    """
    child_indptr, _, row_indptr, row_feature, row_end, entry_indptr, entry_child, entry_value, dense = weights
    indptr, indices, data, doc_dense = documents
    kind, power, alone = combine
    table, shifts, bucket_indptr, first_row, place, full = lookup
    n_docs, width = beam.shape
    n_parents = child_indptr.size - 1
    largest = scores_out.shape[1] // width
    # documents by parent: a counting sort of the beam's places
    starts = np.zeros(n_parents + 1, np.int64)
    for i in range(n_docs):
        for j in range(width):
            if beam[i, j] >= 0:
                starts[beam[i, j] + 1] += 1
    for parent in range(n_parents):
        starts[parent + 1] += starts[parent]
    places = np.empty(starts[n_parents], np.int64)
    fill = starts[:-1].copy()
    for i in range(n_docs):
        for j in range(width):
            if beam[i, j] >= 0:
                places[fill[beam[i, j]]] = i * width + j
                fill[beam[i, j]] += 1
    for parent in range(n_parents):
        n_here = starts[parent + 1] - starts[parent]
        if n_here == 0:
            continue
        features = row_feature[row_indptr[parent] : row_indptr[parent + 1]]
        ends = row_end[row_indptr[parent] : row_indptr[parent + 1]]
        children = entry_child[entry_indptr[parent] : entry_indptr[parent + 1]]
        values = entry_value[entry_indptr[parent] : entry_indptr[parent + 1]]
        first_child = child_indptr[parent]
        n_children = child_indptr[parent + 1] - first_child
        block_dense = dense[first_child : first_child + n_children]
        n_terms = 0
        for at in range(starts[parent], starts[parent + 1]):
            i = places[at] // width
            n_terms += indptr[i + 1] - indptr[i]
        # Filling and clearing the table costs a step per row, looking into a bucket a few per feature of a document.
        standing = n_parents == 1
        by_table = standing or 2 * n_terms > features.size
        buckets = first_row[bucket_indptr[parent] : bucket_indptr[parent + 1]]
        shift = np.int64(shifts[parent])
        if by_table and not standing:
            for row in range(features.size):
                table[features[row]] = row
        for at in range(starts[parent], starts[parent + 1]):
            i, j = places[at] // width, places[at] % width
            out = scores_out[i, j * largest : j * largest + n_children]
            for c in range(n_children):
                out[c] = _ZERO
            cols, vals = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
            for k in range(cols.size):
                if by_table:
                    row = np.int64(table[cols[k]])
                else:
                    bucket = np.int64(cols[k]) >> shift
                    row, stop = np.int64(buckets[bucket]), np.int64(buckets[bucket + 1])
                    while row < stop and features[row] < cols[k]:
                        row += 1
                    if row == stop or features[row] != cols[k]:
                        row = -1
                if row < 0:
                    continue
                at_full = place[row_indptr[parent] + row]
                if at_full >= 0:
                    _add_full_row(vals[k], full[at_full], out)
                    continue
                begin = ends[row - 1] if row > 0 else 0
                _add_row(vals[k], children[begin : ends[row]], values[begin : ends[row]], out)
            _add_dense(doc_dense[i], block_dense, out)
            _transform(kind, power, _ZERO if alone else beam_scores[i, j], out)
        if by_table and not standing:
            for row in range(features.size):
                table[features[row]] = -1


@njit(cache=True, nogil=True)
def keep_best(weights, beam, scores, best_out, best_scores_out):
    """The best children of every document, best first; equal scores go to the lower child id.

    Parameters
    ----------
    weights : the arrays of LevelWeights, in order
    beam : (n_docs, width) int32, as given to `score_children`
    scores : as `score_children` wrote them
    best_out : (n_docs, n_best) int32, child ids, -1 where there are fewer
    best_scores_out : (n_docs, n_best) float32
    """
    child_indptr, child_ids = weights[0], weights[1]
    n_docs, width = beam.shape
    largest = scores.shape[1] // width
    n_best = best_out.shape[1]
    for i in range(n_docs):
        ids, best = best_out[i], best_scores_out[i]
        n = 0
        for j in range(width):
            parent = beam[i, j]
            if parent < 0:
                continue
            first = child_indptr[parent]
            row = scores[i, j * largest : j * largest + child_indptr[parent + 1] - first]
            for c in range(row.size):
                score = row[c]
                child = child_ids[first + c]
                if n == n_best and (score < best[n - 1] or (score == best[n - 1] and child > ids[n - 1])):
                    continue
                at = n if n < n_best else n_best - 1
                while at > 0 and (best[at - 1] < score or (best[at - 1] == score and ids[at - 1] > child)):
                    best[at] = best[at - 1]
                    ids[at] = ids[at - 1]
                    at -= 1
                best[at] = score
                ids[at] = child
                if n < n_best:
                    n += 1
        for at in range(n, n_best):
            ids[at] = -1
            best[at] = _ZERO


@njit(cache=True, nogil=True)
def collect(best, scores):
    """Lists of the best leaves as CSR rows with ascending indices.

    Parameters
    ----------
    best : (n_docs, n_best) int32, -1 from where there are none
    scores : (n_docs, n_best) float32

    Returns
    -------
    indptr : (n_docs + 1,) int64
    indices : (nnz,) int32
    data : (nnz,) float32
    """
    n_docs, n_best = best.shape
    indptr = np.zeros(n_docs + 1, np.int64)
    indices = np.empty(n_docs * n_best, np.int32)
    data = np.empty(n_docs * n_best, np.float32)
    out = 0
    for i in range(n_docs):
        begin = out
        for j in range(n_best):
            leaf = best[i, j]
            if leaf < 0:
                break
            at = out
            while at > begin and indices[at - 1] > leaf:
                indices[at] = indices[at - 1]
                data[at] = data[at - 1]
                at -= 1
            indices[at] = leaf
            data[at] = scores[i, j]
            out += 1
        indptr[i + 1] = out
    return indptr, indices[:out], data[:out]
