"""The tree: reading it, reshaping it, saving it, refusing what is none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwise import storage
from labelwise.errors import DataError, StorageError, UsageError
from labelwise.index import Tree


def binary(depth, n_labels):
    return Tree((*(np.arange(2 << t) // 2 for t in range(depth)), np.arange(n_labels) % (1 << depth)))


@st.composite
def trees(draw):
    """Any tree: each level at least as wide as the one above, every node with a child."""
    parents, n_above = [], 1
    for _ in range(draw(st.integers(1, 4))):
        more = draw(st.lists(st.integers(0, n_above - 1), max_size=6))
        level = draw(st.permutations([*range(n_above), *more]))
        parents.append(np.array(level, np.int64))
        n_above = len(level)
    return Tree(tuple(parents))


def shape(tree):
    return [tree.n_nodes(level) for level in range(tree.depth + 1)]


def test_a_small_tree_by_eye():
    tree = Tree((np.array([0, 0, 0]), np.array([2, 0, 1, 1, 2, 2])))
    assert (tree.depth, tree.n_clusters, tree.n_labels) == (2, 3, 6)
    assert tree.clusters.tolist() == [2, 0, 1, 1, 2, 2]
    assert tree.sizes(1).tolist() == [1, 2, 3]
    assert tree.sizes(0).tolist() == [3]
    indptr, ids = tree.children(-1)
    assert indptr.tolist() == [0, 1, 3, 6]
    assert ids.tolist() == [1, 2, 3, 0, 4, 5]
    assert (indptr.dtype, ids.dtype, tree.clusters.dtype) == (np.int64, np.int32, np.int32)
    assert tree.path(4) == (0, 2, 4)


@given(trees())
def test_children_are_the_inverse_of_parents(tree):
    for level in range(tree.depth):
        indptr, ids = tree.children(level)
        for node in range(tree.n_nodes(level)):
            own = ids[indptr[node] : indptr[node + 1]]
            assert own.tolist() == np.flatnonzero(tree.parents[level] == node).tolist()


@given(trees(), st.integers(2, 9))
def test_branching_keeps_the_clusters(tree, branching):
    read = tree.with_branching(branching)
    np.testing.assert_array_equal(read.clusters, tree.clusters)
    own = max(tree.sizes(level).max() for level in range(tree.depth))
    for level in range(read.depth - 1):
        assert read.sizes(level).max() <= max(branching, own)
    for label in range(tree.n_labels):
        nodes, all_nodes = read.path(label), tree.path(label)
        assert nodes[-2:] == all_nodes[-2:]


@pytest.mark.parametrize(
    ("branching", "expected"),
    [(2, [1, 2, 4, 8, 16, 32, 64, 200]), (4, [1, 4, 16, 64, 200]), (16, [1, 4, 64, 200]), (64, [1, 64, 200])],
)
def test_a_binary_tree_read_as_wider_levels(branching, expected):
    assert shape(binary(6, 200).with_branching(branching)) == expected


def test_a_tree_of_one_level_stays_as_it_is():
    tree = Tree((np.zeros(5, np.int32),))
    assert (tree.n_clusters, tree.depth, shape(tree.with_branching(2))) == (1, 1, [1, 5])
    assert tree.path(3) == (0, 3)


def test_collapse():
    tree = binary(3, 30)
    assert shape(tree.collapse(1, 2)) == [1, 8, 30]
    assert shape(tree.collapse(1)) == [1, 4, 8, 30]
    flat = tree.collapse(1, 2, 3)
    assert shape(flat) == [1, 30]
    for level in (0, 4):
        with pytest.raises(UsageError, match=f"levels 1 to 3 can be collapsed, not {level}"):
            tree.collapse(level)


@given(trees())
def test_saved_and_loaded(tmp_path_factory, tree):
    folder = tmp_path_factory.mktemp("tree") / "index"
    tree.save(folder)
    again = Tree.load(folder)
    assert len(again.parents) == len(tree.parents)
    for mine, its in zip(tree.parents, again.parents, strict=True):
        np.testing.assert_array_equal(mine, its)
    again.children(0)  # works on mapped, read-only arrays


def test_a_damaged_tree_is_refused(tmp_path):
    storage.save(tmp_path / "gap", kind="tree", arrays={"parents.0": np.zeros(2, int), "parents.2": np.zeros(2, int)})
    storage.save(tmp_path / "wild", kind="tree", arrays={"parents.0": np.full(2, 7)})
    for name in ("gap", "wild"):
        with pytest.raises(StorageError, match="is not a valid tree"):
            Tree.load(tmp_path / name)


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ([], "at least one level"),
        ([[0.0, 0.0]], r"parents\[0\] must be a row of integers, not float64"),
        ([[[0, 0]]], r"of shape \(1, 2\)"),
        ([np.zeros(0, int)], r"parents\[0\] is empty"),
        ([[0, 1]], r"parents\[0\] names node 1, but depth 0 has nodes 0 to 0"),
        ([[0, 0], [0, 1, -1]], r"parents\[1\] names node -1"),
        ([[0, 0, 0], [0, 2, 2]], r"node 1 at depth 1 has no children in parents\[1\]"),
    ],
)
def test_invalid_trees_are_reported(parents, message):
    with pytest.raises(DataError, match=message):
        Tree(tuple(np.array(level) for level in parents))


def test_unknown_levels_and_labels_are_reported():
    tree = binary(2, 9)
    with pytest.raises(UsageError, match="levels that have children are 0 to 2, not 3"):
        tree.sizes(3)
    with pytest.raises(UsageError, match="levels 0 to 3, not 4"):
        tree.n_nodes(4)
    with pytest.raises(UsageError, match="no label 9: the tree has labels 0 to 8"):
        tree.path(9)
    with pytest.raises(UsageError, match="branching is 1"):
        tree.with_branching(1)
