"""Reading predictions, ours and other systems'; what is wrong with a file is told by line."""

import csv
import gzip
import json
import lzma
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from labelwise.errors import DataError, need
from labelwise.predictions.result import Predictions
from labelwise.predictions.writing import SUFFIXES, Row, format_of, open_text
from labelwise.storage.npz import MOST_UNPACKED, UNPACKED_PER_BYTE, load_npz
from labelwise.storage.parquet import must_be_counted, plain_batches
from labelwise.storage.paths import checked_path

ROWS_PER_BATCH = 4096
MOST_LETTERS = 1 << 26
"""Characters of a line, at most."""
CSV_HEADER = "the header id,rank,label,score"
MOST_NUMBERED = 10_000_000
"""Columns of an npz file that are numbered if no labels are given."""

_CALIBRATED = {"probabilities": True, "scores": False}
"""What a file says that its numbers are."""
Record: TypeAlias = tuple[int, str | None, Row]
"""What a file says about one document: line, id, scored labels in the order of the file."""


def read_predictions(
    path: Path | str, labels: Sequence[str] | None = None, ids: Sequence[str] | None = None
) -> Predictions:
    """The predictions in a file that `Predictions.write` or another system wrote.

    Parameters
    ----------
    path
        .jsonl or .csv (also .gz, .xz), .parquet, or a scipy .npz of a (n_docs, n_labels) sparse matrix. In jsonl,
        ``"labels"`` may hold pairs, objects with ``"label"`` and ``"score"``, or plain names, best first, which get
        the scores 1, 1/2, 1/3, …; so do csv rows without a score, by their rank.
    labels
        Names of the columns of the result. Names not among them follow at the end: they count as wrong.
        If not given, columns are in order of appearance (of .npz: numbers).
    ids
        The documents wanted, in this order; all of them must be in the file once, and no others.
        A file without ids is taken to be in this order already.

    Examples
    --------
    >>> from pathlib import Path
    >>> from labelwise import read_predictions
    >>> _ = Path("theirs.jsonl").write_text('{"id": "d1", "labels": [["shoe", 0.9], ["red", 0.4]]}')
    >>> predictions = read_predictions("theirs.jsonl")
    >>> predictions.ids, predictions[0]
    (['d1'], [('shoe', 0.9), ('red', 0.4)])
    """
    path = checked_path(path)
    kind = format_of(path, (*SUFFIXES, ".npz"))
    if not path.is_file():
        raise DataError("there is no such file", path=path)
    damage = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error, UnicodeDecodeError)
    try:
        if kind == ".npz":
            return _read_npz(path, labels, ids)
        reader = {".jsonl": _read_jsonl, ".csv": _read_csv, ".parquet": _read_parquet}[kind]
        numbers: set[str] = set()
        found = _assemble(path, reader(path, numbers), labels, ids)
        return replace(found, calibrated=_CALIBRATED.get("".join(numbers)))
    except damage as err:
        raise DataError(f"the file is damaged ({err}); write it again", path=path) from err


def _read_npz(path: Path, labels: Sequence[str] | None, ids: Sequence[str] | None) -> Predictions:
    matrix = load_npz(path, None)
    n_docs, n_labels = matrix.shape
    if labels is None and n_labels > MOST_NUMBERED:
        raise DataError(f"the matrix has {n_labels:,} columns; pass the labels it was made with", path=path)
    if labels is not None and len(labels) != n_labels:
        raise DataError(
            f"the matrix has {n_labels} columns but {len(labels)} labels are given; pass those it was made with",
            path=path,
        )
    if ids is not None and len(ids) != n_docs:
        raise DataError(f"the matrix has {n_docs} rows but {len(ids)} documents are expected", path=path)
    return Predictions(matrix, labels if labels is not None else [str(j) for j in range(n_labels)], ids)


