"""The documents on the device: tokens, targets and scores of the linear term. A step then copies only row numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelwise.errors import DataError
from labelwise.features.encoder import Encoder
from labelwise.features.fused import FusedModel
from labelwise.features.packing import Packer
from labelwise.features.token_store import TokenStore
from labelwise.match.training.batches import Shape
from labelwise.match.training.sampling import Sample, sample
from labelwise.types import Csr


class DeviceData:
    """Tokens, targets and scores of the linear term, on the device."""

    def __init__(
        self,
        encoder: Encoder,
        store: TokenStore,
        M: Csr | None = None,
        *,
        n_labels: int = 0,
        term: npt.NDArray[np.float16] | None = None,
        packer: Packer | None = None,
        device: torch.device,
    ) -> None:
        """Copy everything to the device.

        Parameters
        ----------
        M : (n_docs, n_clusters) the clusters of each document; with a label head the last columns are labels
        n_labels : number of these columns
        term : (n_docs, n_clusters) scores of the linear term
        packer : makes packed batches; None if the encoder cannot be packed
        """
        if M is not None and M.shape[0] != len(store):
            raise DataError(f"there are {len(store)} texts but {M.shape[0]} rows of clusters; they must match")
        self.encoder, self.packer, self.device = encoder, packer, device
        self.fused: FusedModel | None = None
        """The compiled model, for batches of shape "full"."""
        self.lengths: npt.NDArray[Any] = np.asarray(store.lengths)
        self.longest = int(self.lengths.max(initial=1))
        self._tokens = torch.from_numpy(np.asarray(store.tokens).astype(np.int32)).to(device)
        self._starts = torch.from_numpy(np.array(store.indptr[:-1], np.int64)).to(device)
        self._lengths = torch.from_numpy(self.lengths.astype(np.int64)).to(device)
        self._clusters = None if M is None else _padded(M).to(device)
        self.n_clusters, self.n_labels = 0 if M is None else int(M.shape[1]), n_labels
        self._term = None if term is None else torch.from_numpy(np.asarray(term)).to(device)

    def __len__(self) -> int:
        return len(self.lengths)

    def inputs(self, rows: Tensor, shape: Shape) -> dict[str, Any]:
        """The encoder's inputs for these documents; -1 means no document."""
        there = rows.clamp(min=0)
        starts, lengths = self._starts[there], torch.where(rows >= 0, self._lengths[there], 0)
        if shape.kind == "packed":
            assert self.packer is not None
            return self.packer.batch(self._tokens, starts, lengths, shape.width, self.longest)
        inputs = self.encoder.batch(self._tokens, starts, lengths, shape.width)
        if shape.kind == "full":
            inputs.pop("attention_mask")
        return inputs

    def compile(self) -> None:
        """Compile the encoder for the shape that most batches have."""
        if self.packer is not None:
            self.packer.compile()
        elif np.mean(self.lengths == self.longest) > 0.5:
            self.fused = FusedModel(self.encoder.model, self.encoder.hidden_size)

    def sample(self, rows: Tensor, most: int) -> Sample | None:
        """The clusters that a step scores; None for all clusters."""
        assert self._clusters is not None
        if self.n_clusters <= most:
            return None
        true = torch.where((rows >= 0).unsqueeze(1), self._clusters[rows.clamp(min=0)].long(), self.n_clusters)
        return sample(true, self.n_clusters, most)

    def signs(self, rows: Tensor, chosen: Sample | None = None) -> Tensor:
        """(batch, n_clusters) M~: 1 for a document's clusters, -1 for the others; of the sampled clusters if given."""
        assert self._clusters is not None
        clusters, n = self._clusters[rows.clamp(min=0)].long(), self.n_clusters
        if chosen is not None:
            clusters, n = chosen.place[clusters], len(chosen.clusters)
        return torch.full((len(rows), n + 1), -1.0, device=self.device).scatter_(1, clusters, 1.0)[:, :n]

    def term(self, rows: Tensor, chosen: Sample | None = None) -> Tensor | None:
        """(batch, n_clusters) scores of the linear term; of the sampled clusters if given."""
        if self._term is None:
            return None
        rows = rows.clamp(min=0)
        return self._term[rows] if chosen is None else self._term[rows.unsqueeze(1), chosen.clusters]


def _padded(M: Csr) -> Tensor:
    """(n_docs, most clusters of a document) cluster ids, n_clusters where a document has fewer."""
    counts = np.diff(M.indptr)
    padded = np.full((M.shape[0], max(int(counts.max(initial=0)), 1)), M.shape[1], np.int32)
    padded[np.arange(padded.shape[1]) < counts[:, None]] = M.indices
    return torch.from_numpy(padded)
