"""How a model grows: its view of documents, the clusters of new labels, and models with other label weights.

`labelwise.incremental` adds labels, removes labels and learns from further documents. It knows the kinds of models only
through the adapters of this module; `Model.growth` gives the adapter of a model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from labelwise.config import RankerConfig
from labelwise.config.score_transform import DEFAULT_TRANSFORM
from labelwise.errors import DataError
from labelwise.features.normalize import unit_rows
from labelwise.index import Tree, embed_labels
from labelwise.models.prediction_cache import PredictionCache
from labelwise.rank.features import Features
from labelwise.rank.level_columns import with_children, without_children
from labelwise.rank.nearest import NearestLabels
from labelwise.rank.negatives import both, matcher_aware, teacher_forcing
from labelwise.rank.ranker import Inputs, Ranker
from labelwise.rank.search import BeamSearch
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.types import Csr, Floats

if TYPE_CHECKING:
    from labelwise.models.base import Model
    from labelwise.models.linear_tree import LinearTree
    from labelwise.models.xtransformer import XTransformer

Clusters: TypeAlias = npt.NDArray[np.int32]
LabelTree: TypeAlias = tuple[Tree, LevelWeights]
"""A label tree with the weights of its labels."""
MIN_BEAM = 64
"""Smallest number of nodes per level that the search for the cluster of a new label keeps."""


@dataclass(frozen=True, eq=False)
class EncodedDocs:
    """Documents as a model reads them."""

    X: Csr
    """(n_docs, n_features)"""
    E: Floats | None
    """(n_docs, hidden) of length one; None where the ranker reads no embeddings."""
    found: tuple[Csr, ...]
    """For each tree, (n_docs, n_clusters) clusters with their scores; empty where nothing depends on them."""


class GrowthAdapter(ABC):
    """A model as the incremental functions see it. The model itself never changes."""

    model: Any
    label_trees: list[LabelTree]
    ranker: RankerConfig

    def __init__(self, model: Model) -> None:
        self.model, self.ranker = model, model.config.ranker
        self.label_trees = list(zip(model.trees, model.label_levels, strict=True))

    @property
    def threads(self) -> int | None:
        """Threads to use."""
        threads: int | None = self.model.config.threads
        return threads

    @abstractmethod
    def encoded_docs(self, reading: PredictionCache, *, all_clusters: bool = False) -> EncodedDocs:
        """Documents with the clusters that training would give them, or with the scores of all clusters."""

    @abstractmethod
    def features(self, X: Csr, E: Floats | None) -> Features:
        """The features that the models of the labels read."""

    @abstractmethod
    def clusters_of_labels(self, docs: EncodedDocs, owners: Csr) -> list[Clusters]:
        """The cluster of each new label, in each tree: the cluster that the model finds for the label's documents.

        Parameters
        ----------
        docs : documents with the scores of all clusters
        owners : (n_docs, n_new) the documents that represent each label
        """

    @abstractmethod
    def with_label_trees(self, label_trees: Sequence[LabelTree], labels: list[str]) -> Model:
        """A model with other labels; all other parts are the same objects."""

    def with_new_labels(self, label_trees: Sequence[LabelTree], labels: list[str], Z: Csr) -> Model:
        """A model with further labels, whose tf-idf is `Z` (n_new, n_features)."""
        return self.with_label_trees(label_trees, labels)

    def without_labels(
        self, label_trees: Sequence[LabelTree], labels: list[str], removed: npt.NDArray[np.bool_]
    ) -> Model:
        """A model without some labels."""
        return self.with_label_trees(label_trees, labels)

    def training_clusters(self, docs: EncodedDocs, Y: Csr) -> tuple[Csr, ...]:
        """For each tree, (n_docs, n_clusters) the clusters whose labels learn from a document, as in training."""
        parts = []
        for number, (tree, _) in enumerate(self.label_trees):
            M = teacher_forcing(Y, tree.clusters, tree.n_clusters)
            if docs.found and self.ranker.negatives != "tfn":
                M = both(M, matcher_aware(docs.found[number]))
            parts.append(M)
        return tuple(parts)


class LinearTreeGrowth(GrowthAdapter):
    """How a `LinearTree` grows: the nodes above the labels stay."""

    model: LinearTree

    def encoded_docs(self, reading: PredictionCache, *, all_clusters: bool = False) -> EncodedDocs:
        """The tf-idf of documents; clusters only where they serve as negatives."""
        X = reading.features(self.model.tfidf_)
        if X.shape[1] != self.model.n_features_:
            raise DataError(f"X has {X.shape[1]} columns but the model was fitted on {self.model.n_features_} features")
        if all_clusters or self.ranker.negatives == "tfn" or not self._has_clusters:
            return EncodedDocs(X, None, ())
        beam = self.model.config.beam
        return EncodedDocs(X, None, tuple(self._clusters(X, beam=beam, top_k=beam)))

    def features(self, X: Csr, E: Floats | None) -> Features:
        """Tf-idf and the constant."""
        return Features.of(X, bias=self.ranker.bias)

    def clusters_of_labels(self, docs: EncodedDocs, owners: Csr) -> list[Clusters]:
        """The clusters that the beam search finds for the PIFA embeddings of the labels."""
        Z: Any = embed_labels(owners, docs.X, threads=self.threads)
        nearest = self.model.trees_[0].nearest
        if nearest is not None:  # the tree only says which labels were trained together
            best = nearest.top(Z, 1, threads=self.threads).indices
            return [self.label_trees[0][0].clusters[best]]
        if not self._has_clusters:
            return [np.zeros(Z.shape[0], np.int32) for _ in self.label_trees]
        beam = max(MIN_BEAM, self.model.config.beam)
        return [found.indices.astype(np.int32) for found in self._clusters(Z, beam=beam, top_k=1)]

    @property
    def _has_clusters(self) -> bool:
        """Whether the search of a document passes through clusters."""
        return self.model.trees_[0].nearest is None and self.label_trees[0][0].depth > 1

    def _clusters(self, X: Csr, *, beam: int, top_k: int) -> list[Csr]:
        """For each tree, (n_docs, n_clusters) the best clusters of documents with their scores."""
        found = []
        for trained in self.model.trees_:
            search = BeamSearch(
                trained.levels[:-1], n_features=self.model.n_features_, score_transform=DEFAULT_TRANSFORM
            )
            found.append(search.top(self.features(X, None), beam=beam, top_k=top_k, threads=self.threads))
        return found

    def with_label_trees(self, label_trees: Sequence[LabelTree], labels: list[str]) -> LinearTree:
        """A model with other labels below the same nodes."""
        model = copy(self.model)
        model.labels_ = labels
        model.trees_ = tuple(
            replace(trained, tree=tree, levels=(*trained.levels[:-1], level))
            for trained, (tree, level) in zip(self.model.trees_, label_trees, strict=True)
        )
        model._searches = model._make_searches()
        return model

    def with_new_labels(self, label_trees: Sequence[LabelTree], labels: list[str], Z: Csr) -> LinearTree:
        """A model with further labels; where labels are found by centroids, it has their centroids too."""
        centroids = self._centroids()
        if centroids is None:
            return self.with_label_trees(label_trees, labels)
        more = NearestLabels.of(Z, half_precision=centroids.entry_value.dtype == np.float16).centroids
        assert isinstance(more, LevelWeights)  # Z is sparse
        ids = np.arange(len(labels) - Z.shape[0], len(labels), dtype=np.int32)
        return self._with_centroids(label_trees, labels, with_children(centroids, {0: (more.block(0), ids)}))

    def without_labels(
        self, label_trees: Sequence[LabelTree], labels: list[str], removed: npt.NDArray[np.bool_]
    ) -> LinearTree:
        """A model without some labels and their centroids."""
        centroids = self._centroids()
        if centroids is None:
            return self.with_label_trees(label_trees, labels)
        return self._with_centroids(label_trees, labels, without_children(centroids, removed))

    def _centroids(self) -> LevelWeights | None:
        """The centroids of the labels; None where labels are found by the tree."""
        nearest = self.model.trees_[0].nearest
        if nearest is None:
            return None
        assert isinstance(nearest.centroids, LevelWeights)  # a LinearTree's always are
        return nearest.centroids

    def _with_centroids(
        self, label_trees: Sequence[LabelTree], labels: list[str], centroids: LevelWeights
    ) -> LinearTree:
        nearest = NearestLabels(centroids, n_features=self.model.n_features_)
        model = copy(self.model)
        model.trees_ = (replace(self.model.trees_[0], nearest=nearest),)
        return LinearTreeGrowth(model).with_label_trees(label_trees, labels)


class XTransformerGrowth(GrowthAdapter):
    """How an `XTransformer` grows: its matcher stays, its ranker has other labels."""

    model: XTransformer

    def encoded_docs(self, reading: PredictionCache, *, all_clusters: bool = False) -> EncodedDocs:
        """The tf-idf and the embeddings of texts, with the clusters of the matcher."""
        model = self.model
        top_b = model.tree_.n_clusters if all_clusters else model.config.beam
        X = reading.features(model.tfidf_)
        E, found = reading.match(model.matcher_, model.tfidf_, top_b)
        return EncodedDocs(X, None if model.config.features == "tfidf" else unit_rows(E), (found,))

    def features(self, X: Csr, E: Floats | None) -> Features:
        """The features that the ranker is trained on."""
        ranker = self.model.ranker_
        dense = None if E is None else E.astype(np.float32, copy=False)
        inputs = Inputs(None if self.model.config.features == "neural" else X, dense, X[:, :0])
        return inputs.features(ranker.dense_weight, ranker.bias)

    def clusters_of_labels(self, docs: EncodedDocs, owners: Csr) -> list[Clusters]:
        """The clusters with the best mean score over a label's documents.

        The matcher's scores are linear in the features, so this mean is the score of the PIFA embedding.
        """
        sums = owners.T.tocsr() @ docs.found[0].toarray()
        return [np.asarray(sums).argmax(axis=1).astype(np.int32)]

    def with_label_trees(self, label_trees: Sequence[LabelTree], labels: list[str]) -> XTransformer:
        """A model with other labels below the clusters of the same matcher."""
        ((tree, level),) = label_trees
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
