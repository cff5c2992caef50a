"""Saved folders: round trips, mapping, damage, half-written files."""

import json
import os
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelwise import UsageError, storage
from labelwise.config import TfidfConfig
from labelwise.errors import StorageError

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
