"""The base class of all commands: --quiet, standard output for results, progress on standard error."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from rich.console import Console
from tyro.conf import arg

from labelwise.cli.console import SafeConsole
from labelwise.cli.settings import check_options
from labelwise.cli.show import Show, WarningHandler
from labelwise.errors import UsageError

DeviceOption = Annotated[
    str | None, arg(metavar="auto|cpu|cuda|cuda:N|mps", help_behavior_hint="(default: the GPU if any)")
]
"""The device of an encoder, as an option."""


@dataclass(frozen=True, kw_only=True)
class Command(ABC):
    """A command. Its fields are its options; its docstring is the head of its help."""

    groups: ClassVar[dict[str, tuple[str, ...]]] = {}
    """Headings of the help, each with its options; all others come under "options"."""
    not_settings: ClassVar[tuple[str, ...]] = ()
    """Options that have the name of a model's setting and another meaning."""

    quiet: bool = False
    """Print results and errors only, no progress and no remarks."""

    def start(self) -> None:
        """Set up logging and progress, then run the command."""
        check_options(self)
        out = SafeConsole()
        with Show(quiet=self.quiet) as show:
            handler = WarningHandler(show)
            logging.getLogger("labelwise").addHandler(handler)
            try:
                with self.where_it_runs():
                    self.run(out, show)
            finally:
                logging.getLogger("labelwise").removeHandler(handler)

    def where_it_runs(self) -> AbstractContextManager[None]:
        """Context of `run`."""
        return nullcontext()

    @abstractmethod
    def run(self, out: Console, show: Show) -> None:
        """Run the command. Results go to `out` (standard output), everything else to `show` (standard error)."""


def check_not_read(output: Path, *inputs: Path | None) -> None:
    """Refuse to write over what the command reads: a file, or the file of a split in a folder of data."""
    from labelwise.data.detect import SPLIT_WORDS
    from labelwise.data.files import plain_name

    for one in inputs:
        if one is None or not output.exists() or not one.exists():
            continue
        is_split = plain_name(output).partition(".")[0] in {word for words in SPLIT_WORDS.values() for word in words}
        if output.samefile(one) or (is_split and output.parent.samefile(one)):
            raise UsageError(f"{output} is read by this command; choose another file to write")


def prepare_kernels(show: Show) -> None:
    """Compile what a model needs for its answers, by several processes, where that has not been done."""
    from labelwise.kernels.preparing import Preparation

    with Preparation(("serving",), on_event=show.on_event) as preparation:
        preparation.wait()
