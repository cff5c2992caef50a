"""One step of training: forward and backward for a batch, in as many parts as memory asks for.

On a GPU the work of a small step is launched faster by the device itself than by Python: a shape of batch that comes
back is captured once as a CUDA graph and then replayed. Nothing in a step waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from labelwise.config import MatcherConfig
from labelwise.match.batches import Batch
from labelwise.match.corpus import Corpus
from labelwise.match.network import Network, document_losses
from labelwise.match.weights import Weights


class Step:
    """Runs steps, and gathers what the host looks at from time to time."""

    def __init__(self, network: Network, corpus: Corpus, weights: Weights, config: MatcherConfig) -> None:
        self.network, self.corpus, self.weights, self.config = network, corpus, weights, config
        self.device = corpus.device
        self.parts = max(1, config.batch_size // (config.micro_batch or config.batch_size))
        self.loss = torch.zeros((), device=self.device)
        """Sum of the losses of the steps since the last look."""
        self.alike = torch.zeros((), device=self.device)
        """Sum of how alike the embeddings of a batch are: squared length of the mean of the unit embeddings."""
        self._captures = self.device.type == "cuda" and config.graph_steps
        self.forget_graphs()

    def forget_graphs(self) -> None:
        """Capture anew: after anything that moved in memory."""
        self._seen: set[tuple[int, ...]] = set()
        self._graphs: dict[tuple[int, ...], tuple[torch.cuda.CUDAGraph, Tensor]] = {}
        self._update_graph: torch.cuda.CUDAGraph | None = None
        self._updates = 0
        self._pool = torch.cuda.graph_pool_handle() if self._captures else None

    def __call__(self, batch: Batch) -> None:
        """Learn from a batch."""
        rows = torch.from_numpy(batch.rows)
        if self.device.type == "cuda":
            rows = rows.pin_memory().to(self.device, non_blocking=True)
        for part in rows.chunk(self.parts):
            self._run(part, batch.width, batch.full, len(rows))
        self._update()

    def _run(self, rows: Tensor, width: int, full: bool, batch_size: int) -> None:
        key = (width, full, len(rows))
        if key in self._graphs:
            graph, static = self._graphs[key]
            static.copy_(rows)
            graph.replay()
        elif self._captures and key in self._seen:
            static = rows.clone()
            graph = self._capture(lambda: self._learn(static, width, full, batch_size))
            self._graphs[key] = (graph, static)
            graph.replay()
        else:
            self._learn(rows, width, full, batch_size)
            self._seen.add(key)

    def _learn(self, rows: Tensor, width: int, full: bool, batch_size: int) -> None:
        """Forward and backward: adds to the gradients, the loss and the likeness."""
        config = self.config
        embedding = self.network.embed(self.corpus.batch(rows, width, full))  # (part, hidden)
        scores = self.network.score(embedding, self.corpus.term(rows))  # (part, n_clusters)
        losses = document_losses(scores, self.corpus.signs(rows), config.loss, mean=config.mean_loss)
        loss = losses.sum() / batch_size
        (loss * self.weights.scale).backward()
        with torch.no_grad():
            unit = torch.nn.functional.normalize(embedding, dim=1)
            self.loss += loss
            self.alike += unit.mean(dim=0).square().sum() * (len(rows) / batch_size)

    def _update(self) -> None:
        self._updates += 1
        if self._update_graph is not None:
            self._update_graph.replay()
        elif self._captures and self._updates > 1 and self.weights.processes.count == 1:
            self._update_graph = self._capture(self.weights.update)
            self._update_graph.replay()
        else:
            self.weights.update()

    def _capture(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            work()
        return graph

    def halve(self) -> int:
        """Use less memory: twice as many parts, each half as large. Returns the documents in a part, 0 if none."""
        self.weights.forget_gradients()
        self.parts *= 2
        self.forget_graphs()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return self.config.batch_size // self.weights.processes.count // self.parts

    def look(self, steps: int) -> tuple[float, float, int]:
        """Mean loss, likeness and the number of skipped updates of the last steps; counting starts anew."""
        found = torch.stack((self.loss / steps, self.alike / steps, self.weights.skipped)).tolist()
        for total in (self.loss, self.alike, self.weights.skipped):
            total.zero_()
        return found[0], found[1], int(found[2])
