"""Settings: one frozen dataclass per stage. A default lives here, once."""

from labelwise.config.models import (
    EncoderConfig,
    EnsembleConfig,
    GrowingConfig,
    IndexConfig,
    LinearTreeConfig,
    MatcherConfig,
    RankerConfig,
    Rule,
    TfidfConfig,
    XTransformerConfig,
)

__all__ = [
    "EncoderConfig",
    "EnsembleConfig",
    "GrowingConfig",
    "IndexConfig",
    "LinearTreeConfig",
    "MatcherConfig",
    "RankerConfig",
    "Rule",
    "TfidfConfig",
    "XTransformerConfig",
]
