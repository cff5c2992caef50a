"""The way of the block solver, step by step, against its twin in numpy; each of its helpers against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwise.kernels import solver
from labelwise.kernels.solver import LANES
from tests.kernels.test_solver import LOSSES, Block, problem
from tests.reference import block_solver as twin

SIXTEENTHS = 1 / np.float32(16)
"""Sums of multiples of these are exact, in whatever order."""


def exact(rng, *shape):
    return (rng.integers(-32, 33, shape) * SIXTEENTHS).astype(np.float32)


@pytest.mark.parametrize("n_sparse", range(10))
@pytest.mark.parametrize("n_dense", [0, 1, 3, 4, 5, 9])
def test_scores_are_sums_over_all_features(n_sparse, n_dense):
    rng = np.random.default_rng(10 * n_sparse + n_dense)
    W, values, dense = exact(rng, 12 + n_dense, 5), exact(rng, n_sparse), exact(rng, n_dense)
    columns = rng.permutation(12)[:n_sparse].astype(np.uint32)
    scores = np.full(5, np.nan, np.float32)
    solver._score(columns, values, dense, W, scores)
    np.testing.assert_array_equal(scores, values @ W[columns] + dense @ W[12:])


@pytest.mark.parametrize("n_moved", [0, 1, 2, 7, 8, 9, 10, 80])
@pytest.mark.parametrize("width", [8, 16, 80])
def test_steps_are_added_to_all_features(width, n_moved):
    rng = np.random.default_rng(n_moved)
    W, values, dense = exact(rng, 15, width), exact(rng, 5), exact(rng, 3)
    columns = rng.permutation(12)[:5].astype(np.uint32)
    steps = np.zeros(width, np.float32)
    steps[rng.permutation(width)[:n_moved]] = 0.5
    wanted = W.copy()
    wanted[columns] += np.outer(values, steps)
    wanted[12:] += np.outer(dense, steps)
    solver._add(columns, values, dense, steps, W)
    np.testing.assert_array_equal(W, wanted)


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("square", [0.0, 0.75])
def test_hinge_steps(squared, square):
    rng = np.random.default_rng(0)
    cost, idle = np.array([2, 0.5], np.float32), np.float32(0.25)
    # Every sign, with dual variables at 0, between, at the limit, and scores on both sides of the margin and on it.
    alphas = np.array([0, 0.25, 0.5, 2], np.float32)
    signs, alpha, scores = (
        part.ravel() for part in np.meshgrid([-1, 0, 1], alphas, np.linspace(-2, 2, 33), indexing="ij")
    )
    signs, alpha, scores = signs.astype(np.int8), alpha.astype(np.float32), scores.astype(np.float32)
    lowest, highest = exact(rng, 2, len(signs)) / 4
    new, steps, projected, useful = twin.hinge_step(scores, signs, square, cost, squared, idle, alpha)
    found, moved, low, high = alpha.copy(), np.full(len(signs), np.nan, np.float32), lowest.copy(), highest.copy()
    options = (np.float32(square), cost, squared, idle)
    assert solver._hinge_steps(scores, signs, *options, found, moved, low, high) == useful
    np.testing.assert_allclose(found, new, rtol=1e-6)
    np.testing.assert_allclose(moved, steps, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(low, np.minimum(lowest, projected), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(high, np.maximum(highest, projected), rtol=1e-5, atol=1e-6)
    for one in range(len(signs)):  # whether a document is of use, label by label
        at = slice(one, one + 1)
        alone = twin.hinge_step(scores[at], signs[at], square, cost, squared, idle, alpha[at])[3]
        state = (alpha[at].copy(), moved[at], low[at], high[at])
        assert solver._hinge_steps(scores[at], signs[at], *options, *state) == alone


@pytest.mark.parametrize("square", [0.0, 0.75, 50.0])
def test_logistic_steps(square):
    cost = np.array([2, 0.5], np.float32)
    alphas = np.array([0, 1e-9, 0.1, 0.25, 0.4, 0.5, 1.9, 2], np.float32)
    signs, alpha, scores = (
        part.ravel() for part in np.meshgrid([-1, 0, 1], alphas, [-8, -3, -1, 0, 0.5, 2, 8], indexing="ij")
    )
    signs, scores = signs.astype(np.int8), scores.astype(np.float32)
    alpha = np.minimum(alpha, np.where(signs > 0, cost[0], cost[1])).astype(np.float32)
    wanted = [twin.logistic_step(*one, square, cost, old) for *one, old in zip(scores, signs, alpha, strict=True)]
    gradients = np.array([0 if one[2] is None else one[2] for one in wanted], np.float32)
    found, (low, high) = alpha.copy(), np.zeros((2, len(signs)), np.float32)
    moved = np.full(len(signs), np.nan, np.float32)
    assert solver._logistic_steps(scores, signs, np.float32(square), cost, found, moved, low, high)
    np.testing.assert_allclose(found, [one[0] for one in wanted], rtol=1e-6)
    np.testing.assert_allclose(moved, [one[1] for one in wanted], rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(low, np.minimum(gradients, 0), rtol=1e-5)
    np.testing.assert_allclose(high, np.maximum(gradients, 0), rtol=1e-5)
    # The step leads to where the gradient of the one-variable problem is nearly 0.
    taken = (signs != 0) & (found > 1e-6) & (found < np.where(signs > 0, cost[0], cost[1]) * 0.9999)
    limit, now = np.where(signs > 0, cost[0], cost[1])[taken].astype(float), found[taken].astype(float)
    slope = square * (now - alpha[taken]) + (signs * scores)[taken] + np.log(now / (limit - now))
    assert taken.sum() > 40
    assert np.abs(slope).max() < 2e-3


@pytest.mark.parametrize("n", [0, 1, 2, 3, 50])
def test_documents_are_shuffled_by_xorshift(n):
    chance, wanted, order = twin.Xorshift(7), list(range(60)), np.arange(60)
    state = np.uint64(chance.state)
    for _ in range(3):
        first = wanted[:n]
        chance.shuffle(first)
        wanted[:n] = first
        state = np.uint64(solver._shuffle(order, n, state))
        assert int(state) == chance.state
        assert order.tolist() == wanted
    assert sorted(wanted) == list(range(60))


@given(st.sets(st.integers(0, 39), min_size=1), st.data())
def test_blocks_are_filled_with_the_first_labels_that_are_left(labels, data):
    which = data.draw(st.sets(st.integers(0, len(labels) - 1)))
    labels = np.array(sorted(labels))
    found = solver._filled(labels, np.array(sorted(which), np.int64))
    assert found.tolist() == twin.fill(labels.tolist(), labels[sorted(which)].tolist())
    assert found.size % LANES == 0 or found.size == labels.size


def test_columns_are_copied_and_put_back():
    rng = np.random.default_rng(0)
    matrix, columns = exact(rng, 4, 9), np.array([7, 0, 3])
    copy = solver._columns_of(matrix, columns)
    assert copy.flags.c_contiguous
    np.testing.assert_array_equal(copy, matrix[:, columns])
    wanted = matrix.copy()
    wanted[:, columns] = copy + 1
    solver._put_columns(copy + 1, columns, matrix)
    np.testing.assert_array_equal(matrix, wanted)


def path_of(block, tolerance, sweeps, seed):
    """What the twin does with a block: its trace, its dual variables and its weights."""
    n_sparse = len(block.columns)
    X = np.hstack((block.X[:, block.columns], block.dense)).astype(np.float32)
    alpha, W = np.zeros_like(block.alpha), np.zeros_like(block.W)
    assert len(W) == n_sparse + block.dense.shape[1]
    trace = twin.solve(X, block.signs, block.costs, block.loss, (tolerance, sweeps), seed, alpha, W)
    return trace, alpha, W


def assert_same_path(block, *, tolerance, sweeps=40, seed=1):
    """The kernel ends where the twin does after each number of sweeps; the twin's trace."""
    trace, alpha, W = path_of(block, tolerance, sweeps, seed)
    block.solve(tolerance=tolerance, sweeps=sweeps, seed=seed)
    assert block.n_sweeps == len(trace)
    np.testing.assert_allclose(block.alpha, alpha, rtol=1e-3, atol=2e-5)
    np.testing.assert_allclose(block.W, W, rtol=1e-3, atol=2e-5)
    return trace


