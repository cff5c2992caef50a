"""What labelwise train does with data and settings: tune, train, save, and print a summary."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from labelwise.cli.runs import megabytes
from labelwise.cli.show import Show
from labelwise.config import EnsembleConfig, LinearTreeConfig
from labelwise.config.presets import Config
from labelwise.data import Dataset
from labelwise.data.formats.annif import subject_names
from labelwise.errors import DataError
from labelwise.models.base import Model
from labelwise.models.registry import new_model
from labelwise.models.training_data import TrainingData
from labelwise.models.training_report import HoldoutResult, TrainingClock, TrainingColumns, Tuning

if TYPE_CHECKING:
    from labelwise.cli.train import Train


def fit_model(
    command: Train,
    config: Config | EnsembleConfig,
    preset: str,
    train: Dataset,
    validation: Dataset | None,
    out: Console,
    show: Show,
) -> None:
    """Tune if asked to, train, save, print a summary. The model itself holds out documents, chooses and calibrates."""
    clock, tuning = TrainingClock(), None
    if command.tune:
        config, tuning = _tune(command, config, train, validation, out, show)
        clock.restart()
    model = new_model(config)
    model.fit_dataset(train, validation, run_dir=command.run_dir, on_event=show.on_event)
    if model.role_ == "helper":
        return
    report = model.report_
    report.data, report.preset, report.tuning = command.data.resolve().name, preset, tuning or report.tuning
    if train.texts is not None:
        report.columns = TrainingColumns.of(command.read, command.rows_read)
    clock.stop(report)
    if report.members:
        out.print(_members(model))
    learnt = train.followed_by(validation) if validation is not None and config.holdout.learn_validation else train
    _finish(command, model, clock, learnt, out, show)


def _tune(
    command: Train, config: Any, train: Dataset, validation: Dataset | None, out: Console, show: Show
) -> tuple[LinearTreeConfig, Tuning]:
    """Choose settings by the held-out documents that the model will be calibrated on."""
    from labelwise.tuning.search import METRIC, tune

    if validation is None:
        data = TrainingData.of(train.documents, train.Y, config.holdout, seed=config.seed, label_names=train.labels)
        if data.holdout is None or data.holdout.rows is None or data.remaining_rows is None:
            raise DataError(f"{len(train):,} documents are too few to tune on; train without --tune", path=command.data)
        train, validation = train.take(data.remaining_rows), train.take(data.holdout.rows)
    tuning = tune(config, train, validation, run_dir=command.run_dir, on_event=show.on_event)
    out.print(tuning.table())
    for sentence in tuning.explain():
        out.print(sentence, markup=False)
    return tuning.config, Tuning(trials=len(tuning.trials), metric=METRIC)


def _members(model: Model) -> Table:
    """Metrics of each member on the held-out documents, and of the ensemble."""
    table = Table(title="the members", title_style="bold")
    table.add_column("")
    for name in ("P@1", "P@3", "P@5", "weight"):
        table.add_column(name, justify="right")

    def cells(scores: Mapping[str, float] | None) -> list[str]:
        return [f"{scores[name]:.2f}" if scores else "-" for name in ("P@1", "P@3", "P@5")]

    for number, member in enumerate(model.report_.members or (), start=1):
        weight = "dropped" if member.weight is None else f"{member.weight:.3f}"
        table.add_row(escape(f"{number}  {member.name}"), *cells(member.scores), weight)
    table.add_section()
    table.add_row("together", *cells(model.report_.held_out_scores), "")
    return table


def _finish(
    command: Train,
    model: Model,
    clock: TrainingClock,
    train: Dataset,
    out: Console,
    show: Show,
) -> None:
    """Save, with documents for later labels if asked for, and print a summary."""
    if command.growing:
        from labelwise.incremental import keep_documents

        model = keep_documents(model, train, on_event=show.on_event)
    model.subject_names_ = subject_names(command.data, model.labels_)
    model.save(command.model)
    out.print(_summary(model, command.model, time.perf_counter() - clock.begin))
    out.print(f"the model: {command.model}   its card: {command.model / 'README.md'}", markup=False)


def _summary(model: Model, path: Path, seconds: float) -> Table:
    """What was trained, in a few lines."""
    report = model.report_
    table = Table(title=escape(f"{path.name}, trained on {report.data}"), title_style="bold", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_row("documents", f"{report.documents:,}")
    for name, fact in model.facts():
        if not name.startswith("member "):  # these have a table of their own
            table.add_row(name, escape(fact))
    table.add_row("time", f"{report.seconds:.1f} s, {report.cpu_seconds:.1f} CPU s; {seconds:.1f} s in all")
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    table.add_row("size on disk", megabytes(size))
    found = report.validation
    if found is not None:
        scores = "  ".join(f"{name} {found.scores[name]:.2f}" for name in ("P@1", "P@3", "P@5", "nDCG@5"))
        table.add_row("validation", f"{scores}\n{found.documents:,} documents: {_where(found)}")
        if report.tuning is not None:
            table.add_row("", "these documents also chose the settings, so the figures are slightly too high")
        if model.calibrator_ is not None and found.calibration_error is not None:
            table.add_row("calibration error", f"{found.calibration_error:.2f} %")
    table.add_row("answers", "probabilities" if model.calibrator_ is not None else "scores, not calibrated")
    return table


def _where(found: HoldoutResult) -> str:
    if found.share is not None:
        return f"{100 * found.share:.3g} % of the data, held out"
    kinds = {
        "split": "the validation split",
        "learnt split": "the validation split, before the models learnt from it",
    }
    return kinds.get(found.kind or "", "a tenth of the data, held out")
