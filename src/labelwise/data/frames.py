"""Tables in memory: pandas, polars, pyarrow and datasets, known by what they can do. None of them is imported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelwise.data.batch import LabelVocabulary, label_matrix, positions
from labelwise.data.builder import RecordBuilder, looks_like_list
from labelwise.data.dataset import Dataset
from labelwise.data.formats.records import ROWS_TO_GUESS
from labelwise.data.formats.separators import Separator, guess_separator
from labelwise.data.options import REASONS_KEPT, BadRows, ReadOptions
from labelwise.errors import DataError, UsageError
from labelwise.features.texts import type_and_value
from labelwise.types import OnEvent

_FRAME = Path("the frame")


def dataset_from_frame(
    frame: Any,
    *,
    text: str | Sequence[str],
    labels: str | Sequence[str],
    ids: str | None = None,
    on_event: OnEvent | None = None,
    found: BadRows | None = None,
    **options: Any,
) -> Dataset:
    """See `Dataset.from_frame`; the separator of labels goes to `found`."""
    frame = frame.collect() if _is_lazy(frame) else frame
    settings, there = ReadOptions.of(options), column_names(frame)
    texts = _joined(frame, [text] if isinstance(text, str) else list(text), there)
    if isinstance(labels, str):
        cells = _names_of_classes(frame, labels, _cells(frame, labels, there))
        vocabulary = LabelVocabulary()
    else:
        cells = _from_indicators(frame, list(labels), there)
        vocabulary = LabelVocabulary(labels)
    own = [None] * len(texts) if ids is None else _cells(frame, ids, there)
    lengths = {len(texts), len(cells), len(own)}
    if len(lengths) > 1:
        raise DataError(f"the columns have {', '.join(map(str, sorted(lengths)))} rows; they must have the same number")
    bad = _FrameRows(skip=settings.skip_bad_rows)
    if settings.label_separator is None:
        separator = guess_separator([c for c in cells[:ROWS_TO_GUESS] if isinstance(c, str) and not looks_like_list(c)])
    else:
        separator = Separator.given(settings.label_separator)
    builder = RecordBuilder(
        path=_FRAME,
        options=settings,
        labels=vocabulary,
        bad=bad,
        separator=lambda: separator.text,
        check_surrogates=True,
    )
    for row, (one, some, name) in enumerate(zip(texts, cells, own, strict=True)):
        builder.add(row, one, some, name)
    if any(isinstance(cell, str) for cell in cells):
        separator.say(bad, _FRAME)
        bad.remarks = [_as_keywords(sentence) for sentence in bad.remarks]
    bad.report(on_event, _FRAME)
    if found is not None:
        found.separator = bad.separator
    batch = builder.batch()
    if not len(batch):
        reasons = f"; the first: {bad.reasons[0]}" if bad.reasons else ""
        raise DataError(f"no row of the frame is left to use{reasons}")
    names = vocabulary.names
    return Dataset(
        Y=label_matrix([batch], len(names)),
        labels=names,
        texts=batch.texts,
        ids=batch.ids,
        positions=positions([batch]),
    )


def column_names(frame: Any) -> list[str]:
    """What the columns are called: `column_names` of pyarrow and datasets, `columns` of pandas and polars."""
    if isinstance(frame, Mapping):
        return [str(name) for name in frame]
    for attribute in ("column_names", "columns"):
        found = getattr(frame, attribute, None)
        if isinstance(found, Iterable) and not isinstance(found, str | Mapping):
            return [str(name) for name in found]
    raise UsageError(
        f"an object of class {type(frame).__name__} has no columns; give a data frame of pandas or polars, a pyarrow "
        "table, a datasets.Dataset, or a dict of lists"
    )


def plain_documents(documents: Any) -> Any:
    """Texts as a list of strings, rows of numbers as a sparse matrix; sparse matrices and streams stay as they are."""
    if isinstance(documents, list | tuple | str) or documents is None or sp.issparse(documents):
        return documents
    if isinstance(documents, Mapping) or _is_frame(documents):
        if (numbers := _numbers(documents)) is not None:
            return numbers
        raise DataError(
            f"the documents are of class {type(documents).__name__}, with the columns "
            f"{', '.join(_some_columns(documents))}; "
            'give the column of texts, as in frame["text"]'
        )
    if isinstance(documents, np.ndarray) and documents.ndim != 1:
        if (numbers := _numbers(documents)) is not None:
            return numbers
        raise DataError(f"the documents are an array of shape {documents.shape}; give one text for each document")
    return _plain(documents) if _is_column(documents) else documents


def pandas_index(documents: Any) -> Any:
    """The index of a pandas column or frame; None for anything else."""
    module = type(documents).__module__.partition(".")[0]
    return documents.index if module == "pandas" and hasattr(documents, "iloc") else None


def plain_labels(labels: Any) -> tuple[Any, list[str] | None]:
    """Labels as lists of names or a sparse matrix, and what a frame of 0 and 1 calls its columns."""
    if isinstance(labels, list | tuple) or sp.issparse(labels):
        return labels, None
    if (isinstance(labels, np.ndarray) and labels.ndim == 2) or _is_frame(labels):
        numbers = _numbers(labels)
        if numbers is None or (numbers.data != 1).any():
            raise DataError("the labels are a table, but not of 0 and 1 for each label; give those, or lists of names")
        return numbers, column_names(labels) if _is_frame(labels) else None
    if _is_column(labels):
        return [_cell(cell) for cell in _plain(labels)], None
    return labels, None


class _FrameRows(BadRows):
    """Says which row it is, counted from 0 as frames do, and which keyword to pass."""

    def add(self, message: str, *, path: Path, line: int | None = None, cause: Exception | None = None) -> None:
        message = re.sub(r"stands on line (\d+)", r"stands in row \1", message)
        message = _as_keywords(message)
        message = f"row {line} of the frame: {message}"
        if not self.skip:
            raise DataError(f"{message}; mend it, or go on without such rows with skip_bad_rows=True") from cause
        self.count += 1
        if len(self.reasons) < REASONS_KEPT:
            self.reasons.append(message)


def _as_keywords(message: str) -> str:
    """A sentence with Python's keywords for the options of the command line."""
    return re.sub(r"--([a-z-]+)", lambda found: found[1].replace("-", "_"), message)


