"""Records: rows with a text, labels and perhaps an id, from jsonl, csv, tsv or parquet files.

Every reader hands its rows to a `RecordBuilder`, which checks them and interns their labels at once.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from labelwise.data.batch import DocumentBatch, FileSource, LabelVocabulary, kind_of
from labelwise.data.builder import RecordBuilder, looks_like_list
from labelwise.data.files import TextBlock, read_blocks
from labelwise.data.label_names import label_list
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError

RecordKind: TypeAlias = Literal["jsonl", "csv", "tsv", "parquet"]

ROWS_PER_BATCH = 4096
ROWS_TO_GUESS = 1000
SEPARATORS = (";", "|", ",")


@dataclass(kw_only=True)
class RecordSource(FileSource):
    """A folder of record files, one a split, or a single such file."""

    path: Path
    kind: RecordKind
    files: Mapping[str, Path]
    options: ReadOptions
    beside: Path | None
    """Folder where labels.txt and label_texts.jsonl may lie."""
    labels: LabelVocabulary = field(init=False)
    labels_known: bool = field(init=False)

    def __post_init__(self) -> None:
        names = None if self.beside is None else label_list(self.beside)
        self.labels_known = names is not None
        self.labels = LabelVocabulary(names or ())

    @cached_property
    def separator(self) -> str | None:
        """What separates labels in strings; guessed once, from the first split, so that all splits agree."""
        if self.options.label_separator is not None:
            return self.options.label_separator
        found: list[str] = []
        for cells in self._label_cells(next(iter(self.files.values()))):
            found.extend(cell for cell in cells if not looks_like_list(cell))
            if len(found) >= ROWS_TO_GUESS:
                break
        return guess_separator(found[:ROWS_TO_GUESS])

    def _label_cells(self, path: Path) -> Iterator[list[str]]:
        """The label column's strings, to guess the separator from; rows that are wrong do not matter here."""
        lenient = BadRows(skip=True)
        if self.kind == "parquet":
            from labelwise.data.formats.parquet import label_strings

            yield from label_strings(path, self.options)
        elif self.kind == "jsonl":
            for block in read_blocks(path, encoding=self.options.encoding, bad=lenient):
                rows = (_object(line) for line in block.lines(path, lenient))
                cells = (row.get(self.options.labels_column) for row in rows if row is not None)
                yield [cell for cell in cells if isinstance(cell, str)]
        else:
            from labelwise.data.formats.table import label_strings as table_label_strings

            yield from table_label_strings(path, self.kind, self.options, lenient)

    def batches(self, split: str, bad: BadRows) -> Iterator[DocumentBatch]:
        """The documents of a split, in order."""
        path = self.files[split]
        builder = RecordBuilder(
            path=path, options=self.options, labels=self.labels, bad=bad, separator=lambda: self.separator
        )
        if self.kind == "jsonl":
            return read_jsonl(path, builder)
        if self.kind == "parquet":
            from labelwise.data.formats.parquet import read_parquet

            return read_parquet(path, builder)
        from labelwise.data.formats.table import read_table

        return read_table(path, self.kind, builder)


def read_jsonl(path: Path, builder: RecordBuilder) -> Iterator[DocumentBatch]:
    """Batches of a file with a JSON object a line."""
    builder.check_surrogates = True
    for block in read_blocks(path, encoding=builder.options.encoding, bad=builder.bad):
        _add_objects(_numbered_objects(block, path, builder), path, builder)
        yield builder.batch()
    builder.check_not_empty()


def _numbered_objects(block: TextBlock, path: Path, builder: RecordBuilder) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects with their line numbers; blank lines are passed over."""
    loads = json.JSONDecoder().decode
    for line, raw in enumerate(block.lines(path, builder.bad), block.first_line):
        if not raw or raw.isspace():
            continue
        try:
            row = loads(raw)
        except (ValueError, RecursionError) as err:
            builder.n_rows += 1
            message = f"invalid JSON ({err}); every line holds one object"
            builder.bad.add(message, path=path, line=line, cause=err)
            continue
        if type(row) is not dict:
            builder.n_rows += 1
            builder.bad.add(f"the line is {kind_of(row)} where an object should be", path=path, line=line)
            continue
        yield line, row


def _add_objects(rows: Iterable[tuple[int, dict[str, Any]]], path: Path, builder: RecordBuilder) -> None:
    options, add = builder.options, builder.add
    text_columns, labels_column, id_column = options.text_columns, options.labels_column, options.id_column
    text_column = text_columns[0] if len(text_columns) == 1 else None
    for line, row in rows:
        if builder.n_rows == 0:
            require_columns(row, options, path, line)
        text = row.get(text_column) if text_column is not None else joined([row.get(c) for c in text_columns])
        add(line, text, row.get(labels_column), row.get(id_column))


def _object(line: str | None) -> dict[str, Any] | None:
    try:
        row = json.loads(line or "")
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def joined(parts: Sequence[object]) -> object:
    """Several text columns as one text; missing ones are left out, anything but a string is kept to be refused."""
    for part in parts:
        if part is not None and type(part) is not str:
            return part
    return " ".join(part for part in parts if isinstance(part, str) and part)


def require_columns(
    there: Mapping[str, object] | Sequence[str], options: ReadOptions, path: Path, line: int | None
) -> None:
    """Refuse a file that lacks the text or labels column, naming the columns it has.

    Where unlabelled records are allowed, the labels column may be missing as a whole.
    """
    wanted = [(name, "--text-column") for name in options.text_columns]
    if not options.allow_unlabelled:
        wanted.append((options.labels_column, "--labels-column"))
    for name, option in wanted:
        if name not in there:
            columns = ", ".join(map(repr, there)) or "none"
            message = f"there is no column {name!r}; there are: {columns}. Name the right one with {option}"
            raise DataError(message, path=path, line=line)


def guess_separator(cells: Sequence[str]) -> str | None:
    """The first of ; | , that occurs in some cell; None if a cell seems to be one label."""
    for separator in SEPARATORS:
        if any(separator in cell for cell in cells):
            return separator
    return None
