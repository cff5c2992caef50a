"""The block solver against a plain one, label by label."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelwise.kernels.solver import HINGE, LANES, LOGISTIC, SQUARED_HINGE, gather_rows, solve_block
from tests.kernels.test_cluster import matrices
from tests.reference import solver as reference

LOSSES = {"squared-hinge": SQUARED_HINGE, "hinge": HINGE, "logistic": LOGISTIC}
RTOL = 1e-3
"""How far the primal objective may lie above the optimum, at the tolerance of these tests."""


def sparse_features(X, dense):
    """Features as `solve_block` takes them, and which feature of X each row of weights belongs to."""
    rows = sp.csr_array(X.astype(np.float32))
    place = np.full(X.shape[1], -1, np.int32)
    indptr = rows.indptr.astype(np.int64)
    indices = rows.indices.astype(np.int32).view(np.uint32)
    indptr, columns, values, features = gather_rows(indptr, indices, rows.data, np.arange(len(X)), place)
    assert (place == -1).all()
    order = np.arange(len(X))[::-1]  # dense rows lie anywhere
    return (indptr, columns, values, dense[order].astype(np.float32), order.copy()), features


class Block:
    """A block being trained: its state can be kept from one call to the next."""

    def __init__(self, X, dense, signs, costs, loss):
        self.X, self.dense, self.signs, self.costs, self.loss = X, dense, signs, costs.astype(np.float32), loss
        self.features, self.columns = sparse_features(X, dense)
        self.alpha = np.zeros(signs.shape, np.float32)
        self.W = np.zeros((len(self.columns) + dense.shape[1], signs.shape[1]), np.float32)

    def solve(self, n_docs=None, *, tolerance=1e-3, sweeps=1000, seed=1):
        n = len(self.X) if n_docs is None else n_docs
        indptr, columns, values, dense, rows = self.features
        part = (indptr[: n + 1], columns, values, dense, rows[:n])
        stop = (np.float32(tolerance), sweeps)
        self.n_sweeps = solve_block(
            part, self.signs[:n], self.costs[:n], LOSSES[self.loss], stop, seed, self.alpha[:n], self.W
        )
        return self

    @property
    def weights(self):
        """(n_features + n_dense, n_labels), features in their own order."""
        n_sparse = len(self.columns)
        W = np.zeros((self.X.shape[1] + self.dense.shape[1], self.W.shape[1]))
        W[self.columns], W[self.X.shape[1] :] = self.W[:n_sparse], self.W[n_sparse:]
        return W

    @property
    def objective(self):
        return reference.primal(np.hstack((self.X, self.dense)), self.signs, self.costs, self.weights, self.loss)


def best(block):
    """The objective that a plain solver reaches."""
    X = np.hstack((block.X, block.dense))
    W = reference.solve(X, block.signs, block.costs, block.loss)
    return reference.primal(X, block.signs, block.costs, W, block.loss)


def problem(seed, *, n_docs=12, n_features=6, n_labels=LANES, loss="squared-hinge", bias=1.0, costs=(1.0, 1.0)):
    rng = np.random.default_rng(seed)
    X = rng.random((n_docs, n_features)) * (rng.random((n_docs, n_features)) < 0.5)
    signs = np.where(rng.random((n_docs, n_labels)) < 0.3, 1, -1).astype(np.int8)
    return Block(X.astype(np.float32), np.full((n_docs, 1), bias), signs, np.tile(costs, (n_docs, 1)), loss)


@given(matrices(), st.data())
def test_gather_rows(matrix, data):
    X, (indptr, indices, values) = matrix
    rows = np.array(data.draw(st.lists(st.integers(0, len(X) - 1), max_size=9)), np.int64)
    place = np.full(X.shape[1], -1, np.int32)
    local_indptr, columns, local_values, features = gather_rows(indptr, indices, values, rows, place)
    assert (place == -1).all()
    wanted = [np.arange(indptr[row], indptr[row + 1]) for row in rows]
    entries = np.concatenate([np.empty(0, int), *wanted])
    np.testing.assert_array_equal(local_indptr, np.cumsum([0, *(len(some) for some in wanted)]))
    np.testing.assert_array_equal(features[columns], indices[entries])
    np.testing.assert_array_equal(local_values, values[entries])
    first_use = list(dict.fromkeys(indices[entries].tolist()))
    assert features.tolist() == first_use


@given(
    st.integers(0, 9999),
    st.sampled_from(sorted(LOSSES)),
    st.integers(1, 9),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([(1.0, 1.0), (3.0, 0.5)]),
)
def test_objective_is_that_of_a_plain_solver(seed, loss, n_docs, bias, costs):
    block = problem(seed, n_docs=n_docs, n_features=4, n_labels=3, loss=loss, bias=bias, costs=costs)
    rng = np.random.default_rng(seed)
    X, signs = block.X, block.signs
    signs[rng.random(signs.shape) < 0.1] = 0
    X[rng.random(n_docs) < 0.2] = 0
    block = Block(X, block.dense, signs, block.costs * rng.choice([0.5, 1, 2], (n_docs, 1)), loss).solve()
    assert_best(block)


def assert_best(block, tolerance=1e-3):
    """Within RTOL of the optimum; gradients within the tolerance bound the hinge loss only by tolerance · Σ cost."""
    wanted = best(block)
    slack = 2 * tolerance * block.costs.max(axis=1).sum() if block.loss == "hinge" else 1e-5
    assert (block.objective <= wanted * (1 + RTOL) + slack).all()
    assert (block.objective >= wanted * (1 - 1e-5) - 1e-5).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_labels_that_leave_and_documents_that_hide_do_not_move_the_optimum(loss):
    # Label 0 holds its block open with a hard problem; the easy ones leave, most documents teach them nothing.
    block = problem(3, n_docs=30, n_features=5, n_labels=2 * LANES, loss=loss)
    block.signs[:, 1:] = np.where(block.X[:, [0]] > 0.5, 1, -1)
    block.signs[:, 2::3] = -1
    assert_best(block.solve(tolerance=1e-3, sweeps=3000))


@pytest.mark.parametrize("loss", ["squared-hinge", "hinge"])
@pytest.mark.parametrize("seed", [0, 6, 17])
def test_a_block_asked_once_more_as_a_whole_keeps_what_it_learnt(seed, loss):
    # With one label, many documents hide, and all labels are asked again: none has settled yet.
    block = problem(seed, n_docs=20, n_features=15, loss=loss, costs=(5.0, 5.0))
    block.signs[:, 1:] = 0
    assert_best(block.solve(sweeps=3000))


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_belong_to_their_dual_variables(loss):
    block = problem(5, n_docs=20, loss=loss, costs=(2.0, 0.5)).solve(tolerance=0.1, sweeps=7)
    X = np.hstack((block.X, block.dense))
    np.testing.assert_allclose(block.weights, X.T @ (block.alpha * block.signs), atol=1e-5)
    assert (block.alpha >= 0).all()
    if loss != "squared-hinge":
        assert (block.alpha <= np.where(block.signs > 0, 2.0, 0.5)).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_columns_of_sign_0_take_no_part(loss):
    alone, padded = problem(2, n_labels=3, loss=loss), problem(2, n_labels=3, loss=loss)
    signs = np.zeros((len(padded.X), LANES), np.int8)
    signs[:, :3] = padded.signs
    padded = Block(padded.X, padded.dense, signs, padded.costs, loss).solve(sweeps=500)
    assert not padded.W[:, 3:].any()
    assert not padded.alpha[:, 3:].any()
    assert padded.n_sweeps < 500
    np.testing.assert_allclose(padded.objective[:3], alone.solve(sweeps=500).objective, rtol=RTOL)


def test_a_block_of_columns_that_take_no_part_is_done_at_once():
    block = problem(2)
    block.signs[:] = 0
    assert block.solve(sweeps=50).n_sweeps <= 2
    assert not block.W.any()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_first", [1, 6, 12])
def test_a_warm_start_ends_where_a_cold_one_does(loss, n_first):
    cold, warm = problem(4, loss=loss).solve(), problem(4, loss=loss)
    warm.solve(n_first).solve()
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=RTOL)
    if n_first == 12:
        assert warm.n_sweeps <= cold.n_sweeps


@pytest.mark.parametrize("loss", LOSSES)
def test_another_cost_may_start_from_this_one(loss):
    block = problem(4, loss=loss, costs=(0.5, 0.5)).solve()
    block.costs[:] = 2  # dual variables may only grow their limits
    np.testing.assert_allclose(
        block.solve().objective, problem(4, loss=loss, costs=(2, 2)).solve().objective, rtol=RTOL
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_dense_and_both_give_the_same_weights(loss):
    sparse = problem(6, loss=loss).solve()
    X, ones = sparse.X, sparse.dense
    none = np.zeros((len(X), 0), np.float32)
    dense = Block(none, np.hstack((X, ones)), sparse.signs, sparse.costs, loss).solve()
    both = Block(X[:, :3], np.hstack((X[:, 3:], ones)), sparse.signs, sparse.costs, loss).solve()
    for other in (dense, both):
        np.testing.assert_allclose(other.objective, sparse.objective, rtol=1e-5)
        np.testing.assert_allclose(other.weights, sparse.weights, atol=2e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_same_seed_same_bytes(loss):
    one, again, other = (problem(7, loss=loss).solve(tolerance=0.01, seed=seed) for seed in (1, 1, 2))
    assert one.W.tobytes() == again.W.tobytes()
    assert one.alpha.tobytes() == again.alpha.tobytes()
    assert one.W.tobytes() != other.W.tobytes()
    np.testing.assert_allclose(one.objective, other.objective, rtol=0.01)


@pytest.mark.parametrize("loss", LOSSES)
def test_read_only_problems(loss):
    block = problem(8, loss=loss)
    wanted = problem(8, loss=loss).solve().W
    for array in (*block.features, block.signs, block.costs):
        array.flags.writeable = False
    np.testing.assert_array_equal(block.solve().W, wanted)


def test_a_separable_label_by_hand():
    # One positive at (1), one negative at (-1), no bias: w minimises w²/2 + 2 (1 - w)², so w = 4/5.
    X = np.array([[1.0], [-1.0]], np.float32)
    signs = np.array([[1] + [0] * (LANES - 1), [-1] + [0] * (LANES - 1)], np.int8)
    block = Block(X, np.zeros((2, 1)), signs, np.ones((2, 2)), "squared-hinge").solve(tolerance=1e-5)
    assert block.weights[0, 0] == pytest.approx(0.8, abs=1e-4)
    block = Block(X, np.zeros((2, 1)), signs, np.full((2, 2), 0.25), "hinge").solve(tolerance=1e-5)
    assert block.weights[0, 0] == pytest.approx(0.5, abs=1e-4)  # both at their limit: 2 · 0.25


def test_empty_documents_without_a_bias_under_the_hinge_loss():
    block = Block(np.zeros((2, 3), np.float32), np.zeros((2, 1)), np.ones((2, 8), np.int8), np.ones((2, 2)), "hinge")
    assert not block.solve(sweeps=50).W.any()
    assert block.n_sweeps < 50


def test_logistic_dual_variables_may_reach_their_limit():
    # A far-off positive against many negatives: its dual variable is so near 1 that float32 rounds it to 1.
    X = np.ones((100, 1), np.float32)
    X[0] = 20
    signs = np.zeros((100, LANES), np.int8)
    signs[:, 0] = -1
    signs[0, 0] = 1
    block = Block(X, np.zeros((100, 1)), signs, np.ones((100, 2)), "logistic").solve(sweeps=200)
    assert block.alpha[0, 0] == 1
    assert block.n_sweeps < 200
    assert_best(block)


def test_max_sweeps_is_obeyed():
    assert problem(9, loss="hinge").solve(tolerance=1e-7, sweeps=3).n_sweeps == 3
