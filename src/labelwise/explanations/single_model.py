"""The explanations of a single model: words, embedding and paths of each label."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from labelwise.explanations.context import ExplainContext
from labelwise.explanations.paths import path_to, sentence
from labelwise.explanations.result import EmbeddingShare, Explanation
from labelwise.features.blocks import OPENING
from labelwise.models.scored_trees import ScoredTree
from labelwise.rank.score_breakdown import ScoreBreakdown, position_of, score_breakdown

if TYPE_CHECKING:
    from labelwise.models.base import Model


def explain_single(model: Model, context: ExplainContext, labels: Sequence[int], top_k: int) -> list[Explanation]:
    """Explain labels of a model whose trees are searched as for a prediction of `top_k` labels."""
    trees = model.scored_trees(context.reading, top_k)
    parts = [[score_breakdown(tree.level, label, tree.document) for tree in trees] for label in labels]
    shares = _embedding_shares(model, context, labels, trees, parts)
    return [
        _explanation(model, context, label, trees, own, share)
        for label, own, share in zip(labels, parts, shares, strict=True)
    ]


def _embedding_shares(
    model: Model,
    context: ExplainContext,
    labels: Sequence[int],
    trees: Sequence[ScoredTree],
    parts: Sequence[Sequence[ScoreBreakdown]],
) -> Sequence[EmbeddingShare | None]:
    """The embedding's share of each label's own score; None where the models of the labels read no embedding."""
    first = trees[0]
    if model.encoder is None or first.document.dense.shape[1] == 1:  # the constant alone
        return [None] * len(labels)
    places = [position_of(first.level, label) for label in labels]
    weights = first.level.dense[places, :-1] * np.float32(first.dense_weight)
    return context.embedding_shares(model.encoder, weights, [own[0].dense for own in parts])


def _explanation(
    model: Model,
    context: ExplainContext,
    label: int,
    trees: Sequence[ScoredTree],
    parts: Sequence[ScoreBreakdown],
    neural: EmbeddingShare | None,
) -> Explanation:
    """The explanation of one label, with its score and probability."""
    added: defaultdict[int, float] = defaultdict(float)
    for own in parts:
        for column, value in zip(own.columns.tolist(), own.added.tolist(), strict=True):
            added[column] += value / len(trees)
    paths = tuple(
        path_to(tree, label, own.score, model.labels_, 1 / len(trees)) for tree, own in zip(trees, parts, strict=True)
    )
    listed = any(path.listed for path in paths)
    score = sum(path.weight * path.score for path in paths if path.listed or not listed)
    notes = []
    if not listed:
        notes.append("the search does not reach this label for this text; its score is what it would be otherwise")
    if model.tfidf_.settings_.opening:
        notes.append(f"{OPENING}word: among the first {model.tfidf_.settings_.opening} words of the text")
    first, by_centroids = trees[0], paths[0].steps[0].kind == "centroid"
    return Explanation(
        label=model.labels_[label],
        score=score,
        probability=probability(model, score),
        listed=listed,
        own_score=sum(path.weight * path.steps[-1].score for path in paths),
        bias=float(np.mean([own.bias for own in parts])),
        words=context.words(model.tfidf_, added),
        others=0.0,
        neural=neural,
        paths=paths,
        combine=sentence(first.score_transform, len(trees), power=first.matcher_weight, by_centroids=by_centroids),
        notes=tuple(notes),
    )


def probability(model: Model, score: float) -> float | None:
    """The calibrated probability of a score; None where the model is not calibrated."""
    return None if model.calibrator_ is None else float(model.calibrator_.transform([score])[0])
