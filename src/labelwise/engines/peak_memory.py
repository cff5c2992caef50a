"""The most memory that the process holds while a piece of work runs."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

SECONDS_BETWEEN_LOOKS = 0.05
_STATM = Path("/proc/self/statm")


class PeakMemory:
    """Looks at the process's resident memory from a thread of its own; a context manager.

    The system's own high-water mark would be exact, but it only ever rises, and setting it back would spoil it for
    everyone else who reads it.

    >>> with PeakMemory() as peak:
    ...     work()
    >>> peak.n_bytes
    1234567890
    """

    n_bytes: int | None = None
    """Most resident memory seen; None where the system does not tell (it does on Linux)."""
    gpu_bytes: int | None = None
    """Most memory that torch has held on the GPU since the process began; None without one."""

    def __enter__(self) -> Self:
        self._ended = threading.Event()
        self._look()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="peak memory")
        if self.n_bytes is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        self._look()
        torch: Any = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            self.gpu_bytes = int(torch.cuda.max_memory_allocated())

    def _watch(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_LOOKS):
            self._look()

    def _look(self) -> None:
        now = resident_bytes()
        if now is not None:
            self.n_bytes = max(now, self.n_bytes or 0)


def resident_bytes() -> int | None:
    """Memory of this process that lies in RAM now, None where the system does not tell."""
    try:
        import resource

        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    except (OSError, ImportError):
        return None
