"""Settings by name: the systems of the field as TOML files, and files of the user's own.

A file holds fields of `LinearTreeConfig`, and those of its parts in tables: ``[tfidf]``, ``[index]``, ``[matcher]``,
``[ranker]``. With ``model = "x-transformer"`` they are those of `XTransformerConfig`. What it leaves out is as by
default.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from labelwise.config import LinearTreeConfig, XTransformerConfig
from labelwise.errors import UsageError

T = TypeVar("T")
Config: TypeAlias = LinearTreeConfig | XTransformerConfig

DEFAULT = "default"
AUTO = "auto"
"""Settings chosen for the data and the machine: see `labelwise.tuning`."""
_MODELS: dict[str, type[Config]] = {"linear-tree": LinearTreeConfig, "x-transformer": XTransformerConfig}
_HERE = Path(__file__).parent


def preset_names() -> list[str]:
    """The presets there are, the default first."""
    return [DEFAULT, *sorted(file.stem for file in _HERE.glob("*.toml"))]


def load_preset(name: Path | str, **overrides: Any) -> Config:
    """The settings of a preset, or of a TOML file, with changes on top.

    Parameters
    ----------
    name
        One of `preset_names()`, or the path of a file that ends in .toml.
    **overrides
        Fields of the configuration; for a part, a dict of its fields. None leaves a field as it is.

    Examples
    --------
    >>> config = load_preset("parabel", n_trees=1, ranker={"cost": 2.0})
    """
    if str(name).endswith(".toml"):
        path = Path(name)
    elif name in preset_names():
        path = _HERE / f"{name}.toml"
    elif name == AUTO:
        raise UsageError("the preset auto looks at the data first; use labelwise.tuning.choose(train).config")
    else:
        known = ", ".join(preset_names())
        raise UsageError(f"there is no preset {str(name)!r}; there are: {known}. A file of your own ends in .toml")
    values = {} if name == DEFAULT else _read(path)
    model = values.pop("model", "linear-tree")
    if model not in _MODELS:
        raise UsageError(f"{name}: model is {model!r}; it must be one of {', '.join(map(repr, _MODELS))}")
    return changed(changed(_MODELS[model](), values, str(name)), overrides, "the settings given")


def load_linear_preset(name: Path | str, **overrides: Any) -> LinearTreeConfig:
    """A preset that must be one of `LinearTree`."""
    config = load_preset(name, **overrides)
    if not isinstance(config, LinearTreeConfig):
        raise UsageError(f"{name} is no preset of LinearTree; use XTransformer(load_preset({str(name)!r}))")
    return config


def changed(config: T, values: Mapping[str, Any], whose: str) -> T:
    """A configuration with other values for some fields, checked; `whose` names them in an error.

    None leaves a field as it is, as TOML has no None and an option that is not given is None.
    """
    kinds = get_type_hints(type(config))
    known = [field.name for field in fields(config)]  # type: ignore[arg-type]  # T is a dataclass
    ready = {}
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"{whose}: there is no setting {name!r}; there are: {', '.join(known)}")
        if value is None:
            continue
        old, where = getattr(config, name), f"{whose}: {name}"
        if is_dataclass(old):
            if not isinstance(value, Mapping):
                raise UsageError(f"{where} is {value!r}; it must be a table of settings")
            ready[name] = changed(old, value, where)
        else:
            ready[name] = _checked(kinds[name], value, where)
    return replace(config, **ready)  # type: ignore[type-var]  # as above


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as err:
        raise UsageError(f"{path} does not exist; give a .toml file, or one of: {', '.join(preset_names())}") from err
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise UsageError(f"{path} is not valid TOML: {err}") from err


def _checked(kind: Any, value: Any, where: str) -> Any:
    """The value as the field wants it, or an error that says what the field wants."""
    if not _fits(kind, value):
        raise UsageError(f"{where} is {value!r}; it must be {_described(kind)}")
    if get_origin(kind) is tuple:
        return tuple(value)
    return float(value) if kind is float else value


def _fits(kind: Any, value: Any) -> bool:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return value in parts
    if origin in (UnionType, Union):
        return any(_fits(part, value) for part in parts)
    if origin is tuple:
        return isinstance(value, list | tuple) and len(value) == len(parts) and all(map(_fits, parts, value))
    if kind in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, int | float if kind is float else kind)


def _described(kind: Any) -> str:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if origin is tuple:
        return f"a list of {len(parts)} values, each {_described(parts[0])}"
    if parts:
        return " or ".join(_described(part) for part in parts if part is not type(None))
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, "a string")
