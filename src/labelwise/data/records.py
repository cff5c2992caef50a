"""Records: rows with a text, labels and perhaps an id, from jsonl, csv, tsv or parquet files.

Every reader hands its rows to a `RecordBuilder`, which checks them and interns their labels at once.
"""

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from labelwise.data.batch import (
    BadLabelError,
    Batch,
    Vocabulary,
    has_lone_surrogate,
    kind_of,
)
from labelwise.data.files import Block, read_blocks
from labelwise.data.names import label_list, read_label_texts
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError

RecordKind: TypeAlias = Literal["jsonl", "csv", "tsv", "parquet"]

ROWS_PER_BATCH = 4096
ROWS_TO_GUESS = 1000
SEPARATORS = (";", "|", ",")


@dataclass(kw_only=True)
class RecordSource:
    """A folder of record files, one a split, or a single such file."""

    path: Path
    kind: RecordKind
    files: Mapping[str, Path]
    options: ReadOptions
    beside: Path | None
    """Folder where labels.txt and label_texts.jsonl may lie."""
    labels: Vocabulary = field(init=False)
    labels_known: bool = field(init=False)

    def __post_init__(self) -> None:
        names = None if self.beside is None else label_list(self.beside)
        self.labels_known = names is not None
        self.labels = Vocabulary(names or ())

    @property
    def splits(self) -> list[str]:
        """Names of the splits there are: train first."""
        return list(self.files)

    @cached_property
    def label_texts(self) -> Mapping[str, str] | None:
        """Descriptions of labels by name, from label_texts.jsonl."""
        return None if self.beside is None else read_label_texts(self.beside)

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
            from labelwise.data.parquet import label_strings

            yield from label_strings(path, self.options)
        elif self.kind == "jsonl":
            for block in read_blocks(path, encoding=self.options.encoding, bad=lenient):
                rows = (_object(line) for line in block.lines(path, lenient))
                cells = (row.get(self.options.labels_column) for row in rows if row is not None)
                yield [cell for cell in cells if isinstance(cell, str)]
        else:
            from labelwise.data.table import label_strings as table_label_strings

            yield from table_label_strings(path, self.kind, self.options, lenient)

    def batches(self, split: str, bad: BadRows) -> Iterator[Batch]:
        """The documents of a split, in order."""
        path = self.files[split]
        builder = RecordBuilder(path=path, options=self.options, labels=self.labels, bad=bad, source=self)
        if self.kind == "jsonl":
            return read_jsonl(path, builder)
        if self.kind == "parquet":
            from labelwise.data.parquet import read_parquet

            return read_parquet(path, builder)
        from labelwise.data.table import read_table

        return read_table(path, self.kind, builder)


