"""Search for labels: by prefix, by substring, by meaning."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from labelwise.models.base import Model

Match: TypeAlias = Literal["prefix", "substring", "meaning"]

MAX_LABELS_BY_MEANING = 200_000
"""Models with more labels are not searched by meaning: the first such search embeds all labels."""


class LabelSearch:
    """A search index over the labels of one version of a model."""

    def __init__(self, model: Model) -> None:
        pairs = sorted((name.casefold(), name) for name in model.labels_)
        self._folded = [folded for folded, _ in pairs]
        self._names = [name for _, name in pairs]
        self._encoder = model.encoder
        self._vectors: npt.NDArray[np.float32] | None = None
        self._lock = threading.Lock()

    @property
    def by_meaning(self) -> bool:
        """Whether labels can be found by meaning."""
        return self._encoder is not None and len(self._names) <= MAX_LABELS_BY_MEANING

    def find(self, query: str, match: Match) -> Sequence[str]:
        """All labels that match: in alphabetical order, or the most similar in meaning first."""
        if not query:
            return self._names
        if match == "meaning":
            return self._nearest(query)
        folded = query.casefold()
        if match == "prefix":
            start = bisect_left(self._folded, folded)
            end = start
            while end < len(self._folded) and self._folded[end].startswith(folded):
                end += 1
            return self._names[start:end]
        return [name for key, name in zip(self._folded, self._names, strict=True) if folded in key]

    def _nearest(self, query: str) -> list[str]:
        with self._lock:
            if self._vectors is None:
                self._vectors = self._embed(self._names)
        cosines = self._vectors @ self._embed([query])[0]
        return [self._names[at] for at in np.argsort(-cosines, kind="stable").tolist()]

    def _embed(self, texts: list[str]) -> npt.NDArray[np.float32]:
        assert self._encoder is not None
        vectors: npt.NDArray[np.float32] = np.array(self._encoder.embed(texts), np.float32)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors
