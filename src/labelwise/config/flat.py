"""Flat names for the settings that people change most: what each stands for in the configuration of a model.

``XTransformer("hybrid", encoder="minilm", max_length=32)``, ``load_preset("parabel", cost=2.0)``, the estimators for
scikit-learn and the options of the command line all read these tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from inspect import Parameter, Signature
from pathlib import PurePath
from typing import Any, TypeAlias

from labelwise.config.models import EnsembleConfig, LinearTreeConfig, XTransformerConfig
from labelwise.config.settings import prefix, unknown, with_changes
from labelwise.errors import UsageError

Place: TypeAlias = tuple[str, ...]
"""Where a setting lies in a configuration: ("ranker", "cost")."""


def _within(part: str, *names: str) -> dict[str, tuple[Place, ...]]:
    return {name: ((part, name),) for name in names}


_ALL: dict[str, tuple[Place, ...]] = {
    "hold_out": (("holdout", "share"),),
    **_within("holdout", "calibrate", "learn_validation"),
}
_SINGLE: dict[str, tuple[Place, ...]] = {
    **_ALL,
    **_within("tfidf", "analyzer", "ngram_range", "min_df", "max_df", "max_features", "opening"),
    **_within("index", "n_clusters", "branching", "max_leaf"),
    **_within("ranker", "negatives", "positive_weight"),
    "weight_threshold": (("ranker", "threshold"),),
}
PLACES: dict[type[Any], dict[str, tuple[Place, ...]]] = {
    LinearTreeConfig: {
        **_SINGLE,
        "cost": (("matcher", "cost"), ("ranker", "cost")),
        "loss": (("matcher", "loss"), ("ranker", "loss")),
    },
    XTransformerConfig: {
        **_SINGLE,
        "encoder": (("encoder", "name"),),
        **_within("encoder", "max_length", "pooling"),
        "cost": (("linear", "cost"), ("ranker", "cost")),
        **_within("matcher", "loss", "epochs", "steps", "batch_size", "micro_batch", "learning_rate"),
        **_within("matcher", "head_learning_rate", "precision", "device", "learn_labels"),
    },
    EnsembleConfig: _ALL,
}
"""For each configuration, its flat names and the places that they set."""
INSTEAD: dict[type[Any], dict[Place, Place]] = {XTransformerConfig: {("matcher", "epochs"): ("matcher", "steps")}}
"""Settings that count only where another setting is None: giving the first sets the second to None."""


def flat_names(config: type[Any]) -> list[str]:
    """All names that `with_settings` takes for a configuration: its fields and the flat names."""
    return list(dict.fromkeys([*(field.name for field in fields(config)), *PLACES[config]]))


def with_settings(config: Any, values: Mapping[str, Any], where: str, spell: Callable[[str], str] = str) -> Any:
    """A configuration with changes by flat names or by fields (a mapping for those of a part), checked.

    None leaves a setting as it is. A part that is given whole counts first, and the flat names of its settings then.

    Parameters
    ----------
    where
        What to put before the name of a setting in an error: a file, say.
    spell
        How the user writes a flat name: ``--hold-out``, say.
    """
    places, names = PLACES[type(config)], dict[str, str]()
    known = {field.name for field in fields(config)}
    whole, nested = dict[str, Any](), dict[str, Any]()
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, PurePath):
            value = str(value)
        if name in known and (name not in places or not isinstance(value, str)):
            whole[name] = value
            names[name] = spell(name)
        elif name not in places:
            raise UsageError(f"{prefix(where)}{_unknown(type(config), name, where)}")
        else:
            for place in places[name]:
                _put(nested, place, value)
                names[".".join(place)] = spell(name)
    given = {*_places_of(whole), *_places_of(nested)}
    for place, other in INSTEAD.get(type(config), {}).items():
        if place in given and other not in given:
            config = _with_none(config, other)
    changed = with_changes(with_changes(config, whole, where), nested, where)
    return changed.validated(where, names=names)


def _unknown(config: type[Any], name: str, where: str) -> str:
    """A sentence about a setting that a configuration does not have, but another kind of model perhaps has."""
    owner = next((other for other in PLACES if other is not config and name in flat_names(other)), None)
    if owner is None or getattr(config, "RENAMED", {}).get(name) is not None:
        return unknown(config, name, flat_names(config))
    own, other = (one.__name__.removesuffix("Config") for one in (config, owner))
    instead = f'set model = "{owner.kind}" at the top of the file' if where.endswith(".toml") else f"use {other}"
    return f"{name!r} is a setting of {other}, not of {own}; leave it out, or {instead}"


def check_settings(
    configs: Sequence[type[Any]], values: Mapping[str, Any], where: str, spell: Callable[[str], str] = str
) -> None:
    """Refuse unknown names and wrong values of settings before it is known which of several configurations they change.

    Parameters
    ----------
    configs
        The classes of these configurations.
    where, spell
        As for `with_settings`.
    """
    for name, value in values.items():
        config = next((config for config in configs if name in flat_names(config)), None)
        if config is None:
            every = list(dict.fromkeys(name for config in configs for name in flat_names(config)))
            raise UsageError(f"{prefix(where)}{unknown(configs[0], name, every)}")
        with_settings(config(), {name: value}, where, spell)


def _put(nested: dict[str, Any], place: Place, value: Any) -> None:
    """Set a value at a place of nested mappings."""
    *above, last = place
    for part in above:
        nested = nested.setdefault(part, {})
    nested[last] = value


def _places_of(nested: Mapping[str, Any], above: Place = ()) -> Iterator[Place]:
    """The places that nested mappings give a value to."""
    for name, value in nested.items():
        if isinstance(value, Mapping):
            yield from _places_of(value, (*above, name))
        elif value is not None:
            yield (*above, name)


def _with_none(config: Any, place: Place) -> Any:
    """A configuration with None at a place."""
    name, *rest = place
    return replace(config, **{name: _with_none(getattr(config, name), tuple(rest)) if rest else None})


def signature(config: type[Any]) -> Signature:
    """The signature of a model's constructor, for editors and for help: its preset, and all its flat names."""
    preset = Parameter("preset", Parameter.POSITIONAL_OR_KEYWORD, default=None)
    rest = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in flat_names(config)]
    return Signature([preset, *rest])