@dataclass(kw_only=True)
class RecordBuilder:
    """Gathers the good rows of one split into batches."""

    path: Path
    options: ReadOptions
    labels: Vocabulary
    bad: BadRows
    source: RecordSource | None = None
    """Knows the separator of labels in strings; without one, strings are refused."""
    line_of: dict[str, int] = field(default_factory=dict)
    """Where each id was met."""
    check_surrogates: bool = False
    """The rows to come may hold halves of surrogate pairs (only escapes in JSON can bring them)."""
    with_ids: bool | None = None
    """Whether rows have ids: the first one decides."""
    n_rows: int = 0

    def __post_init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.counts: list[int] = []
        self.indices: list[int] = []

    def add(self, line: int, text: object, labels: object, doc_id: object = None) -> None:
        """Take a row, or note what is wrong with it."""
        self.n_rows += 1
        problem = self._text_problem(text)
        if problem is None:
            if type(labels) is str:
                labels = self._split(labels)
            if type(labels) is not list:
                problem = (
                    "the row has no labels; pass --allow-unlabelled to keep such rows"
                    if labels is None and not self.options.allow_unlabelled
                    else None
                    if labels is None
                    else f"the labels are {kind_of(labels)} where a list of names should be"
                )
                labels = []
            elif not labels and not self.options.allow_unlabelled:
                problem = "the row has no labels; pass --allow-unlabelled to keep such rows"
        if problem is None and (doc_id is not None or self.with_ids):
            doc_id, problem = self._checked_id(doc_id, line)
        if problem is None:
            try:
                found = self.labels.ids_of(labels)  # type: ignore[arg-type]
            except BadLabelError as err:
                problem = str(err)
        if problem is not None:
            self.bad.add(problem, path=self.path, line=line)
            return
        if self.with_ids is None:
            self.with_ids = doc_id is not None
        if self.with_ids:
            self.line_of[doc_id] = line  # type: ignore[index]
            self.ids.append(doc_id)  # type: ignore[arg-type]
        self.texts.append(text)  # type: ignore[arg-type]
        self.indices += found
        self.counts.append(len(found))

    def _text_problem(self, text: object) -> str | None:
        if type(text) is not str:
            if text is None:
                return "the row has no text"
            return f"the text is {kind_of(text)} where a string should be"
        if not text or text.isspace():
            return "the row has no text"
        if len(text) > self.options.max_text_chars:
            return (
                f"the text has {len(text):,} characters, more than {self.options.max_text_chars:,}; "
                "raise --max-text-chars if that is meant"
            )
        if self.check_surrogates and not text.isascii() and has_lone_surrogate(text):
            return "the text holds half of a surrogate pair, which is no character"
        return None

    def _checked_id(self, doc_id: object, line: int) -> tuple[str | None, str | None]:
        """The id as a string, or what is wrong with it."""
        if self.with_ids is False:
            return None, None
        if doc_id is None:
            return None, "the row has no id, but the rows before it have one"
        if type(doc_id) is int:
            doc_id = str(doc_id)
        if type(doc_id) is not str:
            return None, f"the id is {kind_of(doc_id)} where a string should be"
        if doc_id in self.line_of and not self.options.allow_duplicate_ids:
            return None, (
                f"the id {doc_id!r} stands on line {self.line_of[doc_id]} already; pass --allow-duplicate-ids to "
                "keep such rows"
            )
        if self.check_surrogates and not doc_id.isascii() and has_lone_surrogate(doc_id):
            return None, "the id holds half of a surrogate pair, which is no character"
        return doc_id, None

    def _split(self, cell: str) -> object:
        """Labels from a string: a JSON or Python list, or names with a separator between them."""
        if looks_like_list(cell):
            for parse in (json.loads, ast.literal_eval):
                try:
                    return parse(cell)
                except (ValueError, SyntaxError, RecursionError, MemoryError):
                    continue
        separator = None if self.source is None else self.source.separator
        parts = [cell] if separator is None else cell.split(separator)
        return [part for part in map(str.strip, parts) if part]

    def batch(self) -> Batch:
        """The rows taken since the last call."""
        indptr = np.zeros(len(self.counts) + 1, dtype=np.int64)
        np.cumsum(self.counts, out=indptr[1:])
        made = Batch(
            indptr=indptr,
            indices=np.array(self.indices, dtype=np.int32),
            texts=self.texts,
            ids=self.ids if self.with_ids else None,
        )
        self._start()
        return made

    def check_not_empty(self) -> None:
        """A file without any row is an error, whatever may be skipped."""
        if self.n_rows == 0 and self.bad.count == 0:
            raise DataError("the file is empty; there is no document in it", path=self.path)


def read_jsonl(path: Path, builder: RecordBuilder) -> Iterator[Batch]:
    """Batches of a file with a JSON object a line."""
    builder.check_surrogates = True
    for block in read_blocks(path, encoding=builder.options.encoding, bad=builder.bad):
        _add_objects(_numbered_objects(block, path, builder), path, builder)
        yield builder.batch()
    builder.check_not_empty()


def _numbered_objects(block: Block, path: Path, builder: RecordBuilder) -> Iterator[tuple[int, dict[str, Any]]]:
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
    """Refuse a file that lacks the text or labels column, naming the columns it has."""
    wanted = [(name, "--text-column") for name in options.text_columns]
    for name, option in [*wanted, (options.labels_column, "--labels-column")]:
        if name not in there:
            columns = ", ".join(map(repr, there)) or "none"
            message = f"there is no column {name!r}; there are: {columns}. Name the right one with {option}"
            raise DataError(message, path=path, line=line)


def looks_like_list(cell: str) -> bool:
    """Whether a string seems to be a list written out."""
    stripped = cell.strip()
    return stripped.startswith("[") and stripped.endswith("]")


def guess_separator(cells: Sequence[str]) -> str | None:
    """The first of ; | , that occurs in some cell; None if a cell seems to be one label."""
    for separator in SEPARATORS:
        if any(separator in cell for cell in cells):
            return separator
    return None
