"""Values of options: how they are parsed, and checked before any work where they are settings of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from labelwise.config.flat import check_settings, flat_names
from labelwise.config.models import MODEL_CONFIGS
from labelwise.config.settings import Settings, described

if TYPE_CHECKING:
    from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec

    from labelwise.cli.command import Command

_SETTINGS = {name for config in MODEL_CONFIGS for name in flat_names(config)}


def option(name: str) -> str:
    """A setting as the command line writes it: ``--hold-out`` for hold_out."""
    return f"--{name.replace('_', '-')}"


def check_options(command: Command) -> None:
    """Refuse a wrong value of an option that is a setting, whatever the model will be.

    A string may hold several values with commas between them: those of an ensemble's members.
    """
    for field in fields(command):
        given = getattr(command, field.name)
        if isinstance(given, Settings):
            given.validated(names={part.name: option(part.name) for part in fields(given)})
            continue
        if given is None or field.name not in _SETTINGS or field.name in command.not_settings:
            continue
        values: list[Any] = [part.strip() for part in given.split(",")] if isinstance(given, str) else [given]
        for value in values:
            check_settings(MODEL_CONFIGS, {field.name: value}, "", option)


def registry() -> ConstructorRegistry:
    """Rules by which tyro parses an option of numbers, strings, choices or paths that may be left out.

    tyro itself would list None among the choices and report each attempt to parse a wrong value.
    """
    from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

    rules = ConstructorRegistry()

    @rules.primitive_rule
    def _optional(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        kinds = [kind for kind in _members(info.type) if kind is not type(None)]
        if not kinds or not all(kind in _METAVARS or get_origin(kind) is Literal for kind in kinds):
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="|".join(_METAVARS.get(kind) or f"{{{','.join(get_args(kind))}}}" for kind in kinds),
            instance_from_str=lambda given: parsed(kinds, given[0]),
            is_instance=lambda value: any(_is_of(kind, value) for kind in kinds),
            str_from_instance=lambda value: [str(value)],
        )

    return rules


_METAVARS: dict[Any, str] = {int: "INT", float: "FLOAT", str: "STR", Path: "PATH"}


def _members(kind: Any) -> tuple[Any, ...]:
    """The types of a union or of a choice, none for other types, which tyro parses itself."""
    if get_origin(kind) in (Union, UnionType):
        return tuple(get_args(one)[0] if get_origin(one) is Annotated else one for one in get_args(kind))
    return (kind,) if kind in (int, float) or get_origin(kind) is Literal else ()


def parsed(kinds: Sequence[Any], text: str) -> Any:
    """A value of the first type that can be made of a string."""
    for kind in kinds:
        if get_origin(kind) is not Literal:
            try:
                return kind(text)
            except ValueError:
                continue
        if text in get_args(kind):
            return text
    raise ValueError(f"it is {text!r}; it must be {' or '.join(described(kind) for kind in kinds)}")


def _is_of(kind: Any, value: Any) -> bool:
    return value in get_args(kind) if get_origin(kind) is Literal else isinstance(value, kind)
