import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwise.data import convert, load_dataset, load_splits
from labelwise.data.formats.annif import from_uri, is_iri, read_vocabulary, subject_names, to_uri
from labelwise.errors import DataError, UsageError
from tests.data.examples import dense, write_jsonl, write_text


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
    assert is_iri(uri[1:-1] + "x")


@pytest.mark.parametrize("uri", ["http://x.org/a%20b", "http://x.org/%C3%A9", "http://x.org/100%"])
def test_uris_pass_through_unchanged(uri):
    assert from_uri(uri) == uri
    assert to_uri(uri) == f"<{uri}>"


LABELS = ["United States -- History", "http://example.org/1", "100 %", "urn:labelwise:x", "Größe", "a: b", "a<b>\tc"]


@pytest.mark.parametrize("prefix", [None, "http://example.org/subjects/", "https://id.example.org/?s="])
def test_labels_become_absolute_iris_and_come_back(tmp_path, prefix):
    rows = [{"text": f"text {number}", "labels": [label, LABELS[0]]} for number, label in enumerate(LABELS)]
    write_jsonl(tmp_path / "a/train.jsonl", rows)
    convert(tmp_path / "a", tmp_path / "b", "annif", iri_prefix=prefix)
    uris = re.findall("<([^<>]*)>", (tmp_path / "b/train.tsv").read_text(encoding="utf-8"))
    assert all(map(is_iri, uris))
    assert uris[0] == f"{prefix or 'urn:labelwise:'}United%20States%20--%20History"
    assert "http://example.org/1" in uris
    vocabulary = read_vocabulary(tmp_path / "b/subjects.tsv")
    assert set(vocabulary) == set(uris)
    assert vocabulary[uris[0]] == LABELS[0]
    wanted, found = load_splits(tmp_path / "a")["train"], load_splits(tmp_path / "b")["train"]
    assert found.labels == wanted.labels
    assert dense(found.Y) == dense(wanted.Y)


def test_a_real_vocabulary_beside_the_documents_renames_nothing(tmp_path):
    write_text(tmp_path / "train.tsv", "a\t<http://example.org/birds>\n")
    write_text(tmp_path / "subjects.tsv", "<http://example.org/birds>\tbirds\n")
    assert load_dataset(tmp_path).labels == ["http://example.org/birds"]


def test_prefixes_and_vocabularies_that_are_wrong(tmp_path):
    write_jsonl(tmp_path / "a/train.jsonl", [{"text": "a", "labels": ["b"]}])
    for prefix in ("subjects/", "", "http://a b/", "<urn:x:"):
        with pytest.raises(UsageError, match="begins no IRI; give one such as urn:labelwise:"):
            convert(tmp_path / "a", tmp_path / "b", "annif", iri_prefix=prefix)
    with pytest.raises(UsageError, match="iri_prefix is for annif"):
        convert(tmp_path / "a", tmp_path / "b", "csv", iri_prefix="urn:x:")
    with pytest.raises(DataError, match="line 2: every line is <uri>, a tab and a name"):
        read_vocabulary(write_text(tmp_path / "v.tsv", "<a>\tb\nc\td\n"))


def test_names_of_subjects_are_those_of_labels_that_are_uris(tmp_path):
    vocabulary = "<u:1>\tbirds\n<u:2>\tu:2\n<u:3>\n<u:4>\tcats\tnotation\n"
    write_text(tmp_path / "subjects.tsv", vocabulary)
    assert subject_names(tmp_path, ["u:1", "u:2", "u:3", "u:4", "dogs"]) == {"u:1": "birds", "u:4": "cats"}
    assert subject_names(tmp_path, ["dogs"]) is None
    assert subject_names(tmp_path / "train.tsv", ["u:1"]) is None
    write_text(tmp_path / "subjects.tsv", "subject,name\n")
    assert subject_names(tmp_path, ["u:1"]) is None
