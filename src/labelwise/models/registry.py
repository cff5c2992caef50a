"""The kinds of models: the one table that says which kind is which class.

A folder, a preset and a configuration name their kind; everything else asks the model or the configuration itself. A
new kind of model is a class of models (see `labelwise.models.base`), a class of configurations with its flat names, and
two entries: a line of `KINDS`, and the class of configurations among those of `SingleConfig` in
`labelwise.config.models`. Presets, options of the command line, and members of an ensemble derive from the latter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelwise.config import EnsembleConfig, LinearTreeConfig, ModelConfig, XTransformerConfig
from labelwise.errors import StorageError, UsageError
from labelwise.storage import read_description
from labelwise.storage.paths import checked_path

if TYPE_CHECKING:
    from labelwise.models.base import Model


@dataclass(frozen=True)
class ModelKind:
    """The classes of one kind of model."""

    config: type[ModelConfig]
    module: str
    """The module of the model's class, which is imported when a model of this kind is made or loaded."""
    name: str
    """The name of the class in its module."""


KINDS: Mapping[str, ModelKind] = {
    "linear-tree": ModelKind(LinearTreeConfig, "labelwise.models.linear_tree", "LinearTree"),
    "x-transformer": ModelKind(XTransformerConfig, "labelwise.models.xtransformer", "XTransformer"),
    "ensemble": ModelKind(EnsembleConfig, "labelwise.models.ensemble", "Ensemble"),
}
"""What a model folder says of its kind, and the classes."""


def model_class(kind: str) -> type[Model]:
    """The class of the models of a kind."""
    found: type[Model] = getattr(import_module(KINDS[kind].module), KINDS[kind].name)
    return found


def new_model(config: ModelConfig) -> Any:
    """A model with these settings that is not fitted yet.

    >>> model = new_model(load_preset("parabel")).fit(texts, Y)
    """
    make: Any = model_class(config.kind)
    return make(config)


def known_kind(kind: object, path: Path) -> str:
    """The kind that a folder names, which must be one of `KINDS`."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise StorageError(f"{path} is a saved {kind}, not a model; give a folder that was written by labelwise train")
    return kind


def check_destination(path: Path | str) -> None:
    """Refuse to write a model to a place that holds anything but a model; an empty folder, or none, is fine."""
    path = checked_path(path)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file; give a folder for the model")
    if not path.is_dir() or not any(path.iterdir()):
        return
    try:
        kind = read_description(path).get("kind")
    except StorageError:  # there is none, or it is damaged: nobody can say that the folder was a model
        kind = None
    if not isinstance(kind, str) or kind not in KINDS:
        raise UsageError(
            f"{path} is not empty and holds no model that can be read; it is not overwritten: choose another place, or "
            "remove it yourself"
        )
