"""Rows of features scaled to length one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelwise.types import Csr, Floats


def unit_rows(rows: Floats) -> npt.NDArray[np.float32]:
    """Dense rows of length one; zero rows stay zero."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    return (rows / np.where(lengths > 0, lengths, 1)[:, None]).astype(np.float32)


def unit_length(rows: Any) -> Any:
    """Dense or sparse rows of length one; zero rows stay zero."""
    if isinstance(rows, np.ndarray):
        return unit_rows(rows)
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    lengths = np.sqrt(np.bincount(row, np.square(rows.data, dtype=np.float64), minlength=rows.shape[0]))
    data = (rows.data / np.where(lengths > 0, lengths, 1)[row]).astype(np.float32)
    return Csr((data, rows.indices, rows.indptr), shape=rows.shape)
