"""labelwise report"""

from __future__ import annotations

import contextlib
import io
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, cast

from rich.console import Console
from tyro.conf import Positional, arg

from labelwise.cli.columns import as_trained
from labelwise.cli.command import Command
from labelwise.cli.show import Show
from labelwise.data import Dataset, Format, ReadOptions, load_dataset, load_splits
from labelwise.errors import DataError, LabelwiseError, StorageError, UsageError
from labelwise.models.base import load_model
from labelwise.report.record import RunRecord, read_records
from labelwise.report.write import write_report
from labelwise.storage import check_writable

RECORDED = "(default: as labelwise train recorded it)"


@dataclass(frozen=True, kw_only=True)
class Report(Command):
    """Write an HTML page about a run: data, label tree, training curves, metrics, calibration, best and worst labels,
    examples with their errors, time and memory. Any browser opens it, without network and without a server.

    The run is the latest one in the directory, or the one that trained the given model: labelwise train --run-dir
    records model and data.

    Try it: labelwise report my-run
    """

    directory: Annotated[Path, Positional, arg(metavar="RUN_DIR")]
    """The run directory of the training (--run-dir)."""
    model: Annotated[Path | None, arg(metavar="MODEL", help_behavior_hint=RECORDED)] = None
    """The model that the run trained."""
    data: Annotated[Path | None, arg(metavar="DATA", help_behavior_hint=RECORDED)] = None
    """The data: a folder of splits, or a file of test documents."""
    split: str = "test"
    """The split that the model is evaluated on."""
    output: Annotated[Path | None, arg(help_behavior_hint="(default: report.html in the run directory)")] = None
    """The page to write; an existing page is replaced."""
    bootstrap: int = 1000
    """Number of resamples for the intervals; 0 for no intervals."""
    seed: int = 0
    """Random seed of the resampling and of the drawn examples."""
    format: Format | None = None
    """Format of the data; detected if not given."""
    read: ReadOptions = field(default_factory=ReadOptions)

    def run(self, out: Console, show: Show) -> None:
        """Find run, model and data, evaluate the model, write the page."""
        output = self.output or self.directory / "report.html"
        if output.is_dir():
            raise UsageError(f"{output} is a folder; give a file to write, such as {output / 'report.html'}")
        check_writable(output, is_file=True)
        record, data, model = self._find(show)
        if model is not None and not model.is_dir():
            raise StorageError(f"{model} is not a model; give a folder that was written by labelwise train")
        splits, generated = (None, False) if data is None else self._read(data, model, show)
        name = (model or self.directory).resolve().name
        on_data = "" if data is None else f" on {data.resolve().name}" + (" (generated data)" if generated else "")
        page = write_report(
            self.directory,
            output,
            model=model,
            data=splits,
            split=self.split,
            record=record,
            title=f"{name}{on_data}",
            generated=generated,
            bootstrap=self.bootstrap,
            seed=self.seed,
            on_event=show.on_event,
        )
        out.print(f"the report: {page} ({page.stat().st_size / 1e3:,.0f} kB)", markup=False)

    def _find(self, show: Show) -> tuple[RunRecord, Path | None, Path | None]:
        """The run with its data and its model: as given, or as the recorded command says."""
        records = read_records(self.directory)
        for record in reversed(records):
            recorded = _data_and_model(record)
            if recorded is None:
                continue
            data, model = recorded
            if self.model is not None and self.model.resolve() != model.resolve():
                continue
            if self.model is None and not model.is_dir():
                show.remark(f"the run trained the model {model}, which does not exist; pass --model if it was moved")
            if self.data is None and not data.exists():
                show.remark(f"the run was trained on {data}, which does not exist; pass --data if it was moved")
            return (
                record,
                self.data or (data if data.exists() else None),
                self.model or (model if model.is_dir() else None),
            )
        if self.model is None or self.data is None:
            show.remark("the run does not record model and data: pass --model and --data")
        return records[-1], self.data, self.model

    def _read(self, data: Path, model: Path | None, show: Show) -> tuple[dict[str, Dataset], bool]:
        """The splits. A single file is the training split if the run recorded it, the split to evaluate on if given."""
        if not data.exists():
            raise DataError("there is no such file or folder; check the spelling", path=data)
        read = self.read
        if model is not None:
            read = as_trained(read, load_model(model), data, show, split=self.split, format=self.format)
        options = {"format": self.format, "on_event": show.on_event, **asdict(read)}
        if data.is_dir():
            splits = load_splits(data, **options)
            if self.split not in splits and self.split != "test":
                raise DataError(f"there is no split {self.split!r}; there are: {', '.join(splits)}", path=data)
            return dict(splits), (data / "shop.json").is_file()
        name = self.split if self.data is not None else "train"
        return {name: load_dataset(data, name, **options)}, False


def _data_and_model(record: RunRecord) -> tuple[Path, Path] | None:
    """Data and model of a recorded `labelwise train`; None if the run was another command."""
    if not record.command or record.command[0] != "train":
        return None
    from labelwise.cli import parse
    from labelwise.cli.train import Train

    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            command = cast(Train, parse("train", record.command[1:]))
    except (LabelwiseError, SystemExit):  # options of another version of labelwise
        return None
    return record.folder / command.data, record.folder / command.model
