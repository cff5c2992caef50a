"""The right few labels for a text, out of thousands or millions.

Every public name is imported when it is first used, so that `import labelwise` stays light:

>>> import labelwise
>>> train = labelwise.load_dataset("my-data", split="train")
>>> X = labelwise.Tfidf().fit_transform(train.texts)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from labelwise.config import TfidfConfig as TfidfConfig
    from labelwise.data import Dataset as Dataset
    from labelwise.data import load_dataset as load_dataset
    from labelwise.data import load_splits as load_splits
    from labelwise.data import split_validation as split_validation
    from labelwise.errors import DataError as DataError
    from labelwise.errors import LabelwiseError as LabelwiseError
    from labelwise.errors import StorageError as StorageError
    from labelwise.errors import UsageError as UsageError
    from labelwise.features.tfidf import Tfidf as Tfidf
    from labelwise.metrics import evaluate as evaluate
    from labelwise.predictions import Predictions as Predictions
    from labelwise.run import RunDirectory as RunDirectory

# Where each public name lives.
_HOMES = {
    "DataError": "labelwise.errors",
    "Dataset": "labelwise.data",
    "LabelwiseError": "labelwise.errors",
    "Predictions": "labelwise.predictions",
    "RunDirectory": "labelwise.run",
    "StorageError": "labelwise.errors",
    "Tfidf": "labelwise.features.tfidf",
    "TfidfConfig": "labelwise.config",
    "UsageError": "labelwise.errors",
    "evaluate": "labelwise.metrics",
    "load_dataset": "labelwise.data",
    "load_splits": "labelwise.data",
    "split_validation": "labelwise.data",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'labelwise' has no attribute {name!r}; it has: {', '.join(__all__)}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
