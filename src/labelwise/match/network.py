"""The network g(x, k): an encoder's embedding of the text, and a linear score for every cluster.

The embedding is scaled to length sqrt(hidden) before it is scored, so that one learning rate of the head suits every
encoder, and the head and the ranker see the same directions. `labelwise.match.losses` has the losses of the scores.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from labelwise.features.encoder import Encoder
from labelwise.features.packing import Packer


class Network(nn.Module):
    """An encoder and the head above it."""

    def __init__(self, encoder: Encoder, n_clusters: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.encoder = encoder
        self.model = encoder.model
        self.dropout = nn.Dropout(dropout)
        self.head = _linear(encoder.hidden_size, n_clusters)
        nn.init.zeros_(self.head.weight)
        nn.init.constant_(self.head.bias, -1.0)  # "no" to every cluster

    def embed(
        self, inputs: dict[str, Any], packer: Packer | None = None, n_texts: int = 0, *, model: Any = None
    ) -> Tensor:
        """(batch, hidden) pooled embeddings, float32; of packed inputs if a packer is given."""
        return self.encoder.forward(inputs, model=model) if packer is None else packer.forward(inputs, n_texts)

    def score(self, embedding: Tensor, term: Tensor | None = None, clusters: Tensor | None = None) -> Tensor:
        """(batch, n_clusters) scores of embeddings, float32; `term` is what the linear term gives.

        Of some clusters only, if given: (any,) their numbers.
        """
        e = functional.normalize(embedding.float(), dim=1) * embedding.shape[1] ** 0.5
        weight, bias = (self.head.weight, self.head.bias) if clusters is None else self._part(clusters)
        scores = functional.linear(self.dropout(e).to(weight.dtype), weight, bias).float()
        if term is None:
            return scores
        rest = scores.shape[1] - term.shape[1]  # labels, which lie behind the clusters, have no linear term
        return scores + (functional.pad(term.float(), (0, rest)) if rest else term.float())

    def _part(self, clusters: Tensor) -> tuple[Tensor, Tensor]:
        return self.head.weight[clusters], self.head.bias[clusters]

    @torch.no_grad()
    def cast(self, dtype: torch.dtype) -> Self:
        """Compute in this precision. Buffers keep theirs: rotary frequencies would not survive in 16 bits."""
        for p in self.parameters():
            p.data = p.data.to(dtype)
        return self

    @torch.no_grad()
    def set_head(self, weight: npt.NDArray[Any], bias: npt.NDArray[Any]) -> None:
        """Start the head from a linear model of embeddings of length one: (n_clusters, hidden) and (n_clusters,)."""
        self.set_rows(0, np.asarray(weight) / self.head.in_features**0.5, bias)

    @torch.no_grad()
    def set_rows(self, begin: int, weight: npt.NDArray[Any], bias: npt.NDArray[Any]) -> None:
        """Some rows of the head, from one on, as they are: (any, hidden) and (any,)."""
        rows = slice(begin, begin + len(bias))
        self.head.weight[rows] = torch.from_numpy(np.asarray(weight, np.float32)).to(self.head.weight)
        self.head.bias[rows] = torch.from_numpy(np.asarray(bias, np.float32)).to(self.head.bias)

    @torch.no_grad()
    def split_head(self, n_clusters: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Keep the rows of the clusters; gives those of the labels behind them."""
        weight, bias = self.head.weight.detach(), self.head.bias.detach()
        behind = weight[n_clusters:].float().cpu().numpy(), bias[n_clusters:].float().cpu().numpy()
        self.head = _linear(weight.shape[1], n_clusters, device=weight.device, dtype=weight.dtype)
        self.head.weight.copy_(weight[:n_clusters])
        self.head.bias.copy_(bias[:n_clusters])
        return behind


def _linear(n_inputs: int, n_outputs: int, **options: Any) -> nn.Linear:
    """A layer whose weights are set by the caller: random ones would use up random numbers of the process."""
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, n_inputs, n_outputs, **options)
    return layer
