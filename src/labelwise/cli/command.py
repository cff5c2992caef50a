"""The base class of all commands: --quiet, standard output for results, progress on standard error."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from rich.console import Console

from labelwise.cli.settings import check_options
from labelwise.cli.show import Show


@dataclass(frozen=True, kw_only=True)
class Command(ABC):
    """A command. Its fields are its options; its docstring is the head of its help."""

    not_settings: ClassVar[tuple[str, ...]] = ()
    """Options that have the name of a model's setting and another meaning."""

    quiet: bool = False
    """Print results and errors only, no progress and no remarks."""

    def start(self) -> None:
        """Set up logging and progress, then run the command."""
        check_options(self)
        out = Console(soft_wrap=True, highlight=False)
        with Show(quiet=self.quiet) as show:
            handler = _WarningHandler(show)
            logging.getLogger("labelwise").addHandler(handler)
            try:
                self.run(out, show)
            finally:
                logging.getLogger("labelwise").removeHandler(handler)

    @abstractmethod
    def run(self, out: Console, show: Show) -> None:
        """Run the command. Results go to `out` (standard output), everything else to `show` (standard error)."""


class _WarningHandler(logging.Handler):
    """Prints the library's warnings, except for the remarks of `fit`: those are printed as events."""

    def __init__(self, show: Show) -> None:
        super().__init__(logging.WARNING)
        self.show = show

    def emit(self, record: logging.LogRecord) -> None:
        if not getattr(record, "is_remark", False):
            self.show.remark(record.getMessage())
