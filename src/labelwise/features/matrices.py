"""Matrices that callers pass in: checked before any kernel reads them, and brought into one form.

scipy does not check the indices of a matrix, and neither do its own conversions nor our kernels: an index out of range
reads and writes memory that is not the matrix's. All models, estimators and metrics check a matrix here, in one pass
over the indices and one over the values.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.errors import DataError
from labelwise.storage.checks import is_below, is_offsets
from labelwise.types import Csr

logger = logging.getLogger(__name__)
LARGEST = 2**31 - 1
"""Largest number of rows or columns, as kernels count columns in 32 bits."""
_NUMBERS = "biuf"


def feature_matrix(matrix: Any, name: str = "X") -> Csr:
    """CSR with sorted, distinct indices and finite float32 values; the input is left as it was."""
    csr, is_sorted = checked_csr(matrix, name)
    if csr.dtype != np.float32:
        with np.errstate(over="ignore"):  # what is too large for 32 bits becomes infinite, and is refused below
            csr = csr.astype(np.float32)
    if not is_sorted:
        csr = sorted_copy(csr)
    check_finite(csr, name, "compute the features again, or replace these values by 0")
    return csr


def indicator_matrix(matrix: Any, name: str = "Y") -> Csr:
    """A copy with sorted, distinct indices and ones in float32: every stored value but 0 counts as 1, as in metrics.

    Negative values are refused, and those that are not finite.
    """
    csr, _ = checked_csr(matrix, name)
    check_label_values(csr, name)
    ones = (csr.data != 0).astype(np.float32)  # 32 bits would make 0 of the smallest 64-bit numbers
    made: Csr = sp.csr_array((ones, csr.indices, csr.indptr), shape=csr.shape)
    made = sorted_copy(made)
    made.eliminate_zeros()
    made.data[:] = 1
    return made


def check_label_values(csr: Csr, name: str) -> None:
    """Refuse values that are negative or not finite; warn of others than 0 and 1, which are no weights."""
    check_finite(csr, name, "give 1 where a document has a label, and 0 elsewhere")
    values = csr.data
    if values.dtype.kind in "if" and (values < 0).any():
        at = int(np.argmax(values < 0))
        raise DataError(
            f"{name} has the value {values[at]} in {place_of(csr, at)}; give 1 where a document has a label, and 0 "
            "elsewhere"
        )
    others = (values != 0) & (values != 1)
    if others.any():
        at = int(np.argmax(others))
        logger.warning(
            "%s has the value %s in %s: such values are not used as weights, each counts as 1 (the document has the "
            "label)",
            name,
            values[at],
            place_of(csr, at),
        )


def checked_csr(matrix: Any, name: str) -> tuple[Csr, bool]:
    """A sparse matrix of numbers as CSR whose indices are in range, and whether they are sorted and distinct."""
    if not _is_matrix(matrix):
        raise DataError(
            f"{name} is of class {type(matrix).__name__}, not a sparse matrix with two dimensions; "
            f"wrap a dense one as scipy.sparse.csr_array({name})"
        )
    try:
        csr = _converted(matrix, name)
    except DataError:
        raise
    except (AttributeError, TypeError, ValueError, LookupError, ArithmeticError) as err:  # a part was exchanged
        raise DataError(f"{name} is damaged: its arrays do not fit each other; build it again") from err
    return csr, _is_sorted(csr)


def _converted(matrix: Any, name: str) -> Csr:
    """A sparse matrix as CSR, after checks of all that scipy reads without looking."""
    if max(matrix.shape) > LARGEST:
        raise DataError(f"{name} has the shape {matrix.shape}; at most {LARGEST} rows and columns are possible")
    if matrix.format in ("csr", "csc", "bsr", "coo", "dia"):
        if isinstance(matrix.data, np.ma.MaskedArray):
            raise DataError(f"{name} has masked values; fill them, or leave these entries out")
        if not isinstance(matrix.data, np.ndarray):
            raise _damaged(name, matrix.shape)
    if matrix.dtype.kind not in _NUMBERS:
        raise DataError(f"{name} has values of the type {matrix.dtype}; give real numbers, such as float32")
    if matrix.format in ("csr", "csc", "bsr"):
        _check_compressed(matrix, name)
    elif not _IS_WHOLE[matrix.format](matrix):
        raise _damaged(name, matrix.shape)
    return _as_csr(matrix, name)


def sorted_copy(csr: Csr) -> Csr:
    """A copy with sorted indices; entries at the same place are added up."""
    # A new matrix, since the flag of the old one that says whether it is sorted may be wrong.
    arrays = (csr.data.copy(), csr.indices.copy(), csr.indptr.copy())
    made: Csr = sp.csr_array(arrays, shape=csr.shape)
    made.sum_duplicates()
    return made


def check_finite(csr: Csr, name: str, advice: str) -> None:
    """Refuse NaN and infinite values, with the place of the first."""
    values = csr.data
    if values.dtype.kind != "f" or np.isfinite(values.sum(dtype=np.float64)):  # 64 bits hold the sum of 32-bit values
        return
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise DataError(f"{name} holds NaN or infinity in {place_of(csr, int(np.argmax(wrong)))}; {advice}")


def place_of(csr: Csr, entry: int) -> str:
    """Row and column of a stored entry, in words."""
    row = int(np.searchsorted(csr.indptr, entry, side="right")) - 1
    return f"row {row}, column {csr.indices[entry]}"


def _is_matrix(value: Any) -> bool:
    return sp.issparse(value) and value.ndim == 2  # type: ignore[attr-defined]  # the stubs know no common base


def _as_csr(matrix: Any, name: str) -> Csr:
    """The matrix as CSR; the indices have been checked where the conversion reads them."""
    if isinstance(matrix, sp.csr_array) and all(_is_plain(part) for part in (matrix.indices, matrix.indptr)):
        return matrix
    try:
        rows = matrix if matrix.format == "csr" else matrix.tocsr()
        parts = (rows.data, _plain_indices(rows.indices), _plain_indices(rows.indptr))
        csr: Csr = sp.csr_array(parts, shape=matrix.shape)
    except (ValueError, TypeError, IndexError, OverflowError) as err:  # lists of rows or keys that do not fit the shape
        raise _damaged(name, matrix.shape) from err
    if matrix.format != "csr":
        _check_compressed(csr, name)
    return csr


def _check_compressed(matrix: Any, name: str) -> None:
    """Refuse a matrix whose arrays do not fit each other or its shape."""
    n_rows, n_columns = matrix.shape
    if matrix.data.ndim != (3 if matrix.format == "bsr" else 1):
        raise _damaged(name, matrix.shape)
    if matrix.format == "bsr":
        n_rows, n_columns = n_rows // matrix.blocksize[0], n_columns // matrix.blocksize[1]
    n_outer, n_inner = (n_columns, n_rows) if matrix.format == "csc" else (n_rows, n_columns)
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    fits = (
        _holds_whole_numbers(indptr)
        and _holds_whole_numbers(indices)
        and indptr.size == n_outer + 1
        and indices.size == len(data)
        and is_offsets(indptr, indices.size)
    )
    if not fits or not _in_range(indices, n_inner):
        raise _damaged(name, matrix.shape)


def _has_coordinates(matrix: Any) -> bool:
    """Whether each value of a matrix of coordinates has a row and a column."""
    axes = zip((matrix.row, matrix.col), matrix.shape, strict=True)
    return all(one.size == matrix.data.size and _in_range(one, n) for one, n in axes)


def _has_lists(matrix: Any) -> bool:
    """Whether each row of a matrix of lists has as many columns as values; scipy moves the rest to other rows."""
    rows, values = matrix.rows, matrix.data
    if not all(isinstance(lists, np.ndarray) and lists.shape == matrix.shape[:1] for lists in (rows, values)):
        return False
    pairs = zip(rows, values, strict=True)
    if not all(isinstance(own, list) and isinstance(its, list) and len(own) == len(its) for own, its in pairs):
        return False
    return _are(chain.from_iterable(rows), "iu") and _are(chain.from_iterable(values), _NUMBERS)


def _has_keys(matrix: Any) -> bool:
    """Whether the keys of a dictionary are pairs of whole numbers, and its values numbers."""
    keys = list(matrix.keys())
    pairs = all(isinstance(key, tuple) and len(key) == 2 for key in keys)
    return pairs and _are(chain.from_iterable(keys), "iu") and _are(matrix.values(), _NUMBERS)


def _has_diagonals(matrix: Any) -> bool:
    """Whether a matrix of diagonals has one offset for each; scipy reads past the end where there are fewer."""
    offsets, values = matrix.offsets, matrix.data
    if not _holds_whole_numbers(offsets) or not isinstance(values, np.ndarray):
        return False
    return bool(values.ndim == 2 and len(values) == offsets.size == np.unique(offsets).size)


_IS_WHOLE: dict[str, Callable[[Any], bool]]
_IS_WHOLE = {"coo": _has_coordinates, "lil": _has_lists, "dok": _has_keys, "dia": _has_diagonals}
"""The checks of the forms that are no compressed rows or columns."""


def _are(values: Iterable[Any], kinds: str) -> bool:
    """Whether values are numbers of some kinds of numpy."""
    try:
        found = np.array(list(values))
    except (ValueError, OverflowError):  # values of several lengths
        return False
    return not found.size or (found.ndim == 1 and found.dtype.kind in kinds)


def _holds_whole_numbers(array: Any) -> bool:
    plain = isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray)
    return plain and array.ndim == 1 and array.dtype.kind in "iu"


def _in_range(indices: npt.NDArray[Any], n: int) -> bool:
    return _holds_whole_numbers(indices) and is_below(indices, n)


def _is_sorted(csr: Csr) -> bool:
    """Whether the indices of each row are ascending, without duplicates."""
    ascending = csr.indices[1:] > csr.indices[:-1]
    starts = csr.indptr[1:-1]
    ascending[starts[(starts > 0) & (starts < csr.indices.size)] - 1] = True  # from one row to the next all may happen
    return bool(ascending.all())


def _is_plain(indices: npt.NDArray[Any]) -> bool:
    return indices.dtype in (np.int32, np.int64)


def _plain_indices(indices: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Indices of a type that kernels are compiled for; what 64 bits cannot hold becomes negative, out of range."""
    return indices if _is_plain(indices) else indices.astype(np.int64)


def _damaged(name: str, shape: tuple[int, ...]) -> DataError:
    return DataError(f"{name} is damaged: an index lies outside its shape {shape}; build it again")
