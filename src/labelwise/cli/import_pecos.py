"""labelwise import-pecos"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from labelwise.cli.command import Command
from labelwise.cli.show import Show
from labelwise.data.label_names import distinct_names, read_names
from labelwise.errors import UsageError
from labelwise.storage import check_writable


@dataclass(frozen=True, kw_only=True)
class ImportPecos(Command):
    """Convert a PECOS XR-Linear model to a labelwise model with the same weights, tree and scores.

    Try it: labelwise import-pecos pecos-model my-model --labels output-items.txt
    """

    source: Annotated[Path, Positional, arg(metavar="PECOS_MODEL")]
    """The folder in which PECOS saved an XR-Linear model."""
    destination: Annotated[Path, Positional, arg(metavar="MODEL")]
    """The folder to write."""
    labels: Path | None = None
    """A file with one label name per line; labels are called by their numbers if not given."""
    overwrite: bool = False
    """Replace a model at the destination."""

    def run(self, out: Console, show: Show) -> None:
        """Read the model, save it, and print a summary."""
        from labelwise.integrations.pecos import load_xr_linear

        if self.destination.exists() and not self.overwrite:
            raise UsageError(f"{self.destination} exists already; choose another place, or pass --overwrite")
        check_writable(self.destination)
        names = None if self.labels is None else distinct_names(read_names(self.labels), self.labels)
        model = load_xr_linear(self.source, label_names=names, on_event=show.on_event)
        model.save(self.destination)
        facts = "; ".join(f"{name}: {value}" for name, value in model.facts())
        out.print(
            f"{self.destination}: {facts}; beam {model.config.beam}, {model.config.score_transform}", markup=False
        )
