"""Batches of a split whose labels (and features) are matrices in memory, with texts streamed beside them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from labelwise.data.batch import DocumentBatch
from labelwise.data.files import read_lines
from labelwise.data.formats.records import ROWS_PER_BATCH
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError
from labelwise.types import Csr


def matrix_batches(
    Y: Csr,
    X: Csr | None,
    texts: Path | None,
    *,
    good: npt.NDArray[np.bool_] | None = None,
    options: ReadOptions,
    bad: BadRows,
) -> Iterator[DocumentBatch]:
    """Documents of Y (n_docs, n_labels), X (n_docs, n_features) and a text file, row by row.

    Rows that are not `good` were wrong in a matrix file and are left out.
    """
    good = np.ones(Y.shape[0], dtype=np.bool_) if good is None else good
    if texts is None:
        for start in range(0, Y.shape[0], ROWS_PER_BATCH):
            stop = min(start + ROWS_PER_BATCH, Y.shape[0])
            yield _batch(Y, X, None, start + np.flatnonzero(good[start:stop]))
        return
    n_docs, done = int(Y.shape[0]), 0
    for first, lines in read_lines(texts, bad=bad, **options.decoding):
        start, stop = first - 1, first - 1 + len(lines)
        if stop > n_docs:
            while len(lines) > max(n_docs - start, 0) and lines[-1] == "":
                lines.pop()
            if len(lines) > max(n_docs - start, 0):
                message = f"has more lines than the label matrix has rows ({n_docs}); they belong together one to one"
                raise DataError(message, path=texts)
            stop = n_docs
        kept: list[str] = []
        rows: list[int] = []
        for row, text in enumerate(lines, start):
            if text is None or not good[row]:
                continue
            if problem := _text_problem(text, X, options):
                bad.add(problem, path=texts, line=row + 1)
                continue
            rows.append(row)
            kept.append(text)
        yield _batch(Y, X, kept, np.array(rows, dtype=np.int64))
        done = stop
    if done < n_docs:
        message = f"has {done} lines but the label matrix has {n_docs} rows; they belong together one to one"
        bad.add(message, path=texts)


def _text_problem(text: str, X: Csr | None, options: ReadOptions) -> str | None:
    if X is None and (not text or text.isspace()):
        return "the row has no text"
    if len(text) > options.max_text_chars:
        return (
            f"the text has {len(text):,} characters, more than {options.max_text_chars:,}; "
            "raise --max-text-chars if that is meant"
        )
    return None


def _batch(Y: Csr, X: Csr | None, texts: list[str] | None, rows: npt.NDArray[np.int64]) -> DocumentBatch:
    part = Y[rows]
    return DocumentBatch(
        indptr=part.indptr.astype(np.int64),
        indices=part.indices.astype(np.int32),
        texts=texts,
        features=None if X is None else X[rows],
        rows=rows,
    )
