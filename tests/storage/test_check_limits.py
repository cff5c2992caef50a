"""The checks of saved folders at their limits: the last value that is right, and the first one that is wrong."""

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelwise.errors import StorageError
from labelwise.rank.level_checks import load_level
from labelwise.storage import checks
from labelwise.storage.checks import (
    MOST_FOLDERS,
    MOST_JSON_DEPTH,
    Arrays,
    Entries,
    Factor,
    FeatureCount,
    Length,
    check_file,
    check_folder,
    checked_matrix,
    file_bytes,
    is_below,
    is_finite,
    is_offsets,
    parse_json,
    typed,
)
from tests.rank.test_level_checks import arrays_with


def refuse(number):
    def fail(*arguments, **options):
        raise OSError(number, os.strerror(number))

    return fail


def test_limits_are_the_documented_ones():
    assert (checks.MOST_JSON_BYTES, MOST_JSON_DEPTH, MOST_FOLDERS) == (2**26, 64, 16)
    assert (checks.LARGEST_WEIGHT, checks.LARGEST_FACTOR, checks.LARGEST_COLUMN) == (1e18, 1e9, 2**31 - 1)


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (FeatureCount, (0, 2**31 - 1), (-1, 2**31)),
        (Factor, (0, 1e9), (-1e-9, 1e9 + 1, float("nan"), float("inf"))),
        (Length, (0, 2**62), (-1,)),
        (int | None, (None, 5), ("5", 5.5)),
        (int | str, (5, "5"), (None, [5])),
        (float, (1.5, float("inf")), ("1.5", None)),
        (list[int], ([], [1, 2]), ({}, [1, "2"], 5)),
        (dict[int, str], ({}, {"7": "a"}), ({"a": "a"}, {"-7": "a"}, {"٣": "a"}, {"1" * 19: "a"}, {"7": 7}, [])),
        (dict[str, int], ({"a": 1},), ({"a": None}, 5)),
        (Any, (None, 5, [object]), ()),
    ],
)
def test_values_at_their_limits(kind, right, wrong):
    for value in right:
        found = typed(kind, value, "x")
        assert found == ({int(key): one for key, one in value.items()} if kind == dict[int, str] else value)
    for value in wrong:
        with pytest.raises(StorageError, match=r"^x.*: there is .* where .* belongs; copy or make it again$"):
            typed(kind, value, "x")


def test_the_longest_number_of_a_key():
    assert typed(dict[int, int], {"1" * 18: 1}, "x") == {int("1" * 18): 1}


def nested(depth):
    return "[" * depth + "]" * depth


def test_the_depth_of_json():
    assert parse_json(nested(MOST_JSON_DEPTH).encode(), "x")
    assert parse_json(('{"a":' * (MOST_JSON_DEPTH - 1) + "[5]" + "}" * (MOST_JSON_DEPTH - 1)).encode(), "x")
    for text in (nested(MOST_JSON_DEPTH + 1), '{"a":' * MOST_JSON_DEPTH + "[5]" + "}" * MOST_JSON_DEPTH):
        with pytest.raises(StorageError, match="x: its JSON is nested more than 64 levels deep"):
            parse_json(text.encode(), "x")
    with pytest.raises(StorageError, match="x: its JSON is nested too deeply"):
        parse_json(nested(100_000).encode(), "x")
    with pytest.raises(StorageError, match="a name occurs twice in one table"):
        parse_json(b'{"a": 1, "b": {"c": 1, "c": 2}}', "x")


def test_the_depth_of_folders(tmp_path):
    # Sixteen folders in each other are allowed, and one more in the last of them is not looked into.
    place = tmp_path.joinpath(*["x"] * MOST_FOLDERS)
    place.mkdir(parents=True)
    check_folder(tmp_path)
    (place / "x").mkdir()
    with pytest.raises(StorageError, match="the folders in it are nested too deeply; copy or make it again"):
        check_folder(tmp_path)


def test_the_size_of_files(tmp_path):
    (tmp_path / "x").write_bytes(b"12345")
    assert file_bytes(tmp_path / "x", 5) == b"12345"
    with pytest.raises(StorageError, match="x: it has more than 4 bytes; copy or make it again"):
        file_bytes(tmp_path / "x", 4)


