"""Paths that callers pass in: what is no path is told in one sentence, by every function that takes one."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import labelwise
from labelwise.datasets.shop import write_shop
from labelwise.errors import LabelwiseError, StorageError, UsageError
from labelwise.storage import load, save
from labelwise.storage.paths import checked_path, files_below, paths_below


def test_paths_come_back(tmp_path):
    assert checked_path("a") == Path("a")
    assert checked_path(tmp_path / "not" / "there") == tmp_path / "not" / "there"
    (tmp_path / "file").touch()
    assert checked_path(str(tmp_path / "file" / "below")) == tmp_path / "file" / "below"


@pytest.mark.parametrize("path", [None, 3, b"model", ["model"], np.array(2)])
def test_what_is_no_path(path):
    with pytest.raises(UsageError, match=r"^the path is .*; give a string or a pathlib.Path$"):
        checked_path(path)


@pytest.mark.skipif(os.name != "posix", reason="Windows has other rules for names")
def test_names_that_no_file_can_have(tmp_path):
    for name in ("a\0b", "a\ud800b"):
        with pytest.raises(UsageError, match="has a character that no file name can have; mend it"):
            checked_path(tmp_path / name)
    with pytest.raises(StorageError, match=r"cannot be reached \(File name too long\)"):
        checked_path(tmp_path / ("a" * 300))


@pytest.mark.parametrize("path", [None, 3, b"x", "a\0b.jsonl"])
@pytest.mark.parametrize(
    "call",
    [
        labelwise.load_model,
        labelwise.load_dataset,
        labelwise.from_pretrained,
        labelwise.read_predictions,
        labelwise.Tfidf.load,
        lambda path: labelwise.Encoder.load(path or 0),  # None is the default encoder
        lambda path: labelwise.LinearTree().fit(["a", "b"], [["x"], ["y"]], run_dir=[path]),
        lambda path: labelwise.LinearTree().fit(["a", "b"], [["x"], ["y"]]).save(path),
        lambda path: labelwise.Predictions(sp.csr_array(np.eye(2)), ["x", "y"]).write(path),
        lambda path: write_shop(path, 300, 20),
        lambda path: labelwise.convert("somewhere", path, "csv"),
        lambda path: save(path, kind="test"),
        lambda path: load(path, kind="test"),
    ],
)
def test_every_function_that_takes_a_path(call, path):
    with pytest.raises(LabelwiseError):
        call(path)


def test_what_lies_below_a_folder(tmp_path):
    for name in ("b/two.json", "a/one.txt", "top.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [path.relative_to(tmp_path).as_posix() for path in paths_below(tmp_path)]
    assert found == ["a", "a/one.txt", "b", "b/two.json", "top.json"]
    assert files_below(tmp_path, ".json") == [tmp_path / "b/two.json", tmp_path / "top.json"]


def test_a_folder_that_cannot_be_read_is_not_empty(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    real = os.scandir

    def scandir(path="."):
        if Path(path) == tmp_path / "a":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(PermissionError):
        files_below(tmp_path)
