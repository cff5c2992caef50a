"""labelwise convert"""

import json

import pytest

from labelwise import load_splits


@pytest.mark.parametrize("to", ["jsonl", "csv", "tsv", "parquet", "pecos", "annif"])
def test_convert_there_and_back(labelwise, data, tmp_path, to):
    assert labelwise("convert", data, tmp_path / to, "--to", to).code == 0
    assert labelwise("convert", tmp_path / to, tmp_path / "back", "--to", "jsonl").code == 0
    want, got = load_splits(data), load_splits(tmp_path / "back")
    for split in ("train", "test"):
        assert got[split].texts == want[split].texts
        assert got[split].labels == want[split].labels
        assert (got[split].Y != want[split].Y).nnz == 0


def test_convert_skips_bad_rows_and_counts_them(labelwise, data, tmp_path):
    with (data / "train.jsonl").open("a") as file:
        file.write('{"id": "x", "labels": ["plant"]}\n')
    result = labelwise("convert", data, tmp_path / "out", "--to", "csv")
    assert result.code == 1
    assert "train.jsonl, line 9" in result.err
    assert not (tmp_path / "out").exists()
    result = labelwise("convert", data, tmp_path / "out", "--to", "csv", "--skip-bad-rows")
    assert result.code == 0
    assert "1 bad rows were left out" in result.out
    assert json.loads(labelwise("convert", data, tmp_path / "o2", "--to", "csv", "--skip-bad-rows", "--json").out)[
        "documents"
    ] == {"train": 8, "test": 2}
