"""What models are fitted on, brought into one form: a 0/1 matrix of labels with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelwise.data.frames import plain_labels
from labelwise.data.label_names import check_name, distinct
from labelwise.errors import DataError
from labelwise.features.matrices import indicator_matrix
from labelwise.features.texts import is_collection, type_and_value
from labelwise.types import Csr


def targets(labels_or_Y: Any, names: Sequence[str] | None) -> tuple[Csr, list[str]]:
    """A 0/1 matrix with sorted indices, and the names of its columns."""
    labels_or_Y, own_names = plain_labels(labels_or_Y)
    names = own_names if names is None else names
    known = None if names is None else distinct(names)
    if sp.issparse(labels_or_Y):
        Y = indicator_matrix(labels_or_Y)
        labels = [str(i) for i in range(Y.shape[1])] if known is None else known
        if len(labels) != Y.shape[1]:
            raise DataError(f"Y has {Y.shape[1]} columns but there are {len(labels)} label names")
    else:
        Y, labels = _from_names(labels_or_Y, known or [])
    if not Y.nnz:
        raise DataError("no document has a label; there is nothing to learn")
    return Y, labels


class _Columns(dict[str, int]):
    """Columns of label names; a name that is not there gets the next column."""

    def __missing__(self, name: object) -> int:
        check_name(name)
        self[name] = column = len(self)  # type: ignore[index]  # it is a string
        return column


def _from_names(rows: Any, known: Sequence[str]) -> tuple[Csr, list[str]]:
    """The matrix of lists of label names, one for each document."""
    if isinstance(rows, Mapping) or not is_collection(rows):
        raise DataError(
            f"the labels are {type_and_value(rows)}; "
            "give a list of label names for each document, or a sparse 0/1 matrix"
        )
    columns = _Columns((name, i) for i, name in enumerate(known))
    indices: list[int] = []
    counts: list[int] = []
    for number, row in enumerate(rows):
        names = _row(row, number)
        try:
            found = list(map(columns.__getitem__, names))
        except TypeError as err:  # a list or a dictionary is no key
            raise DataError(f"a label of document {number} is no string; give names, or a sparse 0/1 matrix") from err
        except DataError as err:
            raise DataError(f"document {number}: {err}") from err
        indices += found
        counts.append(len(found))
    indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    ones = np.ones(len(indices), np.float32)
    Y = sp.csr_array((ones, np.array(indices, np.int32), indptr), shape=(len(counts), len(columns)))
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y, list(columns)


def _row(labels: Any, number: int) -> Any:
    if labels is None:
        return []
    if isinstance(labels, str):
        raise DataError(
            f"the labels of document {number} are one string; give a list of label names for each document, "
            "or read them with Dataset.from_frame, which takes a label_separator"
        )
    if isinstance(labels, Mapping) or not is_collection(labels):
        raise DataError(
            f"the labels of document {number} are {type_and_value(labels)}; "
            "give a list of label names for each document"
        )
    if isinstance(labels, set | frozenset):  # whose order differs from process to process
        return sorted(labels, key=lambda name: (type(name).__name__, str(name)))
    return labels
