"""labelwise convert"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from labelwise.cli.command import Command
from labelwise.cli.show import Show
from labelwise.config import TfidfConfig
from labelwise.data import Format, ReadOptions, convert
from labelwise.data.archive import WriteCompression


@dataclass(frozen=True, kw_only=True)
class Convert(Command):
    """Convert a data set to another format: all splits, label names and, where the format has them, features.

    Try it: labelwise convert my-data my-data-parquet --to parquet
    """

    source: Annotated[Path, Positional, arg(metavar="SOURCE")]
    """A folder of splits or a single file, in any format that labelwise reads."""
    destination: Annotated[Path, Positional, arg(metavar="DESTINATION")]
    """The folder to write."""
    to: Format
    """The format to write. pecos, xc and libsvm hold features: tf-idf is computed where the source has only texts."""
    format: Format | None = None
    """Format of the source; detected if not given."""
    compression: WriteCompression | None = None
    """Compression of the written files."""
    iri_prefix: str | None = None
    """With --to annif: what the IRIs of labels begin with that are no IRIs themselves; urn:labelwise: if not given."""
    overwrite: bool = False
    """Replace a data set at the destination."""
    json: bool = False
    """Print the summary as JSON."""
    read: ReadOptions = field(default_factory=ReadOptions)
    tfidf: TfidfConfig = field(default_factory=TfidfConfig)

    def run(self, out: Console, show: Show) -> None:
        """Convert the data set and print what was written."""
        done = convert(
            self.source,
            self.destination,
            self.to,
            format=self.format,
            compression=self.compression,
            overwrite=self.overwrite,
            tfidf=self.tfidf,
            iri_prefix=self.iri_prefix,
            on_event=show.on_event,
            **asdict(self.read),
        )
        if self.json:
            out.print(json.dumps(done.to_dict(), indent=2, ensure_ascii=False), markup=False)
            return
        documents = ", ".join(f"{count:,} {split}" for split, count in done.documents.items())
        features = f", {done.n_features:,} features" if done.n_features else ""
        out.print(
            f"{done.path}: {done.format}, documents: {documents}; {done.n_labels:,} labels{features}", markup=False
        )
        if done.bad_rows:
            out.print(f"{done.bad_rows:,} bad rows were left out")
        for note in done.notes:
            out.print(note, markup=False)
