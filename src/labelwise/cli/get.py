"""labelwise get"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from rich import box
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from labelwise.cli.command import Command
from labelwise.cli.show import Show
from labelwise.config.presets import preset_names
from labelwise.datasets.paper import get_paper_set, paper_sets
from labelwise.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Get(Command):
    """Fetch a data set of the paper, check it and convert it, so that every command reads it.

    An interrupted download goes on where it stopped. No other command fetches data.

    Try it: labelwise get eurlex-4k
    """

    name: Annotated[str | None, Positional, arg(metavar="NAME")] = None
    """eurlex-4k, wiki10-31k, amazoncat-13k, wiki-500k, amazon-670k or amazon-3m."""
    folder: Annotated[Path | None, Positional, arg(metavar="FOLDER")] = None
    """The folder to write. Not given: a folder with the name of the data set."""
    show_list: Annotated[bool, arg(name="list")] = False
    """Print the data sets with their sizes and addresses, and fetch nothing."""
    file: Annotated[Path | None, arg(name="from")] = None
    """The archive, if you have fetched it by other means. Nothing is fetched then."""
    url: str | None = None
    """The address of a mirror (https)."""
    sha256: str | None = None
    """The checksum that the archive must have; anything else is refused."""
    overwrite: bool = False
    """Replace the data set if the folder holds it already."""
    json: bool = False
    """Print the summary, or the list, as JSON."""

    def run(self, out: Console, show: Show) -> None:
        """Fetch and convert the data set, and print what is there now."""
        if self.show_list:
            self._print_list(out)
            return
        if self.name is None:
            raise UsageError("give the name of a data set; labelwise get --list shows them")
        folder = Path(self.name) if self.folder is None else self.folder
        is_there = not self.overwrite and folder.is_dir() and any(folder.iterdir())
        made = get_paper_set(
            self.name,
            self.folder,
            file=self.file,
            url=self.url,
            sha256=self.sha256,
            overwrite=self.overwrite,
            on_event=show.on_event,
        )
        if self.json:
            out.print(json.dumps(asdict(made), indent=2, ensure_ascii=False), markup=False)
            return
        documents = ", ".join(f"{count:,} {split}" for split, count in made.documents.items())
        lines = [
            f"{folder}: {made.format}, documents: {documents}; {made.n_labels:,} labels",
            *(["the folder was there already; it was left as it is (--overwrite makes it again)"] if is_there else []),
            *made.notes,
            f"licence: {made.licence}",
            f"cite: {made.citation}",
            f"archive: {made.source}, {made.n_bytes:,} bytes, sha256 {made.sha256} (recorded in source.json)",
            f"next: labelwise train {folder} my-model",
        ]
        if self.name in preset_names():
            lines.append(f"the paper's settings, on a GPU: --preset {self.name} --encoder NAME_OR_FOLDER")
        for line in lines:
            out.print(line, markup=False)

    def _print_list(self, out: Console) -> None:
        if self.json:
            out.print(json.dumps([asdict(one) for one in paper_sets()], indent=2, ensure_ascii=False), markup=False)
            return
        table = Table(box=box.SIMPLE)
        for column, side in (("name", "left"), ("training", "right"), ("test", "right"), ("labels", "right")):
            table.add_column(column, justify="right" if side == "right" else "left", no_wrap=True)
        table.add_column("documents and labels")
        for one in paper_sets():
            table.add_row(one.name, f"{one.train:,}", f"{one.test:,}", f"{one.labels:,}", one.about)
        out.print(table)
        out.print(f"They lie in {paper_sets()[0].archive}:", markup=False)
        for one in paper_sets():
            out.print(f"{one.address}\n  {one.licence}", markup=False)
