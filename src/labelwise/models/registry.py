"""The kinds of models: the one table that says which kind is which class.

A folder, a preset and a configuration name their kind; everything else asks the model or the configuration itself. A
new kind of model is a line of `KINDS`, a class of configurations and a class of models: see `labelwise.models.base`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from labelwise.config import EnsembleConfig, LinearTreeConfig, ModelConfig, XTransformerConfig
from labelwise.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

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
