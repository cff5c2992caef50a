import pytest

from labelwise.data import load_dataset
from labelwise.data.formats.columns import find_columns, text_columns
from labelwise.data.options import ReadOptions
from labelwise.errors import DataError
from tests.data.examples import write_jsonl, write_text

NAMES = ["Book Title ", "Subject(s), all", "a, b", "a", "b", "Year", "YEAR "]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("Book Title ", ["Book Title "]),
        ("Book Title", ["Book Title "]),
        ("book title", ["Book Title "]),
        ("Subject(s), all", ["Subject(s), all"]),
        ("a, b", ["a, b"]),
        ("a,b", ["a", "b"]),
        ("b , a", ["b", "a"]),
        ("a,Subject(s), all,book title", ["a", "Subject(s), all", "Book Title "]),
        ("Year", ["Year"]),
        ("year", None),  # two are called so
        ("Tear", None),
    ],
)
def test_names_with_blanks_and_commas(wanted, found):
    assert text_columns(NAMES, wanted) == found


def test_errors_suggest_a_name(tmp_path):
    options = ReadOptions(text_column="Boook Title", allow_unlabelled=True)
    with pytest.raises(DataError, match=r"no column 'Boook Title'; there are: .*; did you mean 'Book Title '\?"):
        find_columns(NAMES, options, tmp_path)
    with pytest.raises(DataError, match=r"did you mean 'Year' or 'YEAR '\?.*--text-column"):
        find_columns(NAMES, ReadOptions(text_column="year", allow_unlabelled=True), tmp_path)
    with pytest.raises(DataError, match=r"no column 'key'.*--id-column"):
        find_columns(["text", "labels"], ReadOptions(id_column="key"), tmp_path)
    assert find_columns(["text", "labels"], ReadOptions(), tmp_path).id is None


@pytest.mark.parametrize("name", ["d.csv", "d.jsonl"])
def test_a_name_that_is_nearly_right_is_read_and_said(tmp_path, name):
    if name == "d.csv":
        path = write_text(tmp_path / name, "Text ,Labels\nred,a;b\n")
    else:
        path = write_jsonl(tmp_path / name, [{"Text ": "red", "Labels": "a;b"}])
    heard = []
    data = load_dataset(path, on_event=lambda event, values: heard.append((event, values.get("text"))))
    assert (data.texts, data.labels) == (["red"], ["a", "b"])
    assert ("remark", f"{path}: the column 'Text ' is read for 'text'") in heard
    assert ("remark", f"{path}: the column 'Labels' is read for 'labels'") in heard
