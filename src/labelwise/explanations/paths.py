"""The way to a label through a tree: the nodes on it with their scores, and what they make together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from labelwise.config import LinearTreeConfig
from labelwise.config.score_transform import TRANSFORMS, ScoreTransform
from labelwise.explanations.linear_scores import ScoreBreakdown, account, siblings
from labelwise.explanations.result import Path, PathStep
from labelwise.index import Tree
from labelwise.rank.features import Features
from labelwise.rank.nearest import NearestLabels
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.rank.tree import TrainedTree

ALIKE = 3
"""Other labels of a cluster that are told."""


def tree_steps(
    trained: TrainedTree,
    config: LinearTreeConfig,
    names: Sequence[str],
    label: int,
    document: Features,
    own: ScoreBreakdown,
) -> tuple[PathStep, ...]:
    """The nodes above the label, scored, and the label."""
    tree, score_transform = trained.tree, config.score_transform
    steps: list[PathStep] = []
    if trained.nearest is not None:
        centroid = PathStep("centroid", label, _cosine(trained.nearest, label, document), None, 1)
        steps.append(counted(centroid, "sigmoid" if TRANSFORMS[score_transform].bounded else score_transform))
    else:
        nodes = tree.path(label)
        for depth in range(1, tree.depth):
            score = account(trained.levels[depth - 1], nodes[depth], document).score
            if depth == tree.depth - 1:
                step = cluster_step(trained.levels[-1], tree, names, label, document, score)
            else:
                step = PathStep("node", nodes[depth], score, None, _below(tree, depth, nodes[depth]))
            steps.append(counted(step, score_transform))
    return (*steps, counted(label_step(label, own), score_transform))


def cluster_step(
    level: LevelWeights, tree: Tree, names: Sequence[str], label: int, document: Features, score: float
) -> PathStep:
    """The cluster of a label, with its other labels that suit the text best."""
    others, scores = siblings(level, label, document)
    best = [names[at] for at in others[np.argsort(-scores, kind="stable")] if at != label]
    return PathStep("cluster", int(tree.clusters[label]), score, None, len(others), tuple(best[:ALIKE]))


def label_step(label: int, own: ScoreBreakdown) -> PathStep:
    """The end of the path."""
    return PathStep("label", label, own.score, None, 1)


def counted(step: PathStep, score_transform: ScoreTransform, power: float = 1.0) -> PathStep:
    """The step with its factor."""
    return replace(step, factor=factor(step.score, score_transform, power))


def make_path(steps: tuple[PathStep, ...], score_transform: ScoreTransform, weight: float, *, listed: bool) -> Path:
    """A whole path with its score."""
    if not TRANSFORMS[score_transform].bounded:
        return Path(steps, steps[-1].score, weight, listed)
    return Path(steps, math.prod(step.factor or 0.0 for step in steps), weight, listed)


def factor(score: float, score_transform: ScoreTransform, power: float = 1.0) -> float | None:
    """What a node counts in the score of a path; None where the label's own score counts alone."""
    logarithm = TRANSFORMS[score_transform].logarithm
    return None if logarithm is None else math.exp(power * float(logarithm(np.asarray(score))))


def sentence(score_transform: ScoreTransform, n_trees: int, *, power: float = 1.0, nearest: bool = False) -> str:
    """How the scores along a path become one."""
    if not TRANSFORMS[score_transform].bounded:
        where = "labels to look at" if nearest else "clusters"
        return f"the score is the label's own score; the others only choose the {where}"
    what = TRANSFORMS[score_transform].formula
    if nearest:
        return f"the score is {what} of the label's own score s, times 1 / (1 + exp(-c)) of the cosine c"
    powered = f", the cluster's to the power of {power:g}" if power != 1 else ""
    trees = f", averaged over {n_trees} trees; one that does not list the label counts 0" if n_trees > 1 else ""
    return f"the score is the product of {what} over the scores s along the path{powered}{trees}"


def _below(tree: Tree, depth: int, node: int) -> int:
    """Labels below a node."""
    inside = np.arange(tree.n_nodes(depth)) == node
    for parents in tree.parents[depth:]:
        inside = inside[parents]
    return int(np.count_nonzero(inside))


def _cosine(nearest: NearestLabels, label: int, document: Features) -> float:
    """Between the text and the centroid of a label's documents."""
    assert isinstance(nearest.centroids, LevelWeights)  # a LinearTree's always are
    bare = replace(document, dense=np.empty((1, 0), np.float32))
    length = float(np.linalg.norm(document.data.astype(np.float64)))
    return account(nearest.centroids, label, bare).score / (length or 1.0)
