"""labelwise doctor"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from labelwise.cli.command import Command
from labelwise.cli.installation import examine
from labelwise.cli.show import Show


@dataclass(frozen=True, kw_only=True)
class Doctor(Command):
    """Say what is installed and what is missing, problems first, with what to do. Nothing is changed.

    The output has no name of the user or the machine, so it can be pasted into a report of a bug. The exit code is 1 if
    there is a problem; an extra that is not installed is none.

    Try it: labelwise doctor
    """

    network: bool = False
    """Also ask whether the Hugging Face hub answers."""
    json: bool = False
    """Print one JSON object."""

    def run(self, out: Console, show: Show) -> None:
        """Look, and print."""
        found = examine(network=self.network)
        if self.json:
            out.print(json.dumps(asdict(found), indent=2, ensure_ascii=False), markup=False)
        else:
            for one in found.problems:
                out.print(f"problem: {one['problem']}\n     do: {one['do']}", markup=False)
            if not found.problems:
                out.print("no problems found", markup=False)
            table = Table(show_header=False, show_edge=False, box=None, pad_edge=False)
            table.add_column(no_wrap=True)
            table.add_column(overflow="fold")
            for section, facts in found.facts.items():
                table.add_row("", "")
                table.add_row(f"[bold]{section}[/]", "")
                for name, value in facts.items():
                    table.add_row(f"  {escape(name)}", escape(str(value)))
            out.print(table)
        if found.problems:
            sys.exit(1)