def _read_jsonl(path: Path, numbers: set[str]) -> Iterator[Record]:
    """The records; what the file calls their numbers is added to `numbers`."""
    with open_text(path, path.suffix, "r") as file:
        for line, text in enumerate(_lines(file, path), 1):
            if not text.strip():
                continue
            try:
                record = json.loads(text)
                if not isinstance(record["labels"], list):
                    raise TypeError("labels are not a list")
                pairs = [_pair(entry, rank) for rank, entry in enumerate(record["labels"], 1)]
            except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as err:
                raise DataError(
                    f"cannot read this record ({type(err).__name__}: {err}); "
                    'expected {"id": …, "labels": [["name", 0.93], …]}',
                    path=path,
                    line=line,
                ) from err
            if record.get("numbers") in _CALIBRATED:
                numbers.add(record["numbers"])
            name = record.get("id")
            yield line, None if name is None else str(name), pairs


def _lines(file: IO[str], path: Path) -> Iterator[str]:
    """The lines of a text, none of which is too long for a document."""
    number, left = 1, _most_unpacked(path)
    while text := file.readline(MOST_LETTERS + 1):
        if len(text) > MOST_LETTERS:
            raise DataError(f"the line has more than {MOST_LETTERS:,} characters", path=path, line=number)
        left -= len(text)
        if left < 0:
            raise _too_large(path)
        yield text
        number += 1


def _most_unpacked(path: Path) -> int:
    return max(MOST_UNPACKED, UNPACKED_PER_BYTE * path.stat().st_size)


def _too_large(path: Path) -> DataError:
    size = path.stat().st_size
    return DataError(
        f"unpacks to more than {_most_unpacked(path):,} bytes, from {size:,}; unpack it first if that is meant",
        path=path,
    )


def _pair(entry: Any, rank: int) -> tuple[str, float]:
    if isinstance(entry, dict):
        return str(entry["label"]), float(entry["probability"] if "probability" in entry else entry["score"])
    if isinstance(entry, str | int):
        return str(entry), 1 / rank
    label, score = entry
    return str(label), float(score)


def _read_csv(path: Path, numbers: set[str]) -> Iterator[Record]:
    with open_text(path, path.suffix, "r") as file:
        rows = csv.reader(_lines(file, path))
        try:
            header = next(rows, [])
        except csv.Error as err:
            raise DataError(f"cannot read the header ({err}); expected {CSV_HEADER}", path=path, line=1) from err
        if missing := {"id", "rank", "label"} - set(header):
            raise DataError(f"no column {', '.join(sorted(missing))}; expected {CSV_HEADER}", path=path, line=1)
        column = "probability" if "probability" in header else "score"
        numbers.update({"probabilities"} if column == "probability" else ())
        record: Record | None = None
        try:
            for row in rows:
                cells = dict(zip(header, row, strict=True))
                if record is None or record[1] != cells["id"]:
                    if record is not None:
                        yield record
                    record = (rows.line_num, cells["id"], [])
                if cells["rank"]:
                    score = cells.get(column)
                    record[2].append((cells["label"], float(score) if score else 1 / int(cells["rank"])))
        except (ValueError, ZeroDivisionError, csv.Error) as err:
            if isinstance(err, UnicodeDecodeError):
                raise
            raise DataError(
                f"cannot read this row ({err}); expected id,rank,label,score", path=path, line=rows.line_num
            ) from err
        if record is not None:
            yield record


