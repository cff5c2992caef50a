"""Rows with a text, labels and perhaps an id, checked and gathered into batches."""

import ast
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from labelwise.data.batch import LARGEST_NAME, BadLabelError, DocumentBatch, LabelVocabulary, kind_of
from labelwise.data.label_names import has_lone_surrogate
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError


@dataclass(kw_only=True)
class RecordBuilder:
    """Gathers the good rows of one split into batches."""

    path: Path
    options: ReadOptions
    labels: LabelVocabulary | None
    """The labels met so far; None if labels are not read."""
    bad: BadRows
    separator: Callable[[], str | None] | None = None
    """Tells what separates labels in strings; asked only if there are such strings."""
    line_of: dict[str, int] = field(default_factory=dict)
    """Where each id was met, if ids have to differ."""
    check_surrogates: bool = False
    """The rows to come may hold halves of surrogate pairs (only escapes in JSON can bring them)."""
    with_ids: bool | None = None
    """Whether rows have ids: the first one decides."""
    n_rows: int = 0
    """Rows met so far, good or bad: the place of the next one in its file."""

    def __post_init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.counts: list[int] = []
        self.indices: list[int] = []
        self.rows: list[int] = []

    def add(self, line: int, text: object, labels: object, doc_id: object = None) -> None:
        """Take a row, or note what is wrong with it."""
        self.n_rows += 1
        problem = self._text_problem(text)
        if self.labels is None:
            labels = []
        elif problem is None:
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
        found: list[int] = []
        if problem is None and self.labels is not None:
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
            if self.options.unique_ids:
                self.line_of[doc_id] = line  # type: ignore[index]
            self.ids.append(doc_id)  # type: ignore[arg-type]
        self.texts.append(text)  # type: ignore[arg-type]
        self.indices += found
        self.counts.append(len(found))
        self.rows.append(self.n_rows - 1)

    def add_bad(self, problem: str, line: int, cause: Exception | None = None) -> None:
        """Note a row that could not even be taken apart."""
        self.n_rows += 1
        self.bad.add(problem, path=self.path, line=line, cause=cause)

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
        if type(doc_id) is int and abs(doc_id) < LARGEST_NAME:
            doc_id = str(doc_id)
        if type(doc_id) is not str:
            return None, f"the id is {kind_of(doc_id)} where a string should be"
        if doc_id in self.line_of:
            return None, f"the id {doc_id!r} stands on line {self.line_of[doc_id]} already, and --unique-ids is set"
        if self.check_surrogates and not doc_id.isascii() and has_lone_surrogate(doc_id):
            return None, "the id holds half of a surrogate pair, which is no character"
        return doc_id, None

    def _split(self, cell: str) -> object:
        """Labels from a string: a JSON or Python list, or names with a separator between them."""
        if looks_like_list(cell):
            for parse in (json.loads, ast.literal_eval):
                try:
                    return parse(cell)
                except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                    continue
        separator = None if self.separator is None else self.separator()
        parts = [cell] if separator is None else cell.split(separator)
        return [part for part in map(str.strip, parts) if part]

    def batch(self) -> DocumentBatch:
        """The rows taken since the last call."""
        indptr = np.zeros(len(self.counts) + 1, dtype=np.int64)
        np.cumsum(self.counts, out=indptr[1:])
        made = DocumentBatch(
            indptr=indptr,
            indices=np.array(self.indices, dtype=np.int32),
            texts=self.texts,
            ids=self.ids if self.with_ids else None,
            rows=np.array(self.rows, dtype=np.int64),
        )
        self._start()
        return made

    def check_not_empty(self) -> None:
        """A file without any row is an error, whatever may be skipped."""
        if self.n_rows == 0 and self.bad.count == 0:
            raise DataError("the file is empty; there is no document in it", path=self.path)


def looks_like_list(cell: str) -> bool:
    """Whether a string seems to be a list written out."""
    stripped = cell.strip()
    return stripped.startswith("[") and stripped.endswith("]")
