"""The label names of a model folder."""

import gzip

import pytest

from labelwise.errors import LabelwiseError
from labelwise.models.saved_labels import read_labels, read_subject_names, write_subject_names


@pytest.mark.parametrize(
    ("file", "text", "names"),
    [
        ("labels.txt", "a\nb c\n\ufeffd\n", ["a", "b c", "\ufeffd"]),
        ("labels.txt", "\ufeffa\nb\u2028c\n\x00\n", ["\ufeffa", "b\u2028c", "\x00"]),
        ("labels.txt", "a\r\nb c\r\n", ["a", "b c"]),
        ("labels.jsonl", '"a\\nb"\n"\\ud83d\\ude00"\n', ["a\nb", "😀"]),
    ],
)
def test_names_that_are_read(tmp_path, file, text, names):
    (tmp_path / file).write_text(text, encoding="utf-8", newline="\n")
    assert read_labels(tmp_path, len(names)) == names


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("labels.txt", b"a\n", "lacks its 2 label names: labels.txt has 1"),
        ("labels.txt", b"a\nb\nc\n", "lacks its 2 label names: labels.txt has 3"),
        ("labels.txt", b"a\na\n", "the label 'a' stands on line 1 already"),
        ("labels.txt", b"a\n\n", "a label name is empty"),
        ("labels.txt", b"a\r\nb\n", "labels.txt.*line 1 holds a carriage return"),
        ("labels.txt", b"a\r\nb\rc\r\n", "labels.txt.*line 2 holds a carriage return"),
        ("labels.txt", b"a\n\xff\n", "it is not UTF-8"),
        ("labels.txt", gzip.compress(b"a\nb\n", mtime=0), "labels.txt"),
        ("labels.txt.gz", gzip.compress(b"a\nb\n", mtime=0), "lacks its 2 label names"),
        ("labels.jsonl", b'"a"\n' + b"[" * 100_000 + b"\n", "line 2 holds no label name as a JSON string"),
        ("labels.jsonl", b'"a"\n"\\ud800"\n', "line 2 holds no label name as a JSON string"),
        ("labels.jsonl", b'"a"\n5\n', "line 2 holds no label name as a JSON string"),
        ("labels.jsonl", b'"a"\n"b\n', "line 2 holds no label name as a JSON string"),
    ],
)
def test_names_that_are_refused(tmp_path, file, content, message):
    (tmp_path / file).write_bytes(content)
    with pytest.raises(LabelwiseError, match=message):
        read_labels(tmp_path, 2)


def test_two_files_of_names_are_refused_since_one_would_win_without_a_word(tmp_path):
    (tmp_path / "labels.txt").write_text("a\nb\n")
    (tmp_path / "labels.jsonl").write_text('"b"\n"a"\n')
    with pytest.raises(LabelwiseError, match=r"both labels\.txt and labels\.jsonl"):
        read_labels(tmp_path, 2)


def test_names_of_subjects_come_back(tmp_path):
    assert read_subject_names(tmp_path) is None
    for nothing in (None, {}):
        write_subject_names(tmp_path, nothing)
        assert not list(tmp_path.iterdir())
    names = {"http://x.org/1": "birds", "urn:x:2": "größe > 2"}
    write_subject_names(tmp_path, names)
    assert read_subject_names(tmp_path) == names


@pytest.mark.parametrize("content", [b"u\tbirds\n", b"<u>\n", b"<u>\t\n", b"<u>\tb\n\xff\n"])
def test_damaged_names_of_subjects_are_refused(tmp_path, content):
    (tmp_path / "subjects.tsv").write_bytes(content)
    with pytest.raises(LabelwiseError, match=r"subjects\.tsv"):
        read_subject_names(tmp_path)