def test_files_and_folders_that_cannot_be_read(tmp_path, monkeypatch):
    with pytest.raises(StorageError, match=r"cannot be read \(embedded null byte\); copy or make it again"):
        check_file(tmp_path / "a\0b")
    with pytest.raises(StorageError, match="does not exist; give a folder that labelwise saved"):
        check_file(tmp_path / "none")
    with pytest.raises(StorageError, match="it is no regular file"):
        check_file(tmp_path)
    (tmp_path / "x").touch()
    check_file(tmp_path / "x")
    check_folder(tmp_path / "none")  # who reads config.json says that there is no folder
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse(errno.EACCES))
        with pytest.raises(StorageError, match=r"cannot be read \(Permission denied\); give a folder that labelwise"):
            check_folder(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse(errno.EIO))
        with pytest.raises(StorageError, match=r"x cannot be read \(Input/output error\); copy or make it again"):
            file_bytes(tmp_path / "x", 5)
    monkeypatch.setattr(Path, "stat", refuse(errno.EACCES))
    with pytest.raises(StorageError, match=r"x cannot be read \(.*Permission denied.*\); copy or make it again"):
        check_file(tmp_path / "x")


def test_only_the_cache_of_a_model_is_allowed(tmp_path):
    for name, allowed in (("models--a--b", True), ("datasets--a--b", False)):
        snapshot = tmp_path / name / "snapshots" / "abc"
        blobs = tmp_path / name / "blobs"
        snapshot.mkdir(parents=True)
        blobs.mkdir()
        (blobs / "123").touch()
        (snapshot / "file").symlink_to(blobs / "123")
        if allowed:
            check_folder(snapshot)
            continue
        with pytest.raises(StorageError, match="is a link that leaves the folder; copy the file to its place"):
            check_folder(snapshot)


# ---------------------------------------------------------------------- arrays


def arrays(**found):
    return Arrays({name: np.asarray(array) for name, array in found.items()}, "x")


def test_what_is_said_of_a_wrong_array():
    known = arrays(a=np.zeros((2, 3), np.float32))
    for dtypes, shape, words in (
        (np.float64, (2, 3), "float64 of 2 x 3"),
        ((np.int8, np.int16), (None, 3), "int8 or int16 of any x 3"),
        (np.float32, (2,), "float32 of 2"),
        (np.float32, (2, 4), "float32 of 2 x 4"),
        (np.float32, (3, None), "float32 of 3 x any"),
    ):
        with pytest.raises(
            StorageError, match=rf"x: the array 'a' is float32 of shape \(2, 3\), where {words} belongs"
        ):
            known.take("a", dtypes, shape)
    assert known.take("a", (np.int8, np.float32), (2, None)) is known.arrays["a"]
    assert "a" in known
    assert "b" not in known
    with pytest.raises(StorageError, match="x: the array 'b' is missing; copy or make it again"):
        known.take("b", np.float32, (None,))


def test_offsets_at_their_limits():
    known = arrays(a=[0, 0, 2], b=np.zeros(0, np.int64), c=[0])
    assert known.offsets("a", n=2, end=2).tolist() == known.offsets("a", end=2).tolist() == [0, 0, 2]
    for n, end in ((1, 2), (3, 2), (2, 1), (2, 3)):
        with pytest.raises(StorageError, match="the array 'a'"):
            known.offsets("a", n=n, end=end)
    with pytest.raises(StorageError, match="the array 'b' does not rise from 0 to 0"):
        known.offsets("b", end=0)
    assert known.offsets("c", n=0, end=0).tolist() == [0]
    assert is_offsets(np.array([0, 1]), 1) is True
    for wrong in ([1, 1], [0, 2], [0, 2, 1, 1]):
        assert is_offsets(np.array(wrong), 1) is False


def test_numbers_at_their_limits():
    known = arrays(a=[0, 2, 1], none=np.zeros(0, np.int64), twice=[0, 1, 1])
    assert known.below("a", np.int64, (3,), 3).tolist() == [0, 2, 1]
    with pytest.raises(StorageError, match="the array 'a' has numbers outside of 0 to 1"):
        known.below("a", np.int64, (3,), 2)
    assert is_below(np.zeros(0, int), 0)
    assert not is_below(np.array([0]), 0)
    assert not is_below(np.array([-1, 0]), 5)
    assert known.permutation("a", np.int64, 3).tolist() == [0, 2, 1]
    assert known.permutation("none", np.int64, 0).size == 0
    with pytest.raises(StorageError, match="the array 'twice' names a number twice"):
        known.permutation("twice", np.int64, 3)


