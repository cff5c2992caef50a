"""Beam search through a tree of linear models: score the children of the best nodes, level by level.

At every level a batch of documents is sorted by the nodes of their beams, so that a node's weights serve all its
documents while they lie in the cache. The weights of a document's features are found by a table over all features
where a node has many documents, and by galloping through the node's sorted features where it has few.
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
def _gallop(sorted_features, wanted, start):
    """The first place from `start` on whose feature is not below `wanted`."""
    size = sorted_features.size
    step = 1
    low = start
    high = start
    while high < size and sorted_features[high] < wanted:
        low = high + 1
        high += step
        step *= 2
    high = min(high, size)
    while low < high:
        middle = (low + high) // 2
        if sorted_features[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_row(value, children, values, scores_out):
    if values.size == scores_out.size:  # a weight for every child: no need to look which
        for c in range(scores_out.size):
            scores_out[c] += value * as_float(values[c])
        return
    for k in range(children.size):
        scores_out[children[k]] += value * as_float(values[k])


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
def score_children(weights, documents, beam, beam_scores, combine, table_out, scores_out):
    """Scores of all children of every document's beam.

    Parameters
    ----------
    weights : the arrays of LevelWeights, in order, 16-bit floats viewed as uint16
    documents : (indptr, indices uint32, data, dense)
    beam : (n_docs, width) int32, parents, -1 where a document has fewer
    beam_scores : (n_docs, width) float32, their scores as logarithms
    combine : (kind, power, alone)
        How a score is transformed (RAW, HINGE, SIGMOID); alone: the parents' scores do not count.
    table_out : (n_features,) int32, all -1 before and after
    scores_out : (n_docs, width * largest number of children) float32; the children of the beam's j-th parent from
        j * largest on, the rest is left as it is
    """
    child_indptr, _, row_indptr, row_feature, row_end, entry_indptr, entry_child, entry_value, dense = weights
    indptr, indices, data, doc_dense = documents
    kind, power, alone = combine
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
        by_table = 6 * n_terms > 2 * features.size
        if by_table:
            for row in range(features.size):
                table_out[features[row]] = row
        for at in range(starts[parent], starts[parent + 1]):
            i, j = places[at] // width, places[at] % width
            out = scores_out[i, j * largest : j * largest + n_children]
            for c in range(n_children):
                out[c] = _ZERO
            cols, vals = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
            row = 0
            for k in range(cols.size):
                if by_table:
                    row = table_out[cols[k]]
                    if row < 0:
                        continue
                else:
                    row = _gallop(features, cols[k], row)
                    if row == features.size:
                        break
                    if features[row] != cols[k]:
                        continue
                begin = ends[row - 1] if row > 0 else 0
                _add_row(vals[k], children[begin : ends[row]], values[begin : ends[row]], out)
            _add_dense(doc_dense[i], block_dense, out)
            _transform(kind, power, _ZERO if alone else beam_scores[i, j], out)
        if by_table:
            for row in range(features.size):
                table_out[features[row]] = -1


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
