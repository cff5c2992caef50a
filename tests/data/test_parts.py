import gzip
import json

import numpy as np
import pytest

from labelwise.data import Dataset, convert, load_dataset, load_splits, split_data
from labelwise.data.parts import draw_parts
from labelwise.errors import DataError, UsageError
from tests.data.examples import write_jsonl, write_text

ROWS = [{"key": f"k{i}", "text": f"text {i % 40}", "labels": [f"l{i % 4}"], "more": i} for i in range(60)]
"""Texts 0 to 19 occur twice."""


def texts_of(folder, **options):
    return {name: part.texts for name, part in load_splits(folder, **options).items()}


def test_parts_are_drawn_by_text_and_keep_the_labels():
    data = Dataset.from_frame({"text": [r["text"] for r in ROWS], "labels": [r["labels"] for r in ROWS]})
    parts = draw_parts(data, {"test": 0.2, "validation": 0.2}, seed=1)
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(60))
    texts = {name: {data.texts[i] for i in rows} for name, rows in parts.items()}
    assert (
        not texts["train"] & texts["test"] | texts["train"] & texts["validation"] | texts["test"] & texts["validation"]
    )
    assert (len(texts["train"]), len(texts["test"]), len(texts["validation"])) == (24, 8, 8)
    again, other = draw_parts(data, {"test": 0.2}, seed=1), draw_parts(data, {"test": 0.2}, seed=2)
    assert again["test"].tolist() == draw_parts(data, {"test": 0.2}, seed=1)["test"].tolist() != other["test"].tolist()
    rare = Dataset.from_frame({"text": ["a", "b", "c", "d"], "labels": [["x"], ["y"], ["x"], ["x"]]})
    assert 1 in draw_parts(rare, {"test": 0.5})["train"]  # the only document with the label y


def test_json_lines_are_copied_as_they_are(tmp_path):
    rows = [*ROWS, {"text": "no labels", "labels": []}, {"text": "", "labels": ["x"]}]
    path = write_jsonl(tmp_path / "d.jsonl", rows)
    path.write_bytes(b"\n" + path.read_bytes() + b"caf\xe9\n")
    done = split_data(path, tmp_path / "out", test=0.25, skip_bad_rows=True, compression="gz")
    assert (done.format, done.bad_rows, sum(done.documents.values())) == ("jsonl", 3, 60)
    lines = [gzip.decompress(file.read_bytes()).decode() for file in sorted((tmp_path / "out").iterdir())]
    assert sorted(map(json.loads, "".join(lines).splitlines()), key=lambda row: row["more"]) == ROWS


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_tables_keep_their_columns(tmp_path, delimiter):
    table = [["key", "Title ", "tags", "year"]] + [
        [f"k{i}", f'a "{i}"{delimiter}\nb', f"l{i % 3}", "1900"] for i in range(30)
    ]
    quoted = "".join(delimiter.join('"' + cell.replace('"', '""') + '"' for cell in row) + "\r\n" for row in table)
    path = tmp_path / "d.csv"
    path.write_bytes(quoted.replace("1900", "café").encode("cp1252"))
    how = {"text_column": "Title ", "labels_column": "tags", "id_column": "key"}
    split_data(path, tmp_path / "out", test=0.2, validation=0.1, encoding="cp1252", **how)
    splits = load_splits(tmp_path / "out", **how)
    assert {name: len(part) for name, part in splits.items()} == {"train": 21, "validation": 3, "test": 6}
    whole = load_dataset(path, encoding="cp1252", **how)
    assert sorted(zip(whole.ids, whole.texts, strict=True)) == sorted(
        pair for part in splits.values() for pair in zip(part.ids, part.texts, strict=True)
    )
    header = (tmp_path / "out" / "train.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header.split(delimiter) == table[0]


@pytest.mark.parametrize("to", ["parquet", "annif", "libsvm", "tsv", "pecos"])
def test_other_formats(tmp_path, to):
    write_jsonl(tmp_path / "src" / "train.jsonl", ROWS)
    if to == "parquet":
        pytest.importorskip("pyarrow")
    convert(tmp_path / "src", tmp_path / "data", to)
    done = split_data(tmp_path / "data", tmp_path / "out", test=0.2)
    assert done.format == to
    assert sum(done.documents.values()) == 60
    splits = load_splits(tmp_path / "out")
    assert {name: len(part) for name, part in splits.items()} == done.documents
    if to != "libsvm":
        assert not set(splits["train"].texts) & set(splits["test"].texts)


def test_what_is_refused(tmp_path):
    path = write_jsonl(tmp_path / "d.jsonl", ROWS)
    for wrong in ({"test": 0}, {"test": 1}, {"test": 0.6, "validation": 0.4}, {"test": -0.1}):
        with pytest.raises(UsageError, match="share"):
            split_data(path, tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()
    split_data(path, tmp_path / "out", test=0, validation=0.1)
    with pytest.raises(UsageError, match="out exists and is not empty"):
        split_data(path, tmp_path / "out")
    split_data(path, tmp_path / "out", overwrite=True)
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["test.jsonl", "train.jsonl"]
    with pytest.raises(UsageError, match="has the splits train, test already"):
        split_data(tmp_path / "out", tmp_path / "other")
    write_text(tmp_path / "data" / "train.csv", "text,labels\na,x\nb,x\n")
    with pytest.raises(UsageError, match="holds the data that are to be read"):
        split_data(tmp_path / "data", tmp_path / "data", test=0.5, overwrite=True)
    write_text(tmp_path / "same.csv", "text,labels\na,x\na,x\n")
    with pytest.raises(DataError, match="the 2 documents have the same text"):
        split_data(tmp_path / "same.csv", tmp_path / "halves", test=0.5)
    assert not (tmp_path / "halves").exists()
