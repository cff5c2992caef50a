"""X-Transformer: the three stages in a row. It composes them and holds no algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from labelwise import storage
from labelwise.calibrate import Calibrator
from labelwise.config import XTransformerConfig
from labelwise.data import Dataset
from labelwise.errors import DataError, UsageError
from labelwise.features.encoder import Encoder
from labelwise.features.tfidf import Tfidf
from labelwise.features.tokens import TokenStore
from labelwise.index import Tree, build_tree, embed_labels
from labelwise.match.frozen import FrozenMatcher
from labelwise.match.matcher import Documents, Matcher, unit_rows
from labelwise.model import _targets
from labelwise.predictions import Predictions
from labelwise.predictions.ranking import at_least
from labelwise.rank.negatives import teacher_forcing
from labelwise.rank.ranker import Ranker, choose_ranker
from labelwise.run import RunDirectory
from labelwise.types import Csr, OnEvent

T = TypeVar("T")
_KIND = "x-transformer"


class XTransformer:
    """Labels for texts by a fine-tuned encoder that finds clusters and linear models that rank their labels.

    >>> model = XTransformer().fit(train.texts, train.Y, label_names=train.labels, validation=validation)
    >>> model.predict(["council regulation on fishing quotas"], top_k=3)[0]
    [('fishery management', 0.93), ...]
    """

    tfidf_: Tfidf
    tree_: Tree
    matcher_: Matcher | FrozenMatcher
    ranker_: Ranker
    labels_: list[str]
    calibrator_: Calibrator | None
    """None if there was nothing to calibrate on: scores are then the model's own."""
    report_: dict[str, Any]
    """What the model card tells of training."""

    def __init__(self, config: XTransformerConfig | None = None) -> None:
        self.config = config or XTransformerConfig()
