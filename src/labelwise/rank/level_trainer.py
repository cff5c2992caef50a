"""Trains the linear models of one level of the tree: a block for every parent, in parallel, within a memory budget."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwise.config import RankerConfig
from labelwise.engines import current_engine
from labelwise.engines.threads import MemoryBudget, available_cores
from labelwise.errors import DataError
from labelwise.events import Task
from labelwise.kernels.solver import HINGE, LANES, LOGISTIC, SQUARED_HINGE, gather_rows, solve_block
from labelwise.kernels.weights import mark_labels
from labelwise.rank.features import Features
from labelwise.rank.sparse_weights import LevelWeights, PrunedBlock
from labelwise.types import Csr, Floats, OnEvent

_LOSSES = {"squared-hinge": SQUARED_HINGE, "hinge": HINGE, "logistic": LOGISTIC}

# Labels solved together. Wider blocks share more of a document's reading, narrower ones fit the cache; a multiple of
# sixteen leaves no remainder to the vector loops. A cluster of up to twice as many is not worth cutting: at 98 labels
# that costs 9.0 CPU seconds where one block takes 5.1 (the shop with 100,000 labels).
BLOCK_WIDTH = 64
MOST_TOGETHER = 2 * BLOCK_WIDTH
LEAST_BUDGET = 1 << 26
"""Bytes of work in progress that are always allowed, and twice as many again for every thread after the second."""


@dataclass(frozen=True)
class _Piece:
    """Some children of one parent, trained together."""

    parent: int
    first: int
    last: int


class LevelTrainer:
    """Trains the models of all children of a level."""

    def __init__(
        self,
        features: Features,
        Y: Csr,
        parents: npt.NDArray[np.int32],
        config: RankerConfig,
        *,
        seed: int = 0,
        threads: int | None = None,
        document_costs: Floats | None = None,
        start: LevelWeights | None = None,
    ) -> None:
        """Store what is trained on.

        Parameters
        ----------
        Y : (n_docs, n_children) which children, labels or nodes, a document has
        parents : (n_children,) the parent of each child
        document_costs : (n_docs,) factors of the cost, 1 for all if not given
        start : weights of the same children in the same order to go on from: models then stay near these instead of
            zero, as far as the documents let them, and those that agree with all documents stay as they are
        """
        if document_costs is not None:
            if len(document_costs) != features.n_docs:
                raise DataError(f"there are {len(document_costs)} document costs but {features.n_docs} documents")
            if not ((np.asarray(document_costs) > 0) & np.isfinite(document_costs)).all():
                raise DataError("document costs must be numbers above 0; leave out documents that should not count")
        self.features, self.Y, self.parents, self.config = features, Y, parents, config.validated("ranker")
        self.seed, self.threads = seed, threads
        self.n_parents = int(parents.max(initial=-1)) + 1
        order = np.argsort(parents, kind="stable")
        self.child_indptr = np.concatenate(([0], np.cumsum(np.bincount(parents, minlength=self.n_parents)))).astype(
            np.int64
        )
        self.child_ids = order.astype(np.int32)
        self.places = np.empty(len(parents), np.int32)
        self.places[order] = np.arange(len(parents)) - np.repeat(self.child_indptr[:-1], np.diff(self.child_indptr))
        self.document_costs, self.start = document_costs, start
        self._begin()

    def _begin(self) -> None:
        """What each process has for itself."""
        # Pieces with the matcher's negatives hold a third of all documents each: half of the cores would wait.
        enough = LEAST_BUDGET * max(1, 2 * (self.threads or available_cores()) - 3)
        self.budget = MemoryBudget(max(enough, self.features.indices.nbytes + self.features.data.nbytes))
        """Bytes of the pieces in progress: as much as the sparse features, or what keeps all threads at work."""
        self._local = threading.local()

    def fit(
        self, teacher: Csr, matcher: Csr | None = None, *, name: str = "training", on_event: OnEvent | None = None
    ) -> LevelWeights:
        """Train all models.

        Parameters
        ----------
        teacher : (n_docs, n_parents) documents of each parent, solved first
        matcher : (n_docs, n_parents) further documents of each parent, all of them negative or in `teacher` too;
            they join when the others are solved, so that most of them are only looked at
        """
        return self._fit_in_turn(teacher, matcher, None, name, on_event)[0]

    def fit_twice(
        self,
        teacher: Csr,
        matcher: Csr | None,
        later: npt.NDArray[np.bool_],
        *,
        name: str = "training",
        on_event: OnEvent | None = None,
    ) -> tuple[LevelWeights, LevelWeights]:
        """Train all models without some documents, then with them: going on costs a fraction of beginning anew.

        Parameters
        ----------
        teacher, matcher : as in `fit`
        later : (n_docs,) the documents that only the second models have seen
        """
        before, after = self._fit_in_turn(teacher, matcher, later, name, on_event)
        return before, after

    def _fit_in_turn(
        self,
        teacher: Csr,
        matcher: Csr | None,
        later: npt.NDArray[np.bool_] | None,
        name: str,
        on_event: OnEvent | None,
    ) -> list[LevelWeights]:
        work = _InTurn(
            self, _ColumnDocuments.of(teacher), None if matcher is None else _ColumnDocuments.of(matcher), later
        )
        return self._fit(work, work.teacher.sizes.tolist(), name, on_event)

    def fit_each(self, documents: Csr, *, name: str = "training", on_event: OnEvent | None = None) -> LevelWeights:
        """Train all models, each on documents of its own; children of one parent are still solved together.

        Parameters
        ----------
        documents : (n_docs, n_children) the documents of each child, positive or negative; others do not count
        """
        work = _Each(self, _ColumnDocuments.of(documents))
        sizes = np.zeros(self.n_parents, np.int64)
        np.maximum.at(sizes, self.parents, work.documents.sizes)
        return self._fit(work, sizes.tolist(), name, on_event)[0]

    def _fit(
        self, work: Callable[[_Piece], list[PrunedBlock]], sizes: Sequence[int], name: str, on_event: OnEvent | None
    ) -> list[LevelWeights]:
        """Solve all pieces, each in one or more states; `sizes` are the documents of each parent, more or less."""
        pieces = []
        for parent in range(self.n_parents):
            n = int(self.child_indptr[parent + 1] - self.child_indptr[parent])
            n_parts = -(-n // BLOCK_WIDTH) if n > MOST_TOGETHER else 1
            borders = np.linspace(0, n, n_parts + 1).astype(int)
            pieces += [_Piece(parent, int(a), int(b)) for a, b in pairwise(borders)]
        # The largest first, so that no thread is left alone with one at the end.
        costs = np.array([sizes[piece.parent] * (piece.last - piece.first) for piece in pieces], np.int64)
        order = np.argsort(-costs, kind="stable")
        with Task(on_event, name, total=len(self.parents), unit="models") as task:
            # All of them are kept, so none has to wait for those before it.
            given = [pieces[i] for i in order]
            results = current_engine().map(
                work,
                given,
                threads=self.threads,
                ahead=len(pieces),
                costs=costs[order].tolist(),
                done=lambda piece: task.advance(piece.last - piece.first),
            )
            solved = dict(zip(order.tolist(), results, strict=True))
        parts: list[list[list[PrunedBlock]]] = [[] for _ in range(self.n_parents)]
        for i, piece in enumerate(pieces):
            parts[piece.parent].append(solved.pop(i))
        n_states = max((len(part[0]) for part in parts if part), default=1)
        return [
            LevelWeights.join(
                [PrunedBlock.beside([blocks[state] for blocks in part]) for part in parts],
                self.child_indptr,
                self.child_ids,
            )
            for state in range(n_states)
        ]

    def __getstate__(self) -> Mapping[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("budget", "_local")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    def solve(
        self,
        piece: _Piece,
        rows: npt.NDArray[np.int64],
        ends: Sequence[int],
        *,
        n_kept: int = 1,
        signs: npt.NDArray[np.int8] | None = None,
    ) -> list[PrunedBlock]:
        """Solve a piece on documents that join in turn: the first `ends[0]`, then up to `ends[1]`, and so on.

        Gives the weights after each of the last `n_kept` turns. `signs` are preset to -1 where a document counts for a
        child, if not all do.
        """
        config, n_children, width = self.config, piece.last - piece.first, _width(piece)
        n_dense = self.features.dense.shape[1]
        nnz = int((self.features.indptr[rows + 1] - self.features.indptr[rows]).sum())
        n_local = min(nnz, self.features.n_features)
        with self.budget.hold(8 * nnz + 4 * width * (n_local + n_dense) + 5 * width * len(rows)):
            *sparse, features = self._gather(rows)
            if signs is None:
                signs = np.zeros((len(rows), width), np.int8)
                signs[:, :n_children] = -1
            # A copy for every piece would cost labels times pieces; only parents of very many children have several.
            places = self.places - piece.first if piece.first else self.places
            mark_labels(self.Y.indptr, self.Y.indices, rows, self.parents, places, piece.parent, signs)
            costs = np.empty((len(rows), 2), np.float32)
            costs[:] = (config.cost * config.positive_weight, config.cost)
            if self.document_costs is not None:
                costs *= np.asarray(self.document_costs, np.float32)[rows, None]
            alpha = np.zeros((len(rows), width), np.float32)
            W = np.zeros((len(features) + n_dense, width), np.float32)
            threshold = config.threshold
            if self.start is not None:
                block = self.start.block(piece.parent).columns(slice(piece.first, piece.last))
                W, features = block.full_weights(features, width)
                if block.entry_value.dtype == np.float16:  # weights that just reach the threshold may lie below it
                    threshold = min(threshold, float(np.float16(threshold)))
            # The seed is the piece's own, never the thread's.
            seed = (self.seed * 1_000_003 + piece.parent) * 1_000_003 + piece.first + 1
            blocks, solved = [], 0
            for turn, n in enumerate(ends):
                if n > solved:
                    part = (sparse[0][: n + 1], sparse[1], sparse[2], self.features.dense, rows[:n])
                    stop = (np.float32(config.tolerance), config.matcher_sweeps if turn else config.max_sweeps)
                    solve_block(part, signs[:n], costs[:n], _LOSSES[config.loss], stop, seed % (1 << 62), alpha[:n], W)
                    solved = n
                if turn >= len(ends) - n_kept:
                    blocks.append(
                        PrunedBlock.prune(
                            W[:, :n_children],
                            features,
                            n_dense=n_dense,
                            threshold=threshold,
                            most=config.max_weights,
                            half=config.half_precision,
                        )
                    )
            return blocks

    def _gather(self, rows: npt.NDArray[np.int64]) -> tuple[Any, ...]:
        """The documents' sparse rows over local features, and these features."""
        all_features = self.features
        if len(rows) == all_features.n_docs and (np.diff(rows) == 1).all():  # as at the root: nothing to renumber
            used = np.arange(all_features.n_features, dtype=np.uint32)
            return all_features.indptr, all_features.indices, all_features.data, used
        if not hasattr(self._local, "place"):
            self._local.place = np.full(self.features.n_features, -1, np.int32)
        gathered: tuple[Any, ...] = gather_rows(
            self.features.indptr, self.features.indices, self.features.data, rows, self._local.place
        )
        return gathered


