"""The right few labels for a text, out of thousands or millions.

Every public name is imported when it is first used, so that `import labelwise` stays light:

>>> import labelwise
>>> train = labelwise.load_dataset("my-data", split="train")
>>> model = labelwise.LinearTree().fit(train.texts, train.Y, label_names=train.labels)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from labelwise.config import EncoderConfig as EncoderConfig
    from labelwise.config import EnsembleConfig as EnsembleConfig
    from labelwise.config import IncrementalConfig as IncrementalConfig
    from labelwise.config import IndexConfig as IndexConfig
    from labelwise.config import LinearTreeConfig as LinearTreeConfig
    from labelwise.config import MatcherConfig as MatcherConfig
    from labelwise.config import RankerConfig as RankerConfig
    from labelwise.config import TfidfConfig as TfidfConfig
    from labelwise.config import XTransformerConfig as XTransformerConfig
    from labelwise.config.presets import load_preset as load_preset
    from labelwise.data import Dataset as Dataset
    from labelwise.data import ReadOptions as ReadOptions
    from labelwise.data import convert as convert
    from labelwise.data import describe as describe
    from labelwise.data import load_dataset as load_dataset
    from labelwise.data import load_splits as load_splits
    from labelwise.data import split_validation as split_validation
    from labelwise.datasets.shop import generate_shop as generate_shop
    from labelwise.datasets.shop import write_shop as write_shop
    from labelwise.errors import DataError as DataError
    from labelwise.errors import LabelwiseError as LabelwiseError
    from labelwise.errors import MissingExtraError as MissingExtraError
    from labelwise.errors import StorageError as StorageError
    from labelwise.errors import UsageError as UsageError
    from labelwise.explanations import Explanation as Explanation
    from labelwise.explanations import Neighbours as Neighbours
    from labelwise.explanations import explain as explain
    from labelwise.features.encoder import Encoder as Encoder
    from labelwise.features.tfidf import Tfidf as Tfidf
    from labelwise.features.token_store import TokenStore as TokenStore
    from labelwise.incremental import NewLabel as NewLabel
    from labelwise.incremental import add_labels as add_labels
    from labelwise.incremental import keep_documents as keep_documents
    from labelwise.incremental import remove_labels as remove_labels
    from labelwise.incremental import update as update
    from labelwise.integrations.hub import from_pretrained as from_pretrained
    from labelwise.metrics import calibration_error as calibration_error
    from labelwise.metrics import compare as compare
    from labelwise.metrics import coverage_at_k as coverage_at_k
    from labelwise.metrics import evaluate as evaluate
    from labelwise.metrics import inverse_propensity as inverse_propensity
    from labelwise.metrics import macro_f1 as macro_f1
    from labelwise.metrics import micro_f1 as micro_f1
    from labelwise.metrics import ndcg_at_k as ndcg_at_k
    from labelwise.metrics import precision_at_k as precision_at_k
    from labelwise.metrics import psndcg_at_k as psndcg_at_k
    from labelwise.metrics import psp_at_k as psp_at_k
    from labelwise.metrics import r_precision_at_k as r_precision_at_k
    from labelwise.metrics import recall_at_k as recall_at_k
    from labelwise.metrics import reliability_curve as reliability_curve
    from labelwise.models.base import load_model as load_model
    from labelwise.models.calibrator import Calibrator as Calibrator
    from labelwise.models.ensemble import Ensemble as Ensemble
    from labelwise.models.linear_tree import LinearTree as LinearTree
    from labelwise.models.xtransformer import XTransformer as XTransformer
    from labelwise.predictions import Predictions as Predictions
    from labelwise.predictions import read_predictions as read_predictions
    from labelwise.storage.run_directory import RunDirectory as RunDirectory
    from labelwise.tuning import train as train

# Where each public name lives.
_HOMES = {
    "Calibrator": "labelwise.models.calibrator",
    "DataError": "labelwise.errors",
    "Dataset": "labelwise.data",
    "Encoder": "labelwise.features.encoder",
    "EncoderConfig": "labelwise.config",
    "Ensemble": "labelwise.models.ensemble",
    "EnsembleConfig": "labelwise.config",
    "Explanation": "labelwise.explanations",
    "IncrementalConfig": "labelwise.config",
    "IndexConfig": "labelwise.config",
    "LabelwiseError": "labelwise.errors",
    "LinearTree": "labelwise.models.linear_tree",
    "LinearTreeConfig": "labelwise.config",
    "MatcherConfig": "labelwise.config",
    "MissingExtraError": "labelwise.errors",
    "Neighbours": "labelwise.explanations",
    "NewLabel": "labelwise.incremental",
    "Predictions": "labelwise.predictions",
    "RankerConfig": "labelwise.config",
    "ReadOptions": "labelwise.data",
    "RunDirectory": "labelwise.storage.run_directory",
    "StorageError": "labelwise.errors",
    "Tfidf": "labelwise.features.tfidf",
    "TfidfConfig": "labelwise.config",
    "TokenStore": "labelwise.features.token_store",
    "UsageError": "labelwise.errors",
    "XTransformer": "labelwise.models.xtransformer",
    "XTransformerConfig": "labelwise.config",
    "add_labels": "labelwise.incremental",
    "calibration_error": "labelwise.metrics",
    "compare": "labelwise.metrics",
    "convert": "labelwise.data",
    "coverage_at_k": "labelwise.metrics",
    "describe": "labelwise.data",
    "evaluate": "labelwise.metrics",
    "from_pretrained": "labelwise.integrations.hub",
    "explain": "labelwise.explanations",
    "generate_shop": "labelwise.datasets.shop",
    "inverse_propensity": "labelwise.metrics",
    "keep_documents": "labelwise.incremental",
    "load_dataset": "labelwise.data",
    "load_model": "labelwise.models.base",
    "load_preset": "labelwise.config.presets",
    "load_splits": "labelwise.data",
    "macro_f1": "labelwise.metrics",
    "micro_f1": "labelwise.metrics",
    "ndcg_at_k": "labelwise.metrics",
    "precision_at_k": "labelwise.metrics",
    "psndcg_at_k": "labelwise.metrics",
    "psp_at_k": "labelwise.metrics",
    "r_precision_at_k": "labelwise.metrics",
    "read_predictions": "labelwise.predictions",
    "recall_at_k": "labelwise.metrics",
    "reliability_curve": "labelwise.metrics",
    "remove_labels": "labelwise.incremental",
    "split_validation": "labelwise.data",
    "train": "labelwise.tuning",
    "update": "labelwise.incremental",
    "write_shop": "labelwise.datasets.shop",
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
