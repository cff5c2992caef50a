"""labelwise split"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from labelwise.cli.command import Command
from labelwise.cli.show import Show
from labelwise.data import Format, ReadOptions, split_data
from labelwise.data.archive import WriteCompression

NOTABLE = 0.9
"""A part with less than this share of the documents it was to have is told."""


@dataclass(frozen=True, kw_only=True)
class Split(Command):
    """Split a data set into training and test documents, and validation documents if asked for, in the same format.

    Documents with the same text stay together, and every label keeps a training document. Tables keep their columns.

    Try it: labelwise split tickets.csv tickets --test 0.1 --validation 0.1
    """

    data: Annotated[Path, Positional, arg(metavar="DATA")]
    """A single file, or a folder with a training split alone, in any format that labelwise reads."""
    output: Annotated[Path, Positional, arg(metavar="OUT")]
    """The folder to write."""
    test: float = 0.1
    """Share of the documents for the test split; 0 for none."""
    validation: float = 0.0
    """Share of the documents for the validation split; 0 for none."""
    seed: int = 0
    """Random seed; the same seed gives the same splits."""
    format: Format | None = None
    """Format of the data; detected if not given."""
    compression: WriteCompression | None = None
    """Compression of the written files."""
    overwrite: bool = False
    """Replace a data set in the folder."""
    json: bool = False
    """Print the summary as JSON."""
    read: ReadOptions = field(default_factory=ReadOptions)

    def run(self, out: Console, show: Show) -> None:
        """Split the data set and print what was written."""
        done = split_data(
            self.data,
            self.output,
            test=self.test,
            validation=self.validation,
            seed=self.seed,
            format=self.format,
            compression=self.compression,
            overwrite=self.overwrite,
            on_event=show.on_event,
            **asdict(self.read),
        )
        n_docs = sum(done.documents.values())
        for name, share in (("test", self.test), ("validation", self.validation)):
            if done.documents.get(name, 0) < NOTABLE * share * n_docs - 1:
                show.remark(
                    f"the {name} split has {done.documents[name] / n_docs:.1%} of the documents: every label keeps a "
                    "training document, and many labels are rare"
                )
        if self.json:
            out.print(json.dumps(done.to_dict(), indent=2, ensure_ascii=False), markup=False)
            return
        documents = ", ".join(f"{count:,} {split}" for split, count in done.documents.items())
        out.print(f"{done.path}: {done.format}, documents: {documents}; {done.n_labels:,} labels", markup=False)
        for note in done.notes:
            out.print(note, markup=False)
