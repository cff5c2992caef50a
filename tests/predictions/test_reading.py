"""Files of predictions, read back: ours, those of other systems, damaged ones."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelwise.errors import DataError
from labelwise.predictions import Predictions, read_predictions, reading
from tests.predictions.examples import FORMATS, toy


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_written_and_read_back(tmp_path: Path, name, dtype):
    written = toy(dtype)
    written.write(tmp_path / name)
    read = read_predictions(tmp_path / name, labels=written.labels)
    assert list(read) == list(written)
    assert read.ids == written.ids
    assert read.labels == written.labels
    np.testing.assert_array_equal(read.matrix.astype(dtype).toarray(), written.matrix.toarray())
    assert [p.name for p in tmp_path.iterdir()] == [name]  # nothing temporary is left


names = st.text(st.characters(codec="utf-8"), max_size=6)


@pytest.mark.parametrize("name", ["p.jsonl", "p.csv", "p.parquet"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(names, min_size=1, max_size=5, unique=True),
    st.lists(names, max_size=4, unique=True),
    st.randoms(use_true_random=False),
)
def test_any_names_round_trip(tmp_path: Path, name, labels, ids, random):
    dense = np.array([[random.choice([0, 0.1, -2.5, 1e-30]) for _ in labels] for _ in ids])
    matrix = sp.csr_array(dense.reshape(len(ids), len(labels)))
    written = Predictions(matrix, labels, ids)
    written.write(tmp_path / name)
    read = read_predictions(tmp_path / name, labels=labels, ids=ids)
    assert list(read) == list(written)


def test_reads_other_systems_records(tmp_path: Path):
    path = tmp_path / "p.jsonl"
    records = [
        {"labels": ["a", "b"]},
        {"labels": [{"label": "b", "score": 2}, {"label": "c", "score": 3}]},
        {"labels": []},
    ]
    path.write_text("\n\n".join(json.dumps(record) for record in records))
    read = read_predictions(path)
    assert list(read) == [[("a", 1.0), ("b", 0.5)], [("c", 3.0), ("b", 2.0)], []]
    assert read.ids is None
    assert read_predictions(path, ids=["x", "y", "z"]).ids == ["x", "y", "z"]
    with pytest.raises(DataError, match="3 documents without ids, but 2"):
        read_predictions(path, ids=["x", "y"])


def test_csv_rank_stands_in_for_a_missing_score(tmp_path: Path):
    path = tmp_path / "p.csv"
    path.write_text("label,id,rank\na,x,2\nb,x,1\na,y,1\n")
    assert list(read_predictions(path)) == [[("b", 1.0), ("a", 0.5)], [("a", 1.0)]]


def test_reads_a_matrix(tmp_path: Path):
    sp.save_npz(tmp_path / "p.npz", sp.csr_matrix(toy().matrix))
    read = read_predictions(tmp_path / "p.npz", labels=toy().labels, ids=["x", "y", "z"])
    assert list(read) == list(toy())
    assert read_predictions(tmp_path / "p.npz").labels == ["0", "1", "2", "3"]
    with pytest.raises(DataError, match=r"p\.npz: the matrix has 4 columns but 2 labels"):
        read_predictions(tmp_path / "p.npz", labels=["a", "b"])
    with pytest.raises(DataError, match="3 rows but 1 documents"):
        read_predictions(tmp_path / "p.npz", ids=["a"])
    bad = toy().matrix.copy()
    bad.data[3] = np.nan
    sp.save_npz(tmp_path / "p.npz", bad)
    with pytest.raises(DataError, match=r"p\.npz: some values are NaN or infinite"):
        read_predictions(tmp_path / "p.npz")


def test_pickled_npz_is_refused(tmp_path: Path):
    np.savez(tmp_path / "p.npz", format=np.array([{"evil": 1}], dtype=object))
    with pytest.raises(DataError, match="not a whole npz file"):
        read_predictions(tmp_path / "p.npz")


def test_rows_follow_the_ids_wanted(tmp_path: Path):
    toy().write(tmp_path / "p.jsonl")
    read = read_predictions(tmp_path / "p.jsonl", ids=["z", "x", "y"])
    assert read.ids == ["z", "x", "y"]
    assert list(read) == [toy()[2], toy()[0], toy()[1]]
    with pytest.raises(DataError, match=r"p\.jsonl: no predictions for 1 documents, the first is 'w'"):
        read_predictions(tmp_path / "p.jsonl", ids=["z", "x", "y", "w"])
    with pytest.raises(DataError, match=r"p\.jsonl, line 3: document 'z' is not among"):
        read_predictions(tmp_path / "p.jsonl", ids=["x", "y"])


@pytest.mark.parametrize(
    ("text", "line", "match"),
    [
        ('{"id": "x", "labels": []}\n{"id": "x", "labels": []}\n', 2, "already predicted"),
        ('{"id": "x", "labels": []}\n{"labels": []}\n', 2, "some have none"),
        ('{"labels": []}\n{"id": "x", "labels": []}\n', 2, "some have none"),
        ('{"id": "x", "labels": ["a", "a"]}\n', 1, "twice"),
        ('{"id": "x", "labels": [["a", NaN]]}\n', 1, "score nan"),
        ('{"id": "x", "labels": [["a", 1e999]]}\n', 1, "score inf"),
        ('{"id": "x", "labels": [["a", "high"]]}\n', 1, "cannot read"),
        ('{"id": "x", "labels": [["a"]]}\n', 1, "cannot read"),
        ('{"id": "x", "labels": "a"}\n', 1, "not a list"),
        ('\n{"id": "x"}\n', 2, "KeyError"),
        ("[1, 2]\n", 1, "cannot read"),
        ('{"id": ', 1, "cannot read"),
    ],
)
def test_malformed_jsonl_is_named_by_line(tmp_path: Path, text, line, match):
    path = tmp_path / "p.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"p\.jsonl, line {line}: .*{match}"):
        read_predictions(path)


@pytest.mark.parametrize(
    ("text", "line", "match"),
    [
        ("", 1, "no column id, label, rank"),
        ("id,label\n", 1, "no column rank"),
        ("id,rank,label,score\nx,1,a\n", 2, "cannot read"),
        ("id,rank,label,score\nx,1,a,high\n", 2, "cannot read"),
        ("id,rank,label,score\nx,1,a,nan\n", 2, "score nan"),
        ("id,rank,label,score\nx,0,a,\n", 2, "cannot read"),
        ("id,rank,label,score\nx,1,a,1\ny,1,a,1\nx,2,b,1\n", 4, "already predicted"),
    ],
)
def test_malformed_csv_is_named_by_line(tmp_path: Path, text, line, match):
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=rf"p\.csv, line {line}: .*{match}"):
        read_predictions(path)


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_raise_our_error(tmp_path: Path, name):
    path = tmp_path / name
    toy().write(path)
    whole = path.read_bytes()
    for cut in range(0, len(whole), 7):
        for damaged in (whole[:cut], whole[:cut] + b"\xff" + whole[cut + 1 :]):
            path.write_bytes(damaged)
            try:
                read_predictions(path)
            except DataError as err:
                assert name in str(err)  # noqa: PT017  (most damage must raise, some is harmless)
    path.write_bytes(b"\xff\xff" + whole[2:-8])
    with pytest.raises(DataError, match=r"p\."):
        read_predictions(path)


def test_unknown_labels_come_last(tmp_path: Path):
    toy().write(tmp_path / "p.jsonl")
    read = read_predictions(tmp_path / "p.jsonl", labels=["bean", "apple"])
    assert read.labels == ["bean", "apple", "corn", "date"]
    assert read.n_known == 2
    with pytest.raises(DataError, match="not distinct"):
        read_predictions(tmp_path / "p.jsonl", labels=["a", "a"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "cannot read this record"),
        ('{"id": "a", "labels": [["\\ud800", 1]]}', "cannot be written as UTF-8"),
        ('{"id": "a\\udfff", "labels": []}', "cannot be written as UTF-8"),
        ('{"id": "a", "labels": [["x", ' + "9" * 5000 + "]]}", "cannot read this record"),
        ('{"id": "a", "labels": [["x", 1e999]]}', "scores are finite"),
    ],
)
def test_records_that_no_system_writes(tmp_path, text, message):
    path = tmp_path / "p.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_predictions(path)


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("labelwise.predictions.reading.MOST_LETTERS", 1000)
    for name in ("p.jsonl", "p.csv"):
        (tmp_path / name).write_text("id,rank,label,score\n" * (name == "p.csv") + " " * 1001)
        with pytest.raises(DataError, match="the line has more than 1,000 characters"):
            read_predictions(tmp_path / name)


def test_a_matrix_of_too_many_columns_needs_labels(tmp_path):
    sp.save_npz(tmp_path / "p.npz", sp.csr_array(([0.5], ([0], [3])), shape=(1, 2**31 - 1)))
    with pytest.raises(DataError, match="columns; pass the labels"):
        read_predictions(tmp_path / "p.npz")


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.xz", "a.csv.gz"])
def test_what_unpacks_to_too_much_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setattr(reading, "MOST_UNPACKED", 100_000)
    monkeypatch.setattr(reading, "UNPACKED_PER_BYTE", 10)
    with reading.open_text(tmp_path / name, Path(name).suffix, "w") as file:
        file.write("id,rank,label,score\n" if "csv" in name else "")
        file.writelines(['"a",1,"x",1\n' if "csv" in name else f"{' ' * 20}\n"] * 20_000)
    with pytest.raises(
        DataError, match=r"unpacks to more than 100,000 bytes, from .*; unpack it first if that is meant"
    ):
        read_predictions(tmp_path / name)


def test_a_header_that_csv_cannot_read_is_told(tmp_path):
    (tmp_path / "p.csv").write_text(f"id,rank,label,score{'a' * 200_000}\n1,1,a,0.5\n")
    limit = csv.field_size_limit(131_072)  # reading data may have set another one
    try:
        with pytest.raises(DataError, match=r"cannot read the header \(field larger than field limit .*; expected the"):
            read_predictions(tmp_path / "p.csv")
    finally:
        csv.field_size_limit(limit)
