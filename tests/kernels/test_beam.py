"""Scoring and choosing children against dense numpy."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba import njit

from labelwise.config.score_transform import TRANSFORMS
from labelwise.kernels import beam as kernels
from labelwise.rank.sparse_weights import LevelWeights, PrunedBlock
from tests.reference import beam as reference
from tests.reference.weights import level_matrix

# Sixteenths: sums are exact in float32, so that equal scores are equal and the order of adding does not matter.
WEIGHTS = st.sampled_from([0.0, 0.0, 0.0, 0.25, -0.5, 0.75, 1.0, -1.25])
VALUES = st.sampled_from([0.0, 0.0, 0.5, 1.0, 0.25])
KERNEL_TRANSFORMS = {name: (*known.kernel, not known.bounded) for name, known in TRANSFORMS.items()}


def level_of(W, parents, *, half=False, n_dense=1):
    """LevelWeights of a dense matrix, the rows of dense features last."""
    indptr = np.concatenate(([0], np.cumsum(np.bincount(parents)))).astype(np.int64)
    order = np.argsort(parents, kind="stable")
    features = np.arange(len(W) - n_dense, dtype=np.uint32)
    blocks = [
        PrunedBlock.prune(W[:, order[a:b]], features, n_dense=n_dense, threshold=0, most=None, half=half)
        for a, b in pairwise(indptr)
    ]
    return LevelWeights.join(blocks, indptr, order)


def arrays_of(level, *, read_only=False):
    """What kernels take."""
    arrays = [array.view(np.uint16) if array.dtype == np.float16 else array for array in level.to_arrays("").values()]
    for array in arrays:
        array.flags.writeable = not read_only
    return tuple(arrays)


def documents_of(X, n_dense=1):
    """(indptr, indices, data, dense) of dense rows."""
    rows = sp.csr_array(X[:, : X.shape[1] - n_dense])
    return rows.indptr.astype(np.int64), rows.indices.view(np.uint32), rows.data, X[:, X.shape[1] - n_dense :].copy()


def lookup_of(level, arrays, n_features, share):
    table = np.full(n_features, -1, np.int32)
    if level.n_parents == 1:
        table[level.row_feature] = np.arange(len(level.row_feature))
    index = kernels.index_features(level.row_indptr, level.row_feature, n_features)
    return table, *index, *kernels.spread_rows(arrays, np.float32(share))


@st.composite
def problems(draw):
    """Weights, parents, documents, and parents chosen for each document."""
    n_features, n_docs, n_parents = draw(st.integers(1, 40)), draw(st.integers(0, 7)), draw(st.integers(1, 4))
    more = draw(st.lists(st.integers(0, n_parents - 1), max_size=20))
    parents = np.array(draw(st.permutations([*range(n_parents), *more])), np.int64)
    some = draw(st.permutations(range(n_features)))[:8]
    W = np.zeros((n_features + 1, len(parents)), np.float32)
    W[[*some, n_features]] = draw(hnp.arrays(np.float32, (len(some) + 1, len(parents)), elements=WEIGHTS))
    X = np.zeros((n_docs, n_features + 1), np.float32)
    X[:, some] = draw(hnp.arrays(np.float32, (n_docs, len(some)), elements=VALUES))
    X[:, -1] = 1
    width = draw(st.integers(1, n_parents))
    beam = np.array([draw(st.permutations(range(n_parents)))[:width] for _ in range(n_docs)], np.int32)
    beam = beam.reshape(n_docs, width)
    above = -draw(hnp.arrays(np.float32, beam.shape, elements=VALUES))
    beam[draw(hnp.arrays(np.bool_, beam.shape))] = -1
    return W, parents, X, beam, above


def score(level, X, beam, above, transform, *, share=0.2, read_only=False, n_dense=1):
    """The arrays of the level, and the scores of all children of the beams, nan elsewhere."""
    arrays, documents = arrays_of(level, read_only=read_only), documents_of(X, n_dense)
    largest = np.diff(level.child_indptr).max()
    lookup = lookup_of(level, arrays, X.shape[1] - n_dense, share)
    table = lookup[0].copy()
    if read_only:
        for array in (*documents, *lookup[1:], beam, above):
            array.flags.writeable = False
    scores = np.full((len(X), beam.shape[1] * largest), np.nan, np.float32)
    kernels.score_children(arrays, documents, beam, above, transform, lookup, scores)
    np.testing.assert_array_equal(lookup[0], table)  # left as it was
    return arrays, scores


@given(problems(), st.sampled_from(list(TRANSFORMS)), st.booleans(), st.sampled_from([0.01, 0.2, 2.0]), st.booleans())
def test_score_children_and_keep_best(problem, name, half, share, read_only):
    W, parents, X, beam, above = problem
    level = level_of(W, parents, half=half)
    np.testing.assert_array_equal(level_matrix(level, len(W) - 1), W)  # exact in 16 bits too
    arrays, scores = score(level, X, beam, above, KERNEL_TRANSFORMS[name], share=share, read_only=read_only)
    largest = scores.shape[1] // beam.shape[1]
    for n_best in (1, 3, len(parents) + 2):
        best, best_scores = np.empty((len(X), n_best), np.int32), np.empty((len(X), n_best), np.float32)
        kernels.keep_best(arrays, beam, scores, best, best_scores)
        for i in range(len(X)):
            found = {}
            for j, parent in enumerate(beam[i]):
                children = np.flatnonzero(parents == parent) if parent >= 0 else []
                own = scores[i, j * largest : j * largest + len(children)]
                wanted = reference.transform(X[i] @ W[:, children], name, True) if len(children) else []
                wanted = np.asarray(wanted) + (above[i, j] if TRANSFORMS[name].bounded else 0)
                np.testing.assert_allclose(own, wanted, rtol=1e-5, atol=1e-6)
                assert np.isnan(scores[i, j * largest + len(children) : (j + 1) * largest]).all()
                found.update(zip(children, own, strict=True))
            ranked = sorted(found, key=lambda child: (-found[child], child))[:n_best]
            assert best[i].tolist() == ranked + [-1] * (n_best - len(ranked))
            assert best_scores[i, : len(ranked)].tolist() == [found[child] for child in ranked]


@pytest.mark.parametrize("half", [False, True])
def test_both_ways_of_finding_a_feature_give_the_same_scores(half):
    # A document alone looks each feature up for all its nodes; many documents at once fill the table node by node.
    rng = np.random.default_rng(0)
    parents = np.arange(24) % 3
    W = (rng.integers(-8, 9, (401, 24)) / 8).astype(np.float32) * (rng.random((401, 1)) < 0.5)
    X = np.zeros((60, 401), np.float32)
    for row in X:
        row[rng.choice(400, 12, replace=False)] = 0.5
    X[:, -1] = 1
    level = level_of(W, parents, half=half)
    beam, above = np.tile(np.array([2, 0], np.int32), (60, 1)), np.zeros((60, 2), np.float32)
    together = score(level, X, beam, above, KERNEL_TRANSFORMS["ranker-only"])[1]
    alone = [score(level, X[[i]], beam[[i]], above[[i]], KERNEL_TRANSFORMS["ranker-only"])[1][0] for i in range(60)]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_allclose(together[:, :8], X @ W[:, 2::3], rtol=1e-6)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("n_dense", [1, 2, 63, 385])
def test_dense_features_of_any_batch(half, n_dense):
    # Not exact in float32, on purpose: the order of adding must not depend on who else is in the batch.
    rng = np.random.default_rng(n_dense)
    parents = rng.permutation(np.arange(60) % 5)
    W, X = (rng.normal(size=shape).astype(np.float32) for shape in ((12 + n_dense, 60), (40, 12 + n_dense)))
    level = level_of(W, parents, n_dense=n_dense)
    if half:
        level = replace(level, dense=level.dense.astype(np.float16))
        W[12:, level.child_ids] = level.dense.T
    beam = np.array([rng.permutation(5)[:3] for _ in range(40)], np.int32)
    beam[rng.random(beam.shape) < 0.2] = -1
    above = np.zeros(beam.shape, np.float32)
    together = score(level, X, beam, above, KERNEL_TRANSFORMS["ranker-only"], n_dense=n_dense)[1]
    for i, row in enumerate(together):
        alone = score(level, X[[i]], beam[[i]], above[[i]], KERNEL_TRANSFORMS["ranker-only"], n_dense=n_dense)[1][0]
        np.testing.assert_array_equal(row, alone)
        for j, parent in enumerate(beam[i]):
            if parent >= 0:
                children = np.flatnonzero(parents == parent)
                wanted = X[i].astype(np.float64) @ W[:, children]
                np.testing.assert_allclose(row[12 * j : 12 * j + 12], wanted, rtol=1e-4, atol=1e-4)


@given(st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=150), st.integers(7, 9))
@example([{0, 2, 6} if number % 3 else {1, 2} for number in range(200)], 8)
@example([{5} if number in (63, 64, 127, 128) else set() for number in range(130)], 7)
def test_index_features(blocks, n_features):
    features = np.array([feature for block in blocks for feature in sorted(block)], np.uint32)
    indptr = np.cumsum([0, *map(len, blocks)])
    word_indptr, words, rows = kernels.index_features(indptr, features, n_features)
    assert (word_indptr.shape, words.shape) == ((n_features + 1,), (word_indptr[-1], 2))
    parents = np.repeat(np.arange(len(blocks)), np.diff(indptr))
    for feature in range(n_features):
        found = {}
        for bits, first in words[word_indptr[feature] : word_indptr[feature + 1]].tolist():
            assert bits
            numbers = [64 * (first >> 40) + bit for bit in range(64) if bits >> bit & 1]
            place = first & ((1 << 40) - 1)
            found.update(zip(numbers, rows[place : place + len(numbers)].tolist(), strict=True))
        wanted = np.flatnonzero(features == feature)
        assert list(found.items()) == list(zip(parents[wanted].tolist(), wanted.tolist(), strict=True))


@pytest.mark.parametrize("word", [1, 2, 0b1011000, 1 << 63, (1 << 64) - 1, 1 << 32])
def test_bits(word):
    for count, lowest in ((kernels.count_bits, kernels.lowest_bit), (compiled_count, compiled_lowest)):
        assert count(np.uint64(word)) == bin(word).count("1")
        assert lowest(np.uint64(word)) == len(bin(word)) - 1 - bin(word).rindex("1")


@njit
def compiled_count(word):
    return kernels.count_bits(word)


@njit
def compiled_lowest(word):
    return kernels.lowest_bit(word)


def test_scores_go_on_from_their_parents():
    scores = np.array([-40, -1, 0, 0.5, 2], np.float32)
    for name, own in (
        ("l3-hinge", -(np.maximum(0, 1 - scores) ** 3)),
        ("sigmoid", -np.log1p(np.exp(-scores))),
        ("ranker-only", scores),
    ):
        kind, power, _ = KERNEL_TRANSFORMS[name]
        found = scores.copy()
        kernels._transform(kind, power, np.float32(-1.5), found)
        np.testing.assert_allclose(found, own - 1.5, rtol=1e-6)


@given(problems(), st.booleans(), st.sampled_from([0.01, 0.2, 1.0, 2.0]))
def test_spread_rows(problem, half, share):
    W, parents, *_ = problem
    level = level_of(W, parents, half=half)
    spots, full = kernels.spread_rows(arrays_of(level), np.float32(share))
    full = full.view(level.entry_value.dtype)
    assert len(spots) == len(level.row_feature)
    in_full = spots[:, 1] == kernels.FULL
    assert spots[in_full, 0].tolist() == list(range(len(full)))
    for parent in range(level.n_parents):
        children = level.child_ids[level.child_indptr[parent] : level.child_indptr[parent + 1]]
        begin = 0
        for row in range(level.row_indptr[parent], level.row_indptr[parent + 1]):
            wanted = W[level.row_feature[row], children]
            many = np.count_nonzero(wanted) >= float(np.float32(share)) * len(children)
            assert in_full[row] == (many and len(children) >= 8)
            if in_full[row]:
                np.testing.assert_array_equal(full[spots[row, 0], : len(children)], wanted)
                assert not full[spots[row, 0], len(children) :].any()
            else:
                assert spots[row].tolist() == [begin, level.row_end[row]]
            begin = level.row_end[row]


def test_spread_rows_by_hand():
    # Nine children and then eight; of these have a weight in the rows of the features: 9, 2, 5, 4, and 7, 4, 1, 0.
    parents = np.repeat([0, 1], [9, 8])
    W = np.zeros((5, 17), np.float32)
    for row, (first, second) in enumerate(((9, 7), (2, 4), (5, 1), (4, 0))):
        W[row, :first] = row + 1
        W[row, 9 : 9 + second] = row + 5
    level = level_of(W, parents)
    spots, full = kernels.spread_rows(arrays_of(level), np.float32(0.5))
    known = [[0, kernels.FULL], [9, 11], [1, kernels.FULL], [16, 20], [2, kernels.FULL], [3, kernels.FULL], [11, 12]]
    assert spots.tolist() == known
    assert full.tolist() == [[1] * 9, [3] * 5 + [0] * 4, [5] * 7 + [0] * 2, [6] * 4 + [0] * 5]
    few = level_of(W[:, :7], parents[:7])  # so few children are always looked up
    assert (kernels.spread_rows(arrays_of(few), np.float32(0.0))[0][:, 1] != kernels.FULL).all()


@pytest.mark.parametrize("n_docs", [1, 4, 5, 30])
def test_a_level_is_searched_in_one_call(n_docs):
    rng = np.random.default_rng(n_docs)
    parents = rng.permutation(np.arange(70) % 7)
    W = (rng.integers(-8, 9, (21, 70)) / 8).astype(np.float32)
    X = (rng.integers(0, 3, (n_docs, 21)) / 2).astype(np.float32)
    level = level_of(W, parents)
    arrays, documents = arrays_of(level), documents_of(X)
    beam = np.array([rng.permutation(7)[:3] for _ in range(n_docs)], np.int32)
    beam[0, 1] = -1
    above = -rng.integers(0, 3, beam.shape).astype(np.float32)
    lookup = lookup_of(level, arrays, 20, 0.5)
    best, best_scores = np.empty((n_docs, 5), np.int32), np.empty((n_docs, 5), np.float32)
    kernels.descend(arrays, documents, beam, above, KERNEL_TRANSFORMS["l3-hinge"], lookup, best, best_scores)
    for i in range(n_docs):
        found = {}
        for parent, score_above in zip(beam[i], above[i], strict=True):
            children = np.flatnonzero(parents == parent)
            own = reference.transform(X[i] @ W[:, children], "l3-hinge", True)
            found.update(zip(children.tolist(), (np.asarray(own) + score_above).tolist(), strict=True))
        ranked = sorted(found, key=lambda child: (-found[child], child))[:5]
        assert best_scores[i].tolist() == pytest.approx([found[child] for child in ranked], rel=1e-5, abs=1e-6)
        assert [found[child] for child in best[i].tolist()] == pytest.approx([found[child] for child in ranked])


@given(st.integers(0, 5), st.integers(1, 6), st.data())
def test_collect(n_docs, n_best, data):
    lists = [data.draw(st.lists(st.integers(0, 50), max_size=n_best, unique=True)) for _ in range(n_docs)]
    best = np.full((n_docs, n_best), -1, np.int32)
    scores = data.draw(hnp.arrays(np.float32, (n_docs, n_best), elements=VALUES))
    for i, leaves in enumerate(lists):
        best[i, : len(leaves)] = leaves
    indptr, indices, values = kernels.collect(best, scores)
    assert indptr.tolist() == np.cumsum([0, *map(len, lists)]).tolist()
    assert indices.tolist() == [leaf for leaves in lists for leaf in sorted(leaves)]
    wanted = [scores[i, leaves.index(leaf)] for i, leaves in enumerate(lists) for leaf in sorted(leaves)]
    assert values.tolist() == wanted


def test_half_precision_is_read_exactly():
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = bits.view(np.float16)
    finite = np.isfinite(halves)
    W = np.zeros((2, int(finite.sum())), np.float32)
    W[0] = halves[finite]
    level = level_of(W, np.zeros(W.shape[1], np.int64), half=True)
    for share in (0.0, 2.0):
        _, scores = score(
            level,
            np.ones((1, 2), np.float32),
            np.zeros((1, 1), np.int32),
            np.zeros((1, 1), np.float32),
            KERNEL_TRANSFORMS["ranker-only"],
            share=share,
        )
        np.testing.assert_array_equal(scores[0], W[0])


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_many_equal_scores(seed):
    rng = np.random.default_rng(seed)
    arrays = arrays_of(level_of(np.ones((2, 24), np.float32), rng.permutation(np.arange(24) % 4)))
    child_indptr, child_ids = arrays[:2]
    beam = np.array([rng.permutation(4)[:3] for _ in range(20)], np.int32)
    scores = rng.integers(0, 3, (20, 18)).astype(np.float32)  # six children of each parent
    for n_best in range(1, 8):
        best, best_scores = np.empty((20, n_best), np.int32), np.empty((20, n_best), np.float32)
        kernels.keep_best(arrays, beam, scores, best, best_scores)
        for i in range(20):
            ids = np.concatenate([child_ids[child_indptr[parent] : child_indptr[parent + 1]] for parent in beam[i]])
            wanted = sorted(zip((-scores[i]).tolist(), ids.tolist(), strict=True))[:n_best]
            assert list(zip((-best_scores[i]).tolist(), best[i].tolist(), strict=True)) == wanted


def test_equal_scores_go_to_the_lower_id():
    W = np.zeros((2, 6), np.float32)
    W[1] = [0.5, 1, 0.5, 1, 1, 0.5]
    level = level_of(W, np.array([1, 0, 0, 1, 0, 1]))
    beam, above = np.array([[1, 0]], np.int32), np.zeros((1, 2), np.float32)
    arrays, scores = score(level, np.ones((1, 2), np.float32), beam, above, KERNEL_TRANSFORMS["l3-hinge"])
    best, best_scores = np.empty((1, 4), np.int32), np.empty((1, 4), np.float32)
    kernels.keep_best(arrays, beam, scores, best, best_scores)
    assert best.tolist() == [[1, 3, 4, 0]]
