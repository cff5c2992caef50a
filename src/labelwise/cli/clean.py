"""labelwise clean"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from labelwise.cli.command import Command
from labelwise.cli.runs import megabytes
from labelwise.cli.show import Show, counted
from labelwise.errors import UsageError
from labelwise.storage.leftovers import MIN_AGE_HOURS
from labelwise.storage.replacing import clean


@dataclass(frozen=True, kw_only=True)
class Clean(Command):
    """List and remove temporary files that killed processes left in a folder and in the folders in it.

    A temporary file of labelwise is called .NAME.TOKEN.partial, .ready or .old. One that a living process writes is
    locked and stays. Locks of other machines may not be visible here, on a network drive for example: what another
    machine made, or this one before it was started anew, stays until it is old enough (--min-age).

    Try it: labelwise clean . --dry-run
    """

    folder: Annotated[Path, Positional, arg(metavar="FOLDER")]
    """The folder to look in, such as the one that holds models and data."""
    dry_run: bool = False
    """Only list what would be removed."""
    min_age: Annotated[float, arg(metavar="HOURS")] = MIN_AGE_HOURS
    """Hours without a change after which temporary files of other machines are removed; 0 if no other machine writes
    there."""
    json: bool = False
    """Print JSON."""

    def run(self, out: Console, show: Show) -> None:
        """Look, remove, list."""
        if not self.folder.is_dir():
            raise UsageError(f"{self.folder} is no folder; give the folder to look in")
        if not self.min_age >= 0:
            raise UsageError(f"--min-age {self.min_age}: give a number of hours, 0 or more")
        cleaned = clean(self.folder, dry_run=self.dry_run, min_age_hours=self.min_age)
        found = [(one.path, n_bytes) for one, n_bytes in cleaned]
        if self.json:
            rows = [{"path": str(path), "bytes": n_bytes} for path, n_bytes in found]
            out.print(json.dumps({"removed": not self.dry_run, "leftovers": rows}, indent=2), markup=False)
            return
        for path, n_bytes in found:
            out.print(f"{'would remove' if self.dry_run else 'removed'} {path} ({megabytes(n_bytes)})", markup=False)
        total = megabytes(sum(n_bytes for _, n_bytes in found))
        out.print(f"{counted(len(found), 'leftover')}, {total} {'would be freed' if self.dry_run else 'freed'}")
