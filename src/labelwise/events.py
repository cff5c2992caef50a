"""Progress events of long work, reported through one hook, `on_event(name, values)`.

The library itself never prints, unless `labelwise.show_progress` has asked it to: then work without an `on_event` of
its own reports to that listener. A `Task` reports progress as ``("progress", {"task": …, "done": …, "total": …,
"unit": …, "finished": …})``, at most ten times a second, plus once when it ends, with ``"stopped": True`` where an
error or Ctrl-C ended it. The command line turns these
into bars on a terminal and into plain lines elsewhere; a run directory appends the events to ``events.jsonl``.
"""

import time
from types import TracebackType
from typing import Self

from labelwise.types import OnEvent

SECONDS_BETWEEN_REPORTS = 0.1


_listeners: list[OnEvent] = []
"""Those that `listen` has set, the latest last."""


def heard(on_event: OnEvent | None) -> OnEvent | None:
    """Who hears the events: the listener that was given, or else the one that `listen` has set."""
    return on_event if on_event is not None or not _listeners else _listeners[-1]


def listen(listener: OnEvent) -> None:
    """Report the events of all work in this process that has no `on_event` of its own to a listener."""
    _listeners.append(listener)


def stop_listening(listener: OnEvent) -> None:
    """Undo `listen`."""
    if listener in _listeners:
        _listeners.remove(listener)


class Task:
    """One piece of long work, as a context manager.

    >>> with Task(on_event, "reading train.jsonl", unit="documents") as task:
    ...     for batch in batches:
    ...         task.advance(len(batch))
    """

    def __init__(
        self, on_event: OnEvent | None, name: str, *, total: int | None = None, unit: str = "documents"
    ) -> None:
        self.on_event, self.name, self.total, self.unit = heard(on_event), name, total, unit
        self.done = 0
        self._next_report = 0.0

    def advance(self, n: int = 1) -> None:
        """Count `n` more units as done."""
        self.done += n
        if self.on_event is not None and time.monotonic() >= self._next_report:
            self._report(finished=False)
            self._next_report = time.monotonic() + SECONDS_BETWEEN_REPORTS

    def _report(self, *, finished: bool, stopped: bool = False) -> None:
        if self.on_event is not None:
            values = {"task": self.name, "done": self.done, "total": self.total, "unit": self.unit}
            self.on_event("progress", {**values, "finished": finished, **({"stopped": True} if stopped else {})})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._report(finished=True, stopped=kind is not None)