def mixed(seed, *, n_labels, loss, n_docs=12):
    """Labels that are easy, hard and of no document, so that some settle long before others."""
    block = problem(seed, n_docs=n_docs, n_features=5, n_labels=n_labels, loss=loss, costs=(2.0, 0.5))
    block.signs[:, ::3] = -1
    block.signs[:, 1::3] = np.where(block.X[:, [0]] > 0.3, 1, -1)
    return block


def separable(seed, *, n_labels, loss, n_docs=24):
    """Labels that a feature separates, with wide margins for most documents, which then hide."""
    block = problem(seed, n_docs=n_docs, n_features=2, n_labels=n_labels, loss=loss, costs=(0.5, 0.2))
    X = 3 * np.random.default_rng(seed).normal(size=(n_docs, 3)).astype(np.float32)
    signs = np.where(X[:, [0]] > np.linspace(-1, 1, n_labels), 1, -1).astype(np.int8)
    signs[:, 3::4] = 0
    return Block(X, block.dense, signs, block.costs, loss)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("sweeps", [1, 2, 3, 7])
def test_the_first_sweeps_are_those_of_the_twin(loss, sweeps):
    # Tolerances are wide, so that labels and documents are put aside at once.
    trace = assert_same_path(mixed(sweeps, n_labels=29, loss=loss), tolerance=0.4, sweeps=sweeps, seed=sweeps)
    assert len({len(labels) for _, labels in trace}) > 1 or sweeps < 7


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("seed", "n_labels"), [(0, 24), (1, 40), (2, 3), (3, 17)])
def test_the_whole_way_is_that_of_the_twin(loss, seed, n_labels):
    trace = assert_same_path(mixed(seed, n_labels=n_labels, loss=loss), tolerance=0.05, seed=seed)
    assert len(trace) < 40


@pytest.mark.parametrize("loss", ["squared-hinge", "hinge"])
@pytest.mark.parametrize(("seed", "n_labels"), [(0, 1), (1, 4), (2, 9), (4, 18), (5, 32), (5, 33)])
def test_documents_that_hide_are_those_of_the_twin(loss, seed, n_labels):
    trace = assert_same_path(separable(seed, n_labels=n_labels, loss=loss), tolerance=0.2, seed=seed)
    n_seen = [len(documents) for documents, _ in trace]
    assert min(n_seen) < 24
    assert 24 in n_seen[1:]  # all are asked once more
    if n_labels == 32:  # a quarter less is just enough
        assert 24 in [len(labels) for _, labels in trace]
