"""Work shared out to threads. Kernels release the GIL, so threads are enough, and nothing has to be copied."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def map_in_order(
    function: Callable[[T], U], items: Iterable[T], threads: int | None, *, ahead: int | None = None
) -> Iterator[U]:
    """Results of `function` in the order of `items`, computed by threads with a bounded look-ahead.

    `ahead` is how many results may wait for the one before them, one for each thread if not given. One item alone is
    done in the calling thread: starting a pool costs more than a short text.
    """
    threads = threads or available_cores()
    most = 1 + (threads if ahead is None else max(ahead, threads))
    source = iter(items)
    first = list(islice(source, 2))
    if len(first) < 2 or threads == 1:
        yield from map(function, first)
        yield from map(function, source)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[U]] = deque(pool.submit(function, item) for item in first)
        del first
        try:
            for item in source:
                waiting.append(pool.submit(function, item))
                if len(waiting) > most:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def available_cores() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS or Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def core_limit() -> float | None:
    """The cores that a container's control group allows; None where there is no limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return None


class MemoryBudget:
    """Lets pieces of work run side by side only as long as their memory, together, stays within a number of bytes.

    A piece that is larger than the whole budget runs alone.
    """

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self._used = 0
        self._change = threading.Condition()

    @contextmanager
    def hold(self, n_bytes: int) -> Iterator[None]:
        """Wait until there is room, and keep it while the block runs."""
        with self._change:
            self._change.wait_for(lambda: self._used == 0 or self._used + n_bytes <= self.n_bytes)
            self._used += n_bytes
        try:
            yield
        finally:
            with self._change:
                self._used -= n_bytes
                self._change.notify_all()
