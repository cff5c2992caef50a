"""libsvm files with several labels a line: ``3,17 1:0.5 9:1`` without a header."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from labelwise.data.batch import DocumentBatch, FileSource, NumberedLabels, zero_one
from labelwise.data.files import most_numbers
from labelwise.data.formats.format import FileFormat, FileStart
from labelwise.data.formats.sparse import SparseWriter, read_sparse
from labelwise.data.label_names import label_list
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError
from labelwise.types import Ints


@dataclass(kw_only=True)
class LibsvmSource(FileSource):
    """libsvm files. All splits are read once for the largest numbers, which alone define the shape."""

    path: Path
    files: Mapping[str, Path]
    options: ReadOptions
    beside: Path | None
    labels: NumberedLabels = field(init=False)
    labels_known: bool = True

    def __post_init__(self) -> None:
        how = {"max_unpacked": self.options.max_unpacked}
        names = None if self.beside is None else label_list(self.beside, **how)
        self.labels = NumberedLabels(names or (), closed=names is not None, most=most_numbers(self.files.values()))

    @cached_property
    def _shape(self) -> tuple[int, int]:
        """The number of the first feature, and the number of features."""
        lowest, highest = 2**31, -1
        for path in self.files.values():
            for rows in read_sparse(path, BadRows(skip=True), self.options, most_labels=self.labels.most):
                if rows.indices.size:
                    lowest = min(lowest, int(rows.indices.min()))
                    highest = max(highest, int(rows.indices.max()))
                if not self.labels.closed and rows.label_indices.size:
                    self.labels.grow(int(rows.label_indices.max()) + 1)
        option = self.options.libsvm_base
        base = int(lowest > 0) if option == "auto" else int(option == "one")
        return base, max(highest + 1 - base, 0)

    def batches(self, split: str, bad: BadRows) -> Iterator[DocumentBatch]:
        """The documents of a split, in order."""
        path = self.files[split]
        base, n_features = self._shape
        n_labels, n_rows, n_places = len(self.labels.names), 0, 0
        for rows in read_sparse(path, bad, self.options, most_labels=self.labels.most):
            counts, label_counts = np.diff(rows.indptr), np.diff(rows.label_indptr)
            is_document = ~rows.good | (counts > 0) | (label_counts > 0)  # blank lines are none
            place = n_places + np.cumsum(is_document) - 1
            n_places += int(is_document.sum())
            keep = rows.good & is_document
            for row in np.unique(_rows_of(rows.indptr)[rows.indices < base]):
                message = "feature 0 is out of range in a file counted from 1; try --libsvm-base zero"
                bad.add(message, path=path, line=rows.first_line + int(row))
                keep[row] = False
            beyond = _rows_of(rows.label_indptr)[rows.label_indices >= n_labels]
            for row in np.unique(beyond):
                message = f"a label is out of range: labels.txt names {n_labels}, counted from 0"
                bad.add(message, path=path, line=rows.first_line + int(row))
                keep[row] = False
            n_rows += int(keep.sum())
            kept = np.flatnonzero(keep)
            width = max(n_labels, int(rows.label_indices.max(initial=-1)) + 1)
            Y = zero_one(rows.label_indptr, rows.label_indices, (len(rows), width))[kept]
            X = rows.features(n_features + base)[kept][:, base:]
            yield DocumentBatch(indptr=Y.indptr.astype(np.int64), indices=Y.indices, features=X, rows=place[kept])
        if n_rows == 0 and bad.count == 0:
            raise DataError("the file is empty; there is no document in it", path=path)


def _rows_of(indptr: Ints) -> Ints:
    """The row of every entry."""
    return np.repeat(np.arange(indptr.size - 1), np.diff(indptr))


class LibsvmWriter(SparseWriter):
    """Writes labels counted from 0 and features counted from 1."""

    file_name = "{}.svm"
    first_feature = 1
    empty_line = "1:0"  # a blank line would not be read as a document


def _recognises(start: FileStart) -> bool:
    return bool(re.fullmatch(r"(\d+(,\d+)*)?(\s*\d+:\S+)*(\s*#.*)?", start.lines[0].strip()))


FORMAT = FileFormat(
    name="libsvm",
    layout="train.txt or train.svm without a header",
    suffixes=("svm", "libsvm", "svmlight", "txt"),
    needs="features",
    open_files=LibsvmSource,
    recognises=_recognises,
    writer=LibsvmWriter,
)
