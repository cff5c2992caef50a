import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwise.data import BadRows, load_dataset
from labelwise.errors import DataError
from tests.data.examples import LABELS, ROWS, Y_TRAIN, dense, write_jsonl, write_text


def test_a_file_by_eye(tmp_path):
    dataset = load_dataset(write_jsonl(tmp_path / "my.jsonl", ROWS))
    assert dataset.labels == LABELS
    assert dense(dataset.Y) == Y_TRAIN
    assert dataset.texts == ["red apple", "red rose", "green apple"]
    assert dataset.ids == ["a", "b", "c"]
    assert dataset.Y.dtype == "float32"


GOOD = {"id": "z", "text": "fine", "labels": ["x"]}
BAD_ROWS = {
    "no text": ({"id": 1, "text": None, "labels": ["x"]}, "the row has no text"),
    "blank text": ({"id": 1, "text": " \n", "labels": ["x"]}, "the row has no text"),
    "no labels": ({"id": 1, "text": "t", "labels": []}, "the row has no labels; pass --allow-unlabelled"),
    "labels missing": ({"id": 1, "text": "t"}, "the row has no labels; pass --allow-unlabelled"),
    "text a number": ({"id": 1, "text": 3, "labels": ["x"]}, "the text is a number where a string should be"),
    "labels a dict": ({"id": 1, "text": "t", "labels": {"x": 1}}, "the labels are an object where a list"),
    "labels a number": ({"id": 1, "text": "t", "labels": 7}, "the labels are a number where a list"),
    "label null": ({"id": 1, "text": "t", "labels": ["new", None]}, "a label is missing where its name"),
    "label a float": ({"id": 1, "text": "t", "labels": ["new", 1.5]}, "a label is a number where its name"),
    "label a list": ({"id": 1, "text": "t", "labels": ["new", ["y"]]}, "a label is a list or an object"),
    "label empty": ({"id": 1, "text": "t", "labels": ["new", " "]}, "a label is empty"),
    "too long": (
        {"id": 1, "text": "t" * 101, "labels": ["x"]},
        "101 characters, more than 100; raise --max-text-chars",
    ),
    "id a list": ({"id": [1], "text": "t", "labels": ["x"]}, "the id is a list where a string should be"),
    "no id": ({"text": "t", "labels": ["x"]}, "the row has no id, but the rows before it have one"),
    "same id": ({"id": "z", "text": "t", "labels": ["x"]}, "the id 'z' stands on line 1 already"),
    "a list": (["text"], "the line is a list where an object should be"),
}


@pytest.mark.parametrize(("row", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_bad_row_is_named_or_skipped(tmp_path, row, message):
    path = write_jsonl(tmp_path / "d.jsonl", [GOOD, row, {**GOOD, "id": "y"}])
    with pytest.raises(DataError, match=message) as caught:
        load_dataset(path, max_text_chars=100, unique_ids=True)
    assert str(caught.value).startswith(f"{path}, line 2: ")
    heard, bad = [], BadRows()
    dataset = load_dataset(
        path,
        max_text_chars=100,
        unique_ids=True,
        skip_bad_rows=True,
        bad_rows=bad,
        on_event=lambda *event: heard.append(event),
    )
    assert dataset.texts == ["fine", "fine"]
    assert dataset.positions.tolist() == [0, 2]
    assert dataset.labels == ["x"]  # nothing of the bad row is kept, not even the name of a new label
    assert bad.count == 1
    assert message.split(";")[0] in bad.reasons[0]
    assert ("bad_rows", {"path": str(path), "count": 1, "reasons": bad.reasons}) in heard


@pytest.mark.parametrize("broken", ['{"text": "t", "labels": ["x"]', "nonsense", '{"a":1} {"b":2}', "[" * 100_000])
def test_invalid_json(tmp_path, broken):
    path = write_text(tmp_path / "d.jsonl", json.dumps(GOOD) + "\n\n" + broken + "\n")
    with pytest.raises(DataError, match="line 3: invalid JSON"):
        load_dataset(path)
    assert len(load_dataset(path, skip_bad_rows=True)) == 1


def test_half_a_surrogate_pair_is_no_text(tmp_path):
    path = write_text(
        tmp_path / "d.jsonl", '{"text": "\\ud800", "labels": ["x"]}\n{"text": "t", "labels": ["\\udfff"]}\n'
    )
    with pytest.raises(DataError, match="line 1: the text holds half of a surrogate pair"):
        load_dataset(path)
    whole = write_text(tmp_path / "e.jsonl", '{"text": "\\ud83d\\ude00", "labels": ["x"]}\n')
    assert load_dataset(whole).texts == ["😀"]


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file(tmp_path, content):
    with pytest.raises(DataError, match="the file is empty"):
        load_dataset(write_text(tmp_path / "d.jsonl", content), skip_bad_rows=True)


def test_nothing_left(tmp_path):
    path = write_jsonl(tmp_path / "d.jsonl", [GOOD | {"text": ""}])
    with pytest.raises(DataError, match=r"no document of the train split is left to use; the first: .*no text"):
        load_dataset(path, skip_bad_rows=True)


def test_a_missing_column_names_those_there_are(tmp_path):
    path = write_jsonl(tmp_path / "d.jsonl", [{"body": "t", "labels": ["x"]}])
    with pytest.raises(
        DataError, match=r"no column 'text'; there are: 'body', 'labels'. Name the right one with --text-c"
    ):
        load_dataset(path)
    with pytest.raises(DataError, match=r"no column 'tags'; .* --labels-column"):
        load_dataset(path, text_column="body", labels_column="tags")


def test_other_columns(tmp_path):
    rows = [{"nr": 5, "title": "one", "content": "two", "tags": ["x", 7]}, {"nr": 6, "title": "three", "tags": [7]}]
    path = write_jsonl(tmp_path / "d.jsonl", rows)
    dataset = load_dataset(path, text_column="title, content", labels_column="tags", id_column="nr")
    assert dataset.texts == ["one two", "three"]
    assert dataset.ids == ["5", "6"]
    assert dataset.labels == ["x", "7"]


def test_options_that_let_rows_pass(tmp_path):
    rows = [GOOD, {**GOOD, "labels": []}, {**GOOD, "labels": None}]
    dataset = load_dataset(write_jsonl(tmp_path / "d.jsonl", rows), allow_unlabelled=True)
    assert dataset.ids == ["z", "z", "z"]
    assert dense(dataset.Y) == [[1], [0], [0]]


def test_a_label_named_twice_counts_once(tmp_path):
    dataset = load_dataset(write_jsonl(tmp_path / "d.jsonl", [{"text": "t", "labels": ["y", "x", "y"]}]))
    assert dense(dataset.Y) == [[1, 1]]
    assert dataset.ids is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(text=JSON, labels=JSON, doc_id=JSON)
def test_whatever_a_row_holds_it_is_ours_to_refuse(tmp_path_factory, text, labels, doc_id):
    path = tmp_path_factory.mktemp("any") / "d.jsonl"
    path.write_text(json.dumps({"text": text, "labels": labels, "id": doc_id}) + "\n")
    with suppress(DataError):
        assert load_dataset(path).texts == [text]
