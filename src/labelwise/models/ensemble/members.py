"""Trains the models of an ensemble on one workbench: what they have in common is made once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelwise.config import (
    EnsembleConfig,
    HoldoutConfig,
    IndexConfig,
    LinearTreeConfig,
    RankerConfig,
    XTransformerConfig,
)
from labelwise.errors import DataError
from labelwise.models.base import CALIBRATED_ON, Model
from labelwise.models.fitting.workbench import Workbench
from labelwise.models.holdout import measure
from labelwise.models.linear_tree import LinearTree
from labelwise.models.prediction_cache import PredictionCache
from labelwise.predictions.ranking import keep_best
from labelwise.types import Csr

if TYPE_CHECKING:
    from labelwise.index import Tree
    from labelwise.models.fitting.stages import Stages
    from labelwise.models.prediction_cache import AnyMatcher


@dataclass(frozen=True, eq=False)
class TrainedMember:
    """A trained model, and what it says of the held-out documents."""

    model: Model
    held: Csr | None
    """(n_held, n_labels) its own scores, before it learnt from them; None where nothing is held out."""


@dataclass(eq=False)
class _MatcherGroup:
    """X-Transformers that share a matcher."""

    numbers: list[int] = field(default_factory=list)
    """Their places among the members."""
    stages: list[Stages] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)
    matchers: list[AnyMatcher] = field(default_factory=list)


def fit_members(config: EnsembleConfig, bench: Workbench) -> list[TrainedMember] | None:
    """All members in order; None in a process that only helps to fine-tune."""
    found: dict[int, TrainedMember] = {}
    neural = [at for at, member in enumerate(config.members) if isinstance(member, XTransformerConfig)]
    if neural and bench.source.X is not None:
        raise DataError("X-Transformer reads texts: give a list of strings, not features")
    groups = _fit_matchers(config, bench) if neural else []
    if groups is None:
        return None
    n, depth = len(config.members), max(config.candidates_per_model, CALIBRATED_ON)
    for group in groups:
        for at, stages, matcher in zip(group.numbers, group.stages, group.matchers, strict=True):
            bench.say(f"member {at + 1} of {n}: {describe(config.members[at])}")
            found[at] = _fit_transformer(stages, matcher, group.trees, depth)
    for at, member in enumerate(config.members):
        if isinstance(member, LinearTreeConfig):
            bench.say(f"member {at + 1} of {n}: {describe(member)}")
            found[at] = _fit_linear(member, bench, depth)
    return [found[at] for at in range(n)]


def describe(config: LinearTreeConfig | XTransformerConfig) -> str:
    """What tells a member from others, in a few words."""
    return config.describe()


# ---------------------------------------------------------------------- X-Transformer


def _fit_matchers(config: EnsembleConfig, bench: Workbench) -> list[_MatcherGroup] | None:
    """The matchers of all X-Transformers before any ranker, so that processes that help are free early."""
    from labelwise.match.finetuned import FineTunedMatcher
    from labelwise.match.shared import SharedMatcherView
    from labelwise.match.training.distributed import joined
    from labelwise.models.fitting.ground import Ground
    from labelwise.models.fitting.stages import Stages

    groups: dict[Hashable, _MatcherGroup] = {}
    for at, member in enumerate(config.members):
        if isinstance(member, XTransformerConfig):
            group = groups.setdefault(kin(member, at, share=config.share_encoder), _MatcherGroup())
            ground = Ground(member, bench)
            ground.device()  # say before the work that there is none
            group.numbers.append(at)
            group.stages.append(Stages(ground))
    for number, group in enumerate(groups.values(), start=1):
        group.trees = [stages.ground.index() for stages in group.stages]
        first = group.stages[0]
        name = Path(first.config.encoder.name).name
        if first.config.fine_tune:
            n_trees = len(group.trees)
            trees = f"the clusters of {n_trees} label trees" if n_trees > 1 else "the clusters of one label tree"
            bench.say(f"matcher {number} of {len(groups)}: {name} on {trees}")
        if not joined().first:
            first.take_part(group.trees)
            continue
        matcher = first.matcher(group.trees)
        if isinstance(matcher, FineTunedMatcher) and len(group.trees) > 1:
            group.matchers = [SharedMatcherView(matcher, at) for at in range(len(group.trees))]
        else:
            group.matchers = [matcher]
    if joined().first:
        return list(groups.values())
    for group in groups.values():
        group.stages[0].take_part_unseen(group.trees)
    return None


def kin(config: XTransformerConfig, number: int, *, share: bool) -> Hashable:
    """The same for members that share a matcher: those that differ in nothing but tree and ranker."""
    if not share or not config.fine_tune:
        return number
    return replace(
        config,
        index=IndexConfig(),
        label_embedding="pifa-neural",
        ranker=RankerConfig(),
        features="both",
        dense_weight=None,
        score_transform=None,
        matcher_weight=None,
        label_weight=None,
        holdout=HoldoutConfig(),
    )


def _fit_transformer(stages: Stages, matcher: AnyMatcher, trees: list[Tree], depth: int) -> TrainedMember:
    from labelwise.models.xtransformer import XTransformer

    model = XTransformer(stages.config)
    model.fit_ranker(stages, matcher, trees if len(trees) > 1 else trees[:1], depth)
    return TrainedMember(model, model.held_)


# ---------------------------------------------------------------------- linear


def _fit_linear(config: LinearTreeConfig, bench: Workbench, depth: int) -> TrainedMember:
    """Trained on all documents; before that, where some of these are held out, on the others."""
    source = bench.source
    X = bench.features(config.tfidf, config.threads)

    def fitted(rows: Any) -> LinearTree:
        return LinearTree(config).fit(
            X[rows], source.Y[rows], label_names=source.labels, run_dir=bench.run, on_event=bench.on_event
        )

    held = None
    if source.aside is not None:
        before = fitted(np.setdiff1d(np.arange(X.shape[0]), source.aside))
        held = before.scores(PredictionCache(X[source.aside], threads=config.threads), depth)
    model = fitted(slice(None))
    model.tfidf_ = bench.tfidf(config.tfidf, config.threads)
    if source.aside is None and source.truth is not None:
        judged = bench.features(config.tfidf, config.threads, judged=True)
        held = model.scores(PredictionCache(judged, threads=config.threads), depth)
    if held is not None and source.truth is not None:
        measured = measure(keep_best(held, CALIBRATED_ON), source.truth)
        model.calibrator_ = measured.calibrator
        model.report_.validation = measured.result(**source.held_out)
    return TrainedMember(model, held)
