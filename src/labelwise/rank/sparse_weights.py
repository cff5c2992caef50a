"""The weights of one level of the tree, pruned: flat arrays that are saved, mapped and searched as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelwise.kernels.weights import prune_block

_HALF_MAX = np.finfo(np.float16).max


@dataclass(frozen=True, eq=False)
class LevelWeights:
    """Linear models of the children of every parent node, parent after parent.

    A parent's children form a block. The block's *rows* are the features with a weight for any child, ascending; a
    row's *entries* are those weights. Dense features, the bias last among them, have all their weights kept.
    """

    child_indptr: npt.NDArray[np.int64]
    """(n_parents + 1,) where the children of each parent begin."""
    child_ids: npt.NDArray[np.int32]
    """(n_children,) the node, or label, that each child is."""
    row_indptr: npt.NDArray[np.int64]
    """(n_parents + 1,) where the rows of each parent begin."""
    row_feature: npt.NDArray[np.uint32]
    """(n_rows,)"""
    row_end: npt.NDArray[np.uint32]
    """(n_rows,) where the row's entries end, counted from the first entry of its block."""
    entry_indptr: npt.NDArray[np.int64]
    """(n_parents + 1,) where the entries of each parent begin."""
    entry_child: npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
    """(n_entries,) which child of the block a weight belongs to."""
    entry_value: npt.NDArray[np.float16] | npt.NDArray[np.float32]
    """(n_entries,)"""
    dense: npt.NDArray[np.float32] | npt.NDArray[np.float16]
    """(n_children, n_dense) weights of the dense features; the last column is the bias's."""

    @property
    def n_parents(self) -> int:
        """Number of blocks."""
        return len(self.child_indptr) - 1

    @property
    def n_children(self) -> int:
        """Number of models."""
        return len(self.child_ids)

    def children(self, parent: int) -> slice:
        """Where the children of a parent lie."""
        return slice(int(self.child_indptr[parent]), int(self.child_indptr[parent + 1]))

    def block(self, parent: int) -> PrunedBlock:
        """The weights of one parent's children; next to nothing is copied."""
        rows = slice(self.row_indptr[parent], self.row_indptr[parent + 1])
        entries = slice(self.entry_indptr[parent], self.entry_indptr[parent + 1])
        return PrunedBlock(
            row_feature=self.row_feature[rows],
            row_end=self.row_end[rows],
            entry_child=self.entry_child[entries].astype(np.uint32),
            entry_value=self.entry_value[entries],
            dense=self.dense[self.children(parent)],
        )

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.to_arrays("").values())

    def to_arrays(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """The arrays by name, for `storage.save`."""
        return {f"{prefix}{field.name}": getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> Self:
        """A level from the arrays that `to_arrays` returns."""
        return cls(**{field.name: arrays[f"{prefix}{field.name}"] for field in fields(cls)})

    @classmethod
    def join(cls, blocks: Sequence[PrunedBlock], child_indptr: npt.NDArray[np.int64], child_ids: Any) -> Self:
        """One level from the blocks of its parents, in order."""
        widest = int(np.diff(child_indptr).max(initial=0))
        child_type = np.uint8 if widest <= 1 << 8 else np.uint16 if widest <= 1 << 16 else np.uint32
        return cls(
            child_indptr=child_indptr,
            child_ids=np.asarray(child_ids, np.int32),
            row_indptr=_indptr([len(block.row_feature) for block in blocks]),
            row_feature=np.concatenate([np.empty(0, np.uint32), *(block.row_feature for block in blocks)]),
            row_end=np.concatenate([np.empty(0, np.uint32), *(block.row_end for block in blocks)]),
            entry_indptr=_indptr([len(block.entry_child) for block in blocks]),
            entry_child=np.concatenate(
                [np.empty(0, child_type), *(block.entry_child.astype(child_type) for block in blocks)]
            ),
            entry_value=np.concatenate([block.entry_value for block in blocks]),
            dense=np.concatenate([block.dense for block in blocks]),
        )


@dataclass(frozen=True, eq=False)
class PrunedBlock:
    """The weights of one parent's children, or of some of them."""

    row_feature: npt.NDArray[np.uint32]
    row_end: npt.NDArray[np.uint32]
    entry_child: npt.NDArray[np.uint32]
    entry_value: npt.NDArray[Any]
    dense: npt.NDArray[np.float32] | npt.NDArray[np.float16]

    @classmethod
    def prune(
        cls,
        W: npt.NDArray[np.float32],
        features: npt.NDArray[np.uint32],
        *,
        n_dense: int,
        threshold: float,
        most: int | None,
        half: bool,
    ) -> Self:
        """Drop small weights.

        Parameters
        ----------
        W : (n_local + n_dense, n_children)
        features : (n_local,) the feature of each sparse row of W
        threshold : weights below it, in absolute value, are dropped
        most : at most this many sparse weights are kept for a child, the largest; of equal ones those of lower features
        half : store 16-bit floats
        """
        sparse = W[: len(W) - n_dense]
        limits = np.full(W.shape[1], threshold, np.float32)
        if most is not None and most < len(sparse):
            largest = np.partition(np.abs(sparse), len(sparse) - most, axis=0)[len(sparse) - most]
            limits = np.maximum(limits, largest)
            sparse = _without_surplus(sparse, features, limits, most)
        order = np.argsort(features)
        rows, ends, children, values = prune_block(sparse, order, limits)
        return cls(
            row_feature=features[rows],
            row_end=ends,
            entry_child=children,
            entry_value=np.clip(values, -_HALF_MAX, _HALF_MAX).astype(np.float16) if half else values,
            dense=W[len(W) - n_dense :].T.copy(),  # a view would keep all of W alive
        )

    @classmethod
    def beside(cls, parts: Sequence[PrunedBlock]) -> Self:
        """One block of all children from blocks of some of them each, in order."""
        if len(parts) == 1:
            return cls(**vars(parts[0]))
        firsts = np.cumsum([0, *(len(part.dense) for part in parts)])
        counts = [np.diff(part.row_end, prepend=np.uint32(0)) for part in parts]
        feature = np.concatenate([np.repeat(part.row_feature, n) for part, n in zip(parts, counts, strict=True)])
        child = np.concatenate(
            [part.entry_child + np.uint32(first) for part, first in zip(parts, firsts, strict=False)]
        )
        order = np.lexsort((child, feature))
        row_feature, n_entries = np.unique(feature, return_counts=True)
        return cls(
            row_feature=row_feature,
            row_end=np.cumsum(n_entries).astype(np.uint32),
            entry_child=child[order],
            entry_value=np.concatenate([part.entry_value for part in parts])[order],
            dense=np.concatenate([part.dense for part in parts]),
        )

    def columns(self, children: Any) -> PrunedBlock:
        """Some children, by a mask or ascending places, in the same order."""
        stay = np.zeros(len(self.dense), np.bool_)
        stay[children] = True
        counts = np.diff(self.row_end, prepend=np.uint32(0))
        row, kept = np.repeat(np.arange(len(counts)), counts), stay[self.entry_child]
        left = np.bincount(row[kept], minlength=len(counts))
        place = (np.cumsum(stay) - 1).astype(np.uint32)
        return PrunedBlock(
            row_feature=self.row_feature[left > 0],
            row_end=np.cumsum(left[left > 0]).astype(np.uint32),
            entry_child=place[self.entry_child[kept]],
            entry_value=self.entry_value[kept],
            dense=self.dense[stay],
        )

    def full_weights(
        self, features: npt.NDArray[np.uint32], width: int
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint32]]:
        """The weights as a dense matrix: rows for `features` first, then rows for all other features with weights.

        Parameters
        ----------
        features : (n,) distinct
        width : columns of W, those behind the children's zeros

        Returns
        -------
        W : (n_local + n_dense, width)
        features : (n_local,)
        """
        every = np.concatenate((features, np.setdiff1d(self.row_feature, features)))
        order = np.argsort(every)
        place = order[np.searchsorted(every, self.row_feature, sorter=order)]
        n_children, n_dense = self.dense.shape
        W = np.zeros((len(every) + n_dense, width), np.float32)
        W[np.repeat(place, np.diff(self.row_end, prepend=np.uint32(0))), self.entry_child] = self.entry_value
        W[len(every) :, :n_children] = self.dense.T
        return W, every


def _without_surplus(
    W: npt.NDArray[np.float32], features: npt.NDArray[np.uint32], limits: npt.NDArray[np.float32], most: int
) -> npt.NDArray[np.float32]:
    """W with zeros where more than `most` weights reach a child's limit, which equal ones do."""
    reached = np.abs(W) >= limits
    crowded = np.flatnonzero(reached.sum(axis=0) > most)
    if len(crowded):
        W = W.copy()
    for child in crowded:
        rows = np.flatnonzero(reached[:, child])
        W[rows[np.lexsort((features[rows], -np.abs(W[rows, child])))[most:]], child] = 0
    return W


def _indptr(sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
