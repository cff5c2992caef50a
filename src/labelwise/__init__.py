"""The right few labels for a text, out of thousands or millions.

Every public name is imported when it is first used, so that `import labelwise` stays light:

>>> import labelwise
>>> train = labelwise.load_dataset("my-data", split="train")
>>> model = labelwise.LinearTree().fit(train.texts, train.Y, label_names=train.labels)
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from labelwise.cli.progress import show_progress as show_progress
    from labelwise.config import EnsembleConfig as EnsembleConfig
    from labelwise.config import LinearTreeConfig as LinearTreeConfig
    from labelwise.config import XTransformerConfig as XTransformerConfig
    from labelwise.config.presets import load_preset as load_preset
    from labelwise.data import Dataset as Dataset
    from labelwise.data import convert as convert
    from labelwise.data import describe as describe
    from labelwise.data import load_dataset as load_dataset
    from labelwise.data import load_splits as load_splits
    from labelwise.datasets.shop import generate_shop as generate_shop
    from labelwise.engines import engine as engine
    from labelwise.errors import DataError as DataError
    from labelwise.errors import LabelwiseError as LabelwiseError
    from labelwise.errors import UsageError as UsageError
    from labelwise.explanations import explain as explain
    from labelwise.features.encoder import Encoder as Encoder
    from labelwise.features.tfidf import Tfidf as Tfidf
    from labelwise.incremental import NewLabel as NewLabel
    from labelwise.incremental import add_labels as add_labels
    from labelwise.incremental import keep_documents as keep_documents
    from labelwise.incremental import remove_labels as remove_labels
    from labelwise.incremental import update as update
    from labelwise.integrations.hub import from_pretrained as from_pretrained
    from labelwise.kernels.preparing import warm_up as warm_up
    from labelwise.metrics import compare as compare
    from labelwise.metrics import evaluate as evaluate
    from labelwise.metrics import precision_at_k as precision_at_k
    from labelwise.models.base import load_model as load_model
    from labelwise.models.ensemble import Ensemble as Ensemble
    from labelwise.models.linear_tree import LinearTree as LinearTree
    from labelwise.models.xtransformer import XTransformer as XTransformer
    from labelwise.predictions import Predictions as Predictions
    from labelwise.predictions import read_predictions as read_predictions
    from labelwise.tuning import cross_validate as cross_validate
    from labelwise.tuning import train as train

# Where each public name lives.
_HOMES = {
    "DataError": "labelwise.errors",
    "Dataset": "labelwise.data",
    "Encoder": "labelwise.features.encoder",
    "Ensemble": "labelwise.models.ensemble",
    "EnsembleConfig": "labelwise.config",
    "LabelwiseError": "labelwise.errors",
    "LinearTree": "labelwise.models.linear_tree",
    "LinearTreeConfig": "labelwise.config",
    "NewLabel": "labelwise.incremental",
    "Predictions": "labelwise.predictions",
    "Tfidf": "labelwise.features.tfidf",
    "UsageError": "labelwise.errors",
    "XTransformer": "labelwise.models.xtransformer",
    "XTransformerConfig": "labelwise.config",
    "add_labels": "labelwise.incremental",
    "compare": "labelwise.metrics",
    "convert": "labelwise.data",
    "cross_validate": "labelwise.tuning",
    "describe": "labelwise.data",
    "engine": "labelwise.engines",
    "evaluate": "labelwise.metrics",
    "from_pretrained": "labelwise.integrations.hub",
    "explain": "labelwise.explanations",
    "generate_shop": "labelwise.datasets.shop",
    "keep_documents": "labelwise.incremental",
    "load_dataset": "labelwise.data",
    "load_model": "labelwise.models.base",
    "load_preset": "labelwise.config.presets",
    "load_splits": "labelwise.data",
    "precision_at_k": "labelwise.metrics",
    "read_predictions": "labelwise.predictions",
    "remove_labels": "labelwise.incremental",
    "show_progress": "labelwise.cli.progress",
    "train": "labelwise.tuning",
    "update": "labelwise.incremental",
    "warm_up": "labelwise.kernels.preparing",
}

# Names whose module imports torch.
_NEED_TORCH = ("Encoder",)


def _has_torch() -> bool:
    """Whether torch is installed; it is not imported."""
    try:
        return find_spec("torch") is not None
    except (ImportError, ValueError):  # some import hook refuses it
        return False


# Without torch `from labelwise import *` takes all other names; `labelwise.Encoder` then says what to install.
__all__ = ["__version__", *(name for name in _HOMES if name not in _NEED_TORCH or _has_torch())]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'labelwise' has no attribute {name!r}; it has: {', '.join(__all__)}")
    try:
        value = getattr(import_module(home), name)
    except ImportError as error:
        if name not in _NEED_TORCH or _has_torch():
            raise
        return _Missing(name, error)  # so that hasattr, inspect and documentation tools do not fail
    globals()[name] = value
    return value


class _Missing:
    """Stands for a public name whose extra is not installed: whoever uses it is told what to install."""

    def __init__(self, name: str, error: ImportError) -> None:
        self.__name__, self.__doc__, self._error = name, str(error), error

    def __repr__(self) -> str:
        return f"<labelwise.{self.__name__}: {self._error}>"

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise type(self._error)(str(self._error)) from self._error

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return self()

    def __instancecheck__(self, value: object) -> bool:
        return False


def __dir__() -> list[str]:
    return sorted(__all__)
