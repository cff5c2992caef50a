"""What models are fitted on, brought into one form: a 0/1 matrix of labels with names, sparse features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelwise.data.frames import plain_labels
from labelwise.errors import DataError
from labelwise.types import Csr


def targets(labels_or_Y: Any, names: Sequence[str] | None) -> tuple[Csr, list[str]]:
    """A 0/1 matrix with sorted indices, and the names of its columns."""
    labels_or_Y, own_names = plain_labels(labels_or_Y)
    names = own_names if names is None else names
    if sp.issparse(labels_or_Y):
        Y = canonical(labels_or_Y).copy()
        Y.eliminate_zeros()
        Y.data[:] = 1
        labels = [str(i) for i in range(Y.shape[1])] if names is None else distinct(names)
        if len(labels) != Y.shape[1]:
            raise DataError(f"Y has {Y.shape[1]} columns but there are {len(labels)} label names")
    else:
        column: dict[str, int] = {name: i for i, name in enumerate(distinct(names or ()))}
        rows = [_row(labels, number) for number, labels in enumerate(labels_or_Y)]
        indices = np.array([column.setdefault(name, len(column)) for row in rows for name in row], np.int32)
        indptr = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int32)
        Y = sp.csr_array((np.ones(len(indices), np.float32), indices, indptr), shape=(len(rows), len(column)))
        Y.sum_duplicates()
        Y.data[:] = 1
        labels = distinct(list(column))
    if not Y.nnz:
        raise DataError("no document has a label; there is nothing to learn")
    return Y, labels


def _row(labels: Iterable[str] | None, number: int) -> list[str]:
    if labels is None:
        return []
    if isinstance(labels, str):
        raise DataError(
            f"the labels of document {number} are one string; give a list of label names for each document, "
            "or read them with Dataset.from_frame, which takes a label_separator"
        )
    return list(labels)


def distinct(names: Sequence[Any]) -> list[str]:
    """Names that tell labels apart, as a saved model's must."""
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str):
            kind = type(name).__name__
            raise DataError(f"the label {name!r} is {kind}, not a string; give names, or a sparse 0/1 matrix")
        if not name or name.isspace():
            raise DataError("a label name is empty; give every label a name of its own")
        if name in seen:
            raise DataError(f"the label name {name!r} is given twice; give every label a name of its own")
        seen.add(name)
    return list(names)


def canonical(matrix: Any) -> Csr:
    """CSR with sorted, distinct indices and float32 values; the input is left as it was."""
    X = matrix if isinstance(matrix, sp.csr_array) else sp.csr_array(matrix)
    if X.dtype != np.float32:
        X = X.astype(np.float32)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
