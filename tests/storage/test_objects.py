"""Saved folders: round trips, mapping, damage, half-written files."""

import json
import os
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelwise import UsageError, storage
from labelwise.config import TfidfConfig
from labelwise.errors import StorageError
from labelwise.storage.objects import MOST_DIMENSIONS, map_arrays

DTYPES = [
    np.bool_,
    np.uint8,
    np.int16,
    np.uint16,
    np.float16,
    np.int32,
    np.uint32,
    np.float32,
    np.int64,
    np.uint64,
    float,
]


@given(data=st.data())
def test_arrays_come_back(data, tmp_path_factory):
    shapes = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)
    arrays = data.draw(
        st.dictionaries(
            st.text("abcé_.", min_size=1, max_size=6),
            st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, shapes)),
            max_size=4,
        )
    )
    folder = tmp_path_factory.mktemp("saved") / "it"
    storage.save(folder, kind="thing", config={"n": 1}, arrays=arrays)
    saved = storage.load(folder, kind="thing")
    assert saved.config == {"n": 1}
    assert saved.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        got = saved.arrays[name]
        assert got.dtype == array.dtype
        assert got.flags.aligned
        assert not got.flags.writeable
        np.testing.assert_array_equal(got, array)


def test_matrices_come_back(tmp_path):
    X = sp.random_array((20, 9), density=0.2, format="csr", dtype=np.float32, rng=0)
    empty = sp.csr_array((0, 5), dtype=np.float32)
    storage.save(tmp_path / "m", kind="m", matrices={"X": X, "empty": empty}, arrays={"a": np.ones(2)})
    saved = storage.load(tmp_path / "m", kind="m")
    assert list(saved.arrays) == ["a"]
    assert (saved.matrices["X"] != X).nnz == 0
    assert saved.matrices["empty"].shape == (0, 5)


def test_a_later_save_replaces_the_earlier(tmp_path):
    for n in (1, 2):
        storage.save(tmp_path / "x", kind="x", arrays={"n": np.array([n])})
    assert storage.load(tmp_path / "x", kind="x").arrays["n"].tolist() == [2]
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("place", [0, 3, 9, 40, -1])
def test_a_changed_byte_is_noticed(tmp_path, place):
    storage.save(tmp_path / "x", kind="x", arrays={"a": np.arange(50)})
    file = tmp_path / "x" / storage.ARRAYS
    content = bytearray(file.read_bytes())
    content[place] ^= 0x55
    file.write_bytes(content)
    with pytest.raises(StorageError, match="is damaged"):
        storage.load(tmp_path / "x", kind="x")
    if place != -1:  # without the checksum a broken header must still not get through
        with pytest.raises(StorageError, match="not a valid safetensors file"):
            storage.load(tmp_path / "x", kind="x", verify=False)


def change(folder, **values):
    file = folder / storage.CONFIG
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def test_what_cannot_be_read_is_told(tmp_path):
    folder = tmp_path / "x"
    with pytest.raises(StorageError, match="does not exist"):
        storage.load(folder, kind="x")
    storage.save(folder, kind="x", arrays={"a": np.arange(5)})
    with pytest.raises(StorageError, match="holds a saved x, not a tfidf"):
        storage.load(folder, kind="tfidf")
    change(folder, version=99)
    with pytest.raises(StorageError, match=r"format version 99.*pip install --upgrade"):
        storage.load(folder, kind="x")
    change(folder, version=1, format="other")
    with pytest.raises(StorageError, match="not written by labelwise"):
        storage.load(folder, kind="x")
    (folder / storage.CONFIG).write_text("{")
    with pytest.raises(StorageError, match="cannot be read"):
        storage.load(folder, kind="x")
    storage.save(folder, kind="x", arrays={"a": np.arange(5)})
    (folder / storage.ARRAYS).write_bytes(b"short")
    with pytest.raises(StorageError, match="is damaged"):
        storage.load(folder, kind="x")
    (folder / storage.ARRAYS).unlink()
    with pytest.raises(StorageError, match="is missing"):
        storage.load(folder, kind="x")


def test_configurations_come_back(tmp_path):
    config = TfidfConfig(ngram_range=(1, 3), min_df=0.5)
    storage.save(tmp_path / "c", kind="c", config=config)
    values = storage.load(tmp_path / "c", kind="c").config
    assert storage.restore(TfidfConfig, values, "c") == config
    with pytest.raises(StorageError, match=r"does not know \(future\); a newer version wrote it .*, or it was changed"):
        storage.restore(TfidfConfig, {**values, "future": 1}, "c")


class Stop(BaseException):
    """Like Ctrl-C."""


def stop_halfway(file):
    file.write_text("half")
    raise Stop