def _width(piece: _Piece) -> int:
    """Columns of a piece's block, filled up for the vector loops."""
    n_children = piece.last - piece.first
    return n_children + -n_children % LANES


@dataclass(frozen=True, eq=False)
class _ColumnDocuments:
    """The documents of each column of a matrix."""

    indptr: npt.NDArray[np.integer[Any]]
    indices: npt.NDArray[np.integer[Any]]

    @classmethod
    def of(cls, M: Csr) -> _ColumnDocuments:
        """The columns of a matrix."""
        columns = M.T.tocsr()
        return cls(columns.indptr, columns.indices)

    @property
    def sizes(self) -> npt.NDArray[np.integer[Any]]:
        """(n_columns,) the number of documents of each column."""
        return np.diff(self.indptr)

    def __getitem__(self, column: int) -> npt.NDArray[np.int64]:
        """The documents of a column, ascending."""
        return self.indices[self.indptr[column] : self.indptr[column + 1]].astype(np.int64)


@dataclass(frozen=True, eq=False)
class _InTurn:
    """Solves a piece on the teacher's documents, then the matcher's others, then those that come later."""

    trainer: LevelTrainer
    teacher: _ColumnDocuments
    matcher: _ColumnDocuments | None
    later: npt.NDArray[np.bool_] | None

    def __call__(self, piece: _Piece) -> list[PrunedBlock]:
        rows, more, later = self.teacher[piece.parent], np.empty(0, np.int64), self.later
        if self.matcher is not None:
            more = np.setdiff1d(self.matcher[piece.parent], rows, assume_unique=True)
        if later is None:
            return self.trainer.solve(piece, np.concatenate((rows, more)), (len(rows), len(rows) + len(more)))
        parts = (rows[~later[rows]], more[~later[more]], rows[later[rows]], more[later[more]])
        first, second, *_, last = np.cumsum([len(part) for part in parts]).tolist()
        return self.trainer.solve(piece, np.concatenate(parts), (first, second, last), n_kept=2)


@dataclass(frozen=True, eq=False)
class _Each:
    """Solves a piece on the documents of each of its children."""

    trainer: LevelTrainer
    documents: _ColumnDocuments

    def __call__(self, piece: _Piece) -> list[PrunedBlock]:
        trainer = self.trainer
        first = trainer.child_indptr[piece.parent]
        docs = [self.documents[child] for child in trainer.child_ids[first + piece.first : first + piece.last]]
        rows, place = np.unique(np.concatenate(docs), return_inverse=True)
        signs = np.zeros((len(rows), _width(piece)), np.int8)
        signs[place, np.repeat(np.arange(len(docs)), [len(one) for one in docs])] = -1
        return trainer.solve(piece, rows, (len(rows),), signs=signs)
