"""Predictions: the scores of the best labels of every document, with the labels' names."""

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from importlib import import_module
from operator import index
from pathlib import Path
from typing import Any, Literal, Self, overload

import numpy as np
import scipy.sparse as sp

from labelwise.config.settings import Count, checked_value
from labelwise.errors import DataError, MissingExtraError, UsageError
from labelwise.predictions.notebook import html_table
from labelwise.predictions.ranking import keep_best, rank_all
from labelwise.predictions.writing import write_rows
from labelwise.storage.checks import is_below, is_offsets
from labelwise.storage.paths import checked_path
from labelwise.types import Csr

SHOWN_DOCUMENTS, SHOWN_LABELS = 10, 5
"""Documents and labels of each that a notebook shows."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """The best labels of every document.

    Iterates as ``[(label, score), …]`` per document, best first; equal scores by column.

    Examples
    --------
    >>> from labelwise import LinearTree, Predictions
    >>> texts = ["red running shoe", "blue running shoe", "red coffee mug", "blue coffee mug"]
    >>> labels = [["shoe", "red"], ["shoe", "blue"], ["mug", "red"], ["mug", "blue"]]
    >>> predictions: Predictions = LinearTree().fit(texts, labels).predict(["a red shoe", "a blue mug"], top_k=2)
    >>> for suggestions in predictions:
    ...     print([name for name, score in suggestions])
    ['red', 'shoe']
    ['blue', 'mug']
    >>> predictions.write("predictions.csv")
    """

    matrix: Csr
    """(n_docs, n_labels) scores; an entry that is stored is a prediction, whatever its sign."""
    labels: Sequence[str]
    """(n_labels,) label names, in column order."""
    ids: Sequence[str] | None = None
    """(n_docs,) the documents' own ids, where they have some."""
    n_known: int | None = None
    """Columns from here on are labels that the truth does not know (see `with_labels`): always wrong."""
    calibrated: bool | None = None
    """Whether the scores are probabilities; None where that is not known."""
    index: Sequence[Any] | None = None
    """(n_docs,) the index of the pandas column that held the texts, for `to_frame`."""
    trained_share: float | None = None
    """The share of the documents that the model was trained on; None where that is not known."""

    def __post_init__(self) -> None:
        if not sp.issparse(self.matrix) or self.matrix.ndim != 2 or self.matrix.format != "csr":
            raise DataError(f"the predictions are a {type(self.matrix).__name__}; give a scipy.sparse.csr_array")
        n_docs, n_labels = self.matrix.shape
        indptr, indices = self.matrix.indptr, self.matrix.indices
        fits = len(indptr) == n_docs + 1 and is_offsets(indptr, indices.size) and len(self.matrix.data) == indices.size
        if not fits or not is_below(indices, n_labels):
            raise DataError(
                f"the matrix of the predictions is damaged: an index lies outside its shape {n_docs, n_labels}; "
                "build it again"
            )
        for name, given in (("labels", self.labels), ("ids", self.ids)):
            if not (_is_list(given) or (given is None and name == "ids")):
                raise DataError(f"{name} of the predictions is {type(given).__name__}; give a list of strings")
        if len(self.labels) != n_labels:
            raise DataError(
                f"the predictions have {n_labels} columns but there are {len(self.labels)} label names; "
                "pass the names of the model that made them"
            )
        if self.ids is not None and len(self.ids) != n_docs:
            raise DataError(f"there are {len(self.ids)} ids but {n_docs} rows of predictions; they must match")

    def __repr__(self) -> str:
        numbers = {True: ", probabilities", False: ", scores", None: ""}[self.calibrated]
        return f"Predictions({len(self):,} documents, {len(self.labels):,} labels{numbers})"

    def _repr_html_(self) -> str:
        """A small table of the first documents, for notebooks."""
        first = self[:SHOWN_DOCUMENTS].top_k(SHOWN_LABELS)
        ids = first.index if first.index is not None else first.ids or range(len(first))
        rows = [
            (name, *(f"{label if len(label) <= 80 else label[:79] + '…'} ({score:.3g})" for label, score in found))
            for name, found in zip(ids, first, strict=True)
        ]
        more = f"; the first {len(first)} with at most {SHOWN_LABELS} labels each" if len(self) > len(first) else ""
        words = {True: "probabilities", False: "scores, not probabilities", None: "scores"}[self.calibrated]
        caption = f"{len(self):,} documents, {len(self.labels):,} labels; numbers are {words}{more}"
        return html_table(("", *range(1, SHOWN_LABELS + 1)), rows, caption)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @overload
    def __getitem__(self, which: int) -> list[tuple[str, float]]: ...
    @overload
    def __getitem__(self, which: slice) -> Self: ...
    def __getitem__(self, which: int | slice) -> list[tuple[str, float]] | Self:
        if isinstance(which, slice):
            ids = None if self.ids is None else self.ids[which]
            kept = None if self.index is None else self.index[which]
            return replace(self, matrix=self.matrix[which], ids=ids, index=kept)
        row = range(len(self))[index(which)]
        return next(iter(self[row : row + 1]))

    def __iter__(self) -> Iterator[list[tuple[str, float]]]:
        best = rank_all(self.matrix)
        columns, scores, indptr = self.matrix.indices, self.matrix.data, self.matrix.indptr
        # Through its text, so that a float32 of 0.93 reads 0.93 and not 0.9300000071525574.
        short = scores.dtype.itemsize < 8 and scores.dtype.kind == "f"
        for start, end in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True):
            row = best[start:end]
            values = [float(str(score)) for score in scores[row]] if short else scores[row].astype(float).tolist()
            yield [(self.labels[j], score) for j, score in zip(columns[row].tolist(), values, strict=True)]

    def top_k(self, k: int) -> Self:
        """The same documents with only their `k` best labels."""
        return replace(self, matrix=keep_best(self.matrix, checked_value(Count, k, "k")))

    def with_labels(self, labels: Sequence[str]) -> Self:
        """The same predictions with columns in the order of `labels`; names not among them follow at the end.

        This is how predictions are laid over the labels of a truth: what it does not know is kept, as wrong.
        """
        if not _is_list(labels):
            raise DataError(f"labels is {type(labels).__name__}; give a list of label names")
        labels = list(map(str, labels))
        column = {name: i for i, name in enumerate(labels)}
        if len(column) != len(labels):
            raise DataError("the label names given are not distinct; every column needs its own")
        extra = [name for name in self.labels if name not in column]
        column.update((name, len(labels) + i) for i, name in enumerate(extra))
        moved = np.array([column[name] for name in self.labels], dtype=np.int32)
        old = self.matrix
        entries = (old.data, moved[old.indices], old.indptr)
        matrix = sp.csr_array(entries, shape=(len(self), len(column)), copy=True)
        matrix.sort_indices()
        return replace(self, matrix=matrix, labels=[*labels, *extra], n_known=len(labels))

    @property
    def numbers(self) -> Literal["probability", "score"]:
        """What the numbers are: probabilities of a calibrated model, or scores."""
        return "probability" if self.calibrated else "score"

    def to_frame(
        self, library: Literal["pandas", "polars", "pyarrow"] = "pandas", *, form: Literal["long", "wide"] = "long"
    ) -> Any:
        """A table of the predictions; documents without ids are numbered from 0.

        Parameters
        ----------
        form
            long: a row for each label predicted, with the columns id, rank (from 1), label, and probability or score; a
            document without labels has no row. wide: a row for each document, with the columns id, label_1,
            probability_1 or score_1, label_2, …; where a document has fewer labels, they are empty.
        """
        if library not in ("pandas", "polars", "pyarrow"):
            raise UsageError(f"there is no table of {library!r}; there are: pandas, polars, pyarrow")
        if form not in ("long", "wide"):
            raise UsageError(f"there is no form {form!r} of a table; there are: long, wide")
        try:
            module: Any = import_module(library)
        except ImportError as err:
            raise MissingExtraError(f"{library} is not installed; run: pip install {library}") from err
        ids: Sequence[Any] = range(len(self))
        if self.index is not None:
            ids = list(self.index)
        elif self.ids is not None:
            ids = self.ids
        columns = self._long(ids) if form == "long" else self._wide(ids)
        if library == "pyarrow":
            return module.table(columns)
        if library == "pandas" and form == "wide" and self.index is not None:  # as in the column of texts
            return module.DataFrame(columns, index=self.index).drop(columns="id")
        return module.DataFrame(columns)

    def _long(self, ids: Sequence[Any]) -> dict[str, list[Any]]:
        rows = [
            (name, rank, label, score)
            for name, found in zip(ids, self, strict=True)
            for rank, (label, score) in enumerate(found, start=1)
        ]
        return {name: [row[at] for row in rows] for at, name in enumerate(("id", "rank", "label", self.numbers))}

    def _wide(self, ids: Sequence[Any]) -> dict[str, list[Any]]:
        rows = list(self)
        columns: dict[str, list[Any]] = {"id": list(ids)}
        for at in range(max(map(len, rows), default=0)):
            columns[f"label_{at + 1}"] = [row[at][0] if at < len(row) else None for row in rows]
            columns[f"{self.numbers}_{at + 1}"] = [row[at][1] if at < len(row) else None for row in rows]
        return columns

    def write(self, path: Path | str) -> None:
        """Write jsonl, csv or parquet, by suffix; a text format may also end in .gz or .xz.

        jsonl holds ``{"id": …, "labels": [["name", 0.93], …], "numbers": "probabilities"}`` per document; csv a row
        ``id,rank,label,probability`` per label, and one without rank for a document without labels; parquet the columns
        id, labels and probabilities. Where the numbers are scores they are called score or scores.
        Documents without ids are numbered from 0. The file appears whole or not at all.
        """
        numbers = [str(name) for name in (self.index if self.index is not None else range(len(self)))]
        ids = self.ids if self.ids is not None else numbers
        write_rows(checked_path(path), ids, self, calibrated=self.calibrated)


def _is_list(value: object) -> bool:
    """Whether a value is a collection of a known length, and no string."""
    return isinstance(value, Sized) and not isinstance(value, str | bytes) and getattr(value, "ndim", 1) == 1
