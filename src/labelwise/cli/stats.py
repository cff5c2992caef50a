"""labelwise stats"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from labelwise.cli.command import Command, check_not_read
from labelwise.cli.show import Show
from labelwise.data import Format, ReadOptions, describe, load_splits, statistics_table
from labelwise.errors import UsageError
from labelwise.storage import check_writable


@dataclass(frozen=True, kw_only=True)
class Stats(Command):
    """Describe a data set: the columns of the paper's Table 2, the label tail, unseen labels, duplicate texts.

    Try it: labelwise stats my-data --plot tail.png
    """

    data: Annotated[Path, Positional, arg(metavar="DATA")]
    """A folder of splits or a single file, in any format that labelwise reads."""
    plot: Path | None = None
    """Plot the long tail of the labels (the paper's Figure 1, left) into this .png or .svg file."""
    output: Path | None = None
    """Also write the statistics into this JSON file."""
    json: bool = False
    """Print JSON instead of a table."""
    format: Format | None = None
    """Format of the data; detected if not given."""
    read: ReadOptions = field(default_factory=ReadOptions)

    def run(self, out: Console, show: Show) -> None:
        """Read the data, print the statistics, plot the label tail."""
        if self.plot is not None and self.plot.suffix not in (".png", ".svg"):
            raise UsageError(f"--plot {self.plot}: give a .png or an .svg file")
        for path in filter(None, (self.output, self.plot)):
            check_writable(path, is_file=True)
            check_not_read(path, self.data)
        splits = load_splits(self.data, format=self.format, on_event=show.on_event, **asdict(self.read))
        statistics = describe(splits)
        name = self.data.resolve().name
        generated = (self.data / "shop.json").is_file()
        if self.output is not None:
            from labelwise.storage import write_json

            write_json(self.output, statistics.to_dict())
        if self.plot is not None:
            from labelwise.data.stats import label_counts
            from labelwise.report.tail import plot_tail

            train = splits.get("train") or next(iter(splits.values()))
            plot_tail(label_counts(train), self.plot, title=name, generated=generated)
        if self.json:
            out.print(json.dumps(statistics.to_dict(), indent=2), markup=False)
        else:
            out.print(statistics_table(statistics, title=f"{name} (generated data)" if generated else name))
        if self.output is not None:
            show.remark(f"written: {self.output}")
        if self.plot is not None:
            show.remark(f"plotted: {self.plot}")
