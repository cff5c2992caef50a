"""The explanations of one model: a tree of linear models, several of them, or X-Transformer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labelwise.explanations.context import ExplainContext
from labelwise.explanations.linear_scores import account, place_of
from labelwise.explanations.paths import cluster_step, counted, label_step, make_path, sentence, tree_steps
from labelwise.explanations.result import EmbeddingShare, Explanation, Path
from labelwise.features.blocks import OPENING
from labelwise.predictions.ranking import keep_best
from labelwise.rank.features import Features

if TYPE_CHECKING:
    from labelwise.models.base import Model
    from labelwise.models.linear_tree import LinearTree
    from labelwise.models.xtransformer import XTransformer


def explain_tree(model: LinearTree, question: ExplainContext, labels: Sequence[int], top_k: int) -> list[Explanation]:
    """Explain labels of a `LinearTree`, whose trees are searched as for a prediction of `top_k` labels."""
    assert model.tfidf_ is not None
    config, searches = model.config, model._fitted()
    document = Features.of(question.reading.features(model.tfidf_), bias=config.ranker.bias)
    depth = len(model.labels_) if len(searches) == 1 else 2 * top_k
    found = [search.top(document, beam=config.beam, top_k=depth, threads=1) for search in searches]
    explained = []
    for label in labels:
        added: defaultdict[int, float] = defaultdict(float)
        paths, biases = [], []
        for trained, listed in zip(model.trees_, found, strict=True):
            own = account(trained.levels[-1], label, document)
            for column, value in zip(own.columns.tolist(), own.added.tolist(), strict=True):
                added[column] += value / len(searches)
            biases.append(own.bias)
            steps = tree_steps(trained, config, model.labels_, label, document, own)
            paths.append(make_path(steps, config.score_transform, 1 / len(searches), listed=label in listed.indices))
        explained.append(
            _explanation(
                model,
                label,
                bias=float(np.mean(biases)),
                words=question.words(model.tfidf_, added),
                neural=None,
                paths=tuple(paths),
                combine=sentence(config.score_transform, len(paths), nearest=model.trees_[0].nearest is not None),
            )
        )
    return explained


def explain_transformer(model: XTransformer, question: ExplainContext, labels: Sequence[int]) -> list[Explanation]:
    """Explain labels of an `XTransformer`."""
    from labelwise.rank.ranker import Inputs

    ranker, tree = model.ranker_, model.tree_
    E, found = question.match(model)
    inputs = Inputs.of(model.config.features, question.reading.features(model.tfidf_), E, found)
    document = inputs.features(ranker.dense_weight, ranker.bias)
    g, beam = found.toarray()[0], keep_best(found, model.config.beam).indices
    accounts = [account(ranker.level, label, document) for label in labels]
    shares: Sequence[EmbeddingShare | None] = [None] * len(accounts)
    if inputs.E is not None:
        places = [place_of(ranker.level, label) for label in labels]
        weights = ranker.level.dense[places, :-1] * np.float32(ranker.dense_weight)
        shares = question.neural(model.matcher_.encoder_, weights, [own.dense for own in accounts])
    explained = []
    for label, own, neural in zip(labels, accounts, shares, strict=True):
        cluster = int(tree.clusters[label])
        above = cluster_step(ranker.level, tree, model.labels_, label, document, float(g[cluster]))
        steps = (
            counted(above, ranker.score_transform, ranker.matcher_weight),
            counted(label_step(label, own), ranker.score_transform),
        )
        explained.append(
            _explanation(
                model,
                label,
                bias=own.bias,
                words=question.words(model.tfidf_, dict(zip(own.columns.tolist(), own.added.tolist(), strict=True))),
                neural=neural,
                paths=(make_path(steps, ranker.score_transform, 1.0, listed=cluster in beam),),
                combine=sentence(ranker.score_transform, 1, power=ranker.matcher_weight),
            )
        )
    return explained


def _explanation(model: Model, label: int, *, paths: tuple[Path, ...], **parts: Any) -> Explanation:
    """Put the parts together, with score and probability."""
    listed = any(path.listed for path in paths)
    score = sum(path.weight * path.score for path in paths if path.listed or not listed)
    notes = []
    if not listed:
        notes.append("the search does not come to this label for this text; its score is what it would have been")
    if model.tfidf_ is not None and model.tfidf_.config.opening:
        notes.append(f"{OPENING}word: among the first {model.tfidf_.config.opening} words of the text")
    return Explanation(
        label=model.labels_[label],
        score=score,
        probability=probability(model, score),
        listed=listed,
        own_score=sum(path.weight * path.steps[-1].score for path in paths),
        others=0.0,
        paths=paths,
        notes=tuple(notes),
        **parts,
    )


def probability(model: Model, score: float) -> float | None:
    """What a score means, where the model is calibrated."""
    return None if model.calibrator_ is None else float(model.calibrator_.transform([score])[0])
