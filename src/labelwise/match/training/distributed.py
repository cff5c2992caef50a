"""Several processes that train one network, as `accelerate launch` starts them; usually there is one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from labelwise.errors import need


@dataclass(frozen=True)
class Processes:
    """This process among those that train together."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and talks to the user."""
        return self.rank == 0

    def share(self, batch_size: int) -> slice:
        """Which documents of a batch are this process's."""
        part = batch_size // self.count
        return slice(self.rank * part, (self.rank + 1) * part)

    def average(self, values: Tensor) -> None:
        """Replace values by their mean over all processes."""
        if self.count > 1:
            torch.distributed.all_reduce(values)
            values /= self.count

    def agree(self, value: float, device: torch.device) -> float:
        """The mean of a number over all processes: what they decide by must be the same for all of them."""
        if self.count == 1:
            return value
        mean = torch.tensor(value, dtype=torch.float64, device=device)
        self.average(mean)
        return float(mean)


def joined() -> Processes:
    """The processes that a launcher started; this one alone where there was none."""
    state = _state()
    return Processes() if state is None else Processes(state.process_index, state.num_processes)


def local_device() -> torch.device | None:
    """The device that a launcher gave to this process; None if there was no launcher."""
    state = _state()
    device: torch.device | None = None if state is None else state.device
    return device


def _state() -> Any:
    """What accelerate knows of this process; None if it is alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1:
        return None
    accelerate = need("accelerate", extra="neural", purpose="several processes that train together")
    # It must be told that there are CPUs only, or each process would take itself for the only one.
    wants_cpu = os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes")
    return accelerate.PartialState(cpu=wants_cpu or not torch.cuda.is_available())
