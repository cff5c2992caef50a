"""Flat names for the settings that people change most: what each stands for in the configuration of a model.

``XTransformer("hybrid", encoder="minilm", max_length=32)``, ``load_preset("parabel", cost=2.0)``, the estimators for
scikit-learn and the options of the command line all read `FLAT_NAMES` of the configuration's class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from inspect import Parameter, Signature
from pathlib import PurePath
from typing import Any

from labelwise.config.models import MODEL_CONFIGS
from labelwise.config.settings import Place, prefix, unknown, with_changes
from labelwise.errors import UsageError


def flat_names(config: type[Any]) -> list[str]:
    """All names that `with_settings` takes for a configuration: its fields and the flat names."""
    return list(dict.fromkeys([*(field.name for field in fields(config)), *config.FLAT_NAMES]))


def with_settings(config: Any, values: Mapping[str, Any], where: str, spell: Callable[[str], str] = str) -> Any:
    """A configuration with changes by flat names or by fields (a mapping for those of a part), checked.

    None leaves a setting as it is. A part may be given whole, as a configuration, with changes of its settings by flat
    names on top. A setting that is given twice, by its flat name and in the mapping of its part, is refused.

    Parameters
    ----------
    where
        What to put before the name of a setting in an error: a file, say.
    spell
        How the user writes a flat name: ``--hold-out``, say.
    """
    places, names = type(config).FLAT_NAMES, dict[str, str]()
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
    tables = set(_places_of(whole))
    for place in _places_of(nested):
        if place in tables:
            raise UsageError(
                f"{prefix(where)}{'.'.join(place)} is set twice, by {names['.'.join(place)]} and in {place[0]}; leave "
                "one of them out"
            )
    given = {*tables, *_places_of(nested)}
    for place, other in type(config).INSTEAD.items():
        if place in given and other not in given:
            config = _with_none(config, other)
    changed = with_changes(with_changes(config, whole, where), nested, where)
    return changed.validated(where, names=names)


def _unknown(config: type[Any], name: str, where: str) -> str:
    """A sentence about a setting that a configuration does not have, but another kind of model perhaps has."""
    owner = next((other for other in MODEL_CONFIGS if other is not config and name in flat_names(other)), None)
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
