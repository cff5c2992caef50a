"""Settings by name: the systems of the field as TOML files, and files of the user's own.

A file holds fields of `LinearTreeConfig`, and those of its parts in tables: ``[tfidf]``, ``[index]``, ``[matcher]``,
``[ranker]``. With ``model = "x-transformer"`` they are those of `XTransformerConfig`. What it leaves out is as by
default.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from labelwise.config import LinearTreeConfig, XTransformerConfig
from labelwise.config.flat import with_settings
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
        Settings by their flat names (see `labelwise.config.flat`), or fields of the configuration; for a part, a dict
        of its fields. None leaves a setting as it is.

    Examples
    --------
    >>> config = load_preset("parabel", n_trees=1, cost=2.0, ranker={"threshold": 0.05})
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
    config: Config = with_settings(_MODELS[model](), values, str(name))
    return changed(config, overrides, "the settings given")


def load_linear_preset(name: Path | str, **overrides: Any) -> LinearTreeConfig:
    """A preset that must be one of `LinearTree`."""
    config = load_preset(name, **overrides)
    if not isinstance(config, LinearTreeConfig):
        raise UsageError(f"{name} is no preset of LinearTree; use XTransformer(load_preset({str(name)!r}))")
    return config


def changed(config: T, settings: Mapping[str, Any], where: str) -> T:
    """A model's configuration with other settings, as `load_preset` takes them, checked.

    Parameters
    ----------
    where
        What to put before the name of a setting in an error: a file, say.
    """
    return with_settings(config, settings, where)  # type: ignore[no-any-return]  # of its own type


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as err:
        raise UsageError(f"{path} does not exist; give a .toml file, or one of: {', '.join(preset_names())}") from err
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise UsageError(f"{path} is not valid TOML: {err}") from err
