"""What comes from a folder is checked: its files and links, its JSON, its arrays."""

import json
import os
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from labelwise import storage
from labelwise.config import LinearTreeConfig, TfidfConfig
from labelwise.config.settings import Range
from labelwise.errors import StorageError
from labelwise.storage.checks import (
    MOST_JSON_DEPTH,
    Arrays,
    Entries,
    check_folder,
    checked_matrix,
    parse_json,
    typed,
)
from labelwise.storage.shared_parts import SharedParts

# ---------------------------------------------------------------------- files


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "model"
    storage.save(place / "part", kind="thing", config={"n": 1}, arrays={"a": np.arange(3)})
    (tmp_path / "outside.json").write_text("{}")
    return place


def test_links_inside_of_the_folder_and_to_the_folder_are_allowed(folder, tmp_path):
    (folder / "copy.json").symlink_to(folder / "part" / storage.CONFIG)
    (tmp_path / "current").symlink_to(folder)
    check_folder(tmp_path / "current")


def test_the_cache_of_the_hub_is_allowed(tmp_path):
    snapshot = tmp_path / "models--user--model" / "snapshots" / "abc"
    blobs = tmp_path / "models--user--model" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "123").write_text("{}")
    (snapshot / "config.json").symlink_to("../../blobs/123")
    check_folder(snapshot)
    (tmp_path / "secret").write_text("{}")
    (snapshot / "other.json").symlink_to(tmp_path / "secret")
    with pytest.raises(StorageError, match=r"other\.json is a link that leaves the folder"):
        check_folder(snapshot)


@pytest.mark.parametrize(
    "target", ["../outside.json", "/dev/zero", "/etc/hostname", "..", "nowhere/../../outside.json"]
)
def test_links_that_leave_the_folder_are_refused(folder, target):
    (folder / "part" / "more.json").symlink_to(target if target.startswith("/") else f"../{target}")
    with pytest.raises(StorageError, match=r"more\.json is a link that leaves the folder; copy the file to its place"):
        check_folder(folder)


@pytest.mark.parametrize("target", ["part", "more.json", "nothing"])
def test_links_to_what_is_no_file_are_refused(folder, target):
    (folder / "more.json").symlink_to(target)
    with pytest.raises(StorageError, match=r"more\.json"):
        check_folder(folder)


def test_pipes_are_refused_and_never_opened(folder):
    config = folder / "part" / storage.CONFIG
    config.unlink()
    os.mkfifo(config)
    for read in (check_folder, lambda place: storage.load(place / "part", kind="thing")):
        with pytest.raises(StorageError, match=r"config.json: it is no regular file"):
            read(folder)


def test_folders_in_place_of_files_are_refused(folder):
    for name in (storage.ARRAYS, storage.CONFIG):
        (folder / "part" / name).unlink()
        (folder / "part" / name).mkdir()
        with pytest.raises(StorageError, match=f"{name}: it is no regular file"):
            storage.load(folder / "part", kind="thing")


def test_folders_in_folders_without_end(folder):
    deep = folder.joinpath(*["x"] * 40)
    deep.mkdir(parents=True)
    with pytest.raises(StorageError, match="folders in it are nested too deeply"):
        check_folder(folder)


# ---------------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ("[" * (MOST_JSON_DEPTH + 1) + "]" * (MOST_JSON_DEPTH + 1), f"more than {MOST_JSON_DEPTH} levels"),
        ('{"a": 1, "a": 2}', "a name occurs twice"),
        ("9" * 5000, "cannot be read"),
        ("{", "cannot be read"),
        ("\ud800", "cannot be read"),
    ],
)
def test_json_that_is_refused(text, message):
    with pytest.raises(StorageError, match=f"a.json.*{message}"):
        parse_json(text.encode("utf-8", "surrogatepass"), "a.json")


def test_json_that_is_read():
    assert parse_json(b'{"a": [1, {"b": null}], "c": NaN}', "a.json")["a"] == [1, {"b": None}]
    deepest = "[" * MOST_JSON_DEPTH + "]" * MOST_JSON_DEPTH
    assert json.dumps(parse_json(deepest.encode(), "a.json")) == deepest
    assert parse_json(b"7", "a.json") == 7


@dataclass
class Inner:
    x: int
    y: str | None = None


@dataclass
class Outer:
    inner: list[Inner] = field(default_factory=list)
    by_number: dict[int, float] = field(default_factory=dict)


