"""The labels nearest to a document: negatives and candidates without clusters, as in SLICE (Jain et al., WSDM 2019).

A label is a point, the centroid of its documents. Its negatives are the documents that have it among their nearest
labels, and only the nearest labels of a document are scored when predicting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.config import ScoreTransform
from labelwise.engine.threads import available_cores, map_in_order
from labelwise.errors import DataError, UsageError, need
from labelwise.events import Task
from labelwise.rank.features import Features
from labelwise.rank.search import BeamSearch, Shortlist
from labelwise.rank.sparse_weights import LevelWeights, PrunedBlock
from labelwise.types import Csr, Floats, OnEvent

Method: TypeAlias = Literal["exact", "hnsw"]
_Found: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]

# Similarities held at once by a thread: a block of documents against all labels.
_SIMILARITIES_PER_BLOCK = 1 << 21
# Documents whose shortlists are held at once when predicting.
_DOCUMENTS_PER_BATCH = 1 << 14
# Links of a point in the graph, and how many candidates are looked at while it is built and searched.
_LINKS, _CANDIDATES = 32, 300


class NearestLabels:
    """Finds the labels whose centroids have the highest cosine with a document.

    Sparse centroids are kept as the weights of one level below a single node, which a beam search scores like any
    other; dense ones as they are, or in a graph (HNSW) that is searched approximately. May be used from any number of
    threads.

    >>> nearest = NearestLabels.of(embed_labels(Y, X))
    >>> nearest.top(X, 300)
    """

    def __init__(
        self, centroids: LevelWeights | npt.NDArray[np.float32], *, n_features: int, method: Method = "exact"
    ) -> None:
        if method not in ("exact", "hnsw"):
            raise UsageError(f"there is no method {method!r} to find neighbours; there are: exact, hnsw")
        self.centroids, self.n_features, self.method = centroids, n_features, method
        if isinstance(centroids, LevelWeights):
            if method == "hnsw":
                raise UsageError("approximate neighbours need dense features, and these are sparse; use exact ones")
            self.n_labels = centroids.n_children
            self._search = BeamSearch([centroids], n_features=n_features, score_transform="ranker-only")
        else:
            self.n_labels = len(centroids)
            self._graph: Any = _graph(centroids) if method == "hnsw" else None

    @classmethod
    def of(
        cls,
        Z: Csr | npt.NDArray[np.float32],
        *,
        method: Method = "exact",
        threshold: float = 0.0,
        half_precision: bool = False,
    ) -> Self:
        """Take the labels' centroids.

        Parameters
        ----------
        Z : (n_labels, n_features) rows of length one or zero, sparse or dense, as `embed_labels` makes them
        method : exact, or approximate for dense centroids, which needs faiss
        threshold : weights of sparse centroids below it are dropped
        half_precision : keep weights of sparse centroids as 16-bit floats
        """
        if Z.ndim != 2 or not Z.shape[0]:
            raise DataError(f"Z must be a matrix with a row for every label, not of shape {Z.shape}")
        if isinstance(Z, np.ndarray):
            return cls(np.ascontiguousarray(Z, np.float32), n_features=Z.shape[1], method=method)
        return cls(_as_level(Csr(Z), threshold, half_precision), n_features=Z.shape[1], method=method)

    def to_arrays(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """The centroids by name, for `storage.save`."""
        if isinstance(self.centroids, LevelWeights):
            return self.centroids.to_arrays(prefix)
        return {f"{prefix}dense": self.centroids}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], prefix: str, *, n_features: int, method: Method = "exact"
    ) -> Self:
        """What `to_arrays` gave; the graph of an approximate search is built anew."""
        sparse = f"{prefix}row_feature" in arrays
        centroids = LevelWeights.from_arrays(arrays, prefix) if sparse else arrays[f"{prefix}dense"]
        return cls(centroids, n_features=n_features, method=method)

    def top(
        self,
        X: Csr | npt.NDArray[np.float32] | Features,
        n_neighbours: int,
        *,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> Csr:
        """The nearest labels of each document with their cosines; of equally near ones those of lower numbers.

        Parameters
        ----------
        X : (n_docs, n_features) sparse or dense, as the centroids are; of `Features`, the sparse part

        Returns
        -------
        similarities : (n_docs, n_labels) float32, min(n_neighbours, n_labels) entries in each row, zeros written out;
            fewer only where an approximate search finds fewer
        """
        if n_neighbours < 1:
            raise UsageError(f"neighbours is {n_neighbours}; it must be at least 1")
        documents = Features.of(Csr(X)) if sp.issparse(X) else X
        sparse = isinstance(documents, Features)
        if sparse != isinstance(self.centroids, LevelWeights):
            kinds = ("sparse", "dense") if sparse else ("dense", "sparse")
            raise UsageError("the documents' features are {} but the labels' are {}; give both alike".format(*kinds))
        n_features = documents.n_features if isinstance(documents, Features) else documents.shape[1]
        if n_features != self.n_features:
            raise DataError(f"the documents have {n_features} features but the labels {self.n_features}")
        if isinstance(documents, Features):
            return self._of_sparse(documents, n_neighbours, threads, on_event)
        n_docs = len(documents)
        n = min(n_neighbours, self.n_labels)
        size = max(1, _SIMILARITIES_PER_BLOCK // self.n_labels)
        borders = [(begin, min(begin + size, n_docs)) for begin in range(0, n_docs, size)]

        def find(border: tuple[int, int]) -> _Found:
            rows = np.ascontiguousarray(documents[slice(*border)], np.float32)
            if self.method == "hnsw":
                return self._approximate(rows, n, threads)
            return _largest(rows @ np.asarray(self.centroids).T, np.linalg.norm(rows, axis=1), n)

        parts: list[_Found] = [(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))]
        with Task(on_event, "finding the nearest labels", total=n_docs) as task:
            # faiss has threads of its own
            for part in map_in_order(find, borders, 1 if self.method == "hnsw" else threads):
                parts.append(part)
                task.advance(len(part[0]))
        counts, indices, data = (np.concatenate(column) for column in zip(*parts, strict=True))
        kind = np.int32 if len(indices) < 1 << 31 else np.int64  # scipy wants one type for both
        indptr = np.concatenate(([0], np.cumsum(counts))).astype(kind)
        found = Csr((data, indices.astype(kind, copy=False), indptr), shape=(n_docs, self.n_labels))
        found.has_canonical_format = True
        return found

    def _of_sparse(self, documents: Features, n_neighbours: int, threads: int | None, on_event: OnEvent | None) -> Csr:
        bare = replace(documents, dense=np.empty((documents.n_docs, 0), np.float32))
        found = self._search.top(bare, beam=1, top_k=n_neighbours, threads=threads, on_event=on_event)
        counts, indptr = np.diff(documents.indptr), documents.indptr
        squares = np.square(documents.data[indptr[0] : indptr[-1]], dtype=np.float64)
        lengths = np.sqrt(np.bincount(np.repeat(np.arange(len(counts)), counts), squares, len(counts)))
        found.data = _over(found.data.reshape(len(counts), min(n_neighbours, self.n_labels)), lengths).reshape(-1)
        return found

    def _approximate(self, rows: Any, n: int, threads: int | None) -> _Found:
        settings = _faiss().SearchParametersHNSW(efSearch=max(_CANDIDATES, n))
        with _faiss_threads(threads or available_cores()):
            products, labels = self._graph.search(rows, n, params=settings)
        order = np.argsort(labels, axis=1)
        labels = np.take_along_axis(labels, order, axis=1)
        cosines = _over(np.take_along_axis(products, order, axis=1), np.linalg.norm(rows, axis=1))
        there = labels >= 0
        return np.count_nonzero(there, axis=1), labels[there].astype(np.int32), cosines[there]


class NeighbourSearch:
    """Scores the nearest labels of a document by their models, in place of a `BeamSearch` down a tree.

    The score is the product of two probabilities: the model's, as the tree's are made, and a sigmoid of the cosine,
    which is what the centroids alone would say (the paper's generative model).
    """

    def __init__(
        self, nearest: NearestLabels, labels: LevelWeights, *, n_neighbours: int, score_transform: ScoreTransform
    ) -> None:
        """Take the labels' models in blocks of any kind, in which they were trained together."""
        self.nearest, self.n_neighbours = nearest, n_neighbours
        self.beam = BeamSearch([one_block_each(labels)], n_features=nearest.n_features, score_transform=score_transform)

    def top(
        self,
        documents: Features,
        *,
        top_k: int,
        beam: int = 1,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> Csr:
        """The best `top_k` of the nearest labels of each document with their scores; there is no beam."""
        parts = []
        for begin in range(0, max(documents.n_docs, 1), _DOCUMENTS_PER_BATCH):
            batch = _some(documents, begin, begin + _DOCUMENTS_PER_BATCH)
            near = self.nearest.top(batch, self.n_neighbours, threads=threads, on_event=on_event)
            start = Shortlist.of(near, "sigmoid")
            parts.append(self.beam.top(batch, beam=beam, top_k=top_k, start=start, threads=threads, on_event=on_event))
        return parts[0] if len(parts) == 1 else Csr(sp.vstack(parts, format="csr"))


def one_block_each(level: LevelWeights) -> LevelWeights:
    """The same models, each below a parent of its own that has the label's number."""
    ends = level.row_end + np.repeat(level.entry_indptr[:-1], np.diff(level.row_indptr))
    feature = np.repeat(level.row_feature, np.diff(ends, prepend=0))
    label = level.child_ids[level.entry_child + np.repeat(level.child_indptr[:-1], np.diff(level.entry_indptr))]
    order = np.argsort(label, kind="stable")
    n_labels = level.n_children
    counts = np.bincount(label, minlength=n_labels)
    indptr = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return LevelWeights(
        child_indptr=np.arange(n_labels + 1, dtype=np.int64),
        child_ids=np.arange(n_labels, dtype=np.int32),
        row_indptr=indptr,
        row_feature=feature[order],
        row_end=(np.arange(1, len(order) + 1) - np.repeat(indptr[:-1], counts)).astype(np.uint32),
        entry_indptr=indptr,
        entry_child=np.zeros(len(order), np.uint8),
        entry_value=level.entry_value[order],
        dense=level.dense[np.argsort(level.child_ids)],
    )


def _largest(products: Floats, lengths: Floats, n: int) -> _Found:
    """The n largest of each row, of equal ones those that come first, over the rows' lengths."""
    n_docs, n_labels = products.shape
    least = np.partition(products, n_labels - n, axis=1)[:, n_labels - n, None]
    kept, level = products > least, products == least
    wanted = n - np.count_nonzero(kept, axis=1)
    crowded = np.flatnonzero(np.count_nonzero(level, axis=1) > wanted)
    level[crowded] &= np.cumsum(level[crowded], axis=1, dtype=np.int32) <= wanted[crowded, None]
    kept |= level
    labels = np.nonzero(kept)[1].astype(np.int32)
    return np.full(n_docs, n), labels, _over(products[kept].reshape(n_docs, n), lengths).reshape(-1)


def _over(products: Floats, lengths: Floats) -> npt.NDArray[np.float32]:
    """Cosines; 0 for a document of length zero."""
    cosines: npt.NDArray[np.float32] = (products / np.where(lengths > 0, lengths, 1)[:, None]).astype(np.float32)
    return cosines


def _some(documents: Features, begin: int, end: int) -> Features:
    """Some of the documents; nothing is copied."""
    return Features(
        indptr=documents.indptr[begin : end + 1],
        indices=documents.indices,
        data=documents.data,
        n_features=documents.n_features,
        dense=documents.dense[begin:end],
    )


def _as_level(Z: Csr, threshold: float, half: bool) -> LevelWeights:
    """Centroids as the models of one node's children."""
    columns = Z.tocsc()  # rows of the block are features
    kept = (np.abs(columns.data) >= threshold) & (columns.data != 0)
    counts = np.bincount(np.repeat(np.arange(Z.shape[1]), np.diff(columns.indptr))[kept], minlength=Z.shape[1])
    used = np.flatnonzero(counts)
    values = columns.data[kept].astype(np.float16 if half else np.float32)
    block = PrunedBlock(
        row_feature=used.astype(np.uint32),
        row_end=np.cumsum(counts[used]).astype(np.uint32),
        entry_child=columns.indices[kept].astype(np.uint32),
        entry_value=values,
        dense=np.empty((Z.shape[0], 0), np.float32),
    )
    return LevelWeights.join([block], np.array([0, Z.shape[0]], np.int64), np.arange(Z.shape[0]))


def _graph(centroids: npt.NDArray[np.float32]) -> Any:
    """The centroids in a graph of near neighbours, by inner product."""
    faiss = _faiss()
    graph = faiss.IndexHNSWFlat(centroids.shape[1], _LINKS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = _CANDIDATES
    with _faiss_threads(1):  # built by several threads, the graph would differ from run to run
        graph.add(centroids)
    return graph


@contextmanager
def _faiss_threads(n: int) -> Iterator[None]:
    """Context in which faiss uses n threads; the number before is restored afterwards."""
    faiss = _faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(n)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _faiss() -> Any:
    return need("faiss", extra="ann", purpose="approximate neighbours")
