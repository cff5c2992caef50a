"""Beam search through a tree of linear models: score the children of the best nodes, level by level.

Nodes with many documents of a batch are worked on one by one: a table over all features is filled with the node's
rows, and its weights serve all these documents while they lie in the cache. What is left, all of it where there is but
one document, is worked on document by document: each of its features is looked up once, for all nodes of its beam.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from labelwise.config.score_transform import HINGE, SIGMOID
from labelwise.engines.kernel_cache import njit

_FAST = {"contract", "nsz", "arcp"}
# A sum may be taken in any order, which is what vector instructions need; it is the same one in every batch.
_ANY_ORDER = {*_FAST, "reassoc"}
_ZERO, _ONE = np.float32(0), np.float32(1)

# With so few documents no node can have many.
FEW_DOCUMENTS = 4
# An index entry: which word of 64 parents, above the place of its first row.
_PLACE_BITS = np.uint64(40)
_PLACE = np.uint64((1 << 40) - 1)
_BIT = np.uint64(1)
FULL = np.uint32(0xFFFFFFFF)
# How many rows ahead weights are asked for.
_AHEAD = 6


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


def count_bits(word):
    """How many bits of a uint64 are set."""
    return int(word).bit_count()


@intrinsic
def _ctpop(context, word):
    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@overload(count_bits, inline="always")
def _count_bits(word):
    return lambda word: _ctpop(word)


def lowest_bit(word):
    """The number of the lowest bit of a uint64 that is set."""
    return (int(word) & -int(word)).bit_length() - 1


@intrinsic
def _cttz(context, word):
    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@overload(lowest_bit, inline="always")
def _lowest_bit(word):
    return lambda word: _cttz(word)


def prefetch(array, at):
    """Ask for an element of a contiguous array, counted through all its dimensions, before it is needed."""


@intrinsic
def _ask_for(context, array, at):
    def generate(context, builder, signature, arguments):
        byte_pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer, number, number, number])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte_pointer)
        builder.call(ask, [address, number(0), number(3), number(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@overload(prefetch, inline="always")
def _prefetch(array, at):
    return lambda array, at: _ask_for(array, at)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_entries(value, children, values, scores_out):
    for k in range(children.size):
        scores_out[children[k]] += value * as_float(values[k])


@njit(cache=True, nogil=True, fastmath=_FAST)
def _add_full(value, values, scores_out):
    for c in range(scores_out.size):
        scores_out[c] += value * as_float(values[c])


@njit(cache=True, nogil=True)
def spread_rows(weights, share):
    """Rows with weights for many of their children as full rows, which are added without looking up the children.

    Parameters
    ----------
    weights : the arrays of LevelWeights, in order, 16-bit floats viewed as uint16
    share : the least share of a parent's children that makes a row worth it

    Returns
    -------
    spots : (n_rows, 2) uint32, where the row's entries begin and end, counted from the first entry of its block; or its
        place in `full`, and FULL
    full : (n_full, largest number of children), of the entries' type
    """
    child_indptr, _, row_indptr, row_feature, row_end, entry_indptr, entry_child, entry_value, _ = weights
    spots = np.empty((row_feature.size, 2), np.uint32)
    n_full = 0
    largest = 0
    for parent in range(child_indptr.size - 1):
        n_children = child_indptr[parent + 1] - child_indptr[parent]
        largest = max(largest, n_children)
        begin = np.int64(0)
        for row in range(row_indptr[parent], row_indptr[parent + 1]):
            end = np.int64(row_end[row])
            if end - begin >= share * n_children and n_children >= 8:
                spots[row, 0], spots[row, 1] = n_full, FULL
                n_full += 1
            else:
                spots[row, 0], spots[row, 1] = begin, end
            begin = end
    full = np.zeros((n_full, largest), entry_value.dtype)
    for parent in range(child_indptr.size - 1):
        first = entry_indptr[parent]
        begin = np.int64(0)
        for row in range(row_indptr[parent], row_indptr[parent + 1]):
            end = np.int64(row_end[row])
            if spots[row, 1] == FULL:
                for entry in range(first + begin, first + end):
                    full[spots[row, 0], entry_child[entry]] = entry_value[entry]
            begin = end
    return spots, full


@njit(cache=True, nogil=True)
def index_features(row_indptr, row_feature, n_features):
    """The rows of a feature, for all parents that have one: a set bit for each, in words of 64 parents.

    Returns
    -------
    word_indptr : (n_features + 1,) int64, the words of each feature; words without a bit are left out
    words : (n_words, 2) uint64, the bits; the number of the word above 40 bits that tell where its rows are in `rows`
    rows : (n_rows,) uint32, by feature and then by parent
    """
    word_indptr = np.zeros(n_features + 1, np.int64)
    n_done = np.zeros(n_features + 1, np.int64)
    last_word = np.full(n_features, -1, np.int32)
    for parent in range(row_indptr.size - 1):
        for row in range(row_indptr[parent], row_indptr[parent + 1]):
            feature = row_feature[row]
            n_done[feature + 1] += 1
            if last_word[feature] != parent >> 6:
                last_word[feature] = parent >> 6
                word_indptr[feature + 1] += 1
    for feature in range(n_features):
        n_done[feature + 1] += n_done[feature]
        word_indptr[feature + 1] += word_indptr[feature]
    words = np.zeros((word_indptr[n_features], 2), np.uint64)
    rows = np.empty(row_feature.size, np.uint32)
    n_words = word_indptr.copy()
    last_word[:] = -1
    for parent in range(row_indptr.size - 1):
        for row in range(row_indptr[parent], row_indptr[parent + 1]):
            feature = row_feature[row]
            if last_word[feature] != parent >> 6:
                last_word[feature] = parent >> 6
                words[n_words[feature], 1] = np.uint64(parent >> 6) << _PLACE_BITS | np.uint64(n_done[feature])
                n_words[feature] += 1
            words[n_words[feature] - 1, 0] |= _BIT << np.uint64(parent & 63)
            rows[n_done[feature]] = row
            n_done[feature] += 1
    return word_indptr, words, rows


@njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def _add_dense(features, weights, scores_out):
    """Add the dense features' part of the scores; weights is (n_children, n_dense)."""
    for c in range(scores_out.size):
        w = weights[c]
        total = _ZERO
        for j in range(features.size):
            total += features[j] * as_float(w[j])
        scores_out[c] += total


