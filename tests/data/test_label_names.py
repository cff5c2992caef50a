import json

import pytest

from labelwise.data.label_names import distinct_names, label_list, numbered_names, unused_name
from labelwise.errors import DataError
from tests.data.examples import write_text


def test_columns_that_share_a_title(caplog):
    assert numbered_names(["a", "b", "a", "", "a"]) == ["a", "b", "a (2)", "3", "a (3)"]
    assert "3 of 5 label names were blank or not unique" in caplog.text
    assert numbered_names(["a (2)", "a", "a"]) == ["a (2)", "a", "a (3)"]


def test_many_columns_that_share_a_title():
    assert len(set(numbered_names(["x"] * 50_000))) == 50_000


def test_a_free_name():
    assert unused_name("a", {}) == "a"
    assert unused_name("a", {"a": 1, "a (2)": 1}) == "a (3)"


def test_lists_of_labels(tmp_path):
    assert label_list(tmp_path) is None
    write_text(tmp_path / "labels.txt", "\ufeffa b \r\nc\r\n\r\n")
    assert label_list(tmp_path) == ["a b ", "c"]
    write_text(tmp_path / "labels.jsonl", json.dumps("a\nb") + "\n")
    with pytest.raises(DataError, match=r"labels\.jsonl.*labels\.txt lies beside it"):
        label_list(tmp_path)
    (tmp_path / "labels.txt").unlink()
    assert label_list(tmp_path) == ["a\nb"]
    write_text(tmp_path / "labels.jsonl", '"a"\n3\n')
    with pytest.raises(DataError, match="line 2: every line holds one label name as a JSON string"):
        label_list(tmp_path)


def test_names_that_must_differ(tmp_path):
    with pytest.raises(DataError, match="line 2: the label 'a' stands on line 1 already"):
        distinct_names(["a", "a"], tmp_path)
