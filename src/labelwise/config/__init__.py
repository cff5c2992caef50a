"""Settings: one frozen dataclass per stage, which checks itself. A default lives here, once.

The string under a field is its documentation. A field with `compare=False` (threads, say) cannot change a result, so it
is no part of a stage's identity.
"""

from labelwise.config.features import Analyzer, EncoderConfig, Pooling, PoolingMethod, TfidfConfig
from labelwise.config.holdout import HoldoutConfig
from labelwise.config.incremental import IncrementalConfig
from labelwise.config.index import IndexConfig, LabelEmbedding
from labelwise.config.matcher import ComputePrecision, MatcherConfig, MatcherLoss, Precision
from labelwise.config.models import (
    EnsembleConfig,
    LinearTreeConfig,
    Matching,
    MemberWeights,
    ModelConfig,
    RankerFeatures,
    Rule,
    ScoreSpace,
    XTransformerConfig,
)
from labelwise.config.ranker import Negatives, RankerConfig, RankerLoss
from labelwise.config.score_transform import ScoreTransform

__all__ = [
    "Analyzer",
    "ComputePrecision",
    "EncoderConfig",
    "EnsembleConfig",
    "HoldoutConfig",
    "IncrementalConfig",
    "IndexConfig",
    "LabelEmbedding",
    "LinearTreeConfig",
    "MatcherConfig",
    "MatcherLoss",
    "Matching",
    "MemberWeights",
    "ModelConfig",
    "Negatives",
    "Pooling",
    "PoolingMethod",
    "Precision",
    "RankerConfig",
    "RankerFeatures",
    "RankerLoss",
    "Rule",
    "ScoreSpace",
    "ScoreTransform",
    "TfidfConfig",
    "XTransformerConfig",
]
