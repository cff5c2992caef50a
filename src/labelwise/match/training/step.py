"""One step of training: forward and backward for a batch, in as many parts as the memory requires.

A GPU launches the work of a small step faster by itself than from Python. So each shape of batch that occurs again is
captured once as a CUDA graph and then replayed. Nothing in a step waits for the device.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import numpy as np
import torch
from torch import Tensor

from labelwise.config import MatcherConfig
from labelwise.match.losses import LABEL_LOSS, document_losses
from labelwise.match.network import Network
from labelwise.match.training.batches import Batch, Rows, Shape, cut
from labelwise.match.training.device_data import DeviceData
from labelwise.match.training.optimizer import MixedPrecisionOptimizer

log = logging.getLogger(__name__)


class TrainStep:
    """Runs steps, and adds up on the device what `collect` returns from time to time."""

    def __init__(
        self,
        network: Network,
        corpus: DeviceData,
        weights: MixedPrecisionOptimizer,
        config: MatcherConfig,
        batch_size: int,
    ) -> None:
        self.network, self.corpus, self.weights, self.config = network, corpus, weights, config
        self.device = corpus.device
        self.batch_size = batch_size
        self.parts = -(-batch_size // (config.micro_batch or batch_size))
        self.documents = torch.zeros((), device=self.device)
        """Number of documents since the last `collect`."""
        self.loss = torch.zeros((), device=self.device)
        """Sum of the losses of the steps since the last `collect`."""
        self.similarity = torch.zeros((), device=self.device)
        """Sum of the mean cosines of two embeddings of a batch, 0 for a batch of one document."""
        # Gradient checkpointing restores the state of the random number generator, which cannot be captured.
        self._captures = self.device.type == "cuda" and config.graph_steps and not config.gradient_checkpointing
        self.reset_graphs()

    def reset_graphs(self) -> None:
        """Drop all captured graphs: they are invalid once a tensor that they use has moved in memory."""
        self._seen: set[tuple[Shape, int]] = set()
        self._graphs: dict[tuple[Shape, int], tuple[torch.cuda.CUDAGraph, Tensor] | None] = {}
        self._update_graph: torch.cuda.CUDAGraph | None = None
        self._updates = 0
        self._pool = torch.cuda.graph_pool_handle() if self._captures else None

    def __call__(self, batch: Batch) -> None:
        """Train on a batch."""
        for part, shape in self._split(batch):
            rows = torch.from_numpy(part)
            if self.device.type == "cuda":
                rows = rows.pin_memory().to(self.device, non_blocking=True)
            self._run(rows, shape)
        self._update()

    def _split(self, batch: Batch) -> Iterator[tuple[Rows, Shape]]:
        """The parts of a batch, as equal in size as possible."""
        shape = batch.shape
        if shape.kind != "packed":
            yield from ((part, shape) for part in np.array_split(batch.rows, self.parts))
            return
        if self.parts > 1:  # the last text of a part may reach beyond its share
            width = -(-shape.width // self.parts // 64) * 64 + self.corpus.longest
            shape = Shape("packed", width, shape.most_rows)
        for part in cut(batch.rows, self.corpus.lengths, shape.width, shape.most_rows):
            yield np.concatenate((part, np.full(shape.most_rows - len(part), -1))), shape

    def _run(self, rows: Tensor, shape: Shape) -> None:
        key = (shape, len(rows))
        if self._captures and key in self._seen and key not in self._graphs:
            self._graphs[key] = self._captured(rows, shape)
        captured = self._graphs.get(key)
        if captured is None:
            self._learn(rows, shape)
            self._seen.add(key)
        else:
            graph, static = captured
            static.copy_(rows)
            graph.replay()

    def _captured(self, rows: Tensor, shape: Shape) -> tuple[torch.cuda.CUDAGraph, Tensor] | None:
        """The captured work of one shape; None if the model has an operation that cannot be captured."""
        static = rows.clone()
        try:
            return self._capture(lambda: self._learn(static, shape)), static
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:  # such as a constant that is created on the host
            log.info("steps of shape %s are not captured: %s", shape, error)
            return None

    def _learn(self, rows: Tensor, shape: Shape) -> None:
        """Forward and backward; adds to the gradients and to the sums."""
        config, corpus = self.config, self.corpus
        packer = corpus.packer if shape.kind == "packed" else None
        model = corpus.fused if shape.kind == "full" else None
        # The backward pass is inside too, since gradient checkpointing computes activations again there. The device is
        # the default inside: some models create constants without a device, which are captured only if on the GPU.
        with nullcontext() if packer is None else packer.attention(), self.device:
            inputs = corpus.inputs(rows, shape)
            embedding = self.network.embed(inputs, packer, len(rows), model=model)  # (part, hidden)
            chosen = corpus.sample(rows, config.max_clusters_per_step)
            clusters, weights = (None, None) if chosen is None else chosen[:2]
            scores = self.network.score(embedding, corpus.term(rows, chosen), clusters)  # (part, n_clusters)
            signs = corpus.signs(rows, chosen)
            losses = self._losses(scores, signs, weights)  # (part,)
            there = (rows >= 0).float()
            loss = (losses * there).sum() / self.batch_size
            (loss * self.weights.scale).backward()
        with torch.no_grad():
            unit = torch.nn.functional.normalize(embedding, dim=1) * there.unsqueeze(1)
            n = there.sum()
            cosines = unit.sum(dim=0).square().sum() - unit.square().sum()  # of all ordered pairs
            self.loss += loss
            self.similarity += cosines / (n * (n - 1)).clamp(min=1) * (n / self.batch_size)
            self.documents += n

    def _losses(self, scores: Tensor, signs: Tensor, weights: Tensor | None) -> Tensor:
        """(part,) the loss of each document: over clusters, and over the labels of a label head, the last columns."""
        config, n_labels = self.config, self.corpus.n_labels
        if not n_labels:
            return document_losses(scores, signs, config.loss, mean=config.mean_loss, weights=weights)
        return document_losses(
            scores[:, :-n_labels], signs[:, :-n_labels], config.loss, mean=config.mean_loss
        ) + document_losses(scores[:, -n_labels:], signs[:, -n_labels:], LABEL_LOSS, mean=config.mean_loss)

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
        """Use less memory: twice as many parts, each half as large.

        Returns the number of documents in a part, 0 if a part had one document already.
        """
        self.weights.zero_gradients()
        if self.parts >= self.batch_size:
            return 0
        self.parts = min(2 * self.parts, self.batch_size)
        self.reset_graphs()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return -(-self.batch_size // self.parts)

    def collect(self) -> tuple[float, float, int]:
        """Mean loss of a document, mean similarity and number of skipped updates since the last call."""
        share = self.documents.clamp(min=1) / self.batch_size
        means = torch.stack((self.loss / share, self.similarity / share, self.weights.skipped))
        self.weights.processes.average(means)  # so that all processes decide the same
        found = means.tolist()
        for total in (self.loss, self.similarity, self.documents, self.weights.skipped):
            total.zero_()
        return found[0], found[1], int(found[2])