def test_nothing_is_left_of_an_interrupted_file(tmp_path):
    target = tmp_path / "file.txt"
    target.write_text("old")
    with pytest.raises(Stop), storage.atomic_file(target) as aside:
        stop_halfway(aside)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_nothing_is_left_of_an_interrupted_folder(tmp_path):
    target = tmp_path / "folder"
    with storage.atomic_folder(target) as aside:
        (aside / "a").write_text("old")
    with pytest.raises(Stop), storage.atomic_folder(target, overwrite=True) as aside:
        stop_halfway(aside / "a")
    assert (target / "a").read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_folder_is_not_overwritten_unasked(tmp_path):
    target = tmp_path / "folder"
    target.mkdir()
    with storage.atomic_folder(target) as aside:  # an empty one may be filled
        (aside / "a").write_text("new")
    with pytest.raises(UsageError, match="exists already"), storage.atomic_folder(target):
        pass


@dataclass
class Odd:
    x: int = 1


def test_json_takes_what_we_use(tmp_path):
    storage.write_json(tmp_path / "j.json", {"d": Odd(), "n": np.float32(0.5), "p": tmp_path, "u": "é"})
    assert storage.read_json(tmp_path / "j.json") == {"d": {"x": 1}, "n": 0.5, "p": str(tmp_path), "u": "é"}
    with pytest.raises(TypeError, match="set cannot be written as JSON"):
        storage.write_json(tmp_path / "j.json", {"s": {1}})
    assert storage.read_json(tmp_path / "j.json")["n"] == 0.5


def test_files_and_folders_get_the_usual_permissions_and_the_umask_is_not_touched(tmp_path, monkeypatch):
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", None)  # a call would raise, and other threads would see the change
        storage.save(tmp_path / "model", kind="test", config={"a": 1}, arrays={"x": np.arange(3.0)})
        storage.write_json(tmp_path / "value.json", [1])
        monkeypatch.undo()
        modes = {path.name: path.stat().st_mode & 0o777 for path in sorted(tmp_path.rglob("*"))}
    finally:
        os.umask(before)
    assert modes == {"model": 0o750, "arrays.safetensors": 0o640, "config.json": 0o640, "value.json": 0o640}


def test_names_of_files_that_are_not_utf8_come_back(tmp_path):
    name = os.fsdecode(b"data \xff")
    storage.write_json(tmp_path / "a.json", {"data": name})
    assert storage.read_json(tmp_path / "a.json") == {"data": name}


