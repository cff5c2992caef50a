"""The labels nearest to a document: negatives and candidates without clusters, as in SLICE (Jain et al., WSDM 2019).

A label is a point, the centroid of its documents. Its negatives are the documents that have it among their nearest
labels, and only the nearest labels of a document are scored when predicting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.config import ScoreTransform
from labelwise.errors import DataError, UsageError
from labelwise.rank.features import Features
from labelwise.rank.search import BeamSearch, Shortlist
from labelwise.rank.sparse_weights import LevelWeights, PrunedBlock
from labelwise.types import Csr, OnEvent

# Documents whose shortlists are held at once when predicting.
_DOCUMENTS_PER_BATCH = 1 << 14


class NearestLabels:
    """Finds the labels whose centroids have the highest cosine with a document.

    The centroids are kept as the weights of one level below a single node, which a beam search scores like any other.
    May be used from any number of threads.

    >>> nearest = NearestLabels.of(embed_labels(Y, X))
    >>> nearest.top(X, 300)
    """

    def __init__(self, centroids: LevelWeights, *, n_features: int) -> None:
        self.centroids, self.n_features = centroids, n_features
        self._search = BeamSearch([centroids], n_features=n_features, score_transform="ranker-only")

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.centroids.n_children

    @classmethod
    def of(cls, Z: Csr, *, threshold: float = 0.0, half_precision: bool = False) -> Self:
        """The search among the centroids of labels.

        Parameters
        ----------
        Z : (n_labels, n_features) rows of length one or zero, as `embed_labels` makes them
        threshold : smaller weights are dropped
        half_precision : keep weights as 16-bit floats
        """
        if Z.ndim != 2 or not Z.shape[0]:
            raise DataError(f"Z must be a matrix with a row for every label, not of shape {Z.shape}")
        return cls(_as_level(Csr(Z), threshold, half_precision), n_features=Z.shape[1])

    def to_arrays(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """The centroids by name, for `storage.save`."""
        return self.centroids.to_arrays(prefix)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], prefix: str, *, n_features: int) -> Self:
        """The search among the centroids that `to_arrays` gave."""
        return cls(LevelWeights.from_arrays(arrays, prefix), n_features=n_features)

    def top(
        self, X: Csr | Features, n_neighbours: int, *, threads: int | None = None, on_event: OnEvent | None = None
    ) -> Csr:
        """The nearest labels of each document with their cosines; of equally near labels those with lower numbers.

        Parameters
        ----------
        X : (n_docs, n_features) sparse; of `Features`, the sparse part

        Returns
        -------
        similarities : (n_docs, n_labels) float32, min(n_neighbours, n_labels) entries in each row, zeros written out
        """
        if n_neighbours < 1:
            raise UsageError(f"neighbours is {n_neighbours}; it must be at least 1")
        documents = X if isinstance(X, Features) else Features.of(Csr(X))
        if documents.n_features != self.n_features:
            raise DataError(f"the documents have {documents.n_features} features but the labels {self.n_features}")
        bare = replace(documents, dense=np.empty((documents.n_docs, 0), np.float32))
        found = self._search.top(bare, beam=1, top_k=n_neighbours, threads=threads, on_event=on_event)
        counts, indptr = np.diff(documents.indptr), documents.indptr
        squares = np.square(documents.data[indptr[0] : indptr[-1]], dtype=np.float64)
        lengths = np.sqrt(np.bincount(np.repeat(np.arange(len(counts)), counts), squares, len(counts)))
        products = found.data.reshape(len(counts), min(n_neighbours, self.n_labels))
        cosines = products / np.where(lengths > 0, lengths, 1)[:, None]  # 0 for a document of length zero
        found.data = cosines.astype(np.float32).reshape(-1)
        return found


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
        self.beam = BeamSearch(
            [single_label_blocks(labels)], n_features=nearest.n_features, score_transform=score_transform
        )

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


def single_label_blocks(level: LevelWeights) -> LevelWeights:
    """The models of a level in blocks of one label: each label has a parent of its own, with the label's number."""
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
