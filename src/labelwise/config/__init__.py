"""Settings: one frozen dataclass per stage, which checks itself. A default lives here, once.

The string under a field is its documentation. A field with `compare=False` (threads, say) cannot change a result, so it
is no part of a stage's identity.
"""

from labelwise.config.features import EncoderConfig, TfidfConfig
from labelwise.config.holdout import HoldoutConfig
from labelwise.config.incremental import IncrementalConfig
from labelwise.config.index import IndexConfig, LabelEmbedding
from labelwise.config.matcher import MatcherConfig, MatcherLoss
from labelwise.config.models import (
    EnsembleConfig,
    LinearTreeConfig,
    ModelConfig,
    Rule,
    ScoreSpace,
    XTransformerConfig,
)
from labelwise.config.ranker import Negatives, RankerConfig
from labelwise.config.score_transform import ScoreTransform

__all__ = [
    "EncoderConfig",
    "EnsembleConfig",
    "HoldoutConfig",
    "IncrementalConfig",
    "IndexConfig",
    "LabelEmbedding",
    "LinearTreeConfig",
    "MatcherConfig",
    "MatcherLoss",
    "ModelConfig",
    "Negatives",
    "RankerConfig",
    "Rule",
    "ScoreSpace",
    "ScoreTransform",
    "TfidfConfig",
    "XTransformerConfig",
]
