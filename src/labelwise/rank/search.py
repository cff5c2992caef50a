"""Beam search over trained levels: the best labels of every document."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelwise.config.score_transform import DEFAULT_TRANSFORM, TRANSFORMS, ScoreTransform
from labelwise.engines import current_engine
from labelwise.errors import UsageError
from labelwise.events import Task
from labelwise.kernels.beam import collect, descend, index_features, spread_rows
from labelwise.rank.features import Features
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.types import Csr, OnEvent

# A batch's scores should stay in the cache's reach, its documents outnumber the clusters.
_SCORES_PER_BATCH = 1 << 21
# Rows with weights for this share of a node's children are written out in full when a model is loaded.
FULL_SHARE = 0.2
FULL_CELLS, CELLS_PER_ENTRY = 1 << 24, 64
"""Most numbers of rows that are written out in full: so many, and so many for each weight. Only levels whose largest
node has far more children than the others have more; none of their rows is then written out."""
WIDE, FEATURES_PER_ROW = 1 << 22, 8
"""Of more features than both allow, only those that have weights are looked up: memory depends on the weights then."""


@dataclass(frozen=True, eq=False)
class Shortlist:
    """Where a search begins if not at a single root: the nodes that another matcher found for each document."""

    nodes: npt.NDArray[np.int32]
    """(n_docs, width) parents of the first level searched, -1 where a document has fewer."""
    scores: npt.NDArray[np.float32]
    """(n_docs, width) their scores, transformed, as logarithms."""

    @classmethod
    def of(cls, found: Csr, score_transform: ScoreTransform, weight: float = 1.0) -> Self:
        """Nodes with the matcher's own scores.

        Parameters
        ----------
        found : (n_docs, n_nodes) scores as the matcher gives them; entries that are not there are not searched
        score_transform : how they become factors of a label's score; "ranker-only" leaves them out
        weight : the power that the factors are raised to: below 1 they count for less than the label's own
        """
        counts = np.diff(found.indptr)
        width = max(int(counts.max(initial=0)), 1)
        nodes = np.full((found.shape[0], width), -1, np.int32)
        scores = np.zeros((found.shape[0], width), np.float32)
        filled = np.arange(width) < counts[:, None]
        nodes[filled] = found.indices
        if weight:  # 0 times the logarithm of nothing would be no number
            scores[filled] = np.float32(weight) * _logarithms(found.data, score_transform)
        return cls(nodes, scores)


class BeamSearch:
    """Finds the best leaves below a root. May be used from any number of threads."""

    def __init__(
        self, levels: Sequence[LevelWeights], *, n_features: int, score_transform: ScoreTransform = DEFAULT_TRANSFORM
    ) -> None:
        if score_transform not in TRANSFORMS:
            raise UsageError(f"unknown score_transform {score_transform!r}; there are: {', '.join(TRANSFORMS)}")
        if any(level.least_n_features > n_features for level in levels):
            raise UsageError(f"there are weights of features beyond the {n_features} of the documents")
        self.levels, self.n_features, self.score_transform = list(levels), n_features, score_transform
        searched, self._used = self.levels, _used_features(self.levels, n_features)
        self._n_looked_up = n_features
        if self._used is not None:
            searched, self._n_looked_up = [_renumbered(level, self._used) for level in searched], len(self._used)
        self._arrays = [tuple(_as_mapped(array) for array in level.to_arrays("").values()) for level in searched]
        self._largest = [int(np.diff(level.child_indptr).max(initial=1)) for level in self.levels]
        self._lookups = [
            (
                *index_features(arrays[2], arrays[3], self._n_looked_up),
                *spread_rows(arrays, np.float32(_full_share(level, largest))),
            )
            for level, arrays, largest in zip(searched, self._arrays, self._largest, strict=True)
        ]
        # A single parent's rows, the root's above all, are looked up by every document: their table stands ready.
        self._standing = [_row_table(level, self._n_looked_up) if level.n_parents == 1 else None for level in searched]
        nothing = (np.empty(0, np.float32), np.empty(0, np.int32), np.zeros(2, np.int32))
        self._empty = Csr(nothing, shape=(1, self.levels[-1].n_children))
        self._local = threading.local()

    def top(
        self,
        documents: Features,
        *,
        beam: int,
        top_k: int,
        start: Shortlist | None = None,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> Csr:
        """The best `top_k` leaves of each document with their scores, below the root or below a shortlist's nodes.

        Scores are between 0 and 1, except those of "ranker-only". Entries of a row are in order of their columns.

        Returns
        -------
        Y_pred : (n_docs, n_leaves) float32
        """
        if beam < 1 or top_k < 1:
            raise UsageError(f"beam is {beam} and top_k is {top_k}; both must be at least 1")
        n_docs, n_leaves = documents.n_docs, self.levels[-1].n_children
        if start is None and self.levels[0].n_parents > 1:
            raise UsageError(f"the search begins at {self.levels[0].n_parents} nodes; say where, by a shortlist")
        if start is not None and len(start.nodes) != n_docs:
            raise UsageError(f"the shortlist is of {len(start.nodes)} documents, not of these {n_docs}")
        if self._used is not None:
            documents = _only_used(documents, self._used)
        first = 1 if start is None else start.nodes.shape[1]
        width = max(
            min(beam if depth else first, level.n_parents) * largest
            for depth, (level, largest) in enumerate(zip(self.levels, self._largest, strict=True))
        )
        size = max(1, _SCORES_PER_BATCH // width)
        borders = [(start, min(start + size, n_docs)) for start in range(0, max(n_docs, 1), size)]

        work = _RangeSearch(self, documents, beam, min(top_k, n_leaves), start)
        parts = []
        with Task(on_event, "predicting", total=n_docs) as task:
            for part in current_engine().map(
                work, borders, threads=threads, costs=[end - begin for begin, end in borders]
            ):
                parts.append(part)
                task.advance(len(part[0]))
        best = parts[0] if len(parts) == 1 else (np.concatenate(column) for column in zip(*parts, strict=True))
        indptr, indices, data = collect(*best)
        if indptr[-1] < 1 << 31:
            indptr = indptr.astype(np.int32)
        else:  # scipy wants one type for both
            indices = indices.astype(np.int64)
        if n_docs == 1:  # a copy, since scipy's checks of what it is given take longer than a short document's search
            Y_pred = copy(self._empty)
            Y_pred.data, Y_pred.indices, Y_pred.indptr = data, indices, indptr
        else:
            Y_pred = Csr((data, indices, indptr), shape=(n_docs, n_leaves))
        Y_pred.has_sorted_indices = Y_pred.has_canonical_format = True
        return Y_pred

    def __getstate__(self) -> Mapping[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_local"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._arrays = [tuple(map(_as_mapped, arrays)) for arrays in self._arrays]  # pickles forget what is read-only
        self._local = threading.local()

    def search(
        self, documents: Features, begin: int, end: int, beam: int, top_k: int, start: Shortlist | None
    ) -> tuple[Any, Any]:
        """The best leaves of the documents from `begin` to `end`, and their scores."""
        n_docs = end - begin
        rows = (documents.indptr[begin : end + 1], documents.indices, documents.data, documents.dense[begin:end])
        if start is None:
            best, scores = np.zeros((n_docs, 1), np.int32), np.zeros((n_docs, 1), np.float32)
        else:
            best, scores = start.nodes[begin:end], start.scores[begin:end]
        if not hasattr(self._local, "table"):
            self._local.table = np.full(self._n_looked_up, -1, np.int32)
        table, bounded = self._local.table, TRANSFORMS[self.score_transform].bounded
        for depth, arrays in enumerate(self._arrays):
            last = depth == len(self.levels) - 1
            n_best = top_k if last else min(beam, self.levels[depth].n_children)
            known = TRANSFORMS[self.score_transform if last or bounded else DEFAULT_TRANSFORM]
            transform = (*known.kernel, not known.bounded)
            standing = self._standing[depth]
            lookup = (table if standing is None else standing, *self._lookups[depth])
            next_best = np.empty((n_docs, n_best), np.int32)
            next_scores = np.empty((n_docs, n_best), np.float32)
            descend(arrays, rows, best, scores, transform, lookup, next_best, next_scores)
            best, scores = next_best, next_scores
        return best, np.exp(scores) if bounded else scores


@dataclass(frozen=True, eq=False)
class _RangeSearch:
    """Searches for a range of documents."""

    tree: BeamSearch
    documents: Features
    beam: int
    top_k: int
    start: Shortlist | None

    def __call__(self, border: tuple[int, int]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        return self.tree.search(self.documents, *border, self.beam, self.top_k, self.start)


def _as_mapped(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array as kernels take it: 16-bit floats as whole numbers, and read-only, as arrays of mapped files are.

    A kernel is compiled for read-only arrays and again for others; the search needs it once.
    """
    array = array.view(np.uint16 if array.dtype == np.float16 else array.dtype)
    array.flags.writeable = False
    return array