@njit(cache=True, nogil=True, fastmath=_FAST)
def _transform(kind, power, above, scores_out):
    """Add the parent's value to the logarithm of each score's factor, or to the score itself if `kind` is RAW.

    `labelwise.config.score_transform` has the codes of the formulas and their numpy twins.
    """
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
def descend(weights, documents, beam, beam_scores, transform, lookup, best_out, best_scores_out):
    """Search one level: `score_children`, then `keep_best`."""
    n_docs, width = beam.shape
    largest = lookup[5].shape[1]
    scores = np.empty((n_docs, width * largest), np.float32)
    score_children(weights, documents, beam, beam_scores, transform, lookup, scores)
    keep_best(weights, beam, scores, best_out, best_scores_out)


@njit(cache=True, nogil=True)
def score_children(weights, documents, beam, beam_scores, transform, lookup, scores_out):
    """Scores of all children of every document's beam.

    Parameters
    ----------
    weights : the arrays of LevelWeights, in order, 16-bit floats viewed as uint16
    documents : (indptr, indices uint32, data, dense)
    beam : (n_docs, width) int32, parents, -1 where a document has fewer
    beam_scores : (n_docs, width) float32, their scores as logarithms
    transform : (kind, power, alone)
        The code of the score transform and its power; alone: the parents' scores do not count.
    lookup : (table, word_indptr, words, rows, spots, full)
        table is (n_features,) int32, all -1 before and after; with a single parent, its row of each feature, -1 for
        none. The others are as `index_features` and `spread_rows` return them.
    scores_out : (n_docs, width * largest number of children) float32; the children of the beam's j-th parent from
        j * largest on, the rest is left as it is
    """
    n_docs, width = beam.shape
    child_indptr, dense, doc_dense = weights[0], weights[8], documents[3]
    kind, power, alone = transform
    largest = scores_out.shape[1] // width
    for i in range(n_docs):
        for j in range(width):
            if beam[i, j] >= 0:
                n_children = child_indptr[beam[i, j] + 1] - child_indptr[beam[i, j]]
                scores_out[i, j * largest : j * largest + n_children] = _ZERO
    if n_docs <= FEW_DOCUMENTS:
        left = beam
        places = np.arange(n_docs * width)
    else:
        left = beam.copy()
        starts, places = _sort_places(beam, child_indptr.size - 1)
        _add_by_node(weights, documents, left, starts, places, lookup, scores_out)
    _add_by_document(weights, documents, left, lookup, scores_out)
    for at in range(places.size):
        i, j = places[at] // width, places[at] % width
        if beam[i, j] >= 0:
            first, end = child_indptr[beam[i, j]], child_indptr[beam[i, j] + 1]
            out = scores_out[i, j * largest : j * largest + end - first]
            _add_dense(doc_dense[i], dense[first:end], out)
            _transform(kind, power, _ZERO if alone else beam_scores[i, j], out)


@njit(cache=True, nogil=True)
def _sort_places(beam, n_parents):
    """The places of a beam, counted through its rows, by parent: where each parent's begin, and all of them."""
    n_docs, width = beam.shape
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
    return starts, places


