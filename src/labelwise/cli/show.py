"""Progress and remarks on standard error: bars on a terminal, plain lines elsewhere, nothing with --quiet."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from labelwise.cli.console import SafeConsole
from labelwise.errors import printable

SECONDS_BETWEEN_LINES = 5.0


def counted(number: int, noun: str) -> str:
    """A number with its noun in the singular or the plural: ``1 label``, ``2,700 labels``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


class Show:
    """Prints the events that the library reports through `on_event`."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.console: Console = SafeConsole(stderr=True)
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._started: dict[str, float] = {}
        self._next_line: dict[str, float] = {}

    def __enter__(self) -> Self:
        if not self.quiet and (self.console.is_terminal or self.console.is_jupyter):
            self._bars = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[amount]}", markup=False),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
            )
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def remark(self, sentence: str) -> None:
        """Print a sentence that is not a result."""
        if not self.quiet:
            self.console.print(sentence, markup=False)

    def on_event(self, name: str, values: Mapping[str, Any]) -> None:
        """Print an event of the library."""
        if self.quiet:
            return
        if name == "progress":
            self._progress(values)
        elif name == "waiting":
            self.remark(f"waiting for {values['stage']}: {values['reason']}")
        elif name == "stage" and values["found"]:
            self.remark(f"{values['stage']}: found in the run directory, computed before in {values['seconds']:.1f} s")
        elif name == "remark":
            self.remark(values["text"])
        elif name == "matcher":
            self._matcher(values)
        elif name == "trial":
            settings = ", ".join(f"{setting} {value}" for setting, value in values["settings"].items())
            self.remark(f"trial {values['number']}: {settings}: {values['metric']} {values['score']:.2f}")

    def _matcher(self, values: Mapping[str, Any]) -> None:
        """Print a point of the training curve, at most one every few seconds; a terminal shows every recall."""
        now = time.monotonic()
        if now < self._next_line.get("matcher", 0.0) and not ("recall" in values and self._bars is not None):
            return
        self._next_line["matcher"] = now + SECONDS_BETWEEN_LINES
        if "recall" in values:
            self.remark(f"step {values['step']:,}: {values['recall']:.1f} % of the held-out documents' clusters found")
        else:
            self.remark(f"step {values['step']:,}: loss {values['loss']:.4g}, learning rate {values['rate']:.2g}")

    def _progress(self, values: Mapping[str, Any]) -> None:
        done, total, finished = values["done"], values["total"], values["finished"]
        task = printable(values["task"])
        end = ", stopped" if values.get("stopped") else ", done"
        amount = f"{done:,}" + (f" of {total:,}" if total else "") + f" {values['unit']}"
        now = time.monotonic()
        started = self._started.setdefault(task, now)
        if self._bars is not None:
            if task not in self._tasks:
                self._tasks[task] = self._bars.add_task(task, total=total, amount=amount)
            self._bars.update(self._tasks[task], completed=done, total=total, amount=amount)
            if finished:
                self._bars.remove_task(self._tasks.pop(task))
        elif finished or now >= self._next_line.setdefault(task, started + SECONDS_BETWEEN_LINES):
            self._next_line[task] = now + SECONDS_BETWEEN_LINES
            if finished and now - started < SECONDS_BETWEEN_LINES:
                pass  # short work needs no line in a log
            else:
                self.remark(f"{task}: {amount}, {now - started:.0f} s" + (end if finished else ""))
        if finished:
            self._started.pop(task, None)
            self._next_line.pop(task, None)


class WarningHandler(logging.Handler):
    """Prints the library's warnings, except for the remarks of `fit`: those are printed as events."""

    def __init__(self, show: Show) -> None:
        super().__init__(logging.WARNING)
        self.show = show

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning."""
        if not getattr(record, "is_remark", False):
            self.show.remark(record.getMessage())
