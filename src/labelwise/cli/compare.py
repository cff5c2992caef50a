"""labelwise compare"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from tyro.conf import Positional, arg

from labelwise.cli.command import Command
from labelwise.cli.console import SafeConsole
from labelwise.cli.engine import EngineOptions
from labelwise.cli.show import Show
from labelwise.comparison.results import SystemComparison
from labelwise.comparison.runner import EvalSettings, prediction_files, run_comparison
from labelwise.comparison.system import parse_systems
from labelwise.comparison.tables import comparison_markdown, differences_table, systems_table
from labelwise.comparison.worker import DataLocation
from labelwise.data import Format, ReadOptions
from labelwise.errors import LabelwiseError, MissingExtraError, UsageError
from labelwise.metrics import Family
from labelwise.metrics.relevance import check_ks
from labelwise.storage import atomic_file, check_writable, write_json

AS_PRESET = "(default: as the preset says)"


@dataclass(frozen=True, kw_only=True)
class Compare(EngineOptions, Command):
    """Train several systems on a data set and compare them: accuracy with intervals, training and prediction time,
    memory, model size. Every system is tested against the first one. Each system is measured in a process of its own.

    Try it: labelwise compare my-shop --systems parabel,dismec,default --run-dir runs --output comparison
    """

    groups: ClassVar = {
        "systems": ("systems", "against", "seeds", "run_dir"),
        "settings of all systems": ("encoder", "max_length", "epochs", "device", "calibrate", "threads"),
        "measures": ("ks", "split", "family", "bootstrap", "max_docs"),
        "where it runs": ("engine", "address"),
        "output": ("output", "json", "quiet"),
    }

    data: Annotated[Path, Positional, arg(metavar="DATA")]
    """A folder with a training and a test split, in any format that labelwise reads."""
    systems: Annotated[str, arg(metavar="NAME,NAME,…")]
    """Presets, .toml files and folders of trained models, separated by commas; a+b is an ensemble. All systems are
    tested against the first one."""
    against: Annotated[Path | None, arg(metavar="DIR|FILE")] = None
    """Other systems' predictions of the same documents, one file for each system: .jsonl, .csv, .parquet, .npz."""
    encoder: Annotated[str | None, arg(metavar="NAME|FOLDER", help_behavior_hint=AS_PRESET)] = None
    """Pretrained encoder of the systems that have one."""
    max_length: Annotated[int | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Largest number of tokens of a text that the encoder reads."""
    epochs: Annotated[float | None, arg(help_behavior_hint=AS_PRESET)] = None
    """Epochs of fine-tuning."""
    device: Annotated[str | None, arg(metavar="cpu|cuda|cuda:N", help_behavior_hint="(default: the GPU if any)")] = None
    """Device of the encoders."""
    calibrate: bool = True
    """Train without calibration: predictions are scores, and linear models hold no documents out."""
    threads: int | None = None
    """Number of threads; all cores if not given."""
    seeds: int = 1
    """Number of trainings of each system, with the random seeds 0, 1, 2, …; the table then shows mean and deviation."""
    ks: str = "1,3,5"
    """Cut-offs, separated by commas."""
    split: str = "test"
    """The split that systems are evaluated on."""
    family: Family = "default"
    """Family of data sets whose propensity constants PSP uses."""
    bootstrap: int = 1000
    """Number of resamples for the intervals."""
    max_docs: int | None = None
    """Take only this many documents from the start of each split, for a quick try."""
    run_dir: Path | None = None
    """Keep models, predictions and stages in this folder, and reuse those of earlier runs."""
    output: Annotated[Path | None, arg(metavar="DIR")] = None
    """Also write comparison.md, comparison.json, time.svg and frequency.svg into this folder."""
    json: bool = False
    """Print JSON instead of tables."""
    format: Format | None = None
    """Format of the data; detected if not given."""
    read: ReadOptions = field(default_factory=ReadOptions)

    def where_it_runs(self) -> AbstractContextManager[None]:
        """Each system is trained in a process of its own."""
        return self.engine_of_processes()

    def run(self, out: Console, show: Show) -> None:
        """Check the options, train or reuse the systems, print the tables."""
        settings = EvalSettings(ks=_cut_offs(self.ks), family=self.family, bootstrap=self.bootstrap, n_seeds=self.seeds)
        neural: dict[str, Any] = {"encoder": _given(name=self.encoder, max_length=self.max_length)}
        neural["matcher"] = _given(epochs=self.epochs, device=self.device)
        neural = {part: values for part, values in neural.items() if values}
        common = _given(threads=self.threads, calibrate=None if self.calibrate else False)
        systems = parse_systems(self.systems, neural=neural, **common)
        against = {} if self.against is None else prediction_files(self.against)
        if self.output is not None and self.output.is_file():
            raise UsageError(f"{self.output} is a file; give a folder to write into")
        if self.output is not None:
            check_writable(self.output / "comparison.json", is_file=True)
        if self.run_dir is not None:
            check_writable(self.run_dir / "runs")
        source = DataLocation(
            path=str(self.data), split=self.split, format=self.format, options=self.read, max_docs=self.max_docs
        )
        comparison = run_comparison(
            systems, source, settings=settings, run_dir=self.run_dir, against=against, on_event=show.on_event
        )
        written = [] if self.output is None else self._write(comparison, self.output, show)
        if self.json:
            out.print(json.dumps(comparison.to_dict(), indent=2, ensure_ascii=False), markup=False)
        else:
            for table in filter(None, (systems_table(comparison), differences_table(comparison))):
                _print_whole(out, table)
        if written:
            show.remark(f"written into {self.output}: {', '.join(written)}")
        if comparison.failed:
            names = ", ".join(entry.name for entry in comparison.failed)
            raise LabelwiseError(f"{len(comparison.failed)} of {len(comparison.results)} systems failed: {names}")

    def _write(self, comparison: SystemComparison, folder: Path, show: Show) -> list[str]:
        """Write the page, the metrics as JSON and the plots. Returns the names of the files."""
        with atomic_file(folder / "comparison.md") as temporary:
            temporary.write_text(comparison_markdown(comparison), encoding="utf-8")
        write_json(folder / "comparison.json", comparison.to_dict())
        written = ["comparison.md", "comparison.json"]
        try:
            written += draw(comparison, folder)
        except MissingExtraError as error:
            show.remark(f"no plots: {error}")
        return written


def draw(comparison: SystemComparison, folder: Path) -> list[str]:
    """Draw both plots of a comparison. Returns the names of the files."""
    from labelwise.metrics.buckets import describe_bucket
    from labelwise.report.comparison_page import PlotPoint, plot_frequency, plot_time

    evaluated = {entry.name: entry for entry in comparison.results if entry.evaluation is not None}
    if not evaluated:
        return []
    title = f"{comparison.data} (generated data)" if comparison.generated else comparison.data
    metric = f"P@{comparison.ks[-1]}"

    def point(score: Any) -> PlotPoint:
        return PlotPoint(score.value, score.low, score.high)

    timed = {n: (e.costs.train_s, point(e.evaluation.scores[metric])) for n, e in evaluated.items() if e.evaluation}
    plot_time(timed, folder / "time.svg", metric=metric, title=title)
    evaluations = {name: entry.evaluation for name, entry in evaluated.items() if entry.evaluation is not None}
    buckets = next(iter(evaluations.values())).buckets
    used = [name for name, bucket in buckets.items() if bucket.n_labels]
    if not used:
        return ["time.svg"]
    fewest = {name: bucket.fewest for name, bucket in buckets.items()}
    below = [f"{name}: {describe_bucket(name, fewest)}\n{buckets[name].n_labels:,} labels" for name in used]
    metric = f"R@{comparison.ks[-1]}"
    rows = {name: [point(e.buckets[bucket].scores[metric]) for bucket in used] for name, e in evaluations.items()}
    plot_frequency(rows, below, folder / "frequency.svg", metric=metric, title=title)
    return ["time.svg", "frequency.svg"]


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _cut_offs(given: str) -> tuple[int, ...]:
    try:
        return check_ks([int(part) for part in given.split(",")])
    except ValueError as err:
        if isinstance(err, LabelwiseError):
            raise
        raise UsageError(f"--ks {given}: give whole numbers separated by commas, such as 1,3,5") from err


def _print_whole(out: Console, table: Table) -> None:
    """Print a table; where the output is not a terminal, at its full width."""
    if not out.is_terminal:
        width = Measurement.get(out, out.options.update(width=1000), table).maximum
        out = SafeConsole(file=out.file, width=width)
    out.print(table)