@njit(cache=True, nogil=True)
def _add_by_node(weights, documents, beam_out, starts, places, lookup, scores_out):
    """Add the sparse features' part for nodes with many documents, and take these nodes out of the beams."""
    child_indptr, _, row_indptr, row_feature, _, entry_indptr, entry_child, entry_value, _ = weights
    indptr, indices, data, _ = documents
    table, _, _, _, spots, full = lookup
    n_docs, width = beam_out.shape
    n_parents = child_indptr.size - 1
    largest = scores_out.shape[1] // width
    n_terms = np.zeros(n_parents, np.int64)
    for i in range(n_docs):
        for j in range(width):
            if beam_out[i, j] >= 0:
                n_terms[beam_out[i, j]] += indptr[i + 1] - indptr[i]
    for parent in range(n_parents):
        features = row_feature[row_indptr[parent] : row_indptr[parent + 1]]
        # Filling and clearing the table costs a step per row, the other way a few more per feature of a document.
        standing = n_parents == 1
        if not standing and 2 * n_terms[parent] <= features.size:
            continue
        own_spots = spots[row_indptr[parent] : row_indptr[parent + 1]]
        children = entry_child[entry_indptr[parent] : entry_indptr[parent + 1]]
        values = entry_value[entry_indptr[parent] : entry_indptr[parent + 1]]
        n_children = child_indptr[parent + 1] - child_indptr[parent]
        if not standing:
            for row in range(features.size):
                table[features[row]] = row
        for at in range(starts[parent], starts[parent + 1]):
            i, j = places[at] // width, places[at] % width
            beam_out[i, j] = -1
            out = scores_out[i, j * largest : j * largest + n_children]
            cols, vals = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
            for k in range(cols.size):
                row = np.int64(table[cols[k]])
                if row < 0:
                    continue
                begin, end = own_spots[row, 0], own_spots[row, 1]
                if end == FULL:
                    _add_full(vals[k], full[begin], out)
                else:
                    _add_entries(vals[k], children[begin:end], values[begin:end], out)
        if not standing:
            for row in range(features.size):
                table[features[row]] = -1


@njit(cache=True, nogil=True)
def _add_by_document(weights, documents, beam, lookup, scores_out):
    """Add the sparse features' part, document by document.

    Each feature is looked up once for all nodes of the beam. The rows that are found are put down node by node: it is
    then known well before which weights will be read, and they are asked for in time.
    """
    child_indptr, entry_indptr, entry_child, entry_value = weights[0], weights[5], weights[6], weights[7]
    indptr, indices, data, _ = documents
    _, word_indptr, words, rows, spots, full = lookup
    n_docs, width = beam.shape
    n_parents = child_indptr.size - 1
    largest = scores_out.shape[1] // width
    wanted = np.zeros((n_parents >> 6) + 1, np.uint64)
    where = np.empty(n_parents, np.int32)  # only those that are wanted are read
    n_found = np.empty(width, np.int64)
    found = np.empty((width, 0, 2), np.uint32)  # row, and which of the document's features
    for i in range(n_docs):
        cols, vals = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        if cols.size > found.shape[1]:
            found = np.empty((width, cols.size, 2), np.uint32)
        n_found[:] = 0
        for j in range(width):
            parent = beam[i, j]
            if parent >= 0:
                wanted[parent >> 6] |= _BIT << np.uint64(parent & 63)
                where[parent] = j
        for k in range(cols.size):
            for at in range(word_indptr[cols[k]], word_indptr[cols[k] + 1]):
                bits, first = words[at, 0], words[at, 1]
                word = np.int64(first >> _PLACE_BITS)
                hits = bits & wanted[word]
                while hits != 0:
                    bit = lowest_bit(hits)
                    hits &= hits - _BIT
                    j = where[64 * word + bit]
                    before = count_bits(bits & ((_BIT << np.uint64(bit)) - _BIT))
                    found[j, n_found[j], 0] = rows[np.int64(first & _PLACE) + before]
                    found[j, n_found[j], 1] = k
                    n_found[j] += 1
        for j in range(width):
            parent = beam[i, j]
            if parent < 0:
                continue
            wanted[parent >> 6] = 0
            out = scores_out[i, j * largest : j * largest + child_indptr[parent + 1] - child_indptr[parent]]
            children = entry_child[entry_indptr[parent] : entry_indptr[parent + 1]]
            values = entry_value[entry_indptr[parent] : entry_indptr[parent + 1]]
            here = found[j, : n_found[j]]
            for at in range(len(here)):
                if at + 2 * _AHEAD < len(here):
                    prefetch(spots, 2 * np.int64(here[at + 2 * _AHEAD, 0]))
                if at + _AHEAD < len(here):
                    row = here[at + _AHEAD, 0]
                    if spots[row, 1] == FULL:
                        start = np.int64(spots[row, 0]) * full.shape[1]
                        for more in range(0, out.size, 64 // full.itemsize):
                            prefetch(full, start + more)
                    else:
                        prefetch(children, np.int64(spots[row, 0]))
                        prefetch(values, np.int64(spots[row, 0]))
                value = vals[here[at, 1]]
                begin, end = spots[here[at, 0], 0], spots[here[at, 0], 1]
                if end == FULL:
                    _add_full(value, full[begin], out)
                else:
                    _add_entries(value, children[begin:end], values[begin:end], out)


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
