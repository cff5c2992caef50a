"""The tree builder: sizes, seeds, threads, planted clusters, labels without documents."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelwise.config import IndexConfig
from labelwise.errors import DataError, UsageError
from labelwise.index import build_tree, choose_n_clusters, kmeans, rows
from labelwise.index.balanced import shares


def random_labels(n_labels, seed=0, n_features=40, n_zero=0):
    rng = np.random.default_rng(seed)
    Z = rng.random((n_labels, n_features), dtype=np.float32) * (rng.random((n_labels, n_features)) < 0.2)
    Z[:, 0] += 0.01
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    Z[rng.choice(n_labels, n_zero, replace=False)] = 0
    return Z.astype(np.float32)


def planted(n_groups, size, seed=0, words=6):
    """Labels of each group share words that no other group has, and a weaker word that all have."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(n_groups), size))
    Z = np.zeros((len(group), n_groups * words + 1), np.float32)
    for label, own in enumerate(group):
        Z[label, own * words : (own + 1) * words] = 1 + 0.3 * rng.random(words)
    Z[:, -1] = 1.0
    return Z / np.linalg.norm(Z, axis=1, keepdims=True), group


def same(one, two):
    return one.depth == two.depth and all(map(np.array_equal, one.parents, two.parents))


def purity(clusters, group):
    return sum(np.bincount(group[clusters == c]).max() for c in np.unique(clusters)) / len(group)


@given(st.data(), st.integers(1, 60), st.sampled_from(["balanced", "random"]), st.booleans())
def test_clusters_of_equal_size(data, n_labels, method, sparse):
    n_clusters = data.draw(st.integers(1, n_labels))
    n_zero = data.draw(st.integers(0, n_labels))
    branching = data.draw(st.none() | st.integers(2, 20))
    Z = random_labels(n_labels, n_zero=n_zero)
    config = IndexConfig(n_clusters=n_clusters, method=method, branching=branching)
    tree = build_tree(sp.csr_array(Z) if sparse else Z, config, threads=2)
    assert (tree.n_labels, tree.n_clusters) == (n_labels, n_clusters)
    sizes = tree.sizes(-1)
    assert sizes.max() - sizes.min() <= 1
    assert sizes.sum() == n_labels
    if branching:
        assert all(tree.sizes(level).max() <= branching for level in range(tree.depth - 1))
    if method == "balanced":
        zeros = np.bincount(tree.clusters[~Z.any(axis=1)], minlength=n_clusters)
        assert zeros.max() - zeros.min() <= 1


@given(st.integers(0, 10_000), st.integers(2, 300))
def test_shares_lead_to_equal_leaves(n_members, n_leaves):
    nodes = [(n_members, n_leaves)]
    while any(leaves > 1 for _, leaves in nodes):
        split = []
        for members, leaves in nodes:
            if leaves == 1:
                split.append((members, leaves))
                continue
            left, half = shares(members, leaves)
            assert half == leaves // 2
            split += [(left, half), (members - left, leaves - half)]
        nodes = split
    sizes = [members for members, _ in nodes]
    assert len(sizes) == n_leaves
    assert max(sizes) - min(sizes) <= 1
    assert sum(sizes) == n_members


def test_the_paper_s_numbers_of_clusters():
    sizes = [3_956, 13_330, 30_938, 501_070]
    assert [choose_n_clusters(n_labels) for n_labels in sizes] == [64, 256, 512, 8192]
    assert [choose_n_clusters(n_labels) for n_labels in (1, 2, 50, 99, 100)] == [1, 2, 2, 2, 4]
    assert build_tree(random_labels(300)).n_clusters == 8


@pytest.mark.parametrize("method", ["balanced", "kmeans", "random"])
@pytest.mark.parametrize("sparse", [True, False])
def test_same_seed_same_tree_for_any_number_of_threads(monkeypatch, method, sparse):
    monkeypatch.setattr(rows, "PRODUCTS_PER_PIECE", 500)  # as if the nodes were large
    Z = random_labels(700, n_zero=5)
    Z = sp.csr_array(Z) if sparse else Z
    trees = [build_tree(Z, IndexConfig(method=method, max_leaf=20), threads=threads, seed=3) for threads in (1, 2, 7)]
    assert same(trees[0], trees[1])
    assert same(trees[0], trees[2])
    assert not same(trees[0], build_tree(Z, IndexConfig(method=method, max_leaf=20), seed=4))


@pytest.mark.parametrize("sample", [100_000, 60])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_recovers_planted_clusters(sample, sparse, seed):
    Z, group = planted(8, 25, seed)
    tree = build_tree(sp.csr_array(Z) if sparse else Z, IndexConfig(n_clusters=8, sample=sample), seed=seed)
    assert purity(tree.clusters, group) >= (1.0 if sample > 200 else 0.9)


