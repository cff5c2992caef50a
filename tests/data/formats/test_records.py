"""What all formats of records share, tested on JSON lines."""

import pytest

from labelwise.data import load_dataset
from tests.data.examples import write_jsonl


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["a;b", "c"], [["a", "b"], ["c"]]),
        (["a, b; c", "d"], [["a, b", "c"], ["d"]]),
        (["a|b,c", "d "], [["a", "b,c"], ["d"]]),
        (["a, b", "c"], [["a", "b"], ["c"]]),
        (["machine learning", "x"], [["machine learning"], ["x"]]),
        (['["a, b", "c"]', "['d']"], [["a, b", "c"], ["d"]]),
        (["[draft]; b", "c;[x]"], [["[draft]", "b"], ["c", "[x]"]]),
    ],
)
def test_labels_in_strings(tmp_path, cells, expected):
    path = write_jsonl(tmp_path / "d.jsonl", [{"text": "t", "labels": cell} for cell in cells])
    dataset = load_dataset(path)
    found = [[dataset.labels[i] for i in sorted(dataset.Y[[row]].indices)] for row in range(len(dataset))]
    assert found == expected


def test_a_separator_by_option(tmp_path):
    path = write_jsonl(tmp_path / "d.jsonl", [{"text": "t", "labels": "a b;c"}])
    assert load_dataset(path, label_separator=" ").labels == ["a", "b;c"]


def test_the_separator_is_guessed_once_for_all_splits(tmp_path):
    write_jsonl(tmp_path / "train.jsonl", [{"text": "t", "labels": "Smith, John; Doe"}])
    write_jsonl(tmp_path / "test.jsonl", [{"text": "t", "labels": "Smith, John"}])
    assert load_dataset(tmp_path, "test").labels == ["Smith, John", "Doe"]
