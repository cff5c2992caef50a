"""The matcher without fine-tuning: a linear model for every cluster on tf-idf and a pretrained encoder's embeddings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelwise import storage
from labelwise.config import RankerConfig
from labelwise.features.encoder_folder import TextEncoder, load_encoder
from labelwise.features.normalize import unit_rows
from labelwise.match.documents import Documents
from labelwise.match.heads import History, LabelHead
from labelwise.match.linear import LinearMatcher
from labelwise.rank.level_checks import check_parents, load_level
from labelwise.storage.checks import Factor, FeatureCount, damaged
from labelwise.storage.shared_parts import SharedParts
from labelwise.types import Csr, Floats, OnEvent

KIND = "frozen matcher"


class FrozenMatcher:
    """g(x, k) of linear models on tf-idf and the embeddings of a pretrained encoder: a `Matcher`."""

    reads_pretrained = True
    number_of_tree = 0
    label_head: LabelHead | None = None
    history_: History | None = None
    """Nothing is fine-tuned."""
    encoder_: TextEncoder
    linear_: LinearMatcher

    def __init__(
        self, linear: RankerConfig | None = None, *, dense_weight: float = 1.0, device: str | None = None
    ) -> None:
        self.linear, self.dense_weight, self.device = linear or RankerConfig(), dense_weight, device

    def fit(
        self,
        encoder: TextEncoder,
        documents: Documents,
        M: Csr,
        *,
        seed: int = 0,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> Self:
        """Solve all clusters; the encoder is not changed."""
        self.encoder_ = encoder
        E = self._embeddings(documents, on_event)
        linear = replace(self.linear, negatives="tfn")
        self.linear_ = LinearMatcher.fit(
            documents.X, self._dense(E), M, linear, seed=seed, threads=threads, on_event=on_event
        )
        return self

    def match(
        self,
        documents: Documents,
        *,
        top_b: int,
        embed: bool = True,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> tuple[npt.NDArray[np.float32], Csr]:
        """Embeddings, and the best clusters with their scores: see `Matcher.match`."""
        E = self._embeddings(documents, on_event)
        found = self.linear_.best(documents.X, self._dense(E), top_b=top_b, threads=threads)
        return np.asarray(E if embed else E[:0], np.float32), found

    def own(self, found: Csr) -> Csr:
        """All clusters are this matcher's own."""
        return found

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return self.linear_.level.n_children

    @property
    def n_features(self) -> int | None:
        """Number of sparse features that the linear models read."""
        return self.linear_.n_features

    @property
    def source(self) -> Self:
        """The matcher itself."""
        return self

    def _embeddings(self, documents: Documents, on_event: OnEvent | None) -> Floats:
        """(n_docs, hidden) pretrained embeddings, computed where they are not there."""
        if documents.E is not None:
            return documents.E
        return self.encoder_.embed(documents.tokens, device=self.device, on_event=on_event)

    def _dense(self, E: Floats) -> npt.NDArray[np.float32]:
        return unit_rows(E) * np.float32(self.dense_weight)

    def write(self, folder: Path, parts: SharedParts) -> dict[str, Any]:
        """Write a folder; models with one pretrained encoder share it."""
        self.save(folder, encoder=False)
        parts.save(self.encoder_, folder / "encoder")
        return {}

    def save(self, path: Path | str, *, encoder: bool = True) -> None:
        """Write a folder: the encoder as Hugging Face keeps it, unless it is kept elsewhere, and the linear models."""
        linear = self.linear_
        sizes = {"n_features": linear.n_features, "n_dense": linear.n_dense, "bias": linear.bias}
        about: dict[str, Any] = {"linear": self.linear, "dense_weight": self.dense_weight, **sizes}
        with storage.atomic_folder(path, overwrite=True) as folder:
            if encoder:
                self.encoder_.save(folder / "encoder")
            storage.save(folder / "linear", kind=KIND, config=about, arrays=linear.level.to_arrays(""))

    @classmethod
    def load(
        cls, path: Path | str, *, device: str | None = None, verify: bool = True, encoder: TextEncoder | None = None
    ) -> Self:
        """Read what `save` wrote; an encoder that is there already is not read again."""
        path = Path(path)
        saved = storage.load(path / "linear", kind=KIND, verify=verify)
        about = saved.entries
        linear = storage.restore(RankerConfig, about.get("linear", dict[str, Any]), path)
        self = cls(linear, dense_weight=about.get("dense_weight", Factor), device=device)
        n_features, n_dense = about.get("n_features", FeatureCount), about.get("n_dense", FeatureCount)
        level = load_level(saved.checked, n_features=n_features, n_dense=n_dense + 1)
        check_parents(level, np.zeros(level.n_children, np.int32), 1, path)
        self.linear_ = LinearMatcher(level, n_features, n_dense, about.get("bias", Factor))
        self.encoder_ = encoder or load_encoder(path / "encoder")
        if self.encoder_.hidden_size != n_dense:
            raise damaged(path, f"its weights are of {n_dense} dimensions, its encoder of {self.encoder_.hidden_size}")
        return self
