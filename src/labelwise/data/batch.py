"""What every reader gives: batches of documents over a growing list of labels."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from labelwise.config.settings import shown
from labelwise.data.files import NUMBERS_WITHOUT_PROOF
from labelwise.data.label_names import has_lone_surrogate, read_label_texts
from labelwise.data.options import BadRows, ReadOptions
from labelwise.types import Csr, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentBatch:
    """Some documents in a row; label ids are columns of the source's `labels`."""

    indptr: Ints
    """(n_docs + 1,) where each document's labels start in `indices`."""
    indices: Ints
    """Label ids, in the order of the source; a document may name a label twice."""
    texts: list[str] | None = None
    """(n_docs,) raw texts."""
    ids: list[str] | None = None
    """(n_docs,) the documents' own ids."""
    features: Csr | None = None
    """(n_docs, n_features) ready-made features."""
    rows: Ints | None = None
    """(n_docs,) place of each document in its file, counted from 0; None where a format leaves none out."""

    def __len__(self) -> int:
        return int(self.indptr.size) - 1


class BadLabelError(ValueError):
    """A label that cannot be one; the reader adds where it stands."""


LARGEST_NAME = 10**100
"""A label may be called by a whole number below this."""


class LabelVocabulary(dict[str, int]):
    """Label names to ids. A name that is looked up and not there gets the next id."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = list(names)
        super().__init__(zip(self.names, range(len(self.names)), strict=True))

    def __missing__(self, name: object) -> int:
        if type(name) is int and abs(name) < LARGEST_NAME:
            return self[str(name)]
        if not isinstance(name, str):
            raise BadLabelError(f"a label is {kind_of(name)} where its name should be a string")
        if not name or name.isspace():
            raise BadLabelError("a label is empty")
        if not name.isascii() and has_lone_surrogate(name):
            raise BadLabelError(f"the label {name!r} holds half of a surrogate pair")
        self[name] = number = len(self.names)
        self.names.append(name)
        return number

    def ids_of(self, labels: Iterable[Any]) -> list[int]:
        """Ids of label names, new ones included; unchanged if one of them cannot be a label."""
        before = len(self.names)
        try:
            return list(map(self.__getitem__, labels))
        except (BadLabelError, TypeError) as err:
            for name in self.names[before:]:
                del self[name]
            del self.names[before:]
            if isinstance(err, BadLabelError):
                raise
            raise BadLabelError("a label is a list or an object where its name should be a string") from err


class NumberedLabels(LabelVocabulary):
    """Labels that the documents give by number: columns of a list of names that may end in bare numbers."""

    def __init__(self, names: Iterable[str] = (), *, closed: bool = False, most: int = NUMBERS_WITHOUT_PROOF) -> None:
        """Columns up to the number `most`, and none beyond the names if these are all (`closed`)."""
        dict.__init__(self)  # nobody asks for the number of a name
        self.names, self.closed, self.most = list(names), closed, most

    def ids_of(self, labels: Iterable[Any]) -> list[int]:
        """The numbers themselves, checked."""
        numbers = list(labels)
        for number in numbers:
            if type(number) is not int or number < 0:
                raise BadLabelError(f"the label {shown(number)} is not a column number")
            if self.closed and number >= len(self.names):
                raise BadLabelError(f"label {shown(number)} is out of range: there are {len(self.names)} labels")
            if number >= self.most:
                most = f"files of this size can tell of {self.most:,} labels at most"
                raise BadLabelError(f"label {shown(number)} is out of range: {most}")
        self.grow(max(numbers, default=-1) + 1)
        return numbers

    def grow(self, n_labels: int) -> None:
        """Name the columns up to `n_labels` by their numbers."""
        self.names.extend(map(str, range(len(self.names), n_labels)))


class DataSource(Protocol):
    """Data in some format, found and ready to be streamed."""

    @property
    def path(self) -> Path:
        """The folder or file that was asked for."""
        ...

    @property
    def labels(self) -> LabelVocabulary:
        """All labels met so far."""
        ...

    @property
    def labels_known(self) -> bool:
        """Whether `labels` was complete from the start, so that no split has to be read for its labels."""
        ...

    @property
    def label_texts(self) -> Mapping[str, str] | None:
        """Descriptions of labels by name, where the source has them."""
        ...

    @property
    def splits(self) -> list[str]:
        """Names of the splits there are: train first."""
        ...

    @property
    def has_columns(self) -> bool:
        """Whether options name the columns that hold texts, labels and ids."""
        ...

    def batches(self, split: str, bad: BadRows) -> Iterator[DocumentBatch]:
        """The documents of a split, in order."""
        ...


class FileSource:
    """What every source of files has: a file, or some, for each split, and a folder where descriptions may lie."""

    files: Mapping[str, Any]
    beside: Path | None
    options: ReadOptions

    @property
    def splits(self) -> list[str]:
        """Names of the splits there are: train first."""
        return list(self.files)

    @property
    def has_columns(self) -> bool:
        """Whether options name the columns that hold texts, labels and ids."""
        return False

    @cached_property
    def label_texts(self) -> Mapping[str, str] | None:
        """Descriptions of labels by name, from label_texts.jsonl."""
        if self.beside is None:
            return None
        return read_label_texts(self.beside, max_unpacked=self.options.max_unpacked)


def label_matrix(parts: Sequence[DocumentBatch], n_labels: int) -> Csr:
    """(n_docs, n_labels) 0/1 matrix of some batches, indices sorted, without duplicates."""
    n_docs = sum(len(part) for part in parts)
    counts = [np.diff(part.indptr) for part in parts]
    indptr = np.zeros(n_docs + 1, dtype=np.int64)
    np.cumsum(np.concatenate([*counts, np.zeros(0, dtype=np.int64)]), out=indptr[1:])
    indices = np.concatenate([*(part.indices for part in parts), np.zeros(0, dtype=np.int32)])
    return zero_one(indptr, indices, (n_docs, n_labels))


def positions(parts: Sequence[DocumentBatch]) -> Ints | None:
    """The documents' places in the file; None where no document was left out."""
    if any(part.rows is None for part in parts):
        return None
    rows = np.concatenate([part.rows for part in parts if part.rows is not None])
    return None if rows[-1] == len(rows) - 1 else rows


def zero_one(indptr: Ints, indices: Ints, shape: tuple[int, int]) -> Csr:
    """A 0/1 matrix with sorted indices; a label named twice in a row counts once."""
    if indptr[-1] < 1 << 31:
        indptr = indptr.astype(np.int32)
    Y = sp.csr_array((np.ones(indices.size, dtype=np.float32), indices.astype(np.int32), indptr), shape=shape)
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y


def kind_of(value: object) -> str:
    """A JSON value's kind, with its article."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"
