"""The path to a label through a tree: its nodes with their scores and factors, and the score of the whole path."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from labelwise.config.score_transform import TRANSFORMS, ScoreTransform
from labelwise.explanations.result import Path, PathStep
from labelwise.index import Tree
from labelwise.models.scored_trees import ScoredNode, ScoredTree
from labelwise.rank.score_breakdown import sibling_scores

SHOWN_SIBLINGS = 3
"""Number of other labels of a cluster that are shown."""


def path_to(scored: ScoredTree, label: int, own_score: float, names: Sequence[str], weight: float) -> Path:
    """The path to a label, with its score.

    Parameters
    ----------
    own_score : of the label
    names : (n_labels,) of the labels
    weight : of the tree
    """
    above = tuple(_step(scored, node, label, names) for node in scored.nodes_above(label))
    last = PathStep("label", label, own_score, factor(own_score, scored.score_transform), 1)
    steps, listed = (*above, last), bool(scored.listed[label])
    if not TRANSFORMS[scored.score_transform].bounded:
        return Path(steps, own_score, weight, listed)
    return Path(steps, math.prod(step.factor or 0.0 for step in steps), weight, listed)


def _step(scored: ScoredTree, node: ScoredNode, label: int, names: Sequence[str]) -> PathStep:
    """A node above the label."""
    tree, transform, power = scored.tree, scored.score_transform, 1.0
    n_labels, shown = 1, tuple[str, ...]()
    if node.kind == "centroid":
        transform = "sigmoid" if TRANSFORMS[transform].bounded else transform
    elif node.kind == "node":
        n_labels = _labels_below(tree, node.depth, node.number)
    else:
        others, scores = sibling_scores(scored.level, label, scored.document)
        best = [names[at] for at in others[np.argsort(-scores, kind="stable")] if at != label]
        power, n_labels, shown = scored.matcher_weight, len(others), tuple(best[:SHOWN_SIBLINGS])
    return PathStep(node.kind, node.number, node.score, factor(node.score, transform, power), n_labels, shown)


def factor(score: float, score_transform: ScoreTransform, power: float = 1.0) -> float | None:
    """The factor of a node in the score of a path; None where the score is the label's own score alone."""
    logarithm = TRANSFORMS[score_transform].logarithm
    return None if logarithm is None else math.exp(power * float(logarithm(np.asarray(score))))


def sentence(score_transform: ScoreTransform, n_trees: int, *, power: float = 1.0, by_centroids: bool = False) -> str:
    """How the scores along a path become one score, in words."""
    if not TRANSFORMS[score_transform].bounded:
        where = "candidate labels" if by_centroids else "clusters"
        return f"the score is the label's own score; the other scores only choose the {where}"
    what = TRANSFORMS[score_transform].formula
    if by_centroids:
        return f"the score is {what} of the label's own score s, times 1 / (1 + exp(-c)) of the cosine c"
    powered = f", the cluster's to the power of {power:g}" if power != 1 else ""
    trees = f", averaged over {n_trees} trees; a tree that does not list the label counts 0" if n_trees > 1 else ""
    return f"the score is the product of {what} over the scores s along the path{powered}{trees}"


def _labels_below(tree: Tree, depth: int, node: int) -> int:
    """The number of labels below a node."""
    inside = np.arange(tree.n_nodes(depth)) == node
    for parents in tree.parents[depth:]:
        inside = inside[parents]
    return int(np.count_nonzero(inside))
