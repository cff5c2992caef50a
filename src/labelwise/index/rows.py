"""The label embeddings of a node as rows that are scored and summed: one interface for sparse and dense ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from labelwise.kernels.cluster import (
    add_dense,
    add_rows,
    gather_rows,
    normalize_columns,
    score_block,
    score_block_dense,
    score_dense,
    score_rows,
    sum_clusters,
    sum_clusters_dense,
)
from labelwise.types import Csr, Ints

Vector: TypeAlias = npt.NDArray[np.float32]

# Products in one piece of a large node's work, and the largest number of pieces: each piece has a sum of its own, as
# wide as Z. Both are fixed, so that sums are added up in the same order for any number of threads.
PRODUCTS_PER_PIECE = 1 << 18
MAX_PIECES = 16

_scratch = threading.local()


class Spread(Protocol):
    """Calls a function for every item: `map`, or the `map` of a pool of threads."""

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        """The results, in the order of the items."""
        ...


@dataclass(frozen=True)
class Rows:
    """Some rows of Z."""

    ids: Ints
    """(n_rows,) numbers of the rows in the arrays."""
    arrays: tuple[npt.NDArray[Any], ...]
    """indptr, indices (uint32) and data of sparse rows, or one dense array."""
    width: int
    """Length of a row."""

    @classmethod
    def of(cls, Z: Csr | Vector) -> Rows:
        """All rows of a matrix."""
        n_rows, width = Z.shape
        if isinstance(Z, np.ndarray):
            return cls(np.arange(n_rows), (np.ascontiguousarray(Z, np.float32),), width)
        indices = Z.indices.astype(np.int32, copy=False).view(np.uint32)
        return cls(np.arange(n_rows), (Z.indptr, indices, Z.data.astype(np.float32, copy=False)), width)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def n_products(self) -> int:
        """Number of multiplications that scoring all rows takes."""
        if len(self.arrays) == 1:
            return len(self.ids) * self.width
        indptr = self.arrays[0]
        return int((indptr[self.ids + 1] - indptr[self.ids]).sum())

    @property
    def small(self) -> bool:
        """Whether these are all rows of their arrays, and few enough for one piece of work."""
        n_stored = len(self.arrays[0]) - (len(self.arrays) == 3)
        return len(self.ids) == n_stored and self.n_products <= PRODUCTS_PER_PIECE

    def subset(self, places: Ints) -> Rows:
        """Some of these rows, in the same columns."""
        return replace(self, ids=self.ids[places])

    def inside(self, places: Ints) -> Rows:
        """Some of these rows, for repeated scoring: compact, unless all of many rows are selected."""
        if len(places) == len(self.ids) and self.n_products > PRODUCTS_PER_PIECE:
            return self.subset(places)
        return self.compact(places)

    def compact(self, places: Ints) -> Rows:
        """A copy of some of these rows, with renumbered columns: only products among these rows stay the same."""
        ids = self.ids[places]
        if len(self.arrays) == 1:
            return Rows(np.arange(len(ids)), (self.arrays[0][ids],), self.width)
        counts = getattr(_scratch, "counts", None)
        if counts is None or len(counts) < self.width:
            counts = _scratch.counts = np.zeros(self.width, np.int32)
        *arrays, width = gather_rows(ids, *self.arrays, counts)
        return Rows(np.arange(len(ids)), tuple(arrays), width)

    def score(self, direction: Vector, spread: Spread = map) -> Vector:
        """(n_rows,) products with a vector of (width,)."""
        kernel = score_dense if len(self.arrays) == 1 else score_rows
        scores = np.empty(len(self.ids), np.float32)

        def work(piece: slice) -> None:
            kernel(self.ids[piece], *self.arrays, direction, scores[piece])

        list(spread(work, self._pieces))
        return scores

    def sum(self, weights: Vector, spread: Spread = map) -> Vector:
        """(width,) the weighted sum of the rows."""
        kernel = add_dense if len(self.arrays) == 1 else add_rows

        def work(piece: slice) -> Vector:
            sums = np.zeros(self.width, np.float32)
            kernel(self.ids[piece], *self.arrays, weights[piece], sums)
            return sums

        few = 4 * np.count_nonzero(weights) < len(weights)
        parts: list[Vector] = list(spread(work, [slice(None)] if few else self._pieces))
        for part in parts[1:]:
            parts[0] += part
        return parts[0]

    def centres(self, clusters: Ints, n_block: int, first: int = 0) -> Vector:
        """(width, n_block) centres of length one of the clusters from number `first` on, as columns.

        Parameters
        ----------
        clusters
            (n_rows,) the cluster of each row.
        """
        kernel = sum_clusters_dense if len(self.arrays) == 1 else sum_clusters
        centres = np.zeros((self.width, n_block), np.float32)
        kernel(self.ids, *self.arrays, clusters, first, centres)
        normalize_columns(centres)
        return centres

    def score_all(self, centres: Vector) -> Vector:
        """(n_rows, n_block) products with the columns of `centres`, (width, n_block)."""
        kernel = score_block_dense if len(self.arrays) == 1 else score_block
        scores = np.empty((len(self.ids), centres.shape[1]), np.float32)
        kernel(self.ids, *self.arrays, centres, scores)
        return scores

    def nearest(self, centres: Vector, spread: Spread = map) -> tuple[npt.NDArray[np.int32], Vector]:
        """(n_rows,) number and product of the centre with the largest product; of equal ones the first."""
        best, scores = np.empty(len(self.ids), np.int32), np.empty(len(self.ids), np.float32)

        def work(piece: slice) -> None:
            products = replace(self, ids=self.ids[piece]).score_all(centres)
            best[piece] = products.argmax(axis=1)
            scores[piece] = products.max(axis=1)

        list(spread(work, self._pieces))
        return best, scores

    @cached_property
    def _pieces(self) -> list[slice]:
        n_rows = len(self.ids)
        n_pieces = max(min(self.n_products // PRODUCTS_PER_PIECE + 1, MAX_PIECES, n_rows), 1)
        return [slice(n_rows * i // n_pieces, n_rows * (i + 1) // n_pieces) for i in range(n_pieces)]
