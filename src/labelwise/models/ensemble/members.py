"""Trains the models of an ensemble on one cache of stages, so that each stage that they share is computed once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from itertools import chain
from pathlib import Path

from labelwise.config import EnsembleConfig
from labelwise.errors import DataError
from labelwise.models import stages
from labelwise.models.base import Model
from labelwise.models.calibrator import CALIBRATED_ON
from labelwise.models.pipeline import Pipeline, assist_negatives
from labelwise.models.registry import new_model
from labelwise.models.stages import StageCache
from labelwise.storage.fingerprint import fingerprint


def fit_members(config: EnsembleConfig, cache: StageCache) -> list[Model] | None:
    """All members in order; None in a helper process.

    The ensemble's hold-out policy counts for all members, and their configurations say so. The matchers of all
    X-Transformers come before any ranker, so that helper processes are free early.
    """
    # Probabilities of the members are what is combined, whether the ensemble gives some or not.
    holdout = replace(config.holdout, calibrate=True)
    members = [replace(member, holdout=holdout) for member in config.members]
    pipelines = [
        Pipeline(member if member.threads else replace(member, threads=config.threads), cache) for member in members
    ]
    numbers = sharing_groups(config)
    if numbers and cache.data.documents.X is not None:
        raise DataError("X-Transformer reads texts: give a list of strings, not features")
    if numbers and not _fit_matchers([[pipelines[at] for at in group] for group in numbers], cache):
        return None
    depth, found = max(config.candidates_per_model, CALIBRATED_ON), dict[int, Model]()
    neural = [at for group in numbers for at in group]  # models of one matcher in a row
    for at in [*neural, *(at for at in range(len(pipelines)) if at not in neural)]:
        model = new_model(members[at])
        cache.say(f"member {at + 1} of {len(pipelines)}: {model.describe()}")
        model.fit_stages(pipelines[at], depth)
        found[at] = model
    return [found[at] for at in range(len(pipelines))]


# ---------------------------------------------------------------------- matchers


def sharing_groups(config: EnsembleConfig) -> list[list[int]]:
    """Numbers of the members with an encoder; those that share a matcher in one list, the others each in their own.

    Models can share a matcher whose stages depend on the same settings, the label tree left out.
    """
    groups: dict[Hashable, list[int]] = {}
    for at, member in enumerate(config.members):
        if member.texts_only:
            key: Hashable = at
            if config.share_encoder and member.fine_tuning():
                key = fingerprint(stages.inputs(stages.FINE_TUNED_MATCHER, member, str, without=stages.TREE))
            groups.setdefault(key, []).append(at)
    return list(groups.values())


def _fit_matchers(groups: list[list[Pipeline]], cache: StageCache) -> bool:
    """Train the matchers of all models; False in a helper process, which has taken part."""
    for group in groups:
        for pipeline in group:
            pipeline.device()  # a missing GPU is reported before the work
            pipeline.sharing = tuple(group)
    helps = groups[0][0].role == "helper"
    for pipeline in chain.from_iterable(groups):
        pipeline.clusters()
    cache.forget(stages.LABEL_TEXT_EMBEDDINGS)
    for number, group in enumerate(groups, start=1):
        settings = group[0].config
        if settings.fine_tune:
            trees = f"the clusters of {len(group)} label trees" if len(group) > 1 else "the clusters of one label tree"
            cache.say(f"matcher {number} of {len(groups)}: {Path(settings.encoder.name).name} on {trees}")
        if helps:
            group[0].assist()
        else:
            group[0].matcher()
    if helps:
        assist_negatives(chain.from_iterable(groups))
    return not helps