@pytest.mark.parametrize("place", [0, 65_535, 65_536, 65_537, 131_073])
def test_each_number_must_be_finite(place):
    values = np.zeros((2, 65_537), np.float32)
    values[0, 0] = -7
    assert is_finite(values, 7)
    assert not is_finite(values, 6.9)
    for wrong in (np.nan, np.inf, -np.inf, 7.5, -7.5):
        values.ravel()[place] = wrong
        assert not is_finite(values, 7)
    half = np.array([65504], np.float16)
    assert is_finite(half, 1e18)
    assert not is_finite(np.array([np.inf], np.float16), 1e18)


def test_finite_arrays():
    known = arrays(a=np.array([1e18, -1e18]), b=np.array([1.1e18]))
    assert known.finite("a", np.float64, (2,)).size == 2
    with pytest.raises(StorageError, match=r"the array 'b' has numbers that are not finite, or above 1e\+18"):
        known.finite("b", np.float64, (1,))
    with pytest.raises(StorageError, match="the array 'a' has numbers that are not finite, or above 5"):
        known.finite("a", np.float64, (2,), 5)


DATA, INDICES, INDPTR = np.ones(2, np.float32), np.array([0, 2], np.int32), np.array([0, 1, 1, 2], np.int32)


def test_a_matrix_at_its_limits():
    assert checked_matrix((DATA, INDICES, INDPTR), [3, 3], "x").toarray().sum() == 2
    assert checked_matrix((DATA[:0], INDICES[:0], INDPTR[:1]), [0, 0], "x").shape == (0, 0)
    for parts in (
        (DATA.astype(complex), INDICES, INDPTR),
        (DATA, INDICES.astype(np.int64), INDPTR),
        (DATA, INDICES.astype(np.int16), INDPTR.astype(np.int16)),
        (DATA[:1], INDICES, INDPTR),
        (DATA[:, None], INDICES, INDPTR),
        (DATA, INDICES, INDPTR[:3]),
        (DATA, INDICES, np.array([0, 2, 1, 2], np.int32)),
        (DATA, np.array([0, 3], np.int32), INDPTR),
        (DATA, np.array([-1, 2], np.int32), INDPTR),
    ):
        with pytest.raises(StorageError, match="x: its arrays are no sparse matrix of 3 x 3; copy or make it again"):
            checked_matrix(parts, [3, 3], "x")
    for shape in ([3], [3, 3, 3], [-3, 3], ["3", 3], None):
        with pytest.raises(StorageError, match="x"):
            checked_matrix((DATA, INDICES, INDPTR), shape, "x")


def test_tables_of_entries():
    known = Entries({"a": 5, "t": {"b": 1}}, "x")
    assert "a" in known
    assert "b" not in known
    assert (known.get("a", int), known.table("t").get("b", int)) == (5, 1)
    with pytest.raises(StorageError, match="x: the entry 'c' is missing"):
        known.get("c", int)
    with pytest.raises(StorageError, match="x: t: the entry 'c' is missing"):
        known.table("t").get("c", int)
    with pytest.raises(StorageError, match="x: a: there is 5 where a table of entries belongs"):
        known.table("a")


def test_a_level_without_parents_or_children_is_refused():
    empty = {"row_indptr": [0], "row_feature": np.zeros(0, np.uint32), "row_end": np.zeros(0, np.uint32)}
    empty |= {"entry_indptr": [0], "entry_child": np.zeros(0, np.uint8), "entry_value": np.zeros(0, np.float16)}
    empty |= {"dense": np.zeros((0, 1), np.float16), "child_ids": np.zeros(0, np.int32)}
    for changes in ({"child_indptr": [0]}, {"child_indptr": [0, 0], "row_indptr": [0, 0], "entry_indptr": [0, 0]}):
        with pytest.raises(StorageError, match="the array 'child_ids' names no child; copy or make it again"):
            load_level(arrays_with(**empty | changes), n_features=5, n_dense=1)


def test_a_level_of_one_child_is_right():
    one = {"child_indptr": [0, 1], "child_ids": np.zeros(1, np.int32), "row_indptr": [0, 1], "entry_indptr": [0, 1]}
    one |= {
        "row_feature": np.array([4], np.uint32),
        "row_end": np.ones(1, np.uint32),
        "dense": np.ones((1, 1), np.float16),
    }
    one |= {"entry_child": np.zeros(1, np.uint8), "entry_value": np.ones(1, np.float16)}
    assert load_level(arrays_with(**one), n_features=5, n_dense=1).n_children == 1
