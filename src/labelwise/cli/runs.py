"""labelwise runs"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from labelwise.cli.command import Command
from labelwise.cli.show import Show, counted
from labelwise.storage.run_directory import RunDirectory


@dataclass(frozen=True, kw_only=True)
class Runs(Command):
    """List the results of a run directory with their sizes and computing times, and the number of runs that use them.

    Try it: labelwise runs demo-run --prune --keep 2
    """

    not_settings = ("prune",)

    directory: Annotated[Path, Positional, arg(metavar="DIRECTORY")]
    """The run directory."""
    prune: bool = False
    """Remove results that the latest runs do not use, and half-written files of killed processes."""
    keep: int = 1
    """With --prune: the number of latest runs whose results stay."""
    dry_run: bool = False
    """With --prune: only list what would be removed."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self, out: Console, show: Show) -> None:
        """List the results, or remove some of them."""
        directory = RunDirectory(self.directory)
        if self.prune:
            removed = directory.prune(keep=self.keep, dry_run=self.dry_run)
            for folder, n_bytes in removed:
                show.remark(f"{'would remove' if self.dry_run else 'removed'} {folder.name} ({megabytes(n_bytes)})")
            total = megabytes(sum(n_bytes for _, n_bytes in removed))
            out.print(f"{counted(len(removed), 'result')}, {total} {'would be freed' if self.dry_run else 'freed'}")
            return
        stages = directory.stages()
        if self.json:
            rows = [{**vars(stage), "folder": stage.folder.name} for stage in stages]
            out.print(json.dumps({"runs": directory.runs(), "stages": rows}, indent=2), markup=False)
            return
        table = Table(
            title=f"{self.directory}: {counted(len(stages), 'result')} of {counted(len(directory.runs()), 'run')}",
            title_style="bold",
        )
        for heading in ("stage", "result", "size", "wall s", "cpu s", "made", "runs"):
            right = heading in ("size", "wall s", "cpu s", "runs")
            table.add_column(heading, justify="right" if right else "left", no_wrap=True)
        for stage in stages:
            table.add_row(
                stage.name,
                stage.folder.name.rpartition("-")[2][:8],
                megabytes(stage.n_bytes),
                f"{stage.seconds:.2f}",
                f"{stage.cpu_seconds:.2f}",
                stage.created[:16].replace("T", " "),
                str(stage.n_runs),
            )
        out.print(table)
        out.print(f"{megabytes(sum(stage.n_bytes for stage in stages))} in all; times are UTC")


def megabytes(n_bytes: int) -> str:
    """A number of bytes as text, in megabytes."""
    return f"{n_bytes / 1e6:,.1f} MB"
