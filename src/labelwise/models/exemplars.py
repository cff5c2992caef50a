"""Documents that a model keeps: negatives for labels that are added later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise import storage
from labelwise.errors import StorageError
from labelwise.types import Csr, Floats

KIND = "memory"


@dataclass(frozen=True, eq=False)
class Exemplars:
    """Some documents as a model sees them, a few for each cluster; their texts are not kept.

    Features are 16-bit floats, mapped from the file: a model that only predicts does not read them.
    """

    values: npt.NDArray[np.float16]
    indices: npt.NDArray[Any]
    indptr: npt.NDArray[Any]
    n_features: int
    E: npt.NDArray[np.float16] | None
    """(n_docs, hidden) embeddings of length one; None where the model's labels are not ranked by any."""
    Y: Csr
    """(n_docs, n_labels)"""
    near: tuple[Csr, ...]
    """For each tree of the model, (n_docs, n_clusters): 1 where the labels of a cluster learn from a document."""

    @classmethod
    def of(cls, X: Csr, E: Floats | None, Y: Csr, near: tuple[Csr, ...]) -> Self:
        """Keep documents, their features rounded."""
        dense = None if E is None else E.astype(np.float16)
        return cls(X.data.astype(np.float16), X.indices, X.indptr, int(X.shape[1]), dense, Y, near)

    def features(self) -> Csr:
        """(n_docs, n_features) X, computed at each call."""
        parts: tuple[Any, ...] = (self.values.astype(np.float32), self.indices, self.indptr)
        return Csr(parts, shape=(len(self), self.n_features))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def take(self, rows: Any) -> Exemplars:
        """Some documents, in this order."""
        E = None if self.E is None else self.E[rows]
        return Exemplars.of(self.features()[rows], E, self.Y[rows], tuple(M[rows] for M in self.near))

    def with_labels(self, Y: Csr) -> Exemplars:
        """The same documents with other labels."""
        return replace(self, Y=Y)

    def followed_by(self, other: Exemplars) -> Exemplars:
        """These documents and others, over the same labels and clusters."""
        E = None if self.E is None or other.E is None else np.concatenate((self.E, other.E))
        near = tuple(below(mine, its) for mine, its in zip(self.near, other.near, strict=True))
        return Exemplars.of(below(self.features(), other.features()), E, below(self.Y, other.Y), near)

    def save(self, path: Path | str) -> None:
        """Write a folder that `load` reads."""
        arrays = {name: getattr(self, name) for name in ("values", "indices", "indptr")}
        if self.E is not None:
            arrays["E"] = self.E
        matrices = {"Y": self.Y, **{f"near.{number}": M for number, M in enumerate(self.near)}}
        about = {"n_features": self.n_features, "n_trees": len(self.near)}
        storage.save(path, kind=KIND, config=about, arrays=arrays, matrices=matrices)

    @classmethod
    def load(cls, path: Path | str, *, verify: bool = True) -> Self:
        """Read what `save` wrote; features are mapped, not copied."""
        saved = storage.load(path, kind=KIND, verify=verify)
        arrays, matrices = saved.arrays, saved.matrices
        try:
            near = tuple(matrices[f"near.{number}"] for number in range(saved.config["n_trees"]))
            parts = (arrays["values"], arrays["indices"], arrays["indptr"], saved.config["n_features"])
            return cls(*parts, arrays.get("E"), matrices["Y"], near)
        except KeyError as err:
            raise StorageError(f"{path} lacks {err}; copy or make it again") from err


def below(above: Csr, more: Csr) -> Csr:
    """One matrix of two, one above the other."""
    return Csr(sp.vstack((above, more), format="csr"))


def no_entries(n_rows: int, n_columns: int) -> Csr:
    """A matrix of zeros."""
    parts: tuple[Any, ...] = (np.empty(0, np.float32), np.empty(0, np.int32), np.zeros(n_rows + 1, np.int32))
    return Csr(parts, shape=(n_rows, n_columns))
