"""--engine and --address: where the work of a command runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from labelwise.engines import EngineName, engine
from labelwise.errors import UsageError


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

    def where_it_runs(self) -> AbstractContextManager[None]:
        """Context of `run`."""
        return self.chosen_engine()
