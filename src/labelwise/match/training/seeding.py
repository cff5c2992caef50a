"""Random numbers of training: dropout and samples of clusters, drawn by torch's own generators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Context in which torch draws from this seed on the CPU and on a device; both states are restored afterwards.

    Dropout inside of a model reads torch's generators of the process, so training cannot have generators of its own.
    """
    devices = [torch.device("cpu")] if device.type == "cpu" else [torch.device("cpu"), device]
    before = [_state(one) for one in devices]
    try:
        for one in devices:
            _set_state(one, torch.Generator(one).manual_seed(seed).get_state())
        yield
    finally:
        for one, state in zip(devices, before, strict=True):
            _set_state(one, state)


def _state(device: torch.device) -> torch.Tensor:
    state: torch.Tensor = torch.get_rng_state() if device.type == "cpu" else _module(device).get_rng_state(device)
    return state


def _set_state(device: torch.device, state: torch.Tensor) -> None:
    if device.type == "cpu":
        torch.set_rng_state(state)
    else:
        _module(device).set_rng_state(state, device)


def _module(device: torch.device) -> Any:
    """What torch has for a kind of device: torch.cuda, torch.xpu, torch.mps."""
    return torch.get_device_module(device)