def test_values_in_their_types():
    value = {"inner": [{"x": 1, "new": 2}, {"x": 2, "y": "z"}], "by_number": {"5": 1}, "unknown": 0}
    assert typed(Outer, value, "a") == Outer([Inner(1), Inner(2, "z")], {5: 1.0})
    assert typed(float | None, None, "a") is None
    assert np.isnan(typed(float, float("nan"), "a"))
    assert typed(Any, [1, {}], "a") == [1, {}]
    assert Entries({"n": 3}, "a").get("n", Literal[3, 4]) == 3


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *((Outer, value) for value in ([], 1, None, {"inner": {}}, {"inner": [1]}, {"inner": [{}]})),
        *((Outer, {"by_number": value}) for value in ({"x": 1}, {"-1": 1}, {"1": "a"}, [1])),
        *((int, value) for value in (1.5, "1", True, None, 2**63, [1])),
        *((float, value) for value in ("1", True, None, 10**400)),
        (Annotated[float, Range(at_least=0)], float("nan")),
        (list[int], (1,)),
        (dict[str, Any], []),
        (tuple[int, int], [1]),
        (Literal["a"], ["a"]),
    ],
)
def test_values_of_other_types_are_refused(kind, value):
    with pytest.raises(StorageError, match="copy or make it again"):
        typed(kind, value, "a")


def test_entries_that_are_missing_or_no_table():
    with pytest.raises(StorageError, match="a: the entry 'n' is missing"):
        Entries({}, "a").get("n", int)
    with pytest.raises(StorageError, match="a: n: there is 3 where a table of entries belongs"):
        Entries({"n": 3}, "a").table("n")


def edited(folder, **changes):
    file = folder / storage.CONFIG
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize(
    "changes",
    [
        *({"version": value} for value in ("2", -1, 1.5, [], True)),
        *({"files": value} for value in ([], "x", {"arrays.safetensors": []}, {"arrays.safetensors": {"bytes": "1"}})),
        *({"matrices": value} for value in ([], {"X": [1, 2]}, "x")),
        *({"config": value} for value in ("x", [1], 5)),
        *({"kind": value} for value in (["thing"], {}, 5, None)),
    ],
)
def test_a_description_of_other_types_is_refused(folder, changes):
    edited(folder / "part", **changes)
    with pytest.raises(StorageError):
        storage.load(folder / "part", kind="thing")


@pytest.mark.parametrize(
    "values",
    [
        [],
        {"tfidf": []},
        {"tfidf": {"ngram_range": 3}},
        {"tfidf": {"ngram_range": [1, 10**9]}},
        {"tfidf": {"opening_weight": 1e300}},
        {"n_trees": "2"},
        {"beam": 2.5},
        {"hold_out": 0.1, "holdout": 3},
        {"score_transform": ["l3-hinge"]},
        {"score_transform": "x" * 1_000_000},
        {"ranker": {"bias": float("nan")}},
        {"x" * 100_000: 1},
        {"kind": None},
        {"RENAMED": {}},
    ],
)
def test_settings_of_a_folder_are_checked_like_any_others(values):
    with pytest.raises(StorageError) as caught:
        storage.restore(LinearTreeConfig, values, "model")
    assert len(str(caught.value)) < 1000


def test_settings_come_back_as_they_were():
    config = TfidfConfig(ngram_range=(2, 3))
    assert storage.restore(TfidfConfig, {"ngram_range": [2, 3]}, "model") == config


# ---------------------------------------------------------------------- arrays


def header(**entry):
    usual = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    return json.dumps({"a": usual | entry})


@pytest.mark.parametrize(
    "text",
    [
        *(header(dtype=value) for value in ("F8", "BF16", 5, None, ["F32"])),
        *(header(shape=value) for value in ([3], [-1], [2.0], "2", [[2]], [2, 2**62], [1] * 40 + [2], [True, 2], None)),
        *(header(data_offsets=value) for value in ([0, 9], [4, 4], [8, 0], [-8, 0], [0, 1e999], [0], "08", [0, 2**70])),
        header(data_offsets=[1, 9]),
        "[]",
        '{"a": []}',
        "[" * 5000,
        '{"a": 1, "a": 1}',
        "x",
    ],
)
def test_arrays_whose_header_lies_are_refused(tmp_path, text):
    content = text.encode()
    content += b" " * (-len(content) % 8)
    (tmp_path / "a").write_bytes(len(content).to_bytes(8, "little") + content + bytes(8))
    with pytest.raises(StorageError):
        storage.map_arrays(tmp_path / "a")


