"""The folder of an encoder: its description, checksums and pooling, all read without torch."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from labelwise import __version__, storage
from labelwise.config import EncoderConfig, PoolingMethod
from labelwise.config.settings import shown
from labelwise.errors import StorageError, UsageError
from labelwise.features.encoder_checks import as_table, plain_name, read_document, read_table
from labelwise.features.pretrained import find_encoder
from labelwise.features.token_store import TokenStore
from labelwise.storage.checks import check_folder, damaged
from labelwise.types import OnEvent

DESCRIPTION = "encoder.json"
_WITHOUT_CLS = ("t5", "mt5", "umt5", "longt5")
"""Types of encoders whose texts begin without a classification token."""


class TextEncoder(Protocol):
    """The interface of encoders: a transformers model (`Encoder`), or an exported one (`OnnxEncoder`)."""

    config: EncoderConfig
    tokenizer: Any
    pooling: PoolingMethod
    hidden_size: int

    @property
    def trainable(self) -> bool:
        """Whether there are weights to train."""

    @property
    def form(self) -> str:
        """The format that the encoder was exported to, in a few words; empty for a transformers model."""

    def tokenize(
        self, texts: Sequence[str], *, threads: int | None = None, on_event: OnEvent | None = None
    ) -> TokenStore:
        """The tokens of texts."""

    def embed(
        self,
        texts: Sequence[str] | TokenStore,
        *,
        pooling: PoolingMethod | None = None,
        device: Any = None,
        on_event: OnEvent | None = None,
    ) -> npt.NDArray[np.float32]:
        """(n_docs, hidden_size) pooled vectors of texts, not scaled to length one."""

    def state(self) -> dict[str, Any]:
        """Weights or checksums that identify the encoder in fingerprints."""

    def save(self, path: Path | str) -> None:
        """Write a folder that `load_encoder` reads."""


def load_encoder(folder: Path) -> TextEncoder:
    """Load the encoder of a folder; torch is imported only for a transformers model."""
    if folder.is_dir():
        check_folder(folder)
    if is_exported(folder):
        from labelwise.features.onnx_encoder import OnnxEncoder

        return OnnxEncoder.load(folder)
    from labelwise.features.encoder import Encoder

    return Encoder.load(folder)


def is_exported(folder: Path) -> bool:
    """Whether a folder was written by `labelwise export`."""
    return "onnx" in read_description(folder)


def read_description(folder: Path) -> dict[str, Any]:
    """What `save` wrote into the folder about the encoder; empty for any other folder."""
    return read_table(folder / DESCRIPTION) if os.path.lexists(folder / DESCRIPTION) else {}


def located(config: EncoderConfig | Path | str | None) -> tuple[EncoderConfig, Path]:
    """The configuration and the folder of an encoder, given by its configuration, name or folder, with safe entries."""
    if isinstance(config, Path) or (isinstance(config, str) and Path(config).is_dir()):
        folder = Path(config)
        if not folder.is_dir():
            raise StorageError(f"{folder} is missing; give the folder of an encoder, or copy the model again")
        if not (folder / "config.json").is_file():
            raise UsageError(f"the folder {folder} holds no config.json; give a folder written by save_pretrained")
        check_folder(folder)
        return saved_config(folder).validated(), folder
    if not isinstance(config, str | EncoderConfig | None):
        raise UsageError(f"the encoder is {shown(config)}; give its name, its folder or its settings (EncoderConfig)")
    settings = EncoderConfig(name=config) if isinstance(config, str) else config or EncoderConfig()
    settings = settings.validated()
    folder = find_encoder(settings.name)
    check_folder(folder)
    return settings, folder


def saved_config(folder: Path) -> EncoderConfig:
    """The configuration that a folder was saved with; for any other folder, the defaults."""
    description, place = read_description(folder), folder / DESCRIPTION
    if not description:
        return EncoderConfig(name=str(folder))
    version = description.get("version", 0)
    if type(version) is not int:
        raise damaged(place, "its version is no whole number")
    if version > storage.FORMAT_VERSION:
        raise StorageError(
            f"{folder} has format version {version}, but labelwise {__version__} reads versions up to "
            f"{storage.FORMAT_VERSION}: run pip install --upgrade labelwise"
        )
    if "files" in description:
        as_table(description["files"], f"{place}: files")
    config = storage.restore(EncoderConfig, as_table(description.get("config"), f"{place}: config"), place)
    return dataclasses.replace(config, name=str(folder))


def original_name(name: str, folder: Path) -> str:
    """The name under which a pretrained encoder was first read; a folder that `save` wrote remembers it."""
    description = read_description(folder)
    return str(description["config"]["name"]) if "name" in description.get("config", {}) else name


def check_files(folder: Path) -> None:
    """Check the files of a folder against the sizes and checksums that `save` wrote, if there are any."""
    place = folder / DESCRIPTION
    for name, expected in as_table(read_description(folder).get("files", {}), f"{place}: files").items():
        if not plain_name(name) or set(as_table(expected, f"{place}: {name}")) != {"bytes", "sha256"}:
            raise damaged(place, f"files has the entry {shown(name)}, which is no file of the folder with its checksum")
        file = folder / name
        if not file.is_file() or file.stat().st_size != expected["bytes"] or checksum(file) != expected:
            raise StorageError(f"{file} is missing or damaged (its size or checksum is wrong); copy it again")


def checksum(file: Path) -> dict[str, Any]:
    """Size and SHA-256 of a file."""
    with file.open("rb") as handle:
        return {"bytes": file.stat().st_size, "sha256": hashlib.file_digest(handle, "sha256").hexdigest()}


def find_pooling(config: EncoderConfig, folder: Path) -> PoolingMethod:
    """The pooling to use: the configured one, or for "auto" the one that the folder names."""
    if config.pooling != "auto":
        return config.pooling
    if read_description(folder):
        saved = saved_config(folder).pooling
        return "cls" if saved == "auto" else saved
    modules = folder / "modules.json"
    for module in read_document(modules) if modules.is_file() else ():
        path, kind = as_table(module, modules).get("path"), module.get("type")
        if str(kind).endswith(".Pooling") and plain_name(path) and (folder / path / "config.json").is_file():
            return _sentence_pooling(read_table(folder / path / "config.json"), folder / path / "config.json")
    kind = read_table(folder / "config.json").get("model_type")
    return "mean" if kind in _WITHOUT_CLS else "cls"


def _sentence_pooling(settings: Mapping[str, Any], file: Path) -> PoolingMethod:
    """The pooling of a Pooling module of sentence-transformers."""
    known: dict[str, PoolingMethod] = {"cls": "cls", "mean": "mean", "cls_token": "cls", "mean_tokens": "mean"}
    modes = [
        key.removeprefix("pooling_mode_") for key, on in settings.items() if key.startswith("pooling_mode_") and on
    ]
    if not modes and settings.get("pooling_mode"):
        modes = [str(settings["pooling_mode"])]
    if len(modes) != 1 or modes[0] not in known:
        raise UsageError(f'{file} asks for pooling by {" and ".join(modes)}; set pooling to "cls" or "mean" instead')
    return known[modes[0]]
