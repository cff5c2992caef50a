"""A fine-tuned matcher whose encoder was exported: the same scores without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelwise import storage
from labelwise.features.encoder_folder import TextEncoder, load_encoder
from labelwise.features.normalize import unit_rows
from labelwise.match.documents import Documents
from labelwise.match.heads import Head, History, LabelHead, as_rows
from labelwise.match.linear import SCORES_PER_BLOCK
from labelwise.storage.checks import damaged
from labelwise.storage.shared_parts import SharedParts
from labelwise.types import Csr, OnEvent


class ExportedMatcher:
    """g(x, k) of the paper, which predicts and cannot be trained: a `Matcher`."""

    reads_pretrained = False
    number_of_tree = 0
    device: str | None = None

    def __init__(self, head: Head, encoder: TextEncoder) -> None:
        self.head, self.encoder_ = head, encoder
        # The head was trained on embeddings of length sqrt(hidden).
        self._weight = np.asarray(head.weight, np.float32).T * np.float32(encoder.hidden_size**0.5)

    @property
    def history_(self) -> History:
        """What its training looked like."""
        return self.head.history

    @property
    def label_head(self) -> LabelHead | None:
        """The one-vs-all head over the labels; None unless it was trained."""
        return self.head.labels

    @property
    def source(self) -> Self:
        """The matcher itself."""
        return self

    @property
    def n_clusters(self) -> int:
        """Number of clusters, those of all trees together."""
        return len(self.head.weight)

    @property
    def n_features(self) -> int | None:
        """Number of sparse features that the linear term reads; None without one."""
        return None if self.head.term is None else self.head.term.n_features

    @property
    def groups_(self) -> list[int]:
        """Clusters of each tree."""
        return self.head.groups

    def match(
        self,
        documents: Documents,
        *,
        top_b: int,
        embed: bool = True,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> tuple[npt.NDArray[np.float32], Csr]:
        """Embeddings, and the best clusters with their scores, as `FineTunedMatcher.match` gives them."""
        head, n_clusters = self.head, len(self.head.weight)
        E = self.encoder_.embed(documents.tokens, on_event=on_event)
        width = sum(min(top_b, size) for size in self.groups_)
        scores = np.empty((len(documents), width), np.float32)
        clusters = np.empty((len(documents), width), np.int32)
        block = max(1, SCORES_PER_BLOCK // n_clusters)
        for begin in range(0, len(documents), block):
            part = slice(begin, begin + block)
            g = unit_rows(E[part]) @ self._weight + head.bias
            if head.term is not None:
                g += head.term.scores(documents.X[part], threads=threads)
            clusters[part] = self._best(g, top_b)
            scores[part] = np.take_along_axis(g, clusters[part], axis=1)
        return E if embed else E[:0], as_rows(clusters, scores, n_clusters)

    def _best(self, g: npt.NDArray[np.float32], top_b: int) -> npt.NDArray[np.int64]:
        """(n_docs, width) the best clusters of every tree."""
        found, begin = [], 0
        for size in self.groups_:
            own = g[:, begin : begin + size]
            most = min(top_b, size)
            best = np.argpartition(-own, most - 1, axis=1)[:, :most] if most < size else np.argsort(-own, axis=1)
            found.append(best + begin)
            begin += size
        return np.hstack(found)

    def own(self, found: Csr) -> Csr:
        """All clusters are this matcher's own."""
        return found

    def write(self, folder: Path, parts: SharedParts) -> dict[str, Any]:
        """Write a folder; nothing else is needed to load it."""
        self.save(folder)
        return {}

    def save(self, path: Path | str) -> None:
        """Write a folder: the encoder, the head and the linear term."""
        with storage.atomic_folder(path, overwrite=True) as folder:
            self.encoder_.save(folder / "encoder")
            self.head.save(folder / "head")

    @classmethod
    def load(cls, path: Path | str, *, verify: bool = True) -> Self:
        """Read what `save` wrote."""
        path = Path(path)
        head, encoder = Head.load(path / "head", verify=verify), load_encoder(path / "encoder")
        if head.weight.shape[1] != encoder.hidden_size:
            raise damaged(path, f"its head is of {head.weight.shape[1]} dimensions, its encoder {encoder.hidden_size}")
        return cls(head, encoder)
