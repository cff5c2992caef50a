"""labelwise warm-up"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Annotated

from rich.console import Console
from tyro.conf import arg

from labelwise.cli.command import Command
from labelwise.cli.show import Show, counted
from labelwise.engines.kernel_cache import cache_folders
from labelwise.errors import StorageError, UsageError
from labelwise.kernels.preparing import Purpose, warm_up


@dataclass(frozen=True, kw_only=True)
class WarmUp(Command):
    """Compile all kernels now, so that nothing is compiled later: when an image is built, or before a server starts.

    Without this command, the first training or prediction compiles the kernels that it needs. The compiled code is good
    for this processor, this version of Python and these versions of numba and labelwise.

    Try it: labelwise warm-up --only serving
    """

    only: Annotated[tuple[Purpose, ...], arg(metavar="linear|serving")] = ()
    """Compile only what this needs: linear (training and evaluation of the default model on texts), serving (answers of
    a server); all kernels if not given."""
    processes: Annotated[int | None, arg(help_behavior_hint="(default: one for each core)")] = None
    """Number of processes that compile."""
    json: bool = False
    """Print one JSON object."""

    def run(self, out: Console, show: Show) -> None:
        """Compile, and say where the code lies."""
        if self.processes is not None and self.processes < 1:
            raise UsageError(f"--processes {self.processes}: give 1 or more")
        folders = cache_folders()
        done = warm_up(*self.only, processes=self.processes, on_event=show.on_event)
        if folders.writable is None and done.left:
            raise StorageError(
                "no folder for compiled kernels can be written, so nothing was compiled; "
                "set NUMBA_CACHE_DIR to a folder that can be written"
            )
        if self.json:
            found = {**asdict(done), "folder": str(done.folder), "chosen_by": folders.chosen_by}
            out.print(json.dumps(found))
            return
        out.print(f"compiled: {counted(done.compiled, 'kernel')} in {done.seconds:.1f} s; found: {done.found:,}")
        if done.left:
            show.remark(f"{counted(done.left, 'kernel')} could not be compiled ahead and will be when they are called")
        out.print(f"where: {done.folder} ({folders.chosen_by})", markup=False)
