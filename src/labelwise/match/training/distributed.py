"""Several processes that train one network, started by `accelerate launch`; usually there is one."""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from labelwise.errors import UsageError, need

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:  # the first module of a neural model that is imported: it says what to install
    torch = need("torch", extra="neural", purpose="models with an encoder")

Role: TypeAlias = Literal["main", "helper"]
"""The main process keeps results and gets the fitted model; helper processes only take part in fine-tuning."""
T = TypeVar("T")
LONGEST_WAIT = 1.0
"""Seconds that a process waits after an exchange for the thread that made it."""


@dataclass(frozen=True)
class Processes:
    """This process among those that train together."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the main process, which writes files and reports to the user."""
        return self.rank == 0

    def share(self, batch_size: int) -> slice:
        """The documents of a batch that this process trains on."""
        part = batch_size // self.count
        return slice(self.rank * part, (self.rank + 1) * part)

    def average(self, values: Tensor) -> None:
        """Replace values by their mean over all processes.

        The thread that exchanges them gives them up a moment later, for which it needs the lock of the interpreter. If
        Python ended in that moment, the lock would be refused and the whole process be aborted: this waits for it.
        """
        if self.count > 1:
            shared = values.detach()  # a tensor that nothing else refers to, so that its references can be counted
            references = sys.getrefcount(shared)
            torch.distributed.all_reduce(shared)
            until = time.monotonic() + LONGEST_WAIT
            while sys.getrefcount(shared) > references and time.monotonic() < until:
                time.sleep(0)
            values /= self.count

    def agree(self, value: float, device: torch.device) -> float:
        """The mean of a number over all processes, so that all of them take the same decision."""
        if self.count == 1:
            return value
        mean = torch.tensor(value, dtype=torch.float64, device=device)
        self.average(mean)
        return float(mean)


def launched_processes() -> Processes:
    """The processes that a launcher started; this process alone if there was no launcher."""
    state = _state()
    return Processes() if state is None else Processes(state.process_index, state.num_processes)


def local_device() -> torch.device | None:
    """The device that a launcher gave to this process; None if there was no launcher."""
    state = _state()
    device: torch.device | None = None if state is None else state.device
    return device


def role() -> Role:
    """What this process does in a fit."""
    return "main" if launched_processes().first else "helper"


def choose_device(wanted: str | None) -> str | None:
    """Where neural parts compute: as the launcher or the configuration says, or the GPU if there is one."""
    if wanted == "auto":
        wanted = None
    if wanted is not None:
        _check_device(wanted)
    launched = local_device()
    if launched is not None:
        return str(launched)
    return wanted or ("cuda" if torch.cuda.is_available() else None)


def _check_device(wanted: str) -> None:
    """Refuse a device that torch does not find here."""
    kind, _, number = wanted.partition(":")
    if kind == "cpu":
        return
    # mps has no function that counts its devices: there is one
    counts: dict[str, Any] = {"cuda": torch.cuda.device_count, "xpu": torch.xpu.device_count, "mps": lambda: 1}
    kinds: dict[str, Any] = {"cuda": torch.cuda, "xpu": torch.xpu, "mps": torch.backends.mps}
    found = counts[kind]() if kinds[kind].is_available() else 0
    if not found:
        what = "GPU" if kind == "cuda" else f"device {kind}"
        raise UsageError(f"the device is {wanted}, but torch finds no {what} here; leave the device out, or use cpu")
    if int(number or 0) >= found:
        last = f"{kind}:{found - 1}"
        raise UsageError(
            f"the device is {wanted}, but the last one that torch finds here is {last}; use {last}, or cpu"
        )


def lead(find: Callable[[Callable[[], T]], T], compute: Callable[[], T]) -> T:
    """A result that all processes compute together, in the main process.

    Parameters
    ----------
    find
        Gives the result: one that is there already, or what the function that it is given computes. The helpers wait in
        `follow` to learn which.
    """
    processes = launched_processes()
    if processes.count == 1:
        return find(compute)
    device, called = local_device() or torch.device("cpu"), False

    def together() -> T:
        nonlocal called
        called = True
        processes.agree(1.0, device)
        return compute()

    result = find(together)
    if not called:
        processes.agree(0.0, device)
    return result


def follow(compute: Callable[[], Any]) -> None:
    """Compute a result together with the main process, which keeps it; nothing where it is there already."""
    if launched_processes().agree(0.0, local_device() or torch.device("cpu")) > 0:
        compute()


def _state() -> Any:
    """The state that accelerate has for this process; None if the process is alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) <= 1:
        return None
    accelerate = need("accelerate", extra="neural", purpose="several processes that train together")
    # Without a GPU accelerate needs this argument, or each process takes itself for the only one.
    wants_cpu = os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes")
    state = accelerate.PartialState(cpu=wants_cpu or not torch.cuda.is_available())
    _close_at_exit()
    return state


@cache
def _close_at_exit() -> None:
    """Disconnect the processes in order before Python ends."""
    atexit.register(_close)


def _close() -> None:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
