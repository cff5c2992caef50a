"""What growing must know of a kind of model: how it sees documents, where labels belong, and where weights lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from labelwise.config import RankerConfig
from labelwise.errors import DataError
from labelwise.features.normalize import unit_rows
from labelwise.incremental.columns import with_children, without_children
from labelwise.index import Tree, embed_labels
from labelwise.models.base import Model, check_fitted
from labelwise.models.prediction_cache import PredictionCache
from labelwise.rank.features import Features
from labelwise.rank.nearest import NearestLabels
from labelwise.rank.negatives import both, matcher_aware, teacher_forcing
from labelwise.rank.ranker import Inputs, Ranker
from labelwise.rank.search import BeamSearch
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.types import Csr, Floats

if TYPE_CHECKING:
    from labelwise.models.linear_tree import LinearTree
    from labelwise.models.xtransformer import XTransformer

Clusters: TypeAlias = npt.NDArray[np.int32]
LEAST_BEAM = 64
"""Nodes of a level that are looked at, at least, to find the cluster of a label."""


@dataclass(frozen=True, eq=False)
class EncodedDocs:
    """Documents as a model sees them."""

    X: Csr
    """(n_docs, n_features)"""
    E: Floats | None
    """(n_docs, hidden) of length one; None where labels are not ranked by embeddings."""
    found: tuple[Csr, ...]
    """For each tree, (n_docs, n_clusters) clusters with their scores; empty where nothing depends on them."""


class GrowAdapter(ABC):
    """One model, as growing sees it; it is never changed."""

    model: Any
    stands: list[tuple[Tree, LevelWeights]]
    """Each tree with the models of its labels."""
    ranker: RankerConfig

    @property
    def threads(self) -> int | None:
        """Threads to use."""
        threads: int | None = self.model.config.threads
        return threads

    @abstractmethod
    def read(self, reading: PredictionCache, *, placing: bool = False) -> EncodedDocs:
        """See documents, with all their clusters where labels are to be placed by them."""

    @abstractmethod
    def features(self, X: Csr, E: Floats | None) -> Features:
        """What the labels' models read."""

    @abstractmethod
    def place(self, seen: EncodedDocs, owners: Csr) -> list[Clusters]:
        """The cluster of each new label, in each tree: that which the model itself finds for its documents.

        Parameters
        ----------
        seen : documents, read for placing
        owners : (n_docs, n_new) which documents speak for a label
        """

    @abstractmethod
    def rebuilt(self, stands: Sequence[tuple[Tree, LevelWeights]], labels: list[str]) -> Model:
        """A model with other labels; all other parts are the same objects."""

    def grown(self, stands: Sequence[tuple[Tree, LevelWeights]], labels: list[str], Z: Csr) -> Model:
        """A model with further labels, which `Z` (n_new, n_features) are the tf-idf of."""
        return self.rebuilt(stands, labels)

    def pruned(
        self, stands: Sequence[tuple[Tree, LevelWeights]], labels: list[str], gone: npt.NDArray[np.bool_]
    ) -> Model:
        """A model without some labels."""
        return self.rebuilt(stands, labels)

    def near(self, seen: EncodedDocs, Y: Csr) -> tuple[Csr, ...]:
        """For each tree, (n_docs, n_clusters) the clusters whose labels learn from a document, as when training."""
        parts = []
        for number, (tree, _) in enumerate(self.stands):
            M = teacher_forcing(Y, tree.clusters, tree.n_clusters)
            if seen.found and self.ranker.negatives != "tfn":
                M = both(M, matcher_aware(seen.found[number]))
            parts.append(M)
        return tuple(parts)