@pytest.mark.parametrize("sample", [100_000, 50])
def test_kmeans_recovers_planted_clusters_of_any_size(sample):
    rng = np.random.default_rng(0)
    Z, group = planted(5, 40)
    kept = np.sort(rng.choice(200, 150, replace=False))
    tree = build_tree(sp.csr_array(Z[kept]), IndexConfig(method="kmeans", max_leaf=20, sample=sample))
    assert purity(tree.clusters, group[kept]) >= 0.9
    assert tree.sizes(-1).max() <= 20


@given(st.integers(1, 120), st.integers(1, 30), st.integers(2, 9), st.booleans())
def test_kmeans_makes_small_leaves(n_labels, max_leaf, branching, sparse):
    Z = random_labels(n_labels)
    config = IndexConfig(method="kmeans", max_leaf=max_leaf, branching=branching)
    tree = build_tree(sp.csr_array(Z) if sparse else Z, config)
    assert tree.sizes(-1).max() <= max_leaf
    assert tree.depth <= kmeans.DEPTH + 2
    for level in range(min(tree.depth - 1, kmeans.DEPTH)):
        assert tree.sizes(level).max() <= branching


def test_kmeans_in_blocks_of_centres(monkeypatch):
    Z = sp.csr_array(random_labels(300))
    config = IndexConfig(method="kmeans", max_leaf=10)
    whole = build_tree(Z, config)
    monkeypatch.setattr(kmeans, "BLOCK", 1)  # the least block is 16 centres
    assert same(whole, build_tree(Z, config))


def test_kmeans_distributes_equal_rows_and_zero_rows_evenly():
    Z = np.tile(np.array([[0.6, 0.8]], np.float32), (90, 1))
    tree = build_tree(Z, IndexConfig(method="kmeans", max_leaf=10))
    assert tree.sizes(-1).max() <= 10
    Z[10:] = 0
    tree = build_tree(Z, IndexConfig(method="kmeans", max_leaf=5))
    assert np.ptp(tree.sizes(-1)) <= 1


@pytest.mark.parametrize("method", ["balanced", "kmeans", "random", "none"])
def test_all_rows_are_zero(method):
    tree = build_tree(sp.csr_array((50, 9), dtype=np.float32), IndexConfig(method=method, max_leaf=100))
    assert tree.n_labels == 50
    assert np.ptp(tree.sizes(-1)) <= 1


def test_zero_rows_do_not_move_the_others():
    Z, group = planted(4, 20)
    with_zeros = np.insert(Z, np.arange(0, 80, 8), 0, axis=0)
    known = with_zeros.any(axis=1)
    tree = build_tree(with_zeros, IndexConfig(n_clusters=4))
    np.testing.assert_array_equal(tree.clusters[known], build_tree(Z, IndexConfig(n_clusters=4)).clusters)
    assert purity(tree.clusters[known], group) == 1.0


def test_dense_equals_sparse():
    Z, _ = planted(16, 12)
    config = IndexConfig(n_clusters=16)
    assert purity(build_tree(Z, config).clusters, build_tree(sp.csr_array(Z), config).clusters) == 1.0


def test_levels():
    def shape(n_labels, **settings):
        tree = build_tree(random_labels(n_labels), IndexConfig(**settings))
        return [tree.n_nodes(level) for level in range(tree.depth + 1)]

    assert shape(70, method="none") == [1, 70]
    assert shape(70, n_clusters=1) == [1, 70]
    assert shape(70, n_clusters=64) == [1, 64, 70]
    assert shape(70, n_clusters=64, branching=4) == [1, 4, 16, 64, 70]
    assert shape(600, n_clusters=512) == [1, 2, 32, 512, 600]


def test_progress_and_input_untouched():
    Z = sp.csr_array(random_labels(200))
    for array in (Z.data, Z.indices, Z.indptr):
        array.flags.writeable = False
    events = []
    build_tree(Z, IndexConfig(n_clusters=16), on_event=lambda name, values: events.append((name, values)))
    name, last = events[-1]
    assert (name, last["done"], last["total"], last["finished"]) == ("progress", 15, 15, True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "ward"}, "method is 'ward'; it must be one of 'balanced', 'kmeans', 'random', 'none'"),
        ({"n_clusters": 0}, "n_clusters is 0; it must be a whole number of at least 1 or None"),
        ({"n_clusters": 11}, "n_clusters is 11"),
        ({"branching": 1}, "branching is 1"),
        ({"max_leaf": 0}, "max_leaf is 0"),
        ({"iterations": 0}, "iterations is 0"),
        ({"sample": 1}, "sample is 1"),
    ],
)
def test_invalid_settings_are_reported(settings, message):
    with pytest.raises(UsageError, match=message):
        build_tree(random_labels(10), IndexConfig(**settings))


def test_invalid_label_embeddings_are_reported():
    with pytest.raises(DataError, match="a row for every label"):
        build_tree(np.zeros((0, 3)))
    with pytest.raises(DataError, match="Z holds NaN"):
        build_tree(np.full((4, 3), np.nan))
