"""What y may be: a matrix of 0 and 1, lists of label names, or one class for each document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from labelwise.data.frames import plain_documents, plain_labels
from labelwise.errors import DataError
from labelwise.features.matrices import indicator_matrix
from labelwise.types import Csr


@dataclass(frozen=True, eq=False)
class Targets:
    """y in one form."""

    Y: Csr
    """(n_docs, n_labels)"""
    classes: npt.NDArray[Any]
    """(n_labels,) what `classes_` says."""
    kind: Literal["matrix", "lists", "classes"]
    sparse: bool

    @property
    def names(self) -> list[str]:
        """(n_labels,) the labels' names in the model."""
        return [str(name) for name in self.classes]


def targets_of(y: Any, label_names: Sequence[str] | None = None) -> Targets:
    """Find out what y is. `label_names` are for the columns of a matrix."""
    if y is None:
        raise DataError("requires y to be passed, but the target y is None")
    if sp.issparse(y):
        return _matrix(indicator_matrix(y, "y"), label_names, sparse=True)
    if hasattr(y, "columns") and len(getattr(y, "shape", ())) == 2 and y.shape[1] > 1:
        Y, names = plain_labels(y)
        return _matrix(Y, names if label_names is None else label_names, sparse=False)
    rows = plain_documents(y) if not isinstance(y, np.ndarray) or y.dtype == object else y
    if isinstance(rows, list | tuple) and len(rows) and all(map(_is_list_of_names, rows)):
        return _lists(rows, label_names)
    try:
        array = check_array(y, ensure_2d=False, dtype=None, input_name="y", ensure_min_samples=0)
    except (ValueError, TypeError) as err:
        raise DataError(f"{err}; y may be a 0/1 matrix, lists of label names, or one class for each document") from err
    if array.ndim == 2 and array.shape[1] > 1:
        Y, _ = plain_labels(array)
        return _matrix(Y, label_names, sparse=False)
    try:
        array = column_or_1d(array, warn=True)
        check_classification_targets(array)
        classes, numbers = np.unique(array, return_inverse=True)
    except (ValueError, TypeError) as err:
        raise DataError(str(err)) from err
    ones = np.ones(len(array), np.float32)
    return Targets(Csr((ones, (np.arange(len(array)), numbers)), (len(array), len(classes))), classes, "classes", False)


def encoded(y: Any, classes: npt.NDArray[Any]) -> Csr:
    """(n_docs, n_labels) lists of names over classes that are known; other names are left out."""
    column = {name: at for at, name in enumerate(classes.tolist())}
    rows = [sorted({column[name] for name in row if name in column}) for row in plain_documents(y)]
    indptr = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    indices = np.array([at for row in rows for at in row], np.int32)
    return Csr((np.ones(len(indices), np.int64), indices, indptr), shape=(len(rows), len(classes)))


def holds_lists(y: Any) -> bool:
    """Whether y holds a list of names for each document."""
    if sp.issparse(y) or getattr(y, "ndim", 1) != 1 or hasattr(y, "columns"):
        return False
    rows = plain_documents(y)
    return isinstance(rows, list | tuple) and len(rows) > 0 and all(map(_is_list_of_names, rows))


def _matrix(Y: Any, names: Sequence[str] | None, *, sparse: bool) -> Targets:
    classes = np.arange(Y.shape[1]) if names is None else np.array(list(names), dtype=object)
    if len(classes) != Y.shape[1]:
        raise DataError(f"y has {Y.shape[1]} columns but there are {len(classes)} label names; they must match")
    return Targets(sp.csr_array(Y), classes, "matrix", sparse)


def _lists(rows: Sequence[Any], names: Sequence[str] | None) -> Targets:
    classes = np.array(sorted({name for row in rows for name in row}) if names is None else list(names), dtype=object)
    unknown = sorted({name for row in rows for name in row} - set(classes.tolist()))
    if unknown:
        raise DataError(f"the label {unknown[0]!r} is not among the label names given; add it, or leave them out")
    return Targets(encoded(rows, classes), classes, "lists", True)


def _is_list_of_names(row: Any) -> bool:
    return isinstance(row, list | tuple | set | frozenset | np.ndarray) and all(isinstance(name, str) for name in row)
