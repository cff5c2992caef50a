"""Pruned blocks, pieces of them, and levels made of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelwise import storage
from labelwise.rank.sparse_weights import LevelWeights, PrunedBlock
from tests.reference import weights as reference

WEIGHTS = st.sampled_from([0.0, 0.0, 0.05, -0.1, 0.1, 0.3, -0.7, 1.0, 1.001])


@st.composite
def blocks(draw, min_children=1):
    """Weights of a block with two dense rows at its end, the features of its rows in any order, and n_features."""
    n_features = draw(st.integers(0, 7))
    features = draw(st.permutations(range(n_features)))[: draw(st.integers(0, n_features))]
    shape = (len(features) + 2, draw(st.integers(min_children, min_children + 5)))
    return draw(hnp.arrays(np.float32, shape, elements=WEIGHTS)), np.array(features, np.uint32), n_features


def prune(W, features, *, threshold=0.1, most=None, half=False, n_dense=2):
    return PrunedBlock.prune(W, features, n_dense=n_dense, threshold=threshold, most=most, half=half)


@given(blocks(), st.sampled_from([0.0, 0.1, 0.5]), st.none() | st.integers(1, 4), st.booleans())
def test_prune(made, threshold, most, half):
    W, features, n_features = made
    before = W.copy()
    block = prune(W, features, threshold=threshold, most=most, half=half)
    wanted = np.zeros((n_features, W.shape[1]), np.float32)
    wanted[features] = reference.prune(W[:-2], features, threshold, most)
    found = reference.block_matrix(block, n_features)
    np.testing.assert_array_equal(found, wanted.astype(np.float16 if half else np.float32))
    assert found.dtype == (np.float16 if half else np.float32)
    np.testing.assert_array_equal(block.dense, W[-2:].T)  # the bias is never dropped
    assert block.dense.flags.c_contiguous
    assert not np.shares_memory(block.dense, W)  # which would keep all of W alive
    assert (block.entry_value != 0).all()
    np.testing.assert_array_equal(W, before)
    if most is not None:
        assert (np.count_nonzero(found, axis=0) <= most).all()


def test_of_equal_weights_only_as_many_as_asked_for_are_kept():
    W = np.array([[0.5, 0.5], [0.5, 0.2], [0.5, 0.5], [0, 0]], np.float32)
    block = prune(W, np.array([7, 3, 5], np.uint32), most=2, n_dense=1)
    assert reference.block_matrix(block, 8)[[3, 5, 7]].tolist() == pytest.approx(
        np.array([[0.5, 0], [0.5, 0.5], [0, 0.5]])
    )


def test_weights_too_large_for_half_precision_stay_finite():
    W = np.array([[1e6], [-1e6], [2.0], [1e6]], np.float32)
    block = prune(W, np.arange(3, dtype=np.uint32), half=True, n_dense=1)
    assert block.entry_value.tolist() == [65504, -65504, 2]
    assert block.dense.tolist() == [[1e6]]


@given(blocks(min_children=2), st.data(), st.none() | st.integers(1, 4), st.booleans())
def test_pieces_side_by_side_are_the_whole(made, data, most, half):
    W, features, _ = made
    whole = prune(W, features, most=most, half=half)
    cuts = sorted(data.draw(st.sets(st.integers(1, W.shape[1] - 1), max_size=3)))
    pieces = np.split(W, cuts, axis=1)
    joined = PrunedBlock.beside(
        [prune(np.ascontiguousarray(piece), features, most=most, half=half) for piece in pieces]
    )
    for name, array in vars(whole).items():
        np.testing.assert_array_equal(getattr(joined, name), array)
        assert getattr(joined, name).dtype == array.dtype


@st.composite
def levels(draw):
    """LevelWeights of one to three parents, with their dense matrix."""
    n_features = draw(st.integers(1, 6))
    half = draw(st.booleans())
    parts, parents = [], []
    for parent in range(draw(st.integers(1, 3))):
        n_children = draw(st.integers(1, 4))
        W = draw(hnp.arrays(np.float32, (n_features + 1, n_children), elements=WEIGHTS))
        parts.append(prune(W, np.arange(n_features, dtype=np.uint32), half=half, n_dense=1))
        parents += [parent] * n_children
    ids = draw(st.permutations(range(len(parents))))
    indptr = np.concatenate(([0], np.cumsum(np.bincount(parents)))).astype(np.int64)
    wanted = np.zeros((n_features + 1, len(ids)), np.float32)
    wanted[:, ids] = np.hstack([np.vstack((reference.block_matrix(part, n_features), part.dense.T)) for part in parts])
    return LevelWeights.join(parts, indptr, ids), wanted


@given(levels())
def test_join(made):
    level, wanted = made
    np.testing.assert_array_equal(reference.level_matrix(level, len(wanted) - 1), wanted)
    assert level.n_children == wanted.shape[1]
    assert level.n_parents == len(level.child_indptr) - 1
    assert level.entry_child.dtype == np.uint8


@given(levels(), st.sampled_from(["", "0.", "ranker-"]))
def test_arrays_and_back(made, prefix):
    level, _ = made
    arrays = level.to_arrays(prefix)
    assert all(name.startswith(prefix) for name in arrays)
    assert level.n_bytes == sum(array.nbytes for array in arrays.values())
    back = LevelWeights.from_arrays(arrays, prefix)
    assert all(back.to_arrays(prefix)[name] is array for name, array in arrays.items())


@pytest.mark.parametrize(("n_children", "kind"), [(256, np.uint8), (257, np.uint16), (65_537, np.uint32)])
def test_children_are_numbered_in_as_few_bytes_as_will_do(n_children, kind, tmp_path):
    W = np.zeros((2, n_children), np.float32)
    W[0, -1] = 0.5
    indptr = np.array([0, n_children])
    level = LevelWeights.join([prune(W, np.array([0], np.uint32), n_dense=1)], indptr, np.arange(n_children))
    assert level.entry_child.dtype == kind
    assert level.entry_child.tolist() == [n_children - 1]
    storage.save(tmp_path / "level", kind="level", arrays=level.to_arrays("0."))
    back = LevelWeights.from_arrays(storage.load(tmp_path / "level", kind="level").arrays, "0.")
    for name, array in level.to_arrays("").items():
        np.testing.assert_array_equal(back.to_arrays("")[name], array)


@given(blocks(), st.data())
def test_some_columns_of_a_block(made, data):
    W, features, n_features = made
    block = prune(W, features)
    stay = np.array(data.draw(st.lists(st.booleans(), min_size=W.shape[1], max_size=W.shape[1])))
    some = block.columns(stay)
    whole = reference.block_matrix(block, n_features)
    np.testing.assert_array_equal(reference.block_matrix(some, n_features), whole[:, stay])
    np.testing.assert_array_equal(some.dense, block.dense[stay])


@given(blocks(), st.booleans(), st.integers(0, 3), st.data())
def test_full_weights_and_pruned_again_is_the_same_block(made, half, more, data):
    W, features, n_features = made
    block = prune(W, features, half=half)
    asked = np.array(data.draw(st.permutations(range(n_features))), np.uint32)[: data.draw(st.integers(0, n_features))]
    width = W.shape[1] + more
    full, rows = block.full_weights(asked, width)
    np.testing.assert_array_equal(rows[: len(asked)], asked)
    assert sorted(rows) == sorted({*asked, *block.row_feature})
    matrix = np.zeros((n_features, width), np.float32)
    matrix[rows] = full[:-2]
    np.testing.assert_array_equal(matrix[:, : W.shape[1]], reference.block_matrix(block, n_features))
    assert not matrix[:, W.shape[1] :].any()
    np.testing.assert_array_equal(full[-2:, : W.shape[1]], block.dense.T)
    again = prune(full[:, : W.shape[1]], rows, threshold=0.05, half=half)
    for name, array in vars(block).items():
        np.testing.assert_array_equal(vars(again)[name], array)


@given(levels())
def test_the_block_of_a_parent(made):
    level, wanted = made
    for parent in range(level.n_parents):
        ids = level.child_ids[level.children(parent)]
        block = level.block(parent)
        np.testing.assert_array_equal(reference.block_matrix(block, len(wanted) - 1), wanted[:-1, ids])
        np.testing.assert_array_equal(block.dense[:, -1], wanted[-1, ids])
