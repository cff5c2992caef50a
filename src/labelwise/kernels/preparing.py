"""Kernels compiled ahead of their first use, by several processes at once.

Compiling holds Python's lock, so threads do not help: each process takes one kernel after the other and leaves the code
in the folders of `labelwise.engines.kernel_cache`, where the waiting process finds it. Kernels that are not listed, and
those for types that are not listed, are compiled when they are called.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args

from labelwise.engines.kernel_cache import KernelCache, cache_folders
from labelwise.engines.threads import available_cores, core_limit
from labelwise.errors import UsageError
from labelwise.events import Task
from labelwise.types import OnEvent

Purpose = Literal["linear", "serving"]
"""What kernels are needed for: training and evaluation of the default model on texts; answers of a server."""
TASK = "preparing kernels, once per installation"
MOST_PROCESSES = 8
_LIST = Path(__file__).with_name("signatures.json")
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from labelwise.kernels import preparing as p; p.work()"
)


@dataclass(frozen=True)
class Kernel:
    """A kernel for certain types of its arguments."""

    name: str
    """Module and function, such as beam.descend."""
    types: str
    """The types as numba writes them."""
    purposes: tuple[str, ...]
    seconds: float
    """CPU seconds of compiling, on the machine where the list was written: the longest are compiled first."""

    def function(self) -> Any:
        """The function itself."""
        module, _, name = self.name.partition(".")
        return getattr(import_module(f"labelwise.kernels.{module}"), name)

    def argument_types(self) -> tuple[Any, ...]:
        """The types as numba's objects."""
        from numba import types

        names = {name: getattr(types, name) for name in dir(types)} | {"bool": types.boolean}
        found: tuple[Any, ...] = eval(self.types, {"__builtins__": {}}, names)  # the list is a part of the package
        return found

    def is_compiled(self) -> bool:
        """Whether the code lies in a folder."""
        from numba.core.registry import cpu_target

        function = self.function()
        kept = getattr(function, "_cache", None)
        if not isinstance(kept, KernelCache):
            return True  # compiling is switched off, or the user's own cache is in use
        codegen = cpu_target.target_context.codegen()
        return kept.has(self.argument_types(), codegen)

    def compile(self) -> None:
        """Compile, or read the code."""
        self.function().compile(self.argument_types())


@cache
def listed() -> tuple[Kernel, ...]:
    """All kernels of the list, the longest first."""
    found = json.loads(_LIST.read_bytes()) if _LIST.is_file() else []
    kernels = [Kernel(one["kernel"], one["types"], tuple(one["for"]), one["seconds"]) for one in found]
    return tuple(sorted(kernels, key=lambda one: -one.seconds))


def needed(purposes: Sequence[Purpose] = ()) -> list[Kernel]:
    """The kernels for some purposes, or for all."""
    for purpose in purposes:
        if purpose not in get_args(Purpose):
            raise UsageError(f"unknown purpose {purpose!r}; there are: {', '.join(get_args(Purpose))}")
    return [one for one in listed() if not purposes or set(purposes) & set(one.purposes)]


def missing(purposes: Sequence[Purpose] = ()) -> list[Kernel]:
    """Those that would be compiled; none that cannot be looked up in this version of numba."""
    found = []
    for one in needed(purposes):
        with suppress(Exception):
            if not one.is_compiled():
                found.append(one)
    return found


@dataclass(frozen=True)
class Prepared:
    """What `warm_up` did."""

    folder: Path | None
    """Where the compiled kernels lie; None if no folder can be written."""
    compiled: int
    """Kernels that were compiled."""
    found: int
    """Kernels that were compiled before."""
    left: int
    """Kernels that could not be compiled ahead."""
    seconds: float


def warm_up(*purposes: Purpose, processes: int | None = None, on_event: OnEvent | None = None) -> Prepared:
    """Compile kernels now, so that nothing is compiled later: when an image is built, or before a server starts.

    Parameters
    ----------
    purposes
        "linear" (training and evaluation on texts), "serving" (answers of a server); all kernels if not given.
    processes
        Processes that compile; one for each core if not given.
    on_event
        Called with the progress.

    Returns
    -------
    Prepared
        What was compiled, where it lies, and how long it took.

    Examples
    --------
    >>> from labelwise import warm_up
    >>> done = warm_up("serving")
    >>> done.left
    0
    """
    begin, known = time.perf_counter(), len(needed(purposes))
    with Preparation(purposes, processes=processes, on_event=on_event) as preparation:
        preparation.wait()
    left = len(missing(purposes)) if preparation.kernels else 0
    compiled = len(preparation.kernels) - left
    folder = cache_folders().all[-1] if cache_folders().all else None
    return Prepared(folder, compiled, known - len(preparation.kernels), left, time.perf_counter() - begin)


class Preparation:
    """Processes that compile while this one does other work; a context manager that ends them.

    Parameters
    ----------
    purposes
        As for `warm_up`.
    processes
        Processes that compile; one for each core if not given.
    on_event
        Called with the progress, in `wait`.
    """

    def __init__(
        self, purposes: Sequence[Purpose] = (), *, processes: int | None = None, on_event: OnEvent | None = None
    ) -> None:
        self._on_event = on_event
        self.kernels = missing(purposes)
        self._left = list(reversed(self.kernels))
        self._done = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[str]] = []
        self._threads: list[threading.Thread] = []
        if cache_folders().writable is None or not sys.executable or not self.kernels:
            self._left = []
        cores = max(1, round(min(available_cores(), core_limit() or MOST_PROCESSES)))
        count = min(processes or cores, MOST_PROCESSES, len(self._left))
        for _ in range(count):
            thread = threading.Thread(target=self._drive, daemon=True, name="preparing kernels")
            self._threads.append(thread)
            thread.start()

    def _drive(self) -> None:
        """Start one process and hand it one kernel after the other; if it fails, the kernels are compiled later."""
        command = [sys.executable, "-I", "-c", _PROGRAM, json.dumps([str(one) for one in sys.path])]
        with suppress(OSError, ValueError):
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
            )
            with self._lock:
                self._processes.append(process)
            assert process.stdin is not None
            assert process.stdout is not None
            with process:
                while self._left:
                    with self._lock:
                        if not self._left:
                            break
                        kernel = self._left.pop()
                    process.stdin.write(f"{listed().index(kernel)}\n")
                    process.stdin.flush()
                    if not process.stdout.readline():
                        break
                    self._done.release()

    def wait(self) -> None:
        """Wait until all kernels are compiled; reports the progress."""
        if not self._threads:
            return
        with Task(self._on_event, TASK, total=len(self.kernels), unit="kernels") as task:
            while any(thread.is_alive() for thread in self._threads):
                if self._done.acquire(timeout=0.1):
                    task.advance()
                else:
                    task.advance(0)
            while self._done.acquire(blocking=False):
                task.advance()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._left.clear()
        if kind is not None:
            for process in self._processes:
                process.kill()
        for thread in self._threads:
            thread.join()


def work() -> None:
    """The program of a process: compile the kernels whose numbers are read, one in a line, and answer each."""
    for line in sys.stdin:
        with suppress(Exception):  # the process that needs the kernel says what is wrong
            listed()[int(line)].compile()
        sys.stdout.write(line)
        sys.stdout.flush()