@pytest.mark.parametrize("size", [2**63, 2**64 - 1, 2**40, 9])
def test_a_header_beyond_the_file(tmp_path, size):
    (tmp_path / "a").write_bytes(size.to_bytes(8, "little") + bytes(8))
    with pytest.raises(StorageError, match="not a valid safetensors file"):
        storage.map_arrays(tmp_path / "a")


def test_an_array_off_its_alignment_is_refused(tmp_path):
    content = header(data_offsets=[2, 10]).encode()
    content += b" " * (-len(content) % 8)
    (tmp_path / "a").write_bytes(len(content).to_bytes(8, "little") + content + bytes(16))
    with pytest.raises(StorageError, match="not a valid safetensors file"):
        storage.map_arrays(tmp_path / "a")


def arrays(**values):
    return Arrays({name: np.asarray(value) for name, value in values.items()}, "model")


def test_arrays_that_are_right():
    some = arrays(p=[0, 2, 2, 5], q=np.array([2, 0, 1], np.int32), x=np.ones((2, 3), np.float16), e=np.empty(0))
    assert some.offsets("p", n=3, end=5).tolist() == [0, 2, 2, 5]
    assert some.permutation("q", np.int32, 3).tolist() == [2, 0, 1]
    assert some.finite("x", (np.float16, np.float32), (2, None)).shape == (2, 3)
    assert some.finite("e", np.float64, (0,)).shape == (0,)
    assert "y" not in some


@pytest.mark.parametrize(
    "ask",
    [
        lambda: arrays().take("x", np.int32, (None,)),
        lambda: arrays(x=np.ones(3)).take("x", np.float32, (None,)),
        lambda: arrays(x=np.ones(3)).take("x", np.float64, (None, None)),
        lambda: arrays(x=np.ones(3)).take("x", np.float64, (4,)),
        lambda: arrays(p=[]).offsets("p", end=0),
        lambda: arrays(p=np.empty(0, int)).offsets("p", end=0),
        lambda: arrays(p=[0, 3, 2, 5]).offsets("p", end=5),
        lambda: arrays(p=[0, 3]).offsets("p", n=2, end=3),
        lambda: arrays(q=[0, 0, 2]).permutation("q", np.int64, 3),
        lambda: arrays(q=[0, 1, 3]).permutation("q", np.int64, 3),
        lambda: arrays(q=[0, -1]).below("q", np.int64, (2,), 5),
        lambda: arrays(x=[1.0, np.nan]).finite("x", np.float64, (2,)),
        lambda: arrays(x=[[1.0, np.inf]]).finite("x", np.float64, (1, 2)),
        lambda: arrays(x=np.array([-np.inf], np.float16)).finite("x", np.float16, (1,)),
        lambda: arrays(x=[1e19]).finite("x", np.float64, (1,)),
    ],
)
def test_arrays_that_are_refused(ask):
    with pytest.raises(StorageError, match=r"model: the array '\w' .* copy or make it again"):
        ask()


RIGHT = (np.ones(3, np.float32), np.array([0, 1, 1], np.int32), np.array([0, 1, 3], np.int32))


def test_a_matrix():
    assert checked_matrix(RIGHT, [2, 2], "m").toarray().tolist() == [[1, 0], [0, 2]]
    data, indices, indptr = RIGHT
    for parts, shape in (
        (RIGHT, [2, 1]),
        (RIGHT, [3, 2]),
        (RIGHT, [2]),
        (RIGHT, "22"),
        (RIGHT, [2, -2]),
        ((data[:2], indices, indptr), [2, 2]),
        ((data, indices.astype(np.int64), indptr), [2, 2]),
        ((data, indices.astype(np.float32), indptr.astype(np.float32)), [2, 2]),
        ((data, -indices, indptr), [2, 2]),
        ((data, indices, np.array([0, 4, 3], np.int32)), [2, 2]),
        ((data, indices, np.array([1, 1, 3], np.int32)), [2, 2]),
        ((data.reshape(1, 3), indices, indptr), [2, 2]),
        ((data.astype(complex), indices, indptr), [2, 2]),
    ):
        with pytest.raises(StorageError):
            checked_matrix(parts, shape, "m")


def test_a_link_to_a_shared_part_beside_the_part_itself_is_refused(tmp_path):
    (tmp_path / "tfidf").mkdir()
    (tmp_path / "tfidf.link.json").write_text('{"folder": "../../shared/tfidf-1"}')
    with pytest.raises(StorageError, match="lies beside the folder tfidf"):
        SharedParts().load(tmp_path / "tfidf", str)
