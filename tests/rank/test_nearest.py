"""The nearest labels: as brute force finds them, as negatives, as candidates, and kept."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.config import LinearTreeConfig, RankerConfig
from labelwise.errors import DataError, UsageError
from labelwise.index import embed_labels
from labelwise.index.tree import Tree
from labelwise.rank import nearest as neighbours
from labelwise.rank.features import Features
from labelwise.rank.level_trainer import LevelTrainer
from labelwise.rank.nearest import NearestLabels, single_label_blocks
from labelwise.rank.tree import TrainedTree, train_tree
from tests.reference.weights import level_matrix


def points(rng, n, n_features=12, share=0.3):
    """Rows of small whole numbers, so that products are exact and many of them are equal."""
    return (rng.integers(1, 4, (n, n_features)) * (rng.random((n, n_features)) < share)).astype(np.float32)


def brute_force(X, Z, n):
    """(n_docs, n_labels) cosines of the n nearest labels, nan elsewhere."""
    products = X @ Z.T
    found = np.full(products.shape, np.nan)
    lengths = np.linalg.norm(X, axis=1)
    for i, row in enumerate(products):
        nearest = np.argsort(-row, kind="stable")[:n]
        found[i, nearest] = row[nearest] / (lengths[i] or 1)
    return found


def as_dense(found):
    dense = np.full(found.shape, np.nan)
    rows = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
    dense[rows, found.indices] = found.data
    return dense


@pytest.mark.parametrize("n", [1, 7, 40, 50])
@pytest.mark.parametrize("n_docs", [0, 1, 3, 60])
def test_neighbours_are_those_of_brute_force(n, n_docs):
    rng = np.random.default_rng(n)
    X, Z = points(rng, n_docs), points(rng, 40)
    X[::9] = 0
    Z[::7] = 0
    found = NearestLabels.of(sp.csr_array(Z)).top(sp.csr_array(X), n, threads=3)
    assert found.shape == (n_docs, 40)
    assert found.has_sorted_indices
    assert (np.diff(found.indptr) == min(n, 40)).all()
    np.testing.assert_allclose(as_dense(found), brute_force(X, Z, n), rtol=1e-6)


def test_centroids_may_be_pruned_and_kept_in_half_the_space():
    Z = sp.csr_array(np.array([[0.9, 0.01, 0.4], [0.0, 1.0, 0.02]], np.float32))
    nearest = NearestLabels.of(Z, threshold=0.1, half_precision=True)
    assert nearest.centroids.entry_value.dtype == np.float16
    np.testing.assert_allclose(level_matrix(nearest.centroids, 3).T, [[0.9, 0, 0.4], [0, 1, 0]], rtol=1e-3)


def test_centroids_are_kept():
    rng = np.random.default_rng(0)
    X, nearest = sp.csr_array(points(rng, 20)), NearestLabels.of(sp.csr_array(points(rng, 30)))
    again = NearestLabels.from_arrays(nearest.to_arrays("z."), "z.", n_features=12)
    assert (again.top(X, 5) != nearest.top(X, 5)).nnz == 0


# ---------------------------------------------------------------------- negatives


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    Y = sp.csr_array((rng.random((90, 14)) < 0.15).astype(np.float32))
    X = points(rng, 90, 30, 0.1) + (Y @ points(rng, 14, 30, 0.15)).astype(np.float32)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    return sp.csr_array(X), Y


@pytest.mark.parametrize("parents", [np.zeros(14, np.int32), np.arange(14, dtype=np.int32) % 3])
def test_each_label_is_trained_on_its_own_documents(data, parents, monkeypatch):
    X, Y = data
    own = sp.csr_array((np.random.default_rng(1).random(Y.shape) < 0.3).astype(np.float32) + Y)
    config = RankerConfig(tolerance=1e-4, max_sweeps=3000, threshold=0.0, half_precision=False)
    together = LevelTrainer(Features.of(X), Y, parents, config, threads=2).fit_each(own)
    W = level_matrix(together, X.shape[1])
    for label in range(14):
        rows = np.flatnonzero(own.toarray()[:, label])
        alone = LevelTrainer(Features.of(X[rows]), Y[rows][:, [label]], np.zeros(1, np.int32), config)
        w = level_matrix(alone.fit(sp.csr_array(np.ones((len(rows), 1), np.float32))), X.shape[1])
        np.testing.assert_allclose(W[:, label], w[:, 0], atol=2e-3)


def test_negatives_are_the_documents_that_have_the_label_among_their_nearest(data, monkeypatch):
    X, Y = data
    seen = []
    fit_each = LevelTrainer.fit_each

    def listen(self, documents, **settings):
        seen.append(documents.toarray() > 0)
        return fit_each(self, documents, **settings)

    monkeypatch.setattr(LevelTrainer, "fit_each", listen)
    config = LinearTreeConfig(matching="neighbours", neighbours=4, ranker=RankerConfig(half_precision=False))
    train_tree(Features.of(X), Y, Tree((np.zeros(14, np.int32),)), config)
    near = ~np.isnan(brute_force(X.toarray(), embed_labels(Y, X).toarray(), 4))
    assert (near.sum(axis=1) == 4).all()
    np.testing.assert_array_equal(seen[0], near | (Y.toarray() > 0))


# ---------------------------------------------------------------------- predicting


def test_the_score_is_the_models_times_the_centroids(data, tmp_path):
    X, Y = data
    exact = RankerConfig(half_precision=False)
    config = LinearTreeConfig(matching="neighbours", neighbours=5, score_transform="sigmoid", ranker=exact)
    tree = Tree((np.array([0, 0, 0]), np.arange(14) % 3))
    trained = train_tree(Features.of(X), Y, tree, config)
    found = trained.search(X.shape[1], config).top(Features.of(X), beam=1, top_k=14).toarray()
    W = level_matrix(trained.levels[-1], X.shape[1])
    cosines = brute_force(X.toarray(), embed_labels(Y, X).toarray(), 5)
    wanted = 1 / (1 + np.exp(-(X.toarray() @ W[:-1] + W[-1]))) / (1 + np.exp(-cosines))
    np.testing.assert_allclose(found, np.nan_to_num(wanted), rtol=1e-3)

    trained.save(tmp_path / "tree")
    again = TrainedTree.load(tmp_path / "tree")
    assert again.nearest is not None
    np.testing.assert_array_equal(
        again.search(X.shape[1], config).top(Features.of(X), beam=1, top_k=14).toarray(), found
    )


def test_batches_do_not_matter(data, monkeypatch):
    X, Y = data
    config = LinearTreeConfig(matching="neighbours", neighbours=5)
    search = train_tree(Features.of(X), Y, Tree((np.zeros(14, np.int32),)), config).search(X.shape[1], config)
    wanted = search.top(Features.of(X), top_k=3)
    monkeypatch.setattr(neighbours, "_DOCUMENTS_PER_BATCH", 13)
    found = search.top(Features.of(X), top_k=3, threads=2)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_a_block_each(data):
    X, Y = data
    level = LevelTrainer(Features.of(X), Y, (np.arange(14, dtype=np.int32) * 5) % 3, RankerConfig()).fit(
        sp.csr_array(np.ones((90, 3), np.float32))
    )
    apart = single_label_blocks(level)
    assert apart.n_parents == apart.n_children == 14
    np.testing.assert_array_equal(apart.child_ids, np.arange(14))
    np.testing.assert_array_equal(level_matrix(apart, 30), level_matrix(level, 30))


def test_what_is_wrong_is_told():
    Z = sp.csr_array(np.eye(3, dtype=np.float32))
    with pytest.raises(UsageError, match="neighbours is 0; it must be at least 1"):
        NearestLabels.of(Z).top(Z, 0)
    with pytest.raises(DataError, match="the documents have 2 features but the labels 3"):
        NearestLabels.of(Z).top(Z[:, :2], 1)
    with pytest.raises(DataError, match="a row for every label"):
        NearestLabels.of(Z[:0])


def test_dense_features_beside_the_sparse_ones_do_not_disturb(data):
    X, Y = data
    nearest = NearestLabels.of(embed_labels(Y, X))
    beside = Features.of(X, np.ones((90, 4), np.float32))
    assert (nearest.top(beside, 5) != nearest.top(X, 5)).nnz == 0
