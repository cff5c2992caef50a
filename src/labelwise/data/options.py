"""How data files are read: the options every format shares, and what happens to rows that are wrong."""

import codecs
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_type_hints

from labelwise.config.settings import checked_value
from labelwise.errors import DataError, UsageError
from labelwise.events import heard
from labelwise.types import OnEvent

log = logging.getLogger(__name__)

COLUMNS = ("text_column", "labels_column", "id_column")
"""The options that name columns."""
REASONS_KEPT = 5
LONGEST_LINE = 1 << 26
"""Bytes of a line, at most; a text of ten million characters has fewer."""
BYTES_PER_CHARACTER = 6
"""Bytes of a character that is written as an escape."""


class Usual(str):
    """A default that nobody asked for: a command may put what a model was trained with in its place."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How to read data files; `load_dataset`, `load_splits` and `convert` take these as keywords."""

    text_column: str = Usual("text")
    """Column that holds the text; several, separated by commas, are joined by a space: "title,content"."""
    labels_column: str = Usual("labels")
    """Column that holds the labels: a list, a JSON list as a string, or a separated string."""
    id_column: str = Usual("id")
    """Column that holds the document's own id; the files may lack it."""
    label_separator: str | None = None
    """What separates labels in a string, or "none" if a string is one label. Not given: the first of ; | , that occurs
    in the label column of the first 1,000 rows. A comma does not count where it seems to be part of names."""
    delimiter: str | None = None
    """What separates the fields of csv and tsv files: a character, or "tab". Not given: found by looking."""
    encoding: str = "utf-8"
    """Encoding of text files; a byte order mark for UTF-8 or UTF-16 at the start of a file wins over utf-8."""
    skip_bad_rows: bool = False
    """Drop rows that are wrong, count and report them, instead of stopping at the first."""
    max_text_chars: int = 10_000_000
    """A text longer than this is a bad row: it is more likely an unclosed quote than a document."""
    allow_unlabelled: bool = False
    """Keep records with an empty label list, or none at all; without it they are bad rows. Matrix formats always keep
    them."""
    unique_ids: bool = False
    """A record whose id another record of the split has is a bad row; without it ids are only passed on."""
    max_unpacked: int | None = None
    """Bytes that a compressed file may unpack to. Not given: 100 times its size, or 16 MB of a small file."""
    libsvm_base: Literal["auto", "zero", "one"] = "auto"
    """Number of the first feature in libsvm files; "auto": one unless some feature has the number zero."""

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            if name != "libsvm_base" and not isinstance(getattr(self, name), Usual):
                object.__setattr__(self, name, checked_value(kind, getattr(self, name), name))
        if not _is_text_encoding(self.encoding):
            raise UsageError(f"unknown encoding {self.encoding!r}; try utf-8, latin-1, cp1252 or utf-16")
        for name in ("max_text_chars", "max_unpacked"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise UsageError(f"{name} must be positive, not {getattr(self, name)}")
        if self.label_separator == "":
            raise UsageError("label_separator is empty; leave it out to have it guessed")
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", _checked_delimiter(self.delimiter))
        if self.libsvm_base not in ("auto", "zero", "one"):
            raise UsageError(f"libsvm_base must be auto, zero or one, not {self.libsvm_base!r}")
        if not self.text_columns:
            raise UsageError("text_column is empty; name at least one column")

    @property
    def text_columns(self) -> list[str]:
        """The columns that make up the text, in order."""
        return [name.strip() for name in self.text_column.split(",") if name.strip()]

    @property
    def named_columns(self) -> list[str]:
        """The options that name other columns than the usual ones, as a command writes them."""
        own = {name: getattr(self, name) for name in COLUMNS}
        usual = {one.name: one.default for one in fields(self)}
        return [f"--{name.replace('_', '-')}" for name, value in own.items() if value != usual[name]]

    @property
    def decoding(self) -> dict[str, Any]:
        """How text files are read: keywords of `labelwise.data.files.read_blocks`."""
        return {
            "encoding": self.encoding,
            "max_unpacked": self.max_unpacked,
            "longest_line": max(LONGEST_LINE, BYTES_PER_CHARACTER * self.max_text_chars),
        }

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "ReadOptions":
        """Options from keywords; an unknown one is answered with the list of those there are."""
        known = [f.name for f in fields(cls)]
        for name in options:
            if name not in known:
                raise UsageError(f"unknown reading option {name!r}; there are: {', '.join(known)}")
        return cls(**options)


def _checked_delimiter(delimiter: str) -> str:
    """A character that can separate fields."""
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise UsageError(f"delimiter is {delimiter!r}; give one character, such as ';', or tab")
    return delimiter


def _is_text_encoding(name: str) -> bool:
    """Whether there is an encoding of this name that turns bytes into text, as base64 does not."""
    try:
        return bool(codecs.lookup(name)._is_text_encoding)
    except (LookupError, ValueError):  # ValueError: a NUL in the name
        return False


@dataclass
class BadRows:
    """Counts the rows that were dropped, and why; the first one is an error unless `skip` is set.

    It also gathers what readers found by looking, for the user to hear."""

    skip: bool = False
    """Go on after a bad row."""
    count: int = 0
    """How many rows were dropped."""
    reasons: list[str] = field(default_factory=list)
    """The first few reasons, each with its file and line."""

    remarks: list[str] = field(default_factory=list)
    """What was found by looking: separators, encodings, names of columns."""
    separator: str | None = None
    """The separator of labels that was found."""

    def remark(self, sentence: str) -> None:
        """Note what was found by looking, once."""
        if sentence not in self.remarks:
            self.remarks.append(sentence)

    def add(self, message: str, *, path: Path, line: int | None = None, cause: Exception | None = None) -> None:
        """Note a bad row, or raise a DataError about it."""
        if not self.skip:
            if "--skip-bad-rows" not in message:
                message += "; mend it, or go on without such rows with --skip-bad-rows"
            raise DataError(message, path=path, line=line) from cause
        self.count += 1
        if len(self.reasons) < REASONS_KEPT:
            self.reasons.append(str(DataError(message, path=path, line=line)))

    def report(self, on_event: OnEvent | None, source: Path) -> None:
        """Say what was found by looking (`remark` events), and how many rows were dropped (a log entry and a `bad_rows`
        event, none if there were no such rows)."""
        on_event = heard(on_event)
        for sentence in self.remarks:
            log.info(sentence)
            if on_event is not None:
                on_event("remark", {"text": sentence})
        if self.count == 0:
            return
        reasons = [reason.removeprefix(f"{source}, ") for reason in self.reasons]
        rows = "bad row" if self.count == 1 else "bad rows"
        log.warning("%s: dropped %s %s; the first:\n  %s", source, f"{self.count:,}", rows, "\n  ".join(reasons))
        if on_event is not None:
            values = {"path": str(source), "count": self.count, "reasons": list(self.reasons)}
            on_event("bad_rows", values)