def safetensors(path, header, content=bytes(16), *, length=None):
    """A safetensors file with any header; its length may be a lie."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + content)
    return path


def about(dtype="F32", shape=(4,), offsets=(0, 16)):
    return {"a": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}


@pytest.mark.parametrize(
    ("dtype", "wanted", "length"),
    [("BOOL", np.bool_, 16), ("U8", np.uint8, 16), ("I16", np.int16, 8), ("F16", np.float16, 8), ("U64", np.uint64, 2)],
)
def test_a_mapped_array_is_what_its_header_says(tmp_path, dtype, wanted, length):
    header = {"__metadata__": {"of": "somebody"}, **about(dtype, (length,))}
    found = map_arrays(safetensors(tmp_path / "x", header))
    assert list(found) == ["a"]
    assert (found["a"].dtype, found["a"].shape) == (wanted, (length,))


def test_arrays_lie_where_their_offsets_are(tmp_path):
    content = np.arange(4, dtype=np.float32).tobytes()
    header = {
        "first": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        "last": {"dtype": "F32", "shape": [3, 1], "data_offsets": [4, 16]},
        "none": {"dtype": "F32", "shape": [0, 3], "data_offsets": [16, 16]},
        "number": {"dtype": "F32", "shape": [], "data_offsets": [8, 12]},
        "deep": {"dtype": "F32", "shape": [1] * MOST_DIMENSIONS, "data_offsets": [12, 16]},
    }
    assert MOST_DIMENSIONS == 8
    found = map_arrays(safetensors(tmp_path / "x", header, content))
    assert found["first"].tolist() == [0]
    assert found["last"].tolist() == [[1], [2], [3]]
    assert found["none"].shape == (0, 3)
    assert found["number"] == 2
    assert found["deep"].ravel().tolist() == [3]


@pytest.mark.parametrize(
    "header",
    [
        about(dtype="F99"),
        about(shape=(3,)),
        about(shape=(5,)),
        about(offsets=(0, 20), shape=(5,)),
        about(offsets=(16, 0)),
        about(offsets=(2, 14), shape=(3,)),
        about(shape=(1,) * MOST_DIMENSIONS + (4,)),
        about(shape=(0, 2**62, 2**62), offsets=(0, 0)),
    ],
)
def test_headers_that_do_not_fit_are_refused(tmp_path, header):
    with pytest.raises(StorageError, match="x is not a valid safetensors file; copy or make it again"):
        map_arrays(safetensors(tmp_path / "x", header))


@pytest.mark.parametrize("content", [b"", b"1234567", b"\0" * 7])
def test_files_without_a_header_are_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(StorageError, match="x is not a valid safetensors file; copy or make it again"):
        map_arrays(tmp_path / "x")


def test_lengths_of_headers(tmp_path):
    with pytest.raises(StorageError, match="its header cannot be read"):
        map_arrays(safetensors(tmp_path / "x", "", b"", length=0))  # eight bytes, and a header of none
    assert map_arrays(safetensors(tmp_path / "x", "{}", b"")) == {}
    for length in (9, 2**62, 2**64 - 1):
        with pytest.raises(StorageError, match="x is not a valid safetensors file; copy or make it again"):
            map_arrays(safetensors(tmp_path / "x", "{}", b"", length=length))


def test_only_regular_files_are_mapped(tmp_path):
    with pytest.raises(StorageError, match="does not exist"):
        map_arrays(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(StorageError, match="it is no regular file"):
            map_arrays(place)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": -1}, "there is -1 where"),
        ({"version": "2"}, "where a whole number"),
        ({"files": {}}, "is damaged"),
        ({"files": []}, "where a table of entries belongs"),
        ({"matrices": {"a": [1, 1]}}, "the matrix 'a' is missing"),
        ({"matrices": {"X": [3, 9]}}, "the matrix 'X': its arrays are no sparse matrix of 3 x 9"),
        ({"matrices": {"X": [2, 1]}}, "the matrix 'X': its arrays are no sparse matrix of 2 x 1"),
        ({"kind": "y"}, "holds a saved y, not a x; give the folder of a x"),
        ({"kind": 5}, "holds a saved 5, not a x"),
        ({"kind": "y" * 999}, r"holds a saved 'y{50,200}.{0,20}, not a x"),
        ({"config": [1]}, "config"),
        ({"version": 3, "labelwise": 7}, r"format version 3, written by labelwise 7; this is .* versions up to 2: run"),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(tmp_path, changes, message):
    X = sp.csr_array(np.eye(2, 3, dtype=np.float32))
    storage.save(tmp_path / "x", kind="x", matrices={"X": X}, arrays={"a": np.arange(3)})
    change(tmp_path / "x", **changes)
    with pytest.raises(StorageError, match=message):
        storage.load(tmp_path / "x", kind="x")


def test_descriptions_of_the_first_versions_are_read(tmp_path):
    storage.save(tmp_path / "x", kind="x", arrays={"a": np.arange(3)})
    file = tmp_path / "x" / storage.CONFIG
    values = json.loads(file.read_text())
    for name in ("version", "matrices", "labelwise"):
        del values[name]
    file.write_text(json.dumps(values))
    saved = storage.load(tmp_path / "x", kind="x")
    assert (saved.config, saved.matrices, saved.path) == ({}, {}, tmp_path / "x")
    assert saved.checked.take("a", np.int64, (3,)).tolist() == [0, 1, 2]
    assert "n" not in saved.entries


def test_a_checksum_is_compared_unless_it_is_not_wanted(tmp_path):
    storage.save(tmp_path / "x", kind="x", arrays={"a": np.arange(3)})
    file = tmp_path / "x" / storage.ARRAYS
    content = bytearray(file.read_bytes())
    content[-8] ^= 1
    file.write_bytes(content)
    assert storage.load(tmp_path / "x", kind="x", verify=False).arrays["a"].tolist() == [0, 1, 3]
    with pytest.raises(StorageError, match=r"is damaged \(its size or checksum is wrong\); copy or make it again"):
        storage.load(tmp_path / "x", kind="x")
    file.write_bytes(content + b"\0")
    with pytest.raises(StorageError, match="is damaged"):
        storage.load(tmp_path / "x", kind="x", verify=False)


def test_json_is_written_for_people(tmp_path):
    storage.write_json(tmp_path / "j.json", {"a": [1], "u": "é"})
    assert (tmp_path / "j.json").read_text(encoding="utf-8") == '{\n  "a": [\n    1\n  ],\n  "u": "é"\n}\n'
    assert (
        storage.objects.to_json({"u": "é", "p": tmp_path, "n": np.int8(3)})
        == f'{{"u": "é", "p": "{tmp_path}", "n": 3}}'
    )
    with pytest.raises(TypeError, match="type cannot be written as JSON"):
        storage.objects.to_json(Odd)


@dataclass(frozen=True)
class Inner:
    depth: int = 1


@dataclass(frozen=True)
class Outer:
    """Settings of which some had other names before."""

    RENAMED: ClassVar = {"old": "new", "deep": "inner.depth", "gone": None, "inner": "new"}
    new: int = 0
    pair: tuple[int, int] = (0, 0)
    inner: Inner = Inner()


def test_settings_of_earlier_versions(tmp_path):
    restore = storage.restore
    assert restore(Outer, {"old": 3, "gone": 5}, "c") == Outer(new=3)
    assert restore(Outer, {"deep": 4}, "c") == Outer(inner=Inner(4))
    assert restore(Outer, {"inner": {"depth": 7}, "pair": [1, 2]}, "c") == Outer(inner=Inner(7), pair=(1, 2))
    for wrong in ([1], None, {"inner": 5}, {"inner": 5, "deep": 3}):
        with pytest.raises(StorageError, match="where a table of entries belongs"):
            restore(Outer, wrong, "c")
    with pytest.raises(StorageError, match=r"c: inner has settings that labelwise .* does not know \(a, b\); a newer"):
        restore(Outer, {"inner": {"b": 1, "a": 2}}, "c")
    with pytest.raises(StorageError, match=r"c has settings that are wrong: .*min_df.*; copy or make it again"):
        restore(TfidfConfig, {"min_df": -1}, "c")
