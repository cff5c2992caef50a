"""What linear models read of documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelwise.errors import DataError
from labelwise.types import Csr, Floats


@dataclass(frozen=True, eq=False)
class Features:
    """What models are trained on: sparse features, dense ones beside them, and the constant one for the bias."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.uint32]
    data: npt.NDArray[np.float32]
    n_features: int
    dense: npt.NDArray[np.float32]
    """(n_docs, n_dense), the constant last."""

    @classmethod
    def of(cls, X: Csr, dense: Floats | None = None, *, bias: float = 1.0) -> Features:
        """Features of documents; the sparse ones are not copied where their types allow."""
        if dense is not None and len(dense) != X.shape[0]:
            raise DataError(f"there are {len(dense)} dense rows but X has {X.shape[0]}; they must match one to one")
        if not np.isfinite(X.data).all() or (dense is not None and not np.isfinite(dense).all()):
            raise DataError("X holds values that are not numbers (nan or inf); clean the features first")
        constant = np.full((X.shape[0], 1), bias, np.float32)
        return cls(
            indptr=X.indptr.astype(np.int64, copy=False),
            indices=X.indices.astype(np.int32, copy=False).view(np.uint32),
            data=X.data.astype(np.float32, copy=False),
            n_features=X.shape[1],
            dense=constant if dense is None else np.hstack((dense.astype(np.float32, copy=False), constant)),
        )

    @property
    def n_docs(self) -> int:
        """Number of documents."""
        return len(self.indptr) - 1