def _logarithms(scores: npt.NDArray[np.float32], score_transform: ScoreTransform) -> npt.NDArray[np.float32]:
    """Scores as logarithms of what is multiplied along a path, as the kernels compute them further down."""
    logarithm = TRANSFORMS[score_transform].logarithm
    return np.zeros_like(scores) if logarithm is None else logarithm(scores).astype(np.float32)


def _used_features(levels: Sequence[LevelWeights], n_features: int) -> npt.NDArray[np.uint32] | None:
    """The features that have weights, where these are few of very many features; otherwise None."""
    n_rows = sum(len(level.row_feature) for level in levels)
    if n_features <= max(WIDE, FEATURES_PER_ROW * n_rows):
        return None
    return np.unique(np.concatenate([level.row_feature for level in levels]))


def _renumbered(level: LevelWeights, used: npt.NDArray[np.uint32]) -> LevelWeights:
    """The level with numbers of features that count those with weights only."""
    return replace(level, row_feature=np.searchsorted(used, level.row_feature).astype(np.uint32))


def _only_used(documents: Features, used: npt.NDArray[np.uint32]) -> Features:
    """The documents without features that have no weights, the others renumbered like those of the levels."""
    place = np.searchsorted(used, documents.indices)
    kept = np.append(used, np.uint32(0))[place] == documents.indices
    kept &= place < len(used)
    return replace(
        documents,
        indptr=np.concatenate((np.zeros(1, np.int64), np.cumsum(kept)))[documents.indptr],
        indices=place[kept].astype(np.uint32),
        data=documents.data[kept],
        n_features=len(used),
    )


def _full_share(level: LevelWeights, largest: int) -> float:
    """The least share of a node's children that makes a row written out in full; infinity where these are too many."""
    most = FULL_CELLS + CELLS_PER_ENTRY * len(level.entry_child)
    if len(level.row_feature) * largest <= most:
        return FULL_SHARE
    begins = np.concatenate((np.zeros(1, np.uint32), level.row_end[:-1]))
    n_rows = np.diff(level.row_indptr)
    begins[level.row_indptr[:-1][n_rows > 0]] = 0
    n_children = np.repeat(np.diff(level.child_indptr), n_rows)
    n_full = np.count_nonzero(level.row_end - begins >= FULL_SHARE * n_children)
    return FULL_SHARE if n_full * largest <= most else np.inf


def _row_table(level: LevelWeights, n_features: int) -> npt.NDArray[np.int32]:
    """The row of every feature in a level of one parent, -1 for none."""
    table = np.full(n_features, -1, np.int32)
    table[level.row_feature] = np.arange(len(level.row_feature), dtype=np.int32)
    return table
