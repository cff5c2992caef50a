import io
import zipfile

import pytest

from labelwise.data import load_dataset
from labelwise.data.sniffing import encoding_hint, utf16_by_zeros
from labelwise.errors import DataError
from tests.data.examples import write_jsonl

TABLE = "text,labels\nan old book — torn,book\nnaïve café,café\n"


def zipped(*names):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for name in names:
            archive.writestr(name, "content")
    return raw.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (zipped("[Content_Types].xml", "xl/workbook.xml"), "is a spreadsheet .*save it as CSV"),
        (zipped("word/document.xml"), "is a document of a word processor"),
        (zipped("books.csv"), "is a zip archive, not text; unpack it first"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is an old Excel or Word file"),
        (b"PAR1\x15\x04", "is a parquet file; name it .parquet, or pass --format parquet"),
        (b"%PDF-1.7\n", "is a PDF, not text"),
    ],
)
@pytest.mark.parametrize("name", ["books.csv", "books.jsonl", "books"])
def test_a_file_under_a_wrong_name_is_told(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name}: {message}"):
        load_dataset(tmp_path / name)


@pytest.mark.parametrize(
    ("encoding", "hint"),
    [("cp1252", "e.g. --encoding cp1252"), ("latin-1", "e.g. --encoding latin-1")],
)
def test_the_encoding_is_suggested_that_reads_the_file(tmp_path, encoding, hint):
    table = TABLE if encoding == "cp1252" else TABLE.replace("—", "-")
    path = tmp_path / "d.csv"
    path.write_bytes(table.encode(encoding))
    with pytest.raises(DataError, match=hint):
        load_dataset(path)
    assert load_dataset(path, encoding=encoding).labels == ["book", "café"]


def test_bytes_that_are_neither(tmp_path):
    assert "neither latin-1 nor cp1252" in encoding_hint(b"\x81\x8d")
    assert "cp1252" in encoding_hint(b"caf\xe9 \x97")


def test_only_wrong_lines_tell_the_encoding(tmp_path):
    """A dash in UTF-8 has bytes that would be letters in Windows-1252."""
    path = tmp_path / "d.csv"
    path.write_bytes("text,labels\na — b,x\n".encode() + b"caf\xe9,y\n")
    with pytest.raises(DataError, match=r"line 3: .*--encoding latin-1"):
        load_dataset(path)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16"])
def test_utf16_is_found_and_said(tmp_path, encoding):
    path, heard = tmp_path / "d.csv", []
    path.write_bytes(TABLE.encode(encoding))
    data = load_dataset(path, on_event=lambda name, values: heard.append((name, values)))
    assert data.labels == ["book", "café"]
    (said,) = [values["text"] for name, values in heard if name == "remark"]
    assert said.startswith(f"{path}: the encoding is UTF-16")


def test_zeros_alone_are_not_utf16(tmp_path):
    assert utf16_by_zeros(b"text\0\0\0\0") is None
    assert utf16_by_zeros(b"ab") is None
    path = write_jsonl(tmp_path / "d.jsonl", [{"text": "a", "labels": ["x"]}])
    assert utf16_by_zeros(path.read_bytes()) is None