# ---------------------------------------------------------------------- columns


def _cells(frame: Any, name: str, there: list[str]) -> list[Any]:
    if name not in there:
        columns = ", ".join(map(repr, there)) or "none"
        raise DataError(f"there is no column {name!r} in the frame; there are: {columns}")
    return [_cell(cell) for cell in _plain(frame[name])]


def _joined(frame: Any, names: list[str], there: list[str]) -> list[Any]:
    """The texts; of several columns joined by a space, missing ones left out."""
    if not names:
        raise UsageError("no column is named for the text; name at least one")
    columns = [_cells(frame, name, there) for name in names]
    if len(columns) == 1:
        return columns[0]
    return [" ".join(str(cell) for cell in row if cell is not None) for row in zip(*columns, strict=True)]


def _from_indicators(frame: Any, names: list[str], there: list[str]) -> list[Any]:
    """Lists of names from a column of 0 and 1 for each label."""
    rows: list[list[str]] = []
    for name in names:
        column = _cells(frame, name, there)
        rows = rows or [[] for _ in column]
        for row, cell in enumerate(column):
            if cell not in (0, 1, None):
                raise DataError(
                    f"row {row} of the frame: {name!r} is {cell!r}; of several label columns each holds 0 or 1"
                )
            if cell:
                rows[row].append(name)
    return list(rows)


def _names_of_classes(frame: Any, name: str, cells: list[Any]) -> list[Any]:
    """Numbers of a datasets.Dataset's ClassLabel as what they stand for."""
    kinds = getattr(frame, "features", None)
    kind = kinds.get(name) if isinstance(kinds, Mapping) else None
    known = getattr(getattr(kind, "feature", kind), "names", None)
    if not known:
        return cells
    lists = (cell if isinstance(cell, list) else [] if cell is None else [cell] for cell in cells)
    return [[known[at] if isinstance(at, int) and 0 <= at < len(known) else at for at in row] for row in lists]


def _plain(column: Any) -> list[Any]:
    """Python's own values of a column."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            found = getattr(column, method)()
            return found if isinstance(found, list) else [found]
    if isinstance(column, str | bytes) or not isinstance(column, Iterable):
        raise DataError(f"a column is {type_and_value(column)}; give a list of values, one for each row")
    return list(column)


def _cell(cell: Any) -> Any:
    """A value as JSON would have it: None for what is missing, lists for arrays."""
    if isinstance(cell, str | int) or cell is None:
        return cell
    if isinstance(cell, float):
        return None if cell != cell else cell  # nan
    if isinstance(cell, list | tuple | set | frozenset) or hasattr(cell, "__array__") or _is_column(cell):
        found = sorted(cell) if isinstance(cell, set | frozenset) else _plain(cell)
        return [_cell(one) for one in found]
    return None if type(cell).__name__ in ("NAType", "NaTType") else cell


def _numbers(table: Any) -> Any:
    """A sparse matrix of a table of numbers; None if it holds anything else."""
    if isinstance(table, np.ma.MaskedArray):
        raise DataError("an array has masked values; fill them, or leave these rows out")
    try:
        values = np.asarray(table)
    except (TypeError, ValueError, ImportError):
        return None
    return sp.csr_array(values.astype(np.float32)) if values.ndim == 2 and values.dtype.kind in "biuf" else None


def _is_frame(value: Any) -> bool:
    return hasattr(value, "column_names") or (hasattr(value, "columns") and hasattr(value, "shape"))


def _is_column(value: Any) -> bool:
    return isinstance(value, np.ndarray) or any(hasattr(value, name) for name in ("to_pylist", "to_list"))


def _is_lazy(frame: Any) -> bool:
    return hasattr(frame, "collect_schema") and hasattr(frame, "collect") and not hasattr(frame, "__len__")


def _some_columns(frame: Any) -> list[str]:
    names = column_names(frame)
    return [*names[:5], "…"] if len(names) > 5 else names
