"""The models that the options of labelwise train name: one, or the members of an ensemble."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from labelwise.config import EnsembleConfig, HoldoutConfig, XTransformerConfig
from labelwise.config.flat import flat_names
from labelwise.config.presets import AUTO, Config, load_preset
from labelwise.errors import UsageError

if TYPE_CHECKING:
    from labelwise.cli.train import Train
    from labelwise.tuning import Machine, Sizes

SETTINGS = (
    "encoder",
    "max_length",
    "label_embedding",
    "epochs",
    "learn_labels",
    "device",
    "hold_out",
    "learn_validation",
    "calibrate",
    "analyzer",
    "opening",
    "cost",
    "negatives",
    "n_trees",
    "beam",
    "seed",
    "threads",
)
"""Options that are settings of the model, by their flat names (see `labelwise.config.flat`)."""
ENSEMBLE_ONLY = ("rule", "prune", "own_encoders")


def asked_for(command: Train) -> list[tuple[str, Config]]:
    """Names of presets with settings, one for each model; none for the preset auto, which chooses later."""
    presets = _listed(command.preset, "preset")
    lists = {name: _listed(getattr(command, name), name) for name in ("encoder", "label_embedding")}
    if AUTO in presets:
        if len(presets) > 1 or any(len(values) > 1 for values in lists.values()):
            raise UsageError(
                "--preset auto chooses one model; give one encoder and one label embedding, or name the presets"
            )
        _refuse(command, ENSEMBLE_ONLY, "is an option of ensembles, but the preset auto chooses one model")
        return []
    loaded = [(name, load_preset(name)) for name in presets]
    mixed = len({type(config) for _, config in loaded}) > 1
    members = []
    for name, config in loaded:
        one = command
        if mixed:  # each kind takes the options that it knows
            others: dict[str, Any] = dict.fromkeys(set(SETTINGS) - set(flat_names(type(config))))
            one = replace(command, **others, tune=False)
        knows_lists = lists.keys() <= set(flat_names(type(config)))
        choices = product(*lists.values()) if knows_lists or not mixed else [(None, None)]
        for encoder, embedding in choices:
            chosen = replace(one, encoder=encoder, label_embedding=embedding)
            members.append((Path(name).name, chosen.with_options(config, name)))
    if len(members) == 1:
        _refuse(command, ENSEMBLE_ONLY, "is an option of ensembles; name several presets, encoders or label embeddings")
    elif command.tune:
        raise UsageError("--tune tunes one model; leave it out for an ensemble")
    if len(members) > 1:
        ensemble_of(command, members)  # says now what does not fit together
    return members


def ensemble_of(command: Train, members: list[tuple[str, Config]]) -> EnsembleConfig:
    """The configuration of an ensemble of these models."""
    configs = tuple(config for _, config in members)
    share = {} if command.hold_out is None else {"share": command.hold_out}
    holdout = HoldoutConfig(calibrate=command.calibrate, learn_validation=command.learn_validation, **share)
    policies = {config.holdout for config in configs}  # with the options of the command line on top
    config = EnsembleConfig(
        members=configs,
        rule=command.rule,
        prune=command.prune,
        share_encoder=not command.own_encoders,
        holdout=policies.pop() if len(policies) == 1 else holdout,
        seed=command.seed or 0,
        threads=command.threads,
    )
    return config.for_training()


def plan(config: EnsembleConfig, sizes: Sizes, machine: Machine) -> Iterator[str]:
    """Lines about what would be trained, and an estimate of time and memory."""
    from labelwise.models.ensemble.members import sharing_groups
    from labelwise.tuning import Estimate, estimate

    yield f"an ensemble of {len(config.members)} models: {sizes.n_docs:,} documents, {sizes.n_labels:,} labels"
    later = {at for group in sharing_groups(config) for at in group[1:]}
    parts = []
    for at, member in enumerate(config.members):
        alone, remark = member, ""
        if at in later:  # the encoder is fine-tuned for an earlier member
            alone, remark = (
                replace(cast(XTransformerConfig, member), fine_tune=False),
                ", with the same fine-tuned encoder",
            )
        yield f"member {at + 1}: {member.describe()}{remark}"
        parts.append(estimate(alone, sizes, machine))
    whole = Estimate(
        seconds=sum(part.seconds for part in parts),
        memory=max(part.memory for part in parts),
        gpu_memory=max(part.gpu_memory for part in parts),
    )
    yield from whole.lines(machine)


def _listed(value: str | None, option: str) -> list[Any]:
    """The values of an option with commas between them; [None] for one that is not given."""
    if value is None:
        return [None]
    values = [part.strip() for part in value.split(",")]
    if not all(values) or len(set(values)) != len(values):
        name = option.replace("_", "-")
        raise UsageError(f"--{name} {value}: give different names with commas between them, and no empty one")
    return values


def _refuse(command: Train, options: tuple[str, ...], why: str) -> None:
    for name in options:
        if getattr(command, name) not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')} {why}")
