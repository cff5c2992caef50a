"""What a file is, by its bytes: an encoding to suggest, and files that are no text whatever they are called."""

from pathlib import Path
from typing import Final

from labelwise.errors import DataError

_LOOKED_AT = 512
"""Bytes by which UTF-16 without a byte order mark is recognised."""
_HIGH: Final = range(0x80, 0xA0)
"""Bytes that are control characters in latin-1, and quotes and dashes in Windows-1252."""
_SAVE_AS_CSV = "open it in a spreadsheet program and save it as CSV (UTF-8)"
_NO_TEXT: tuple[tuple[bytes, str], ...] = (
    (b"PAR1", "a parquet file; name it .parquet, or pass --format parquet"),
    (b"\xd0\xcf\x11\xe0", f"an old Excel or Word file, not text; {_SAVE_AS_CSV}"),
    (b"%PDF", "a PDF, not text; give a text file or a table"),
    (b"SQLite format 3", "an SQLite data base, not text; export the table as CSV"),
    (b"\x1f\x8b", "compressed with gzip; unpack it first"),
    (b"\xfd7zXZ\x00", "compressed with xz; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd; unpack it first"),
)


def check_text(start: bytes, path: Path) -> None:
    """Refuse a file that is no text, whatever it is called, and say what it is."""
    what = next((sentence for magic, sentence in _NO_TEXT if start.startswith(magic)), None)
    if start.startswith(b"PK\x03\x04"):
        what = _archive(start)
    if what is not None:
        raise DataError(f"is {what}", path=path)


def _archive(start: bytes) -> str:
    if b"xl/" in start or b"opendocument.spreadsheet" in start:
        return f"a spreadsheet (.xlsx or .ods), not text; {_SAVE_AS_CSV}"
    if b"word/" in start or b"opendocument.text" in start:
        return "a document of a word processor, not text; save the table in it as CSV (UTF-8)"
    if b"[Content_Types].xml" in start:
        return f"a file of an Office program, not text; {_SAVE_AS_CSV}"
    return "a zip archive, not text; unpack it first"


def utf16_by_zeros(start: bytes) -> str | None:
    """The kind of UTF-16 if every second byte is zero, as in UTF-16 of Western texts; None otherwise."""
    part = start[: min(len(start), _LOOKED_AT) // 2 * 2]
    even, odd = part[::2].count(0), part[1::2].count(0)
    if len(part) >= 8 and max(even, odd) > 0.4 * len(part) and min(even, odd) == 0:
        return "utf-16-le" if odd else "utf-16-be"
    return None


def encoding_hint(lines: bytes) -> str:
    """What to do about lines that are not UTF-8."""
    if not any(byte in _HIGH for byte in lines):
        return "if the file has another encoding, name it, e.g. --encoding latin-1"
    try:
        lines.decode("cp1252")
    except UnicodeDecodeError:
        return "if the file has another encoding, name it with --encoding (it is neither latin-1 nor cp1252)"
    return "if the file has another encoding, name it, e.g. --encoding cp1252"
