"""The matcher without fine-tuning: a linear model for every cluster on tf-idf and a pretrained encoder's embeddings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelwise import storage
from labelwise.config import RankerConfig
from labelwise.errors import StorageError
from labelwise.features.encoder_folder import TextEncoder, load_encoder
from labelwise.features.normalize import unit_rows
from labelwise.match.documents import Documents
from labelwise.match.linear import LinearMatcher
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.types import Csr, Floats, OnEvent

KIND = "frozen matcher"


class FrozenMatcher:
    """g(x, k) of a linear model beside an encoder that stays as it is; used like `FineTunedMatcher`."""

    encoder_: TextEncoder
    history_: None = None
    """Nothing is fine-tuned."""
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
        E: Floats | None = None,
        seed: int = 0,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> Self:
        """Solve all clusters; the encoder is not changed."""
        E = encoder.embed(documents.tokens, device=self.device, on_event=on_event) if E is None else E
        linear = replace(self.linear, negatives="tfn")
        self.linear_ = LinearMatcher.fit(
            documents.X, self._dense(E), M, linear, seed=seed, threads=threads, on_event=on_event
        )
        self.encoder_ = encoder
        return self

    def match(
        self,
        documents: Documents,
        *,
        top_b: int,
        E: Floats | None = None,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> tuple[npt.NDArray[np.float32], Csr]:
        """Embeddings, computed unless given, and the best clusters with their scores: see `FineTunedMatcher.match`."""
        if E is None:
            E = self.encoder_.embed(documents.tokens, device=self.device, on_event=on_event)
        found = self.linear_.best(documents.X, self._dense(E), top_b=top_b, threads=threads)
        return np.asarray(E, np.float32), found

    def _dense(self, E: Floats) -> npt.NDArray[np.float32]:
        return unit_rows(E) * np.float32(self.dense_weight)

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
        about = saved.config
        linear = storage.restore(RankerConfig, about["linear"], path)
        self = cls(linear, dense_weight=about["dense_weight"], device=device)
        try:
            level = LevelWeights.from_arrays(saved.arrays, "")
        except KeyError as err:
            raise StorageError(f"{path} lacks {err}; copy or make it again") from err
        self.linear_ = LinearMatcher(level, about["n_features"], about["n_dense"], about["bias"])
        self.encoder_ = encoder or load_encoder(path / "encoder")
        return self
