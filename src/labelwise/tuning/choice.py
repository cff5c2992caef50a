"""The choice of a preset and its settings, with reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labelwise.config import XTransformerConfig
from labelwise.config.presets import Config, load_preset, model_config
from labelwise.data import Dataset
from labelwise.errors import LabelwiseError
from labelwise.tuning.estimate import (
    Estimate,
    clusters,
    cores,
    embed_seconds,
    estimate,
    in_bytes,
    in_time,
    training_memory,
)
from labelwise.tuning.sizes import EncoderSize, Machine, Sizes

LENGTHS = (32, 64, 128, 256, 512)
"""Most tokens of a text that are considered; the least is taken that holds most texts whole."""
MOST = 0.9
BEARABLE_SECONDS = 600.0
"""How long a CPU may take to embed the texts."""
SHORTEST_CUT = 128
"""Texts are cut shorter to save time, but not shorter than this."""
LEAST_GPU_MEMORY = 4 * 10**9
LONG_TEXT, LONGEST_OPENING = 30, 80
"""Words from which on a text has an opening that is worth counting again, a third of it; and the most of it."""


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
    shape: dict[str, Any] = {
        "encoder": {"name": encoder, "max_length": length},
        "tfidf": {"opening": opening(sizes)},
        "threads": threads,
    }
    if machine.gpu is not None and machine.gpu_memory >= LEAST_GPU_MEMORY:
        return _transformer(sizes, machine, size, shape, device)
    seconds = embed_seconds(sizes, size, length, machine)
    shorter = [] if max_length else [step for step in reversed(LENGTHS) if SHORTEST_CUT <= step < length]
    for step in shorter:
        if seconds <= BEARABLE_SECONDS:
            break
        length, seconds = step, embed_seconds(sizes, size, step, machine)
    if seconds > BEARABLE_SECONDS:
        why = f"no GPU, and embedding {sizes.n_docs:,} texts on {cores(machine)} would take about {in_time(seconds)}"
        return _linear(sizes, machine, why, threads)
    cut = ", cut shorter to save time" if length < shape["encoder"]["max_length"] else ""
    shape["encoder"]["max_length"] = length
    n_clusters = clusters(sizes.n_labels)
    config = load_preset("hybrid", **shape, index={"n_clusters": n_clusters}, matcher={"device": device})
    reasons = [
        f"no GPU to fine-tune on, but {cores(machine)} embed the texts in about {in_time(seconds)}",
        _says_length(sizes, length) + cut,
        _says_clusters(sizes, n_clusters),
        *_says_opening(sizes),
    ]
    return Choice(preset="hybrid", config=config, reasons=reasons, estimate=estimate(config, sizes, machine))


def opening(sizes: Sizes) -> int:
    """First words of a text that count again: a third of a usual one, in fives; none of short texts."""
    if sizes.words < LONG_TEXT:
        return 0
    return min(LONGEST_OPENING, int(sizes.words / 3) // 5 * 5)


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
    config = load_preset("default", tfidf={"opening": opening(sizes)}, threads=threads)
    reasons = [why, *_says_opening(sizes)]
    return Choice(preset="default", config=config, reasons=reasons, estimate=estimate(config, sizes, machine))


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
        settings = {**shape, "index": {"n_clusters": n_clusters}, "matcher": matcher}
        return model_config(XTransformerConfig, "x-transformer", settings)

    while (
        batch_size > 16
        and training_memory(sizes, size, length, config_of(batch_size).matcher, n_clusters) > 0.7 * machine.gpu_memory
    ):
        batch_size //= 2
    config = config_of(batch_size)
    reasons = [
        f"there is a GPU to fine-tune on: {machine.gpu}, {in_bytes(machine.gpu_memory)} free",
        _says_length(sizes, length),
        _says_clusters(sizes, n_clusters),
        *_says_opening(sizes),
        f"{epochs:g} epochs for {sizes.n_docs:,} documents, {batch_size} in a batch",
    ]
    if not linear_term:
        reasons.append(f"no linear term beside the network: its scores would take {in_bytes(term)}")
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


# ---------------------------------------------------------------------- words


def _says_length(sizes: Sizes, length: int) -> str:
    return f"{length} tokens of a text: {100 * sizes.held(length):.0f} % of the texts are read whole (estimated)"


def _says_opening(sizes: Sizes) -> list[str]:
    words = opening(sizes)
    if not words:
        return []
    return [f"the first {words} words of a text count again: half have more than {sizes.words:.0f} (estimated)"]


def _says_clusters(sizes: Sizes, n_clusters: int) -> str:
    return f"{sizes.n_labels:,} labels in {n_clusters:,} clusters, as the paper has it"
