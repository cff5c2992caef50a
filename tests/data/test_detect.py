import gzip

import pytest

from labelwise.data import ReadOptions, load_dataset, load_splits
from labelwise.data.detect import open_source, split_of
from labelwise.errors import DataError, UsageError
from tests.data.examples import ROWS, write_jsonl, write_text, write_toy


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train.csv", "train"),
        ("trn.txt", "train"),
        ("dev.jsonl", "validation"),
        ("valid.tsv", "validation"),
        ("val.jsonl", "validation"),
        ("test.jsonl.gz", "test"),
        ("eurlex_test.txt", "test"),
        ("labels.txt", None),
        ("training_notes.txt", None),
    ],
)
def test_splits_by_name(name, split):
    assert split_of(name) == split


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("train.txt", "2 3 4\n0 1:1\n", "HeaderSource"),
        ("train.txt", "0,3 1:1\n", "LibsvmSource"),
        ("train.txt", " 1:1\n", "LibsvmSource"),
        ("train.tsv", "a text\t<http://x> <y>\n", "AnnifSource"),
        ("train.tsv", "text\tlabels\na\t<b>\n", "TsvSource"),
        ("train.tsv", "an unlabelled text\t\na text\t<x>\n", "AnnifSource"),
        ("train.ndjson", "{}\n", "JsonlSource"),
        ("train.svm", "0 1:1\n", "LibsvmSource"),
        ("train.txt", '{"text": "a"}\n', "JsonlSource"),
        ("train.txt", "# a remark\t<x>\n", "AnnifSource"),
        ("train.txt", "", "LibsvmSource"),
        ("train.tsv", "", "TsvSource"),
    ],
)
def test_formats_by_looking(tmp_path, name, content, kind):
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content.encode()))
    for path in (tmp_path, tmp_path / f"{name}.gz"):
        assert type(open_source(path, options=ReadOptions())).__name__ == kind


def test_a_missing_path(tmp_path):
    with pytest.raises(DataError, match="no such file or folder"):
        load_dataset(tmp_path / "nowhere")


def test_an_unknown_format(tmp_path):
    with pytest.raises(UsageError, match="unknown format 'arff'; there are: jsonl, csv"):
        load_dataset(tmp_path, format="arff")


def test_nothing_found_says_what_was_looked_for(tmp_path):
    with pytest.raises(DataError, match=r"no data found here; looked for train/validation/test.*There is: nothing"):
        load_dataset(tmp_path)
    write_text(tmp_path / "readme.md", "hello")
    with pytest.raises(DataError, match=r"no data as csv found here.*There is: readme.md"):
        load_dataset(tmp_path, format="csv")


def test_a_file_nobody_knows(tmp_path):
    with pytest.raises(DataError, match="cannot tell the format of this file"):
        load_dataset(write_text(tmp_path / "notes.md", "hello there\n"))


def test_the_format_can_be_forced(tmp_path):
    path = write_jsonl(tmp_path / "data.log", ROWS)
    assert len(load_dataset(path, format="jsonl")) == 3
    with pytest.raises(DataError, match="cannot tell the format"):
        load_dataset(path, format="pecos")


def test_two_formats_or_two_files_of_a_split(tmp_path):
    write_toy(tmp_path)
    write_text(tmp_path / "train.csv", "text,labels\na,b\n")
    with pytest.raises(DataError, match=r"there are train.jsonl and train.csv; say which to read with --format"):
        load_dataset(tmp_path)
    assert load_dataset(tmp_path, format="csv").texts == ["a"]
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(b"{}"))
    with pytest.raises(DataError, match=r"train.jsonl.gz is the same split as train.jsonl"):
        load_dataset(tmp_path, format="jsonl")


def test_names_of_the_validation_split(tmp_path):
    write_toy(tmp_path)
    write_jsonl(tmp_path / "dev.jsonl", ROWS)
    assert list(load_splits(tmp_path)) == ["train", "validation", "test"]


@pytest.mark.parametrize("name", ["text_column", "labels_column", "id_column"])
def test_columns_are_not_named_where_there_are_none(tmp_path, name):
    (tmp_path / "train.tsv").write_text("a mirror\t<http://example.org/1>\n")
    with pytest.raises(UsageError, match=f"has no named columns; leave out --{name.replace('_', '-')}, or give"):
        load_dataset(tmp_path, format="annif", **{name: "title"})
    assert load_dataset(tmp_path, format="annif", text_column="text").texts == ["a mirror"]
