"""What a forked process inherits and cannot use: pools of native threads, and locks that other threads held."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST_WAIT = 10.0
"""Seconds that a fork waits for computations of other threads."""
LONGEST_END = 1.0
"""Seconds that a fork waits for the end of threads that Python has joined already."""
_TASKS = Path("/proc/self/task")


class ForkGuard:
    """Forks only while native libraries are at rest, and knows in a forked process that an ancestor had used them.

    A fork copies the memory with its locks, but of the threads only the one that forks. A lock that another thread
    holds at that moment stays locked in the child for ever. Tokenizers hold one while they read texts; Intel's MKL,
    which torch computes with, while it computes, and once more when a thread ends. A fork therefore waits for these.
    """

    def __init__(self) -> None:
        self.inherited = False
        """Whether an ancestor of this process had used native libraries before the fork."""
        self._used = False
        self._adapt: list[Callable[[], object]] = []
        self._threads: set[int] = set()
        """Native numbers of the threads that have computed."""
        self._begin()

    def _begin(self) -> None:
        self._at_rest = threading.Condition()
        self._computing: dict[int, int] = {}
        """How many computations each thread is in."""

    def use(self, in_child: Callable[[], object] | None = None) -> None:
        """Note that this process uses native libraries from now on.

        Parameters
        ----------
        in_child
            Called in each forked process, at once after the fork.
        """
        if in_child is not None and in_child not in self._adapt:
            self._adapt.append(in_child)
        if not self._used:
            self._used = True
            if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
                os.register_at_fork(
                    before=self._before_fork, after_in_parent=self._in_parent, after_in_child=self._in_child
                )

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Context of a computation: forks of other threads wait for its end, and it waits for a fork's."""
        self.use()
        thread = threading.get_native_id()
        with self._at_rest:
            self._threads.add(thread)
            self._computing[thread] = self._computing.get(thread, 0) + 1
        try:
            yield
        finally:
            with self._at_rest:
                self._computing[thread] -= 1
                if not self._computing[thread]:
                    del self._computing[thread]
                    self._at_rest.notify_all()

    def _before_fork(self) -> None:
        own = threading.get_native_id()
        self._at_rest.acquire()
        self._at_rest.wait_for(lambda: self._computing.keys() <= {own}, LONGEST_WAIT)
        alive = {thread.native_id for thread in threading.enumerate()}
        ended = self._threads - alive
        until = time.monotonic() + LONGEST_END
        while any((_TASKS / str(thread)).exists() for thread in ended) and time.monotonic() < until:
            time.sleep(0.001)
        self._threads -= ended

    def _in_parent(self) -> None:
        self._at_rest.release()

    def _in_child(self) -> None:
        self._begin()
        self._threads.clear()
        self.inherited = True
        for adapt in self._adapt:
            adapt()


native = ForkGuard()
"""The guard of this process: everything that computes in a native library with locks does so in its context."""
