"""Progress of work that is started from Python: in terminals, notebooks and logs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Self

from labelwise.cli.show import Show, WarningHandler
from labelwise.events import listen, stop_listening

SECONDS_BEFORE = 0.5
"""Work that takes less than this is not shown."""


class ShownProgress(Show):
    """Shows the progress of all work in this process that has no `on_event` of its own: see `show_progress`."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.RLock()
        self._since: dict[str, float] = {}
        self._warnings = WarningHandler(self)
        self._warnings.addFilter(lambda record: not logging.getLogger().handlers)  # the program prints them itself

    def start(self) -> None:
        """Show everything from now on; a warning that is also an event is printed once."""
        listen(self.on_event)
        logging.getLogger("labelwise").addHandler(self._warnings)

    def __enter__(self) -> Self:
        """It is on already; `with` only says how long."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Show nothing from now on."""
        stop_listening(self.on_event)
        logging.getLogger("labelwise").removeHandler(self._warnings)
        with self._lock:
            super().__exit__(None, None, None)

    def on_event(self, name: str, values: Mapping[str, Any]) -> None:
        """Show an event; bars are there only while some work takes long."""
        with self._lock:
            if name != "progress":
                super().on_event(name, values)
                return
            task = values["task"]
            since = self._since.setdefault(task, time.monotonic())
            if values["finished"]:
                del self._since[task]
            if time.monotonic() - since < SECONDS_BEFORE:
                return
            if self._bars is None and not values["finished"] and self._has_bars():
                super().__enter__()
            super().on_event(name, values)
            if self._bars is not None and not self._tasks:
                super().__exit__(None, None, None)

    def _has_bars(self) -> bool:
        """Whether bars can be drawn; rich draws those of a notebook with ipywidgets."""
        return self.console.is_terminal or (self.console.is_jupyter and find_spec("ipywidgets") is not None)


def show_progress() -> ShownProgress:
    """Show the progress and the remarks of all models, of reading, tuning, comparing and predicting from now on.

    Bars in a terminal, and in a notebook that has ipywidgets; a line every few seconds elsewhere; nothing for work
    that is done at once. It is for calls without an `on_event` of their own. ``.stop()`` ends it, or ``with``.

    Examples
    --------
    >>> from labelwise import LinearTree, generate_shop, show_progress
    >>> train, test = generate_shop(500, 100).values()
    >>> with show_progress():
    ...     model = LinearTree().fit(train.texts, train.Y, label_names=train.labels)
    """
    shown = ShownProgress()
    shown.start()
    return shown
