"""The Dataset: texts, a sparse label matrix and the label names, aligned by position."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.data.label_names import distinct
from labelwise.errors import DataError
from labelwise.features.matrices import checked_csr, feature_matrix, indicator_matrix
from labelwise.features.texts import check_all_texts, listed, type_and_value
from labelwise.types import Csr, Ints, OnEvent


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Documents with their labels.

    Rows of `texts`, `Y`, `ids` and `features` belong together; so do columns of `Y` and `labels`.

    Examples
    --------
    >>> from labelwise import Dataset
    >>> data = Dataset.from_frame({"text": ["red shoe", "blue mug"], "labels": [["shoe", "red"], ["mug", "blue"]]})
    >>> len(data), data.labels
    (2, ['shoe', 'red', 'mug', 'blue'])
    >>> data.Y.toarray()
    array([[1., 1., 0., 0.],
           [0., 0., 1., 1.]], dtype=float32)
    """

    Y: Csr
    """(n_docs, n_labels) float32, 1 where the document has the label; indices sorted, no duplicates."""
    labels: list[str]
    """(n_labels,) label names, in column order."""
    texts: list[str] | None = None
    """(n_docs,) raw texts; None where the format carries features only."""
    ids: list[str] | None = None
    """(n_docs,) the documents' own ids; None where the source has none."""
    features: Csr | None = None
    """(n_docs, n_features) ready-made features; None where the format carries texts only."""
    label_texts: list[str] | None = None
    """(n_labels,) a description of every label, where the source gives one."""
    positions: Ints | None = None
    """(n_docs,) place of each document in its file, counted from 0; None where no document was left out."""

    def __post_init__(self) -> None:
        self._check_parts()
        n_docs, n_labels = self.Y.shape
        if len(self.labels) != n_labels:
            raise DataError(
                f"Y has {n_labels} columns but there are {len(self.labels)} label names; "
                "pass the label file that belongs to it, or omit the names to use numbers"
            )
        for name in ("texts", "ids"):
            rows = getattr(self, name)
            if rows is not None and len(rows) != n_docs:
                raise DataError(f"there are {len(rows)} {name} but Y has {n_docs} rows; they must match one to one")
        if self.features is not None and self.features.shape[0] != n_docs:
            raise DataError(
                f"there are {self.features.shape[0]} feature rows but Y has {n_docs}; they must match one to one"
            )
        if self.label_texts is not None and len(self.label_texts) != n_labels:
            raise DataError(f"there are {len(self.label_texts)} label texts but Y has {n_labels} columns")
        if self.positions is not None and len(self.positions) != n_docs:
            raise DataError(f"there are {len(self.positions)} positions but Y has {n_docs} rows")
        if self.texts is None and self.features is None:
            raise DataError("a dataset needs texts or features; both are missing")

    def _check_parts(self) -> None:
        """Refuse parts of a wrong type, and bring matrices into the form that is promised."""
        Y, is_sorted = checked_csr(self.Y, "Y")
        if Y is not self.Y or not is_sorted or Y.dtype != np.float32 or not (Y.data == 1).all():
            object.__setattr__(self, "Y", indicator_matrix(self.Y))
        if self.features is not None:
            object.__setattr__(self, "features", feature_matrix(self.features, "features"))
        for name in ("labels", "texts", "ids", "label_texts"):
            rows = getattr(self, name)
            if isinstance(rows, list) or (rows is None and name != "labels"):
                continue
            object.__setattr__(self, name, listed(rows, name))
        check_all_texts(self.texts or ())

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        text: str | Sequence[str] = "text",
        labels: str | Sequence[str] = "labels",
        ids: str | None = None,
        on_event: OnEvent | None = None,
        **options: Any,
    ) -> "Dataset":
        """A table in memory: a pandas or polars frame, a pyarrow table, a datasets.Dataset, or a dict of lists.

        Parameters
        ----------
        text
            The column of texts; of several the texts are joined by a space.
        labels
            The column of labels: lists of names, or strings of names with a separator between them; or several columns,
            each 0 or 1 for the label that it is called after.
        ids
            The column of the documents' own ids.
        on_event
            Hears "bad_rows".
        **options
            Fields of `ReadOptions`: label_separator, allow_unlabelled, skip_bad_rows, …

        Examples
        --------
        >>> train = Dataset.from_frame(frame, text=["title", "body"], labels="tags", label_separator=";")
        """
        from labelwise.data.frames import dataset_from_frame

        return dataset_from_frame(frame, text=text, labels=labels, ids=ids, on_event=on_event, **options)

    def __repr__(self) -> str:
        return f"Dataset({len(self):,} documents, {self.n_labels:,} labels)"

    def __len__(self) -> int:
        return int(self.Y.shape[0])

    @property
    def documents(self) -> list[str] | Csr:
        """What models learn from: the texts, or the features where there are no texts."""
        return self.texts if self.texts is not None else cast(Csr, self.features)  # it has one of them

    @property
    def names(self) -> list[str]:
        """What the documents are called: their own ids, or else their places in the file, counted from 0."""
        if self.ids is not None:
            return self.ids
        return list(map(str, range(len(self)) if self.positions is None else self.positions.tolist()))

    @property
    def n_labels(self) -> int:
        """Number of labels, the unused ones included."""
        return int(self.Y.shape[1])

    def take(self, rows: Sequence[int] | Ints) -> Self:
        """The documents `rows`, in that order, over the same labels.

        Parameters
        ----------
        rows
            Numbers of documents, counted from 0, or from the end if negative; or a mask, one True or False a document.
        """
        rows = _row_numbers(rows, len(self))
        if rows.size and not -len(self) <= rows.min() <= rows.max() < len(self):
            raise DataError(f"the rows {rows.min()} to {rows.max()} are asked for, but there are {len(self)} documents")
        return replace(
            self,
            Y=self.Y[rows],
            texts=None if self.texts is None else [self.texts[i] for i in rows.tolist()],
            ids=None if self.ids is None else [self.ids[i] for i in rows.tolist()],
            features=None if self.features is None else self.features[rows],
            positions=(np.arange(len(self)) if self.positions is None else self.positions)[rows],
        )

    def followed_by(self, other: "Dataset") -> Self:
        """These documents and then those of another data set; labels that only the other has are left out.

        What only one of the two has, texts, features or names of documents, is left out too.
        """
        if not isinstance(other, Dataset):
            raise DataError(f"what is to follow is {type_and_value(other)}; give a Dataset")
        moved = other.with_labels(self.labels)
        texts = None if self.texts is None or moved.texts is None else [*self.texts, *moved.texts]
        features = None
        if self.features is not None and moved.features is not None:
            if self.features.shape[1] != moved.features.shape[1]:
                raise DataError(
                    f"the documents have {self.features.shape[1]} features and those that follow "
                    f"{moved.features.shape[1]}; make both in the same way"
                )
            features = sp.csr_array(sp.vstack([self.features, moved.features], format="csr"))
        if texts is None and features is None:
            raise DataError("one data set has texts and the other has features; give both of one kind")
        return replace(
            self,
            Y=sp.csr_array(sp.vstack([self.Y, moved.Y[:, : self.n_labels]], format="csr")),
            texts=texts,
            ids=None if self.ids is None or moved.ids is None else [*self.ids, *moved.ids],
            features=features,
            positions=None,
        )

    def with_labels(self, labels: Sequence[str]) -> Self:
        """The same documents with columns in the order of `labels`; labels not among them follow at the end.

        This is how a test set is laid over the labels of a model: what the model never saw is kept.
        """
        labels = distinct(labels)
        column = {name: i for i, name in enumerate(labels)}
        extra = [name for name in self.labels if name not in column]
        column.update((name, len(labels) + i) for i, name in enumerate(extra))
        names = [*labels, *extra]
        moved = np.array([column[name] for name in self.labels], dtype=np.int32)
        Y = sp.csr_array((self.Y.data, moved[self.Y.indices], self.Y.indptr), shape=(len(self), len(names)))
        Y.sort_indices()
        texts = None
        if self.label_texts is not None:
            texts = list(names)  # a label that came without a description is described by its name
            for name, text in zip(self.labels, self.label_texts, strict=True):
                texts[column[name]] = text
        return replace(self, Y=Y, labels=names, label_texts=texts)


def _row_numbers(rows: Any, n_docs: int) -> npt.NDArray[np.int64]:
    """The numbers of the rows that a caller names, by a list of them or by a mask."""
    try:
        found = np.asarray(rows)
    except ValueError:  # lists of several lengths
        found = np.empty((0, 0))
    if isinstance(rows, np.ma.MaskedArray) or found.ndim != 1 or (found.size and found.dtype.kind not in "iub"):
        raise DataError(f"the rows are {type_and_value(rows)}; give whole numbers from 0, or a mask of the documents")
    if found.dtype.kind == "b":
        if len(found) != n_docs:
            raise DataError(f"the mask of rows has {len(found)} entries, but there are {n_docs} documents")
        return np.flatnonzero(found)
    if found.dtype.kind == "u" and found.size and found.max() > np.iinfo(np.int64).max:
        raise DataError(f"the row {found.max()} is asked for, but there are {n_docs} documents")
    return found.astype(np.int64)
