"""Training a level: liblinear's optimum, whatever the features, the threads and the memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from labelwise.config import RankerConfig
from labelwise.engines.threads import MemoryBudget
from labelwise.errors import DataError, UsageError
from labelwise.rank import level_trainer as linear
from labelwise.rank.features import Features
from labelwise.rank.level_trainer import LevelTrainer
from tests.reference import solver as reference
from tests.reference.weights import level_matrix

LOSSES = ["squared-hinge", "hinge", "logistic"]
EXACT = {"tolerance": 1e-3, "max_sweeps": 5000, "matcher_sweeps": 5000, "threshold": 0.0, "half_precision": False}
RTOL = 1e-3
"""How far the primal objectives of the two libraries may lie apart, both run to small tolerances."""


def documents(rng, n_docs=90, n_features=25):
    X = rng.random((n_docs, n_features)) * (rng.random((n_docs, n_features)) < 0.25)
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)


def noisy(rng, X, n_labels=5, share=0.3):
    """Labels that a linear model can learn in part."""
    scores = X @ rng.normal(size=(X.shape[1], n_labels)) + 0.3 * rng.normal(size=(len(X), n_labels))
    return (scores > np.quantile(scores, 1 - share, axis=0)).astype(np.float32)


def plain(rng):
    X = documents(rng)
    return X, noisy(rng, X)


def duplicated(rng):
    X = documents(rng, 20)
    X = np.repeat(X, 5, axis=0)
    return X, noisy(rng, X)  # copies with different labels


def rescaled(rng):
    X = documents(rng) * 10.0 ** rng.integers(-2, 2, 25)
    return X, noisy(rng, X)


def rare(rng):
    X = documents(rng)
    return X, noisy(rng, X, share=1.5 / len(X))


def with_empty_documents(rng):
    X = documents(rng)
    X[::7] = 0
    return X, noisy(rng, X)


def train(X, Y, *, dense=None, threads=1, bias=1.0, document_costs=None, **settings):
    """(n_features + n_dense + 1, n_labels) weights of labels that all have the same parent."""
    features = Features.of(sp.csr_array(X.astype(np.float32)), dense, bias=bias)
    Y = sp.csr_array(Y)
    parents = np.zeros(Y.shape[1], np.int32)
    config = RankerConfig(**{**EXACT, **settings})
    trainer = LevelTrainer(features, Y, parents, config, threads=threads, document_costs=document_costs)
    everyone = sp.csr_array(np.ones((X.shape[0], 1), np.float32))
    return level_matrix(trainer.fit(everyone), X.shape[1]).astype(np.float64)


def objective(X, Y, W, loss, *, bias=1.0, costs=(1.0, 1.0), document_costs=1.0):
    each = np.tile(costs, (len(X), 1)) * np.broadcast_to(document_costs, len(X))[:, None]
    return reference.primal(np.hstack((X, np.full((len(X), 1), bias))), np.where(Y > 0, 1, -1), each, W, loss)


def liblinear(X, Y, loss, *, bias=1.0, costs=(1.0, 1.0), document_costs=None):
    """(n_features + 1, n_labels) weights by scikit-learn, the bias an explicit column."""
    X = np.hstack((X, np.full((len(X), 1), bias)))
    settings = {"fit_intercept": False, "C": 1.0, "class_weight": {1: costs[0], -1: costs[1]}, "tol": 1e-6}
    columns = []
    for y in np.where(Y > 0, 1, -1).T:
        if loss == "logistic":
            model = LogisticRegression(solver="liblinear", dual=True, max_iter=100_000, **settings)
        else:
            model = LinearSVC(loss=loss.replace("-", "_"), dual=True, max_iter=10_000_000, **settings)
        columns.append(model.fit(X, y, sample_weight=document_costs).coef_[0])
    return np.array(columns).T


@pytest.mark.rivals
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("make", [plain, duplicated, rescaled, rare, with_empty_documents])
def test_the_objective_is_liblinears(make, loss):
    X, Y = make(np.random.default_rng(1))
    ours = objective(X, Y, train(X, Y, loss=loss), loss)
    theirs = objective(X, Y, liblinear(X, Y, loss), loss)
    np.testing.assert_allclose(ours, theirs, rtol=RTOL)


@pytest.mark.rivals
@pytest.mark.parametrize("loss", LOSSES)
def test_costs_of_classes_and_documents_and_the_bias_are_liblinears(loss):
    rng = np.random.default_rng(2)
    X, Y = plain(rng)
    own = rng.choice([0.5, 1.0, 3.0], len(X))
    settings = {"bias": 2.0, "document_costs": own}
    W = train(X, Y, loss=loss, cost=0.5, positive_weight=4.0, **settings)
    settings["costs"] = (2.0, 0.5)
    ours = objective(X, Y, W, loss, **settings)
    theirs = objective(X, Y, liblinear(X, Y, loss, **settings), loss, **settings)
    np.testing.assert_allclose(ours, theirs, rtol=RTOL)


@pytest.mark.parametrize("loss", LOSSES)
def test_labels_that_all_or_no_documents_have(loss):
    # scikit-learn refuses such labels; the optimum is known from a plain solver.
    X = documents(np.random.default_rng(3), 20, 6)
    Y = np.zeros((20, 3), np.float32)
    Y[:, 0] = Y[:4, 2] = 1
    W = train(X, Y, loss=loss)
    signs, costs = np.where(Y > 0, 1, -1), np.ones((20, 2))
    best = reference.solve(np.hstack((X, np.ones((20, 1)))), signs, costs, loss)
    np.testing.assert_allclose(objective(X, Y, W, loss), objective(X, Y, best, loss), rtol=RTOL, atol=1e-3)
    assert (np.hstack((X, np.ones((20, 1)))) @ W[:, 0] > 0.9).all()
    assert (np.hstack((X, np.ones((20, 1)))) @ W[:, 1] < -0.9).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_one_document(loss):
    X, Y = np.array([[0.6, 0.8]]), np.array([[1, 0]], np.float32)
    best = reference.solve(np.array([[0.6, 0.8, 1.0]]), np.array([[1, -1]]), np.ones((1, 2)), loss)
    np.testing.assert_allclose(train(X, Y, loss=loss), best, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_dense_and_both_give_the_same_weights(loss):
    X, Y = plain(np.random.default_rng(4))
    sparse = train(X, Y, loss=loss)
    nothing = np.zeros((len(X), 0))
    np.testing.assert_allclose(train(nothing, Y, dense=X, loss=loss), sparse, atol=5e-3)
    np.testing.assert_allclose(train(X[:, :10], Y, dense=X[:, 10:], loss=loss), sparse, atol=5e-3)


def level_problem(n_labels=150, n_docs=200, seed=5):
    """Labels under three parents, one of them wider than a block."""
    rng = np.random.default_rng(seed)
    X = documents(rng, n_docs, 40)
    Y = sp.csr_array(noisy(rng, X, n_labels, 0.1))
    parents = np.where(np.arange(n_labels) % 10 == 0, 0, np.where(np.arange(n_labels) % 10 == 1, 2, 1)).astype(np.int32)
    M = sp.csr_array(((Y @ np.eye(3, dtype=np.float32)[parents]) > 0).astype(np.float32))
    return sp.csr_array(X.astype(np.float32)), Y, parents, M


def assert_same_bytes(one, other):
    for (name, array), again in zip(one.to_arrays("").items(), other.to_arrays("").values(), strict=True):
        assert array.dtype == again.dtype, name
        assert array.tobytes() == again.tobytes(), name


@pytest.mark.parametrize("loss", LOSSES)
def test_threads_and_memory_change_nothing(loss):
    X, Y, parents, M = level_problem()
    config = RankerConfig(loss=loss)
    alone = LevelTrainer(Features.of(X), Y, parents, config, threads=1).fit(M)
    assert_same_bytes(alone, LevelTrainer(Features.of(X), Y, parents, config, threads=4).fit(M))
    trainer = LevelTrainer(Features.of(X), Y, parents, config, threads=3)
    trainer.budget = MemoryBudget(1)  # one piece at a time
    assert_same_bytes(alone, trainer.fit(M))
    other = LevelTrainer(Features.of(X), Y, parents, config, seed=1, threads=1).fit(M)
    assert other.entry_value.tobytes() != alone.entry_value.tobytes()


def test_a_label_learns_from_the_documents_of_its_parent_only():
    X, Y, parents, M = level_problem(30)
    config = RankerConfig(**EXACT)
    found = level_matrix(LevelTrainer(Features.of(X), Y, parents, config, threads=1).fit(M), X.shape[1])
    for label in (0, 1, 2, 29):
        rows = M[:, [parents[label]]].toarray().ravel() > 0
        assert 0 < rows.sum() < len(rows)
        own = train(X.toarray()[rows], Y[:, [label]].toarray()[rows])[:, 0]
        np.testing.assert_allclose(found[:, label], own, atol=5e-3)


def test_the_matchers_documents_join_the_teachers():
    X, Y, parents, M = level_problem(30)
    more = sp.csr_array((np.random.default_rng(0).random(M.shape) < 0.2).astype(np.float32))
    config = RankerConfig(**EXACT)
    trainer = LevelTrainer(Features.of(X), Y, parents, config, threads=1)
    union = sp.csr_array(((M + more) > 0).astype(np.float32))
    in_two_steps, at_once = (level_matrix(level, 40) for level in (trainer.fit(M, more), trainer.fit(union)))
    np.testing.assert_allclose(in_two_steps, at_once, atol=5e-3)
    assert np.abs(level_matrix(trainer.fit(M), 40) - at_once).max() > 0.05


def test_wide_nodes_are_trained_in_pieces(monkeypatch):
    X, Y, parents, M = level_problem()
    config = RankerConfig(**EXACT)
    wanted = level_matrix(LevelTrainer(Features.of(X), Y, parents, config, threads=1).fit(M), 40)
    monkeypatch.setattr(linear, "BLOCK_WIDTH", 7)
    found = LevelTrainer(Features.of(X), Y, parents, config, threads=1).fit(M)
    np.testing.assert_allclose(level_matrix(found, 40), wanted, atol=5e-3)
    assert found.child_ids[found.child_indptr[0] : found.child_indptr[1]].tolist() == list(range(0, 150, 10))


def test_a_parent_without_documents_has_models_of_nothing():
    X, Y, parents, M = level_problem(30)
    M = M.tolil()
    M[:, 2] = 0
    level = LevelTrainer(Features.of(X), Y, parents, RankerConfig(), threads=1).fit(sp.csr_array(M))
    assert not level_matrix(level, 40)[:, parents == 2].any()
    assert level_matrix(level, 40)[:, parents == 1].any()


def test_pruning_is_the_configurations():
    X, Y, parents, M = level_problem(30)
    whole = LevelTrainer(Features.of(X), Y, parents, RankerConfig(threshold=0, half_precision=False), threads=1).fit(M)
    some = LevelTrainer(Features.of(X), Y, parents, RankerConfig(threshold=0.5, max_weights=4), threads=1).fit(M)
    W, pruned = level_matrix(whole, 40), level_matrix(some, 40)
    kept = pruned[:40] != 0
    assert kept.any(axis=0).all()
    assert (kept.sum(axis=0) <= 4).all()
    np.testing.assert_allclose(pruned[:40][kept], W[:40][kept], rtol=1e-3)
    np.testing.assert_array_equal(pruned[40], W[40])
    assert (np.abs(W[:40][kept]) >= 0.5).all()
    assert (whole.entry_value.dtype, some.entry_value.dtype) == (np.float32, np.float16)


def test_inputs_are_not_modified_and_may_be_read_only():
    X, Y, parents, M = level_problem(30)
    for matrix in (X, Y, M):
        for array in (matrix.indptr, matrix.indices, matrix.data):
            array.flags.writeable = False
    parents.flags.writeable = False
    LevelTrainer(Features.of(X), Y, parents, RankerConfig(), threads=2).fit(M, M)


def test_progress_counts_models():
    X, Y, parents, M = level_problem(30)
    events = []
    LevelTrainer(Features.of(X), Y, parents, RankerConfig()).fit(
        M, name="labels", on_event=lambda name, values: events.append((name, values))
    )
    name, last = events[-1]
    assert name == "progress"
    assert (last["task"], last["done"], last["total"], last["unit"], last["finished"]) == (
        "labels",
        30,
        30,
        "models",
        True,
    )


def test_features():
    X = sp.csr_array(np.array([[0, 2], [0, 0]], np.float32))
    features = Features.of(X, np.array([[3.0], [4.0]]), bias=0.5)
    assert (features.n_docs, features.n_features) == (2, 2)
    assert features.dense.tolist() == [[3, 0.5], [4, 0.5]]
    assert features.dense.dtype == features.data.dtype == np.float32
    assert features.indices.dtype == np.uint32
    assert np.shares_memory(features.data, X.data)


def test_features_that_are_none():
    X = sp.csr_array(np.ones((2, 2), np.float32))
    with pytest.raises(DataError, match="there are 3 dense rows but X has 2"):
        Features.of(X, np.ones((3, 1)))
    with pytest.raises(DataError, match="not numbers"):
        Features.of(X, np.array([[np.inf], [0]]))
    X.data[1] = np.nan
    with pytest.raises(DataError, match=r"not numbers \(nan or inf\)"):
        Features.of(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cost": 0.0}, "cost is 0.0; it must be a number above 0"),
        ({"cost": float("nan")}, "cost is nan"),
        ({"loss": "l2"}, "loss is 'l2'; it must be one of 'squared-hinge', 'hinge', 'logistic'"),
        ({"negatives": "random"}, "negatives is 'random'; it must be one of 'tfn', 'man', 'tfn\\+man'"),
        ({"positive_weight": -1.0}, "positive_weight is -1.0"),
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"max_sweeps": 0}, "max_sweeps is 0"),
        ({"threshold": -0.1}, "threshold is -0.1"),
        ({"max_weights": 0}, "max_weights is 0"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    X, Y, parents, _ = level_problem(30)
    with pytest.raises(UsageError, match=message):
        LevelTrainer(Features.of(X), Y, parents, RankerConfig(**settings))


@pytest.mark.parametrize(
    ("costs", "message"), [([1.0], "1 document costs but 200 documents"), ([0.0] * 200, "must be numbers above 0")]
)
def test_document_costs_that_make_no_sense(costs, message):
    X, Y, parents, _ = level_problem(30)
    with pytest.raises(DataError, match=message):
        LevelTrainer(Features.of(X), Y, parents, RankerConfig(), document_costs=np.array(costs))


@pytest.mark.parametrize("loss", ["squared-hinge", "hinge"])
def test_going_on_from_weights_stays_as_near_to_them_as_documents_allow(loss):
    """min 1/2 |w - start|² + losses, against a general-purpose optimiser on the shifted problem."""
    rng = np.random.default_rng(11)
    X, Y = plain(rng)
    begin = RankerConfig(**EXACT, loss=loss)
    features, parents = Features.of(sp.csr_array(X[:60].astype(np.float32))), np.zeros(Y.shape[1], np.int32)
    everyone = sp.csr_array(np.ones((60, 1), np.float32))
    start = LevelTrainer(features, sp.csr_array(Y[:60]), parents, begin).fit(everyone)
    more = Features.of(sp.csr_array(X[60:].astype(np.float32)))
    trainer = LevelTrainer(more, sp.csr_array(Y[60:]), parents, begin, start=start)
    found = level_matrix(trainer.fit(sp.csr_array(np.ones((30, 1), np.float32))), X.shape[1]).astype(np.float64)
    first = level_matrix(start, X.shape[1]).astype(np.float64)
    A, signs = np.hstack((X[60:], np.ones((30, 1)))), np.where(Y[60:] > 0, 1.0, -1.0)

    def objective_of(W):
        losses = reference.losses(loss, signs * (A @ W))
        return 0.5 * np.square(W - first).sum(axis=0) + losses.sum(axis=0)

    best = np.array([proximal(A, signs[:, c], first[:, c], loss) for c in range(Y.shape[1])]).T
    np.testing.assert_allclose(objective_of(found), objective_of(best), rtol=RTOL)
    assert (objective_of(found) < objective_of(first)).all()


def proximal(A, y, start, loss):
    """The dual of the proximal problem as a bounded quadratic programme, by L-BFGS-B."""
    K, margin = (A * y[:, None]) @ (A * y[:, None]).T, 1 - y * (A @ start)
    ridge = 0.5 if loss == "squared-hinge" else 0.0
    limit = None if loss == "squared-hinge" else 1.0
    found = minimize(
        lambda a: (0.5 * a @ K @ a + 0.5 * ridge * a @ a - margin @ a, K @ a + ridge * a - margin),
        np.zeros(len(y)),
        jac=True,
        bounds=[(0, limit)] * len(y),
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-14, "gtol": 1e-9},
    )
    return start + A.T @ (y * found.x)


def test_models_that_agree_with_all_documents_stay_as_they_are():
    rng = np.random.default_rng(12)
    X, Y = plain(rng)
    features, everyone = Features.of(sp.csr_array(X.astype(np.float32))), sp.csr_array(np.ones((len(X), 1), np.float32))
    parents = np.zeros(Y.shape[1], np.int32)
    config = RankerConfig(threshold=0.1)  # 16-bit weights, some of which just reach the threshold
    start = LevelTrainer(features, sp.csr_array(Y), parents, config).fit(everyone)
    # Documents so long that every label is sure of them, whatever they say.
    long = 1e3 * X
    scores = np.hstack((long, np.ones((len(X), 1)))) @ level_matrix(start, X.shape[1])
    sure = np.flatnonzero((np.abs(scores) > 1).all(axis=1))
    assert len(sure) > 20
    some, agreed = Features.of(sp.csr_array(long[sure].astype(np.float32))), (scores[sure] > 0).astype(np.float32)
    trainer = LevelTrainer(some, sp.csr_array(agreed), parents, config, start=start)
    again = trainer.fit(sp.csr_array(np.ones((len(sure), 1), np.float32)))
    for name, array in start.to_arrays("").items():
        np.testing.assert_array_equal(again.to_arrays("")[name], array)
