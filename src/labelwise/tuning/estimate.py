"""Rough estimates of the time and the memory of a training, as numbers and as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labelwise.config import MatcherConfig
from labelwise.config.presets import Config
from labelwise.data import Dataset
from labelwise.tuning.sizes import EncoderSize, Machine, Sizes

# Tokens per second that one core embeds with an encoder of MiniLM's size.
CORE_TOKENS, MINILM_PARAMETERS = 5000.0, 12 * 6 * 384**2
# Operations per second of a GPU in 16-bit precision.
GPU_FLOPS = 3e13


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Roughly estimated time and memory of a training."""

    seconds: float
    memory: float
    """Bytes of main memory."""
    gpu_memory: float = 0.0
    """Bytes on the GPU."""

    def lines(self, machine: Machine) -> list[str]:
        """The estimate as lines of text, with a warning if memory may not suffice."""
        gpu = f", {in_bytes(self.gpu_memory)} on the GPU" if self.gpu_memory else ""
        costs = f"about {in_time(self.seconds)} and {in_bytes(self.memory)} of memory{gpu}"
        lines = [f"{costs}: rough estimates, which may be wrong by a factor of three"]
        if self.memory > machine.memory:
            lines.append(f"only {in_bytes(machine.memory)} of memory are free, which may not suffice")
        if self.gpu_memory > machine.gpu_memory:
            lines.append(f"only {in_bytes(machine.gpu_memory)} are free on the GPU, which may not suffice")
        return lines


def clusters(n_labels: int) -> int:
    """Number of clusters as in the paper: a power of two with 50 to 100 labels per cluster."""
    return max(1, min(n_labels, 1 << (int(math.log2(n_labels // 100 + 1)) + 1)))


def estimate(config: Config, train: Dataset | Sizes, machine: Machine) -> Estimate:
    """A rough estimate of a training with these settings."""
    sizes = train if isinstance(train, Sizes) else Sizes.of(train)
    # An opening adds its words and pairs of words, most of which occur once.
    n_values = sizes.n_values + 1.5 * min(config.tfidf.opening, sizes.words) * sizes.n_docs
    # Seconds of a core for all (document, label) pairs, which grow with the length of the texts (docs/results).
    pairs = sizes.n_pairs * (5e-6 + 1.2e-7 * n_values / max(1, sizes.n_docs))
    memory = 1.5e8 + 1.5 * (sizes.characters + 80 * sizes.n_docs + 16 * n_values + 600 * sizes.n_labels)
    core_seconds = 2 * sizes.characters / 1e8
    trainings = config.label_trainings()
    if not config.encoders():
        return Estimate(seconds=5 + (core_seconds + trainings * pairs) / machine.cores, memory=memory)
    (encoder,), matcher = config.encoders(), config.fine_tuning()
    size = EncoderSize.of(encoder.name)
    length = min(encoder.max_length, size.max_length)
    tokens, n_clusters = sizes.tokens(length), config.index.n_clusters or clusters(sizes.n_labels)
    passes = 1.0 if matcher is None else 2.0
    trained_tokens = 0.0
    if matcher is not None:
        per_step = matcher.batch_size / max(1, sizes.n_docs)
        trained_tokens = tokens * (matcher.steps * per_step if matcher.steps else matcher.epochs)
        if matcher.negatives_from == "out-of-fold":
            trained_tokens *= matcher.folds
    seconds, gpu_memory = encoder_seconds(passes * tokens + 3 * trained_tokens, size, machine), 0.0
    if machine.gpu is not None:
        seconds += 20
        if matcher is not None:
            outputs = n_clusters + (sizes.n_labels if matcher.learn_labels else 0)
            gpu_memory = training_memory(sizes, size, length, matcher, outputs)
    core_seconds += trainings * 2 * pairs
    if matcher is None or not matcher.learn_labels:  # the ranker is trained on tf-idf and embeddings
        core_seconds += trainings * sizes.n_pairs * 6e-5 * size.hidden / 384
    memory += 3 * 4 * sizes.n_docs * size.hidden + 8 * tokens + 5e8
    if matcher is not None and matcher.linear_term:
        memory += 2.0 * sizes.n_docs * n_clusters
    return Estimate(seconds=10 + seconds + core_seconds / machine.cores, memory=memory, gpu_memory=gpu_memory)


def describe_plan(preset: str, config: Config, sizes: Sizes, machine: Machine) -> Sequence[str]:
    """Lines about a training before it begins: preset, machine, sizes, estimate."""
    where = f"on {machine.gpu}" if machine.gpu and config.encoders() else f"on {cores(machine)}"
    head = f"{preset} {where}: {sizes.n_docs:,} documents, {sizes.n_labels:,} labels"
    return [head, *estimate(config, sizes, machine).lines(machine)]


# ---------------------------------------------------------------------- parts of the estimate


def embed_seconds(sizes: Sizes, size: EncoderSize, length: int, machine: Machine) -> float:
    """Seconds to embed all texts."""
    return encoder_seconds(sizes.tokens(length), size, machine)


def encoder_seconds(tokens: float, size: EncoderSize, machine: Machine) -> float:
    """Seconds for the forward passes of these tokens. A token in training costs as much as three of them."""
    if machine.gpu is not None:
        return 2 * size.parameters * tokens / GPU_FLOPS
    return tokens * size.parameters / MINILM_PARAMETERS / (CORE_TOKENS * machine.cores)


def training_memory(sizes: Sizes, size: EncoderSize, length: int, matcher: MatcherConfig, n_clusters: int) -> float:
    """Bytes on the GPU: weights with the state of the optimizer, activations of a batch, tokens, the linear term."""
    tokens = sizes.tokens(length)
    weights = 20 * (size.parameters + size.hidden * (size.words + n_clusters))
    batch = matcher.micro_batch or matcher.batch_size
    activations = batch * (length * size.layers * size.hidden * 40 + 12 * n_clusters)
    term = 2.0 * sizes.n_docs * n_clusters if matcher.linear_term else 0.0
    return 5e8 + weights + activations + 4 * tokens + term


# ---------------------------------------------------------------------- numbers as text


def cores(machine: Machine) -> str:
    """The number of cores as text, such as "2 cores"."""
    return f"{machine.cores} core" + ("s" if machine.cores > 1 else "")


def in_time(seconds: float) -> str:
    """A time as text, such as "5 min"."""
    for limit, unit, name in ((90, 1, "s"), (5400, 60, "min")):
        if seconds <= limit:
            return f"{max(1, round(seconds / unit))} {name}"
    return f"{seconds / 3600:.1f} h" if seconds < 36_000 else f"{seconds / 3600:,.0f} h"


def in_bytes(n_bytes: float) -> str:
    """A number of bytes as text, such as "1.5 GB"."""
    return f"{n_bytes / 1e9:,.1f} GB"
