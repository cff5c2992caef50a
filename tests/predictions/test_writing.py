"""Files of predictions as they are documented; a failed write changes nothing."""

import gzip
from pathlib import Path

import pytest

from labelwise.errors import DataError, UsageError
from labelwise.predictions import Predictions, read_predictions
from tests.predictions.examples import toy


def test_without_ids_documents_are_numbered(tmp_path: Path):
    Predictions(toy().matrix, toy().labels).write(tmp_path / "p.csv")
    assert read_predictions(tmp_path / "p.csv").ids == ["0", "1", "2"]


def test_the_files_look_as_documented(tmp_path: Path):
    toy()[:2].write(tmp_path / "p.jsonl")
    toy()[:2].write(tmp_path / "p.csv")
    assert (tmp_path / "p.jsonl").read_text().splitlines() == [
        '{"id": "x", "labels": [["corn", 0.93], ["apple", 0.25]]}',
        '{"id": "y", "labels": []}',
    ]
    assert (tmp_path / "p.csv").read_text().splitlines() == [
        "id,rank,label,score",
        '"x",1,"corn",0.93',
        '"x",2,"apple",0.25',
        '"y","","",""',
    ]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "p.jsonl"
    toy().write(path)
    before = path.read_bytes()
    broken = Predictions(toy().matrix, ["\ud800", "b", "c", "d"])  # half a character: no UTF-8
    with pytest.raises(UnicodeEncodeError):
        broken.write(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_unknown_formats_are_refused(tmp_path: Path):
    for name in ("p.txt", "p", "p.gz", "p.parquet.gz"):
        with pytest.raises(UsageError, match="cannot tell the format"):
            toy().write(tmp_path / name)
    with pytest.raises(UsageError, match="npz"):
        read_predictions(tmp_path / "p.txt")
    with pytest.raises(DataError, match=r"p\.jsonl: there is no such file"):
        read_predictions(tmp_path / "p.jsonl")


def test_gz_is_gz(tmp_path: Path):
    toy().write(tmp_path / "p.jsonl.gz")
    assert gzip.decompress((tmp_path / "p.jsonl.gz").read_bytes()).startswith(b'{"id": "x"')


def test_compressed_predictions_have_the_same_bytes_at_any_time(tmp_path, monkeypatch):
    for number, name in enumerate(("a.csv.gz", "b.csv.gz")):
        monkeypatch.setattr("time.time", lambda number=number: 1e9 + number)
        Predictions(toy().matrix, toy().labels).write(tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b"id,rank,label,score\n")
