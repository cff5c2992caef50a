"""Several processes that train one network, as `accelerate launch` starts them; usually there is one."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
from torch import Tensor


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
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1:
        return Processes()
    from accelerate import PartialState

    state = PartialState()
    return Processes(state.process_index, state.num_processes)


def local_device() -> torch.device | None:
    """The device that a launcher gave to this process; None if there was no launcher."""
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1:
        return None
    from accelerate import PartialState

    device: torch.device = PartialState().device
    return device
