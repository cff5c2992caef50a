import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwise.data import load_dataset
from labelwise.data.formats.annif import from_uri, to_uri
from labelwise.errors import DataError
from tests.data.examples import dense, write_text


def test_a_file_by_eye(tmp_path):
    path = write_text(
        tmp_path / "train.tsv",
        "red apple\t<http://x.org/fruit> <red>\na tab\there\t<a%20name>\nurl\t<http://x.org/%C3%A9>\n",
    )
    dataset = load_dataset(path)
    assert dataset.texts == ["red apple", "a tab\there", "url"]
    assert dataset.labels == ["http://x.org/fruit", "red", "a name", "http://x.org/%C3%A9"]
    assert dense(dataset.Y) == [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no tab", "not a text, a tab and subjects"),
        ("text\tnot a subject", "not a text, a tab and subjects"),
        ("\t<a>", "the row has no text"),
        ("text\t", "the row has no labels"),
        ("text\t<>", "a label is empty"),
    ],
)
def test_a_bad_row_is_named_or_skipped(tmp_path, line, message):
    path = write_text(tmp_path / "d.tsv", f"fine\t<a>\n{line}\nalso\t<b>\n")
    with pytest.raises(DataError, match=f"line 2: .*{message}"):
        load_dataset(path)
    assert load_dataset(path, skip_bad_rows=True).texts == ["fine", "also"]


@given(st.text() | st.text(alphabet="%2053CEA <>\n"))
def test_any_name_comes_back(name):
    uri = to_uri(name)
    assert from_uri(uri[1:-1]) == name
    assert not set(uri[1:-1]) & set(" <>\t\r\n")


@pytest.mark.parametrize("uri", ["http://x.org/a%20b", "http://x.org/%C3%A9", "http://x.org/100%"])
def test_uris_pass_through_unchanged(uri):
    assert to_uri(from_uri(uri)) == f"<{uri}>"
