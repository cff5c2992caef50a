"""The base class of all commands: --quiet, standard output for results, progress on standard error."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from rich.console import Console
from tyro.conf import arg

from labelwise.cli.console import SafeConsole
from labelwise.cli.settings import check_options
from labelwise.cli.show import Show, WarningHandler
from labelwise.engines import EngineName, engine
from labelwise.errors import UsageError

DeviceOption = Annotated[
    str | None, arg(metavar="auto|cpu|cuda|cuda:N|mps", help_behavior_hint="(default: the GPU if any)")
]
"""The device of an encoder, as an option."""


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Where the work of a command runs."""

    engine: Annotated[EngineName | None, arg(help_behavior_hint="(default: LABELWISE_ENGINE, or threads)")] = None
    """Run the work in threads of this process, or on a Ray cluster; results are the same."""
    address: Annotated[str | None, arg(metavar="auto|ray://HOST:PORT", help_behavior_hint="(default: start Ray)")] = (
        None
    )
    """Address of the Ray cluster."""

    @contextmanager
    def engine_of_processes(self) -> Iterator[None]:
        """Context in which processes that the command starts find the engine in their environment."""
        if self.address is not None and self.engine != "ray":
            raise UsageError("--address is that of a Ray cluster; add --engine ray, or leave it out")
        given = {"LABELWISE_ENGINE": self.engine, "RAY_ADDRESS": self.address}
        before = {name: os.environ.get(name) for name in given}
        os.environ.update({name: value for name, value in given.items() if value is not None})
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None) if value is None else os.environ.update({name: value})

    @contextmanager
    def chosen_engine(self) -> Iterator[None]:
        """Context in which the work of this process runs where the options say."""
        with self.engine_of_processes():
            if self.engine is None:
                yield
                return
            with engine(self.engine, address=self.address):
                yield


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
                self.run(out, show)
            finally:
                logging.getLogger("labelwise").removeHandler(handler)

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
