import io
import os
import sys
import threading

import pytest

from labelwise.data.load import arriving_documents
from labelwise.data.options import BadRows
from labelwise.data.standard_input import arriving_chunks
from labelwise.errors import DataError, UsageError


@pytest.fixture
def pipe(monkeypatch):
    """Standard input that is a pipe, and its other end."""
    reading, writing = os.pipe()
    stream = os.fdopen(reading, "r")
    monkeypatch.setattr("sys.stdin", stream)
    end = os.fdopen(writing, "wb", buffering=0)
    yield end
    end.close()
    stream.close()


def in_memory(monkeypatch, content):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_what_is_there_is_given_at_once(pipe):
    chunks = arriving_chunks()
    for part in (b"a\n", b"b\nc"):
        pipe.write(part)
        assert next(chunks) == part
    pipe.close()
    assert list(chunks) == []


def test_a_fast_writer_fills_large_chunks(pipe):
    content = b"x" * (1 << 21)
    writer = threading.Thread(target=lambda: (pipe.write(content), pipe.close()))
    writer.start()
    assert b"".join(arriving_chunks()) == content
    writer.join()


@pytest.mark.parametrize(
    ("form", "parts"),
    [
        ("jsonl", [b'{"text": "a", "id": 7}\n', b'{"text": "b", "id": 8}\n']),
        ("csv", [b"id,text\n7,a\n", b"8,b\n"]),
        ("csv", [b"id;text;year\n7;a;1\n", b"8;b;2\n"]),
        ("tsv", [b"id\ttext\n7\ta\n", b"8\tb\n"]),
    ],
)
def test_records_do_not_wait_for_the_next(pipe, form, parts):
    documents = arriving_documents(form, BadRows())
    for part, text, name in zip(parts, "ab", "78", strict=True):
        pipe.write(part)
        data = next(documents)
        assert (data.texts, data.ids) == ([text], [name])
    pipe.close()
    assert list(documents) == []


def test_places_are_counted_over_all_batches(pipe):
    documents, bad = arriving_documents("jsonl", BadRows(skip=True), skip_bad_rows=True), []
    for part, names in ((b'{"text": "a"}\n{"no": 1}\n', ["0"]), (b'{"text": "b"}\n', ["2"])):
        pipe.write(part)
        assert next(documents).names == names
    pipe.close()
    assert list(documents) == bad


def test_encodings_columns_and_errors(monkeypatch):
    in_memory(monkeypatch, "Titel;x\ncafé;1\n".encode("latin-1"))
    (data,) = arriving_documents("csv", BadRows(), encoding="latin-1", text_column="titel")
    assert data.texts == ["café"]
    in_memory(monkeypatch, b'{"text": "caf\xe9"}\n')
    with pytest.raises(DataError, match="standard input, line 1: not UTF-8"):
        list(arriving_documents("jsonl", BadRows()))
    in_memory(monkeypatch, b"\x1f\x8b\x08")
    with pytest.raises(DataError, match="standard input: is compressed with gzip; unpack it first"):
        list(arriving_documents("jsonl", BadRows()))
    for form in ("parquet", "libsvm", "annif"):
        with pytest.raises(UsageError, match=f"--format {form}: standard input is read as jsonl, csv, tsv"):
            list(arriving_documents(form, BadRows()))


def test_an_input_that_does_not_wait_is_read_to_its_end(pipe):
    os.set_blocking(sys.stdin.fileno(), False)
    chunks = arriving_chunks()
    threading.Timer(0.1, lambda: pipe.write(b"a\n")).start()
    assert next(chunks) == b"a\n"
    pipe.close()
    assert list(chunks) == []


def test_objects_in_the_place_of_standard_input_end_with_their_error(monkeypatch):
    stream = io.StringIO("abc\ud800\n")
    monkeypatch.setattr("sys.stdin", stream)
    with pytest.raises(DataError, match="standard input, line 1: not UTF-8"):
        list(arriving_documents("jsonl", BadRows()))
    stream.close()
    with pytest.raises(DataError, match="standard input: is closed"):
        list(arriving_chunks())
    monkeypatch.setattr("sys.stdin", object())
    with pytest.raises(AttributeError):
        list(arriving_chunks())
