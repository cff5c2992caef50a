"""The scores of one text in the label trees of a model: the data of explanations.

`labelwise.explanations` knows the kinds of models only through the classes of this module; `Model.scored_trees` makes
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from labelwise.config.score_transform import ScoreTransform
from labelwise.index import Tree
from labelwise.models.fitted_tree import labels_per_tree
from labelwise.models.prediction_cache import PredictionCache
from labelwise.predictions.ranking import keep_best
from labelwise.rank.features import Features
from labelwise.rank.nearest import NearestLabels
from labelwise.rank.ranker import Inputs
from labelwise.rank.score_breakdown import score_breakdown
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.rank.tree import TrainedTree

if TYPE_CHECKING:
    from labelwise.models.linear_tree import LinearTree
    from labelwise.models.xtransformer import XTransformer


@dataclass(frozen=True)
class ScoredNode:
    """A node on the path from the root to a label."""

    kind: Literal["node", "cluster", "centroid"]
    """A node of the tree, the cluster of the label, or the label's centroid where labels are found by centroids."""
    depth: int
    number: int
    """Its number among the nodes of its depth."""
    score: float


@dataclass(frozen=True, eq=False)
class ScoredTree:
    """One label tree of a model with the scores of one text."""

    tree: Tree
    level: LevelWeights
    """The weights of the labels."""
    document: Features
    """The features that these weights read: a single row."""
    listed: npt.NDArray[np.bool_]
    """(n_labels,) whether the search of the model lists the label."""
    nodes_above: Callable[[int], tuple[ScoredNode, ...]]
    """The nodes above a label, from the root down, with their scores."""
    score_transform: ScoreTransform
    matcher_weight: float = 1.0
    """Power of the factor of the cluster."""
    dense_weight: float = 1.0
    """Length of the embedding in `document`."""


def scored_linear_trees(model: LinearTree, reading: PredictionCache, top_k: int) -> tuple[ScoredTree, ...]:
    """The trees of a `LinearTree`, searched as for a prediction of `top_k` labels."""
    config, searches = model.config, model._fitted()
    document = Features.of(reading.features(model.tfidf_), bias=config.ranker.bias)
    depth = len(model.labels_) if len(searches) == 1 else labels_per_tree(top_k, len(searches))
    trees = []
    for trained, search in zip(model.trees_, searches, strict=True):
        listed = np.zeros(len(model.labels_), np.bool_)
        listed[search.top(document, beam=config.beam, top_k=depth, threads=1).indices] = True
        nodes = partial(_nodes_above, trained, document)
        trees.append(ScoredTree(trained.tree, trained.levels[-1], document, listed, nodes, config.score_transform))
    return tuple(trees)


def scored_ranker_tree(model: XTransformer, reading: PredictionCache) -> tuple[ScoredTree]:
    """The tree of an `XTransformer`, with the clusters of its matcher."""
    config, ranker, tree = model.config, model.ranker_, model.tree_
    E, found = reading.match(model.matcher_, model.tfidf_, tree.n_clusters)
    inputs = Inputs.of(config.features, reading.features(model.tfidf_), E, found)
    scores = found.toarray()[0]

    def nodes_above(label: int) -> tuple[ScoredNode, ...]:
        cluster = int(tree.clusters[label])
        return (ScoredNode("cluster", tree.depth - 1, cluster, float(scores[cluster])),)

    return (
        ScoredTree(
            tree,
            ranker.level,
            inputs.features(ranker.dense_weight, ranker.bias),
            np.isin(tree.clusters, keep_best(found, config.beam).indices),
            nodes_above,
            ranker.score_transform,
            matcher_weight=ranker.matcher_weight,
            dense_weight=ranker.dense_weight,
        ),
    )


def _nodes_above(trained: TrainedTree, document: Features, label: int) -> tuple[ScoredNode, ...]:
    tree = trained.tree
    if trained.nearest is not None:
        return (ScoredNode("centroid", tree.depth, label, _cosine(trained.nearest, label, document)),)
    nodes = tree.path(label)
    return tuple(
        ScoredNode(
            "cluster" if depth == tree.depth - 1 else "node",
            depth,
            nodes[depth],
            score_breakdown(trained.levels[depth - 1], nodes[depth], document).score,
        )
        for depth in range(1, tree.depth)
    )


def _cosine(nearest: NearestLabels, label: int, document: Features) -> float:
    """The cosine between a text and the centroid of a label's documents."""
    assert isinstance(nearest.centroids, LevelWeights)  # a LinearTree's always are
    bare = replace(document, dense=np.empty((1, 0), np.float32))
    length = float(np.linalg.norm(document.data.astype(np.float64)))
    return score_breakdown(nearest.centroids, label, bare).score / (length or 1.0)