def _read_parquet(path: Path, numbers: set[str]) -> Iterator[Record]:
    parquet = need("pyarrow.parquet", extra="parquet", purpose="parquet files")
    arrow = need("pyarrow", extra="parquet", purpose="parquet files")
    most = _most_unpacked(path)
    rows: list[Any] = []
    try:
        with parquet.ParquetFile(path) as file:
            if file.metadata.num_rows > most:
                raise _too_large(path)
            calibrated = "probabilities" in file.schema_arrow.names
        names = ["id", "labels", "probabilities" if calibrated else "scores"]
        with parquet.ParquetFile(path, read_dictionary=must_be_counted(path, most)) as file:
            for table in plain_batches(file, names, rows=ROWS_PER_BATCH, most=most):
                rows += zip(*(table.column(name).to_pylist() for name in names), strict=True)
    except OverflowError as err:
        raise _too_large(path) from err
    except (arrow.ArrowException, KeyError, OSError) as err:
        raise DataError(f"expected parquet with the columns id, labels and scores ({err})", path=path) from err
    numbers.update({"probabilities"} if calibrated else ())
    for line, (name, labels, scores) in enumerate(rows, 1):
        try:
            pairs = [(str(label), float(score)) for label, score in zip(labels, scores, strict=True)]
        except (ValueError, TypeError, OverflowError) as err:
            raise DataError(f"labels and scores do not fit together ({err})", path=path, line=line) from err
        yield line, None if name is None else str(name), pairs


def _is_text(name: str) -> bool:
    """Whether a name can be written as UTF-8, which half of a surrogate pair cannot."""
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _assemble(
    path: Path, records: Iterator[Record], labels: Sequence[str] | None, ids: Sequence[str] | None
) -> Predictions:
    """Predictions over the columns `labels` and the rows `ids`, from records that are checked on the way."""
    column = {name: j for j, name in enumerate(labels or ())}
    if labels is not None and len(column) != len(labels):
        raise DataError("the label names given are not distinct; every column needs its own")
    wanted = None if ids is None else set(ids)
    doubled = wanted is not None and len(wanted) < len(ids or ())  # then the order must be the same
    names: list[str] = []
    seen: dict[str, int] = {}  # id -> row
    columns, scores, indptr = array("i"), array("d"), array("q", [0])
    for line, name, pairs in records:
        if bad := next((one for one in (name, *(label for label, _ in pairs)) if one and not _is_text(one)), None):
            raise DataError(f"{bad!r} cannot be written as UTF-8; give other names", path=path, line=line)
        if len(indptr) > 1 and (name is None) == bool(seen):
            raise DataError("some records have an id and some have none; give all of them one", path=path, line=line)
        if name is not None:
            if name in seen and not doubled:
                raise DataError(f"document {name!r} was already predicted above; keep one", path=path, line=line)
            if wanted is not None and name not in wanted:
                raise DataError(f"document {name!r} is not among those expected", path=path, line=line)
            seen[name] = len(seen)
            names.append(name)
        if len({label for label, _ in pairs}) < len(pairs):
            raise DataError(f"a label is given twice for document {name!r}; keep one", path=path, line=line)
        for label, score in pairs:
            if not isfinite(score):
                raise DataError(f"label {label!r} has the score {score}; scores are finite", path=path, line=line)
            columns.append(column.setdefault(label, len(column)))
            scores.append(score)
        indptr.append(len(columns))
    n_docs = len(indptr) - 1
    entries = (np.array(scores, dtype=np.float64), np.array(columns, dtype=np.int32), np.array(indptr))
    matrix = sp.csr_array(entries, shape=(n_docs, len(column)))
    matrix.sort_indices()
    found: Sequence[str] | None = list(seen) or None
    if ids is not None:
        if found is None and n_docs != len(ids):
            raise DataError(f"{n_docs} documents without ids, but {len(ids)} are expected", path=path)
        if found is not None:
            if doubled:
                if names != list(ids):
                    twice = Counter(ids).most_common(1)[0][0]
                    message = f"several documents have the id {twice!r}, so predictions cannot be matched by ids"
                    raise DataError(f"{message}; give every document an id of its own", path=path)
            elif missing := [name for name in ids if name not in seen]:
                raise DataError(
                    f"no predictions for {len(missing)} documents, the first is {missing[0]!r}; "
                    "a document without labels needs an empty record",
                    path=path,
                )
            else:
                matrix = matrix[[seen[name] for name in ids]]
        found = ids
    return Predictions(matrix, list(column), found, None if labels is None else len(labels))
