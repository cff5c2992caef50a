"""Scoring, summing, halving and exchanging rows against dense numpy."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelwise.kernels import cluster as kernels
from tests.reference import cluster as reference

VALUES = st.sampled_from([0.0, 0.0, 0.0, 1.0, 0.5, -2.0, 3.0])


@st.composite
def matrices(draw, min_rows=1):
    """A dense array with many zeros, and the same as (indptr, indices, data) with columns in any order."""
    n_rows, width = draw(st.integers(min_rows, 7)), draw(st.integers(1, 140))
    dense = draw(hnp.arrays(np.float32, (n_rows, min(width, 9)), elements=VALUES))
    wide = np.zeros((n_rows, width), np.float32)
    wide[:, draw(st.permutations(range(width)))[: dense.shape[1]]] = dense
    rows = sp.csr_array(wide)
    if draw(st.booleans()):  # unsorted
        for begin, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            rows.indices[begin:end] = rows.indices[begin:end][::-1].copy()
            rows.data[begin:end] = rows.data[begin:end][::-1].copy()
    arrays = rows.indptr, rows.indices.view(np.uint32), rows.data
    if draw(st.booleans()):
        for array in arrays:
            array.flags.writeable = False
    return wide, arrays


def some(draw, n_rows):
    return np.array(draw(st.lists(st.integers(0, n_rows - 1), unique=True)), np.int64)


@given(matrices(), st.data())
def test_gathered_rows_have_the_same_products(matrix, data):
    Z, arrays = matrix
    rows = some(data.draw, len(Z))
    counts = np.zeros(Z.shape[1], np.int32)
    indptr, indices, values, width = kernels.gather_rows(rows, *arrays, counts)
    assert not counts.any()
    compact = sp.csr_array((values, indices.astype(np.int64), indptr), shape=(len(rows), width)).toarray()
    np.testing.assert_allclose(compact @ compact.T, Z[rows] @ Z[rows].T, rtol=1e-5)
    shared = (Z[rows] != 0).sum(axis=0)
    assert width <= np.count_nonzero(shared > 1) + len(rows)
    assert not width or (compact != 0).any(axis=0).all()


@given(matrices(), st.data())
def test_score_and_add(matrix, data):
    Z, arrays = matrix
    rows = some(data.draw, len(Z))
    direction = data.draw(hnp.arrays(np.float32, Z.shape[1], elements=VALUES))
    weights = data.draw(hnp.arrays(np.float32, len(rows), elements=VALUES))
    for score, add, given_rows in (
        (kernels.score_rows, kernels.add_rows, arrays),
        (kernels.score_dense, kernels.add_dense, (Z,)),
    ):
        scores, sums = np.empty(len(rows), np.float32), np.ones(Z.shape[1], np.float32)
        score(rows, *given_rows, direction, scores)
        add(rows, *given_rows, weights, sums)
        np.testing.assert_allclose(scores, Z[rows] @ direction, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(sums, 1 + weights @ Z[rows], rtol=1e-5, atol=1e-5)


@given(matrices(), st.integers(1, 5), st.data())
def test_blocks_of_centres(matrix, n_block, data):
    Z, arrays = matrix
    rows = some(data.draw, len(Z))
    clusters = data.draw(hnp.arrays(np.int32, len(rows), elements=st.integers(-1, 6)))
    first = data.draw(st.integers(0, 3))
    wanted = reference.sum_clusters(Z[rows], clusters, first, n_block)
    for sum_clusters, score_block, given_rows in (
        (kernels.sum_clusters, kernels.score_block, arrays),
        (kernels.sum_clusters_dense, kernels.score_block_dense, (Z,)),
    ):
        centres = np.zeros((Z.shape[1], n_block), np.float32)
        sum_clusters(rows, *given_rows, clusters, first, centres)
        np.testing.assert_allclose(centres, wanted, atol=1e-5)
        scores = np.empty((len(rows), n_block), np.float32)
        score_block(rows, *given_rows, centres, scores)
        np.testing.assert_allclose(scores, Z[rows] @ centres, rtol=1e-4, atol=1e-4)
        kernels.normalize_columns(centres)
        np.testing.assert_allclose(centres, reference.normalize_columns(wanted), atol=1e-5)


@given(st.data(), st.integers(1, 9))
def test_aim(data, width):
    left, total = (data.draw(hnp.arrays(np.float32, width, elements=VALUES)) for _ in range(2))
    direction = np.empty(width, np.float32)
    objective = kernels.aim(left, total, direction)
    wanted, lengths = reference.aim(left.astype(float), total.astype(float))
    np.testing.assert_allclose(direction, wanted, atol=1e-5)
    np.testing.assert_allclose(objective, lengths, rtol=1e-5)


@given(st.integers(0, 9999), st.booleans())
def test_halve(seed, sparse):
    rng = np.random.default_rng(seed)
    n_rows, width = int(rng.integers(2, 40)), int(rng.integers(3, 12))
    Z = rng.random((n_rows, width), dtype=np.float32) * (rng.random((n_rows, width)) < 0.7)
    n_left = int(rng.integers(1, n_rows))
    share = np.sort(rng.choice(n_rows, int(rng.integers(2, n_rows + 1)), replace=False))
    pairs = np.stack([rng.choice(len(share), 2, replace=False) for _ in range(3)])
    iterations = np.array([2, 5])
    rows = sp.csr_array(Z)
    arrays = (rows.indptr, rows.indices.view(np.uint32), rows.data) if sparse else (share, share, Z)
    for trial in range(3):  # one trial has one outcome
        left = kernels.halve(*arrays, width, n_left, share, pairs[[trial]], iterations)
        assert np.count_nonzero(left) == n_left
        halves, _ = reference.halve(Z.astype(np.float64), n_left, share, pairs[[trial]], iterations)
        np.testing.assert_array_equal(left, halves[0])
    left = kernels.halve(*arrays, width, n_left, share, pairs, iterations)
    halves, objectives = reference.halve(Z.astype(np.float64), n_left, share, pairs, iterations)
    best = [half for half, objective in zip(halves, objectives, strict=True) if objective > max(objectives) - 1e-4]
    assert any(np.array_equal(left, half) for half in best)


def test_halve_takes_the_first_of_equals():
    Z = np.ones((5, 2), np.float32)
    share = np.arange(5)
    left = kernels.halve(share, share, Z, 2, 3, share, np.array([[0, 1]]), np.array([2, 5]))
    assert left.tolist() == [True, True, True, False, False]


@given(st.data(), st.integers(1, 12), st.integers(1, 4))
def test_exchange(data, n_rows, n_clusters):
    scores = data.draw(hnp.arrays(np.float32, (n_rows, n_clusters), elements=VALUES))
    before = data.draw(hnp.arrays(np.int32, n_rows, elements=st.integers(0, n_clusters - 1)))
    after = before.copy()
    n_moved = kernels.exchange(scores, after)
    np.testing.assert_array_equal(after, reference.exchange(scores, before))
    np.testing.assert_array_equal(np.bincount(after, minlength=4), np.bincount(before, minlength=4))
    fit = [scores[np.arange(n_rows), clusters].sum() for clusters in (before, after)]
    assert fit[1] > fit[0] if n_moved else np.array_equal(before, after)
