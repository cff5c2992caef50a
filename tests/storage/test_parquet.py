"""Parquet files: texts that a dictionary holds once for many rows are counted before they are written out."""

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from labelwise import load_dataset, read_predictions  # noqa: E402
from labelwise.errors import DataError  # noqa: E402
from labelwise.storage.parquet import must_be_counted, plain_batches  # noqa: E402


def write(path, n, text, **columns):
    once = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array([text]))
    pq.write_table(pa.table({"text": once, "labels": [["x"]] * n, **columns}), path, compression="zstd")
    return path


def test_batches_are_those_of_pyarrow(tmp_path):
    names = pa.array(["a", None, "bb", "a"])
    table = pa.table({"name": names, "n": [1, 2, 3, 4], "list": [["x"], [], None, ["x", "y"]]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    assert must_be_counted(tmp_path / "a.parquet", 5) == ["name"]  # 2 rows with "a", and 2 with "bb"
    assert must_be_counted(tmp_path / "a.parquet", 6) == []
    with pq.ParquetFile(tmp_path / "a.parquet", read_dictionary=["name"]) as file:
        assert pa.Table.from_batches(plain_batches(file, ["name", "n", "list"], rows=3, most=1000)) == table
        with pytest.raises(OverflowError):
            list(plain_batches(file, ["name"], rows=3, most=3))
        assert sum(map(len, plain_batches(file, ["name"], rows=4, most=4))) == 4


def test_a_text_that_counts_for_many_rows(tmp_path):
    path = write(tmp_path / "a.parquet", 100_000, "a" * 1_000_000)  # 100 GB, of some kilobytes
    with pytest.raises(DataError, match=r"unpacks to more than 16,777,216 bytes, from .*--max-unpacked"):
        load_dataset(path)
    assert len(load_dataset(write(tmp_path / "b.parquet", 10_000, "a" * 1000))) == 10_000


def test_predictions_that_unpack_to_too_much(tmp_path):
    n = 100_000
    once = pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array(["a" * 1_000_000]))
    table = pa.table({"id": once, "labels": [["x"]] * n, "scores": [[1.0]] * n})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd")
    with pytest.raises(DataError, match=r"unpacks to more than 67,108,864 bytes, from .*; unpack it first"):
        read_predictions(tmp_path / "a.parquet")
