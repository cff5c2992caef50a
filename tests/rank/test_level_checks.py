"""Levels that come from a folder: whatever the kernels rely on is checked."""

import numpy as np
import pytest

from labelwise.errors import StorageError, UsageError
from labelwise.rank.level_checks import are_weights, check_parents, load_level
from labelwise.rank.quantized import pack
from labelwise.rank.search import BeamSearch
from labelwise.rank.sparse_weights import LevelWeights, PrunedBlock
from labelwise.storage.checks import LARGEST_WEIGHT, Arrays


def level(half=True):
    """Two parents with two and one child, over five features."""
    W = [np.array([[1, 0.5], [0, -1], [0.2, 0.2]], np.float32), np.array([[2], [1], [0.1]], np.float32)]
    rows = [np.array([1, 3], np.uint32), np.array([0, 4], np.uint32)]
    options = {"n_dense": 1, "threshold": 0.0, "most": None, "half": half}
    blocks = [PrunedBlock.prune(w, features, **options) for w, features in zip(W, rows, strict=True)]
    return LevelWeights.join(blocks, np.array([0, 2, 3]), np.array([2, 0, 1]))


def arrays_with(**changes):
    """The arrays of that level, some of them changed."""
    arrays = level().to_arrays("")
    return Arrays(arrays | {name: np.asarray(value) for name, value in changes.items()}, "model")


@pytest.mark.parametrize("half", [True, False])
def test_what_was_saved_is_accepted(half):
    loaded = load_level(Arrays(level(half).to_arrays("0."), "model"), "0.", n_features=5, n_dense=1)
    for name, array in level(half).to_arrays("").items():
        np.testing.assert_array_equal(getattr(loaded, name), array)
    check_parents(loaded, np.array([0, 1, 0], np.int32), 2, "model")
    rounded = load_level(Arrays(pack(level(half), "int8", ""), "model"), n_features=5, n_dense=1)
    np.testing.assert_allclose(rounded.entry_value.astype(float), loaded.entry_value.astype(float), atol=0.02)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"child_indptr": [0, 2, 4]}, "'child_indptr' does not rise from 0 to 3"),
        ({"child_indptr": [1, 2, 3]}, "'child_indptr' does not rise from 0 to 3"),
        ({"child_indptr": [0, 5, 3]}, "'child_indptr' does not rise from 0 to 3"),
        ({"child_indptr": np.array([0, 2, 3], np.int32)}, "is int32 of shape"),
        ({"child_ids": np.array([0, 1, 3], np.int32)}, "has numbers outside of 0 to 2"),
        ({"child_ids": np.array([0, 1, -1], np.int32)}, "has numbers outside of 0 to 2"),
        ({"child_ids": np.array([0, 1, 1], np.int32)}, "names a number twice"),
        ({"row_indptr": [0, 3, 5]}, "'row_indptr' does not rise from 0 to 4"),
        ({"row_feature": np.array([3, 1, 0, 4], np.uint32)}, "do not rise"),
        ({"row_feature": np.array([1, 1, 0, 4], np.uint32)}, "do not rise"),
        ({"row_feature": np.array([1, 3, 0, 5], np.uint32)}, "block 1 .* weights of a feature that there is not"),
        ({"row_feature": np.array([1, 3, 0], np.uint32)}, "'row_end' is uint32"),
        ({"row_end": np.array([3, 2, 1, 2], np.uint32)}, "do not rise"),
        ({"row_end": np.array([2, 4, 1, 2], np.uint32)}, "do not end with its entries"),
        ({"entry_indptr": [0, 2, 5]}, "do not end with its entries"),
        ({"entry_child": np.array([0, 1, 2, 0, 0], np.uint8)}, "block 0 .* weights of a child that there is not"),
        ({"entry_child": np.full(5, 0xFFFFFF, np.uint32)}, "'entry_child' is uint32"),
        ({"entry_child": np.zeros(5, np.int64)}, "is int64"),
        ({"entry_value": np.zeros(4, np.float16)}, "'entry_value' is float16"),
        ({"entry_value": np.array([1, 2, np.nan, 4, 5], np.float16)}, "not finite"),
        ({"entry_value": np.array([1, 2, np.inf, 4, 5], np.float32)}, "not finite"),
        ({"entry_value": np.array([1, 2, -1e30, 4, 5], np.float32)}, "not finite, or above 1e.18"),
        ({"entry_value": np.zeros(5)}, "is float64"),
        ({"dense": np.zeros((3, 2), np.float32)}, "'dense' is float32 of shape"),
        ({"dense": np.zeros(3, np.float32)}, "'dense' is float32 of shape"),
        ({"dense": np.full((3, 1), -np.inf, np.float32)}, "'dense' has numbers that are not finite"),
        ({"entry_scale": np.ones(3, np.float32)}, "'entry_value' is float16"),
    ],
)
def test_what_kernels_could_not_bear_is_refused(changes, message):
    with pytest.raises(StorageError, match=message):
        load_level(arrays_with(**changes), n_features=5, n_dense=1)


def test_scales_of_8_bits_are_checked():
    packed = pack(level(), "int8", "")
    for name in ("entry_scale", "dense_scale", "bias"):
        for wrong in (packed[name][:2], np.full(3, np.nan, np.float32), packed[name].astype(np.float64)):
            with pytest.raises(StorageError, match=name):
                load_level(Arrays(packed | {name: wrong}, "model"), n_dense=1)


def test_an_array_that_is_missing():
    arrays = level().to_arrays("")
    for name in arrays:
        with pytest.raises(StorageError, match=f"the array '{name}' is missing; copy or make it again"):
            load_level(Arrays({other: array for other, array in arrays.items() if other != name}, "model"))


def test_other_groups_than_the_tree_has():
    check_parents(level(), np.array([0, 1, 0], np.int32), 2, "model")
    for parents, n_parents in (([0, 0, 1], 2), ([0, 1, 0], 3), ([0, 1], 2)):
        with pytest.raises(StorageError, match="do not belong together"):
            check_parents(level(), np.array(parents, np.int32), n_parents, "model")


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_weights(dtype):
    values = np.linspace(-3, 3, 12).astype(dtype).reshape(3, 4)
    assert are_weights(values)
    assert are_weights(values[:, 1:])  # not contiguous
    assert are_weights(np.array([min(LARGEST_WEIGHT, float(np.finfo(dtype).max))], dtype))
    for wrong in (np.nan, -np.nan, np.inf, -np.inf):
        damaged = values.copy()
        damaged[1, 2] = wrong
        assert not are_weights(damaged)
        assert not are_weights(damaged[:, 1:])


def test_a_search_needs_all_features_of_its_weights():
    assert level().least_n_features == 5
    with pytest.raises(UsageError, match="weights of features beyond the 4"):
        BeamSearch([level()], n_features=4)