class LinearTreeAdapter(GrowAdapter):
    """A `LinearTree`."""

    model: LinearTree

    def __init__(self, model: LinearTree) -> None:
        check_fitted(model, "trees_")
        self.model, self.ranker = model, model.config.ranker
        self.stands = [(trained.tree, trained.levels[-1]) for trained in model.trees_]

    def read(self, reading: PredictionCache, *, placing: bool = False) -> EncodedDocs:
        """See documents as tf-idf; clusters are found where they are negatives."""
        X = reading.features(self.model.tfidf_)
        if X.shape[1] != self.model.n_features_:
            raise DataError(f"X has {X.shape[1]} columns but the model was fitted on {self.model.n_features_} features")
        if placing or self.ranker.negatives == "tfn" or not self._searched:
            return EncodedDocs(X, None, ())
        beam = self.model.config.beam
        return EncodedDocs(X, None, tuple(self._clusters(X, beam=beam, top_k=beam)))

    def features(self, X: Csr, E: Floats | None) -> Features:
        """Tf-idf and the constant."""
        return Features.of(X, bias=self.ranker.bias)

    def place(self, seen: EncodedDocs, owners: Csr) -> list[Clusters]:
        """The pifa embedding goes down the tree as a document does."""
        Z: Any = embed_labels(owners, seen.X, threads=self.threads)
        nearest = self.model.trees_[0].nearest
        if nearest is not None:  # the tree only says which labels were trained together
            best = nearest.top(Z, 1, threads=self.threads).indices
            return [self.stands[0][0].clusters[best]]
        if not self._searched:
            return [np.zeros(Z.shape[0], np.int32) for _ in self.stands]
        beam = max(LEAST_BEAM, self.model.config.beam)
        return [found.indices.astype(np.int32) for found in self._clusters(Z, beam=beam, top_k=1)]

    @property
    def _searched(self) -> bool:
        """Whether documents are sent to clusters."""
        return self.model.trees_[0].nearest is None and self.stands[0][0].depth > 1

    def _clusters(self, X: Csr, *, beam: int, top_k: int) -> list[Csr]:
        found = []
        for trained in self.model.trees_:
            search = BeamSearch(trained.levels[:-1], n_features=self.model.n_features_, score_transform="l3-hinge")
            found.append(search.top(self.features(X, None), beam=beam, top_k=top_k, threads=self.threads))
        return found

    def rebuilt(self, stands: Sequence[tuple[Tree, LevelWeights]], labels: list[str]) -> LinearTree:
        """The same nodes above other labels."""
        model = copy(self.model)
        model.labels_ = labels
        model.trees_ = tuple(
            replace(trained, tree=tree, levels=(*trained.levels[:-1], level))
            for trained, (tree, level) in zip(self.model.trees_, stands, strict=True)
        )
        model._searches = model._make_searches()
        return model

    def grown(self, stands: Sequence[tuple[Tree, LevelWeights]], labels: list[str], Z: Csr) -> LinearTree:
        """Where labels are found by their centroids, these grow too."""
        centroids = self._centroids()
        if centroids is None:
            return self.rebuilt(stands, labels)
        more = NearestLabels.of(Z, half_precision=centroids.entry_value.dtype == np.float16).centroids
        assert isinstance(more, LevelWeights)  # Z is sparse
        ids = np.arange(len(labels) - Z.shape[0], len(labels), dtype=np.int32)
        return self._with_centroids(stands, labels, with_children(centroids, {0: (more.block(0), ids)}))

    def pruned(
        self, stands: Sequence[tuple[Tree, LevelWeights]], labels: list[str], gone: npt.NDArray[np.bool_]
    ) -> LinearTree:
        """The same with centroids."""
        centroids = self._centroids()
        if centroids is None:
            return self.rebuilt(stands, labels)
        return self._with_centroids(stands, labels, without_children(centroids, gone))

    def _centroids(self) -> LevelWeights | None:
        nearest = self.model.trees_[0].nearest
        if nearest is None:
            return None
        assert isinstance(nearest.centroids, LevelWeights)  # a LinearTree's always are
        return nearest.centroids

    def _with_centroids(
        self, stands: Sequence[tuple[Tree, LevelWeights]], labels: list[str], centroids: LevelWeights
    ) -> LinearTree:
        nearest = NearestLabels(centroids, n_features=self.model.n_features_)
        twin = copy(self.model)
        twin.trees_ = (replace(self.model.trees_[0], nearest=nearest),)
        return LinearTreeAdapter(twin).rebuilt(stands, labels)


class XTransformerAdapter(GrowAdapter):
    """An `XTransformer`: its ranker grows, its matcher stays."""

    model: XTransformer

    def __init__(self, model: XTransformer) -> None:
        check_fitted(model, "ranker_")
        self.model, self.ranker = model, model.config.ranker
        self.stands = [(model.tree_, model.ranker_.level)]

    def read(self, reading: PredictionCache, *, placing: bool = False) -> EncodedDocs:
        """See texts as tf-idf and embeddings, with the matcher's clusters."""
        model = self.model
        top_b = model.tree_.n_clusters if placing else model.config.beam
        X = reading.features(model.tfidf_)
        E, found = reading.match(model.matcher_, model.tfidf_, top_b)
        return EncodedDocs(X, None if model.config.features == "tfidf" else unit_rows(E), (found,))

    def features(self, X: Csr, E: Floats | None) -> Features:
        """Those features that the ranker is trained on."""
        ranker = self.model.ranker_
        inputs = Inputs(None if self.model.config.features == "neural" else X, _floats(E), X[:, :0])
        return inputs.features(ranker.dense_weight, ranker.bias)

    def place(self, seen: EncodedDocs, owners: Csr) -> list[Clusters]:
        """The matcher's scores are linear in features: their mean is the score of the pifa embedding."""
        votes = owners.T.tocsr() @ seen.found[0].toarray()
        return [np.asarray(votes).argmax(axis=1).astype(np.int32)]

    def rebuilt(self, stands: Sequence[tuple[Tree, LevelWeights]], labels: list[str]) -> XTransformer:
        """The same matcher above other labels."""
        ((tree, level),) = stands
        model, ranker = copy(self.model), self.model.ranker_
        model.labels_, model.tree_, model.held_out_scores_ = labels, tree, None
        model.ranker_ = Ranker(
            level,
            n_features=ranker.n_features,
            dense_weight=ranker.dense_weight,
            score_transform=ranker.score_transform,
            matcher_weight=ranker.matcher_weight,
            bias=ranker.bias,
        )
        return model


def adapter_of(model: Model) -> GrowAdapter:
    """How to see a model that is no ensemble."""
    any_model: Any = model
    return LinearTreeAdapter(any_model) if model.kind == "linear-tree" else XTransformerAdapter(any_model)


def _floats(E: Floats | None) -> npt.NDArray[np.float32] | None:
    return None if E is None else E.astype(np.float32, copy=False)
