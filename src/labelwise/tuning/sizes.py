"""Sizes that estimates need: of documents, machines and encoders."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np

from labelwise.data import Dataset
from labelwise.engines.threads import available_cores
from labelwise.errors import UsageError
from labelwise.features.scripts import lacks_spaces

SAMPLE_TEXTS = 2000
CHARACTERS_PER_TOKEN, CHARACTERS_PER_WORD = 4.0, 6.0


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of the training documents."""

    n_docs: int
    n_labels: int
    n_pairs: int
    """Number of (document, label) pairs."""
    characters: float
    """Number of characters of all texts; 0 if there are only features."""
    lengths: tuple[float, ...]
    """Estimated numbers of tokens of a sample of the texts."""
    n_values: float
    """Number of non-zero features of all documents, estimated if there are texts."""
    spaced: bool = True
    """Whether the texts have spaces between words."""

    @classmethod
    def of(cls, train: Dataset) -> Self:
        """The sizes of these documents, some of them estimated from a sample of the texts."""
        counts: dict[str, Any] = {"n_docs": len(train), "n_labels": train.n_labels, "n_pairs": int(train.Y.nnz)}
        if train.texts is None:
            values = float(train.features.nnz) if train.features is not None else 0.0
            return cls(**counts, characters=0.0, lengths=(), n_values=values)
        rows = np.unique(np.linspace(0, max(0, len(train) - 1), min(SAMPLE_TEXTS, len(train))).astype(int))
        sizes = np.array([len(train.texts[row]) for row in rows], np.float64)
        words = sizes / CHARACTERS_PER_WORD
        values = float(np.minimum(words, 2.2 * words**0.74).mean()) if len(sizes) else 0.0  # long texts repeat words
        return cls(
            **counts,
            characters=float(sizes.mean()) * len(train) if len(sizes) else 0.0,
            lengths=tuple((sizes / CHARACTERS_PER_TOKEN + 2).tolist()),
            n_values=values * len(train),
            spaced=not lacks_spaces(train.texts),
        )

    @property
    def words(self) -> float:
        """Estimated words of the median text; 0 if there are no texts."""
        if not self.lengths:
            return 0.0
        return max(0.0, (float(np.median(self.lengths)) - 2) * CHARACTERS_PER_TOKEN / CHARACTERS_PER_WORD)

    def tokens(self, max_length: int) -> float:
        """Estimated tokens of all texts, each cut to `max_length`."""
        return float(np.minimum(self.lengths, max_length).mean()) * self.n_docs if self.lengths else 0.0

    def share_within(self, max_length: int) -> float:
        """Share of the texts that have at most `max_length` tokens."""
        return float(np.mean(np.array(self.lengths) <= max_length)) if self.lengths else 1.0


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine: cores, free memory, GPU."""

    cores: int
    memory: int
    """Free bytes of main memory."""
    gpu: str | None = None
    """Name of the GPU; None if there is none or if it must not be used."""
    gpu_memory: int = 0
    """Free bytes on the GPU."""
    neural: bool = True
    """Whether torch and transformers are installed."""

    @classmethod
    def current(cls, device: str | None = None, *, threads: int | None = None) -> Self:
        """This machine. With the device "cpu" its GPU is ignored."""
        neural = all(find_spec(name) is not None for name in ("torch", "transformers"))
        gpu, gpu_memory = None, 0
        if neural and device != "cpu":
            import torch

            if torch.cuda.is_available():
                gpu, gpu_memory = torch.cuda.get_device_name(), torch.cuda.mem_get_info()[0]
            elif device is not None and device.startswith("cuda"):
                raise UsageError(f"the device is {device}, but torch finds no GPU here; leave it out, or use cpu")
        cores = min(threads or available_cores(), available_cores())
        return cls(cores=cores, memory=free_memory(), gpu=gpu, gpu_memory=gpu_memory, neural=neural)


@dataclass(frozen=True, kw_only=True)
class EncoderSize:
    """Sizes of an encoder."""

    layers: int
    hidden: int
    words: int
    """Size of the vocabulary."""
    max_length: int
    known: bool = True
    """False if the encoder is not on this machine yet; its sizes are then those of BERT-base."""

    @property
    def parameters(self) -> int:
        """Number of parameters of the layers, which determine the cost of a token."""
        return 12 * self.layers * self.hidden**2

    @classmethod
    def of(cls, name: str) -> Self:
        """The sizes of an encoder, from its config.json. Nothing is downloaded."""
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


def free_memory() -> int:
    """Free bytes for this process: those of the system, or those of the container if they are fewer."""
    free = 4 * 10**9  # a guess for systems without /proc/meminfo
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
        except (OSError, ValueError):  # there is no such limit
            continue
    return free
