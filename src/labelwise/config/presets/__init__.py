"""Settings by name: the systems of the field as TOML files, and files of the user's own.

A file holds fields of `LinearTreeConfig`, and those of its parts in tables: ``[tfidf]``, ``[index]``, ``[matcher]``,
``[ranker]``. With ``model = "x-transformer"`` they are those of `XTransformerConfig`. What it leaves out is as by
default.
"""

from __future__ import annotations

import difflib
import stat
import tomllib
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from labelwise.config import LinearTreeConfig
from labelwise.config.flat import flat_names, with_settings
from labelwise.config.models import MODEL_CONFIGS, SINGLE_CONFIGS, EnsembleConfig, SingleConfig
from labelwise.config.settings import shown
from labelwise.errors import UsageError

T = TypeVar("T")
Config: TypeAlias = SingleConfig

DEFAULT = "default"
AUTO = "auto"
"""Settings chosen for the data and the machine: see `labelwise.tuning`."""
MOST_BYTES = 1 << 20
"""Size of a file with settings, at most."""
_MODELS: dict[str, type[Config]] = {config.kind: config for config in SINGLE_CONFIGS}
"""What `model` may be in a file: the kinds of single models."""
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
    >>> from labelwise import LinearTree, load_preset
    >>> config = load_preset("parabel", n_trees=1, cost=2.0, ranker={"threshold": 0.05})
    >>> config.n_trees, config.ranker.cost, config.ranker.threshold
    (1, 2.0, 0.05)
    >>> model = LinearTree(config)
    """
    if not isinstance(name, str | PathLike):
        raise UsageError(
            f"the preset is {shown(name)}; give its name, one of {', '.join(preset_names())}, or a .toml file"
        )
    if str(name).endswith(".toml"):
        path = Path(name)
    elif name in preset_names():
        path = _HERE / f"{name}.toml"
    elif name == AUTO:
        raise UsageError('the preset auto looks at the data first; use labelwise.train(data, preset="auto")')
    else:
        known = [*preset_names(), AUTO]
        close = difflib.get_close_matches(str(name), known, 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UsageError(
            f"there is no preset {str(name)!r}; {hint}there are: {', '.join(known)}. A file of your own ends in .toml"
        )
    values = {} if name == DEFAULT else _read(path)
    model = values.pop("model", "linear-tree")
    if not isinstance(model, str) or model not in _MODELS:
        raise UsageError(f"{name}: model is {shown(model)}; it must be one of {', '.join(map(repr, _MODELS))}")
    config: Config = with_settings(_MODELS[model](), values, str(name))
    return changed(config, overrides, "the settings given")


def load_linear_preset(name: Path | str, **overrides: Any) -> LinearTreeConfig:
    """A preset that must be one of `LinearTree`."""
    return model_config(LinearTreeConfig, name, overrides)


def preset_config(preset: Any, settings: Mapping[str, Any]) -> Any:
    """The configuration that a preset stands for, of any kind of model, with changes on top, checked.

    Parameters
    ----------
    preset
        A preset's name, a TOML file, a configuration, or a list of these: the members of an ensemble.
    settings
        As `load_preset` takes them.
    """
    config = load_preset(preset) if isinstance(preset, str | Path) else preset
    if isinstance(config, list | tuple):
        return model_config(EnsembleConfig, config, settings).for_training()
    if type(config) not in MODEL_CONFIGS:
        raise UsageError(f"{shown(preset)} is not a preset; give its name, a .toml file, or a configuration")
    return model_config(type(config), config, settings).validated()


def model_config(kind: type[T], preset: Any, settings: Mapping[str, Any]) -> T:
    """The configuration that a model's constructor is given, as a preset with changes on top.

    Parameters
    ----------
    kind
        The class of the configuration.
    preset
        A preset's name, a TOML file, or a configuration; the defaults if None. For an ensemble a sequence of these, one
        for each member.
    settings
        As `load_preset` takes them. Without any, a configuration is not checked yet: `fit` does that.
    """
    model = _model_name(kind)
    settings = dict(settings)
    if "members" in flat_names(kind) and not isinstance(preset, kind | None):
        settings, preset = {"members": preset, **settings}, None
    if settings.get("members") is not None:
        settings["members"] = _members(settings["members"])
    config: Any = kind() if preset is None else load_preset(preset) if isinstance(preset, str | Path) else preset
    if type(config) is not kind:
        if not isinstance(config, SINGLE_CONFIGS):
            raise UsageError(
                f"{model}: {shown(config)} is not a preset; give its name, a .toml file, or its configuration "
                f"({kind.__name__})"
            )
        other, given = _model_name(type(config)), repr(preset) if isinstance(preset, str) else "them"
        raise UsageError(
            f"{model}: the settings are of {other}; give {given} to {other}, or choose a preset of {model}"
        )
    return changed(config, settings, model) if settings else config


def _members(given: Any) -> tuple[Any, ...]:
    """The configurations of an ensemble's members, of which some are presets."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        found = repr(given) if isinstance(given, str) else f"of class {type(given).__name__}"
        raise UsageError(f"Ensemble: members is {found}; it must be a list, each item a preset or a configuration")
    for number, one in enumerate(given):
        if hasattr(one, "config_class"):
            raise UsageError(
                f"Ensemble: members[{number}] is a model ({type(one).__name__}); give a preset's name, a .toml file or "
                "a configuration, as an ensemble trains its members itself; Ensemble.of(models) combines trained models"
            )
    return tuple(load_preset(one) if isinstance(one, str | Path) else one for one in given)


def _model_name(config: type[Any]) -> str:
    """The class of the models that a class of configurations belongs to."""
    return config.__name__.removesuffix("Config")


def changed(config: T, settings: Mapping[str, Any], where: str, spell: Callable[[str], str] = str) -> T:
    """A model's configuration with other settings, as `load_preset` takes them, checked.

    Parameters
    ----------
    where
        What to put before the name of a setting in an error: a file, say.
    """
    return with_settings(config, settings, where, spell)  # type: ignore[no-any-return]  # of its own type


def _read(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
            raise UsageError(f"{path} is no file with settings; give a .toml file of at most {MOST_BYTES:,} bytes")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as err:
        raise UsageError(f"{path} does not exist; give a .toml file, or one of: {', '.join(preset_names())}") from err
    except OSError as err:
        raise UsageError(f"{path} cannot be read ({err.strerror}); give a .toml file that you may read") from err
    except RecursionError as err:
        raise UsageError(f"{path} is nested too deeply; give a .toml file with settings") from err
    except UsageError:
        raise
    except ValueError as err:  # of tomllib, of UTF-8, or of a number with thousands of digits
        raise UsageError(f"{path} is not valid TOML: {err}") from err
