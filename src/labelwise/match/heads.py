"""What a fine-tuned matcher keeps beside its encoder: the head, the linear term, and how training went."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelwise import storage
from labelwise.config import MatcherConfig, RankerConfig
from labelwise.config.settings import Count
from labelwise.match.linear import LinearMatcher
from labelwise.rank.level_checks import check_parents, load_level
from labelwise.storage.checks import Factor, FeatureCount, damaged
from labelwise.types import Csr, Floats

KIND = "matcher"
MARGIN = 3.0
"""The log-odds that count as much as the ranker's margin of one: 95 %."""


@dataclass
class History:
    """What training looked like."""

    curve: list[dict[str, float]] = field(default_factory=list)
    """A point every few steps: step, loss, rate; and recall where it was measured."""
    restarts: list[str] = field(default_factory=list)
    """Why training began anew from an earlier point."""
    best_recall: float | None = None
    best_step: int = 0
    steps: int = 0
    seconds: float = 0.0
    tokens: int = 0
    """Real tokens that were learnt from, padding not counted."""


@dataclass(frozen=True, eq=False)
class LabelHead:
    """A linear score of every label on embeddings of length one, in the ranker's units.

    The ranker reads the same embeddings, so that this becomes a part of its weights (`Ranker.with_labels`).
    """

    weight: npt.NDArray[np.float16]
    """(n_labels, hidden)"""
    bias: npt.NDArray[np.float16]
    """(n_labels,)"""

    @classmethod
    def of(cls, weight: Floats, bias: Floats) -> LabelHead:
        """From rows of a network's head, which read embeddings of length sqrt(hidden) and give log-odds."""
        scale = np.float32(1 / MARGIN)
        return cls(
            (weight * (scale * np.float32(weight.shape[1] ** 0.5))).astype(np.float16),
            (bias * scale).astype(np.float16),
        )


@dataclass(frozen=True, eq=False)
class Head:
    """A matcher without its encoder, as a folder keeps it."""

    config: MatcherConfig
    linear: RankerConfig
    weight: npt.NDArray[np.float32]
    """(n_clusters, hidden)"""
    bias: npt.NDArray[np.float32]
    """(n_clusters,)"""
    term: LinearMatcher | None
    """The linear term, None without one."""
    groups: list[int]
    """Clusters of each tree: they lie side by side where several trees share the encoder (see `joint.py`)."""
    history: History
    labels: LabelHead | None = None
    """The network's own scores of labels, where it has learnt them: what the ranker's weights were made of."""

    def save(self, path: Path) -> None:
        """Write a folder that `load` reads."""
        arrays: dict[str, Any] = {"head.weight": self.weight, "head.bias": self.bias}
        about: dict[str, Any] = {"config": self.config, "linear": self.linear, "history": vars(self.history)}
        if len(self.groups) > 1:
            about["groups"] = self.groups
        if self.term is not None:
            arrays |= self.term.level.to_arrays("term.")
            about["term"] = {"n_features": self.term.n_features, "bias": self.term.bias}
        if self.labels is not None:
            arrays |= {"labels.weight": self.labels.weight, "labels.bias": self.labels.bias}
        storage.save(path, kind=KIND, config=about, arrays=arrays)

    @classmethod
    def load(cls, path: Path, *, verify: bool = True) -> Self:
        """Read what `save` wrote; arrays are mapped, not copied."""
        saved = storage.load(path, kind=KIND, verify=verify)
        arrays, about = saved.checked, saved.entries
        weight = arrays.finite("head.weight", np.float32, (None, None))
        n_clusters, hidden = weight.shape
        groups = about.get("groups", list[Count]) if about.values.get("groups") else [n_clusters]
        if sum(groups) != n_clusters or not n_clusters:
            raise damaged(path, f"the clusters of its trees are not the {n_clusters} of the head")
        term, labels = None, None
        if about.values.get("term") is not None:
            known = about.table("term")
            n_features, bias = known.get("n_features", FeatureCount), known.get("bias", Factor)
            level = load_level(arrays, "term.", n_features=n_features, n_dense=1)
            check_parents(level, np.zeros(n_clusters, np.int32), 1, path)
            term = LinearMatcher(level, n_features, 0, bias)
        if "labels.weight" in arrays:
            own = arrays.finite("labels.weight", np.float16, (None, hidden))
            labels = LabelHead(own, arrays.finite("labels.bias", np.float16, (len(own),)))
        return cls(
            config=storage.restore(MatcherConfig, about.get("config", dict[str, Any]), path),
            linear=storage.restore(RankerConfig, about.get("linear", dict[str, Any]), path),
            weight=weight,
            bias=arrays.finite("head.bias", np.float32, (n_clusters,)),
            term=term,
            groups=groups,
            history=about.get("history", History),
            labels=labels,
        )


def as_rows(clusters: npt.NDArray[np.int32], scores: npt.NDArray[np.float32], n_clusters: int) -> Csr:
    """(n_docs, n_clusters) the clusters found for each document, as many for each, as rows of a matrix.

    Parameters
    ----------
    clusters : (n_docs, width) their numbers, in any order
    scores : (n_docs, width)
    """
    n_docs, width = clusters.shape
    order = np.argsort(clusters, axis=1)
    indptr = np.arange(0, clusters.size + 1, width, dtype=np.int32 if clusters.size < 1 << 31 else np.int64)
    data = np.take_along_axis(scores, order, axis=1).reshape(-1)
    indices = np.take_along_axis(clusters, order, axis=1).reshape(-1).astype(indptr.dtype, copy=False)
    parts: tuple[Any, ...] = (data, indices, indptr)
    found = Csr(parts, shape=(n_docs, n_clusters))
    found.has_sorted_indices = True
    return found
