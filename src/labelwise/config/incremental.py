"""How labels are added to a trained model."""

from __future__ import annotations

from dataclasses import dataclass

from labelwise.config.settings import Count, Positive, Seed, Settings


@dataclass(frozen=True, kw_only=True)
class IncrementalConfig(Settings):
    """How labels are added to a trained model: see `labelwise.incremental`."""

    per_cluster: Count = 100
    """Largest number of documents of a cluster that a model keeps, and that are negatives of labels that no document of
    the data has. More are not better: any of these documents may have the label without its being recorded."""
    text_scale: Positive = 0.5
    """Length of the weights of a label without examples, as a share of the median length in its cluster."""
    seed: Seed = 0
    """Random seed of the choice of these documents."""
