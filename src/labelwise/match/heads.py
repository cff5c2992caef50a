"""What a fine-tuned matcher keeps beside its encoder: the head, the linear term, and how training went."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelwise import storage
from labelwise.config import MatcherConfig, RankerConfig
from labelwise.errors import StorageError
from labelwise.match.linear import LinearMatcher
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.types import Csr, Floats

KIND = "matcher"
MARGIN = 3.0
"""The log-odds that correspond to the ranker's margin of one: 95 %."""


@dataclass
class History:
    """What training looked like."""

    curve: list[dict[str, float]] = field(default_factory=list)
    """A point every few steps: step, loss, rate; and recall where it was measured."""
    restarts: list[str] = field(default_factory=list)
    """The reasons for going back to an earlier step, one for each restart."""
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
    """Clusters of each tree: they lie side by side where several trees share an encoder (`labelwise.match.shared`)."""
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
        about = saved.config
        try:
            weight, bias, known = saved.arrays["head.weight"], saved.arrays["head.bias"], about.get("term")
            term = None
            if known is not None:
                level = LevelWeights.from_arrays(saved.arrays, "term.")
                term = LinearMatcher(level, known["n_features"], 0, known["bias"])
            labels = None
            if "labels.weight" in saved.arrays:
                labels = LabelHead(saved.arrays["labels.weight"], saved.arrays["labels.bias"])
            return cls(
                config=storage.restore(MatcherConfig, about["config"], path),
                linear=storage.restore(RankerConfig, about["linear"], path),
                weight=weight,
                bias=bias,
                term=term,
                groups=list(about.get("groups") or [len(weight)]),
                history=History(**about["history"]),
                labels=labels,
            )
        except (KeyError, TypeError) as err:
            raise StorageError(f"{path} is not a complete matcher ({err}); copy or make it again") from err


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
