"""Checkpoints of training. A run that continues from a checkpoint ends with the same weights as one without a stop."""

from __future__ import annotations

import dataclasses
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelwise import storage
from labelwise.errors import StorageError
from labelwise.match.heads import History

KIND = "matcher checkpoint"
logger = logging.getLogger(__name__)


def save_checkpoint(
    path: Path,
    progress: dict[str, Any],
    history: History,
    state: dict[str, Tensor],
    best: list[Tensor] | None,
    device: torch.device,
) -> None:
    """Save the state of training and of the random number generators; an older checkpoint is replaced as a whole."""
    tensors = {f"state.{name}": value for name, value in state.items()}
    tensors |= {f"best.{number}": value for number, value in enumerate(best or [])}
    tensors["random.cpu"] = torch.get_rng_state()
    if device.type == "cuda":
        tensors["random.cuda"] = torch.cuda.get_rng_state(device)
    arrays = {name: value.cpu().numpy() for name, value in tensors.items()}
    # JSON has no infinity, which is the lowest loss before the first check; Python's own dialect in a string has.
    about: dict[str, Any] = {"progress": json.dumps(progress), "history": dataclasses.asdict(history)}
    about["scalars"] = [name for name, value in tensors.items() if value.ndim == 0]  # safetensors has arrays only
    with storage.atomic_folder(path, overwrite=True) as folder:
        storage.save(folder / "state", kind=KIND, config=about, arrays=arrays)


def load_checkpoint(
    path: Path, device: torch.device
) -> tuple[dict[str, Any], History, dict[str, Tensor], list[Tensor] | None] | None:
    """Load what `save_checkpoint` wrote and restore the random number generators; None without a usable checkpoint."""
    if not (path / "state").is_dir():
        return None
    try:
        saved = storage.load(path / "state", kind=KIND)
    except StorageError as error:
        logger.warning("the checkpoint cannot be used (%s); starting from the beginning", error)
        return None
    tensors = {name: torch.from_numpy(np.array(value)) for name, value in saved.arrays.items()}
    for name in saved.config["scalars"]:
        tensors[name] = tensors[name].reshape(())
    torch.set_rng_state(tensors.pop("random.cpu"))
    cuda = tensors.pop("random.cuda", None)
    if cuda is not None and device.type == "cuda":
        torch.cuda.set_rng_state(cuda, device)
    state = {name.partition(".")[2]: value for name, value in tensors.items() if name.startswith("state.")}
    best = [tensors[f"best.{number}"].to(device) for number in range(sum(name.startswith("best.") for name in tensors))]
    return json.loads(saved.config["progress"]), History(**saved.config["history"]), state, best or None
