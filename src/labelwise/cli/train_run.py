"""What labelwise train does for each kind of model, from data to summary."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from labelwise.cli.runs import megabytes
from labelwise.cli.show import Show
from labelwise.config import EnsembleConfig, LinearTreeConfig, XTransformerConfig
from labelwise.data import Dataset, split_validation
from labelwise.errors import DataError
from labelwise.models.base import Model
from labelwise.models.calibrator import MIN_DOCUMENTS
from labelwise.models.ensemble import Ensemble
from labelwise.models.holdout import Validation, read_documents, validate
from labelwise.models.linear_tree import LinearTree
from labelwise.models.training_report import HoldoutResult, TrainingReport, Tuning

if TYPE_CHECKING:
    from labelwise.cli.train import Train
    from labelwise.models.xtransformer import XTransformer

TENTH = 0.1
"""Share of the training documents that is set aside where there is no validation split."""


class _TrainingClock:
    """Seconds since the command began, and those of the training that counts."""

    def __init__(self) -> None:
        self.begin = time.perf_counter()
        self.restart()

    def restart(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def stop(self, report: TrainingReport) -> None:
        """Note the seconds since `restart`, and the date."""
        report.seconds, report.cpu_seconds = time.perf_counter() - self.wall, time.process_time() - self.cpu
        report.trained = datetime.now(UTC).date().isoformat()


# ---------------------------------------------------------------------- linear


def fit_linear(
    command: Train,
    config: LinearTreeConfig,
    preset: str,
    train: Dataset,
    validation: Dataset | None,
    out: Console,
    show: Show,
) -> None:
    """Tune, train, validate, save, tell."""
    clock = _TrainingClock()
    kind = "split" if validation is not None else "tenth"
    rest = train
    if validation is None and (command.calibrate or command.tune):
        rest, validation = _set_aside(train, config, show)
    tuning = None
    if command.tune:
        if validation is None:
            raise DataError(f"too few documents to tune on: {len(train)}; train without --tune", path=command.data)
        config, tuning = _tune(command, config, rest, validation, out, show)

    def fitted(documents: Dataset) -> LinearTree:
        return LinearTree(config).fit(
            read_documents(documents),
            documents.Y,
            label_names=documents.labels,
            run_dir=command.run_dir,
            on_event=show.on_event,
        )

    validated = None
    if command.learn_validation and validation is not None:
        kind, train = "learnt split", train.followed_by(validation)
    if kind != "split" and validation is not None and (command.calibrate or kind == "learnt split"):
        show.remark(f"training without {len(validation):,} documents first, to see what scores mean")
        validated = validate(fitted(rest), validation, on_event=show.on_event)
        show.remark(f"training on all {len(train):,} documents")
    clock.restart()
    model = fitted(train)
    report = model.report_
    report.data, report.preset, report.tuning = command.data.resolve().name, preset, tuning
    clock.stop(report)
    if kind == "split" and validation is not None:
        validated = validate(model, validation, on_event=show.on_event)
    if validated is not None:
        report.validation = validated.result(kind=kind)
        if command.calibrate:
            _calibrate(model, validated, show)
    _finish(command, model, clock, _linear_rows(model), train, out, show)


def _set_aside(train: Dataset, config: LinearTreeConfig, show: Show) -> tuple[Dataset, Dataset | None]:
    """A tenth of the training documents, unless that would be too few to learn anything from."""
    if len(train) * TENTH >= MIN_DOCUMENTS:
        rest, aside = split_validation(train, TENTH, seed=config.seed)
        if len(aside) >= MIN_DOCUMENTS:
            return rest, aside
    show.remark(
        f"there is no validation split, and a tenth of {len(train):,} documents is too few to calibrate on "
        f"(fewer than {MIN_DOCUMENTS}): the model will give scores, no probabilities"
    )
    return train, None


def _tune(
    command: Train, config: LinearTreeConfig, train: Dataset, validation: Dataset, out: Console, show: Show
) -> tuple[LinearTreeConfig, Tuning]:
    from labelwise.tuning.search import METRIC, tune

    tuning = tune(config, train, validation, run_dir=command.run_dir, on_event=show.on_event)
    out.print(tuning.table())
    for sentence in tuning.explain():
        out.print(sentence, markup=False)
    return tuning.config, Tuning(trials=len(tuning.trials), metric=METRIC)


def _calibrate(model: LinearTree, validated: Validation, show: Show) -> None:
    model.calibrator_ = validated.calibrator
    if validated.reason is not None:
        show.remark(f"the model gives scores, no probabilities: {validated.reason}")


def _linear_rows(model: LinearTree) -> Iterator[tuple[str, str]]:
    tree, n_trees = model.trees_[0].tree, len(model.trees_)
    trees = f", in each of {n_trees} trees" if n_trees > 1 else ""
    yield "labels", f"{len(model.labels_):,} in {tree.n_clusters:,} clusters{trees}"
    yield "features", f"{model.n_features_:,}"


# ---------------------------------------------------------------------- X-Transformer


def fit_transformer(
    command: Train,
    config: XTransformerConfig,
    preset: str,
    train: Dataset,
    validation: Dataset | None,
    out: Console,
    show: Show,
) -> None:
    """Train, which chooses and calibrates by itself; save, tell. Other processes only help to fine-tune."""
    from labelwise.models.xtransformer import XTransformer

    clock, model = _TrainingClock(), XTransformer(config)
    if _fit_itself(command, model, preset, train, validation, clock, show):
        _finish(command, model, clock, model.facts(), train, out, show)


def _fit_itself(
    command: Train,
    model: XTransformer | Ensemble,
    preset: str,
    train: Dataset,
    validation: Dataset | None,
    clock: _TrainingClock,
    show: Show,
) -> bool:
    """Fit a model that chooses and calibrates by itself; whether this is the process that has it then."""
    documents: Any = read_documents(train)  # X-Transformer was refused before, where there are no texts
    model.fit(
        documents,
        train.Y,
        label_names=train.labels,
        label_texts=train.label_texts,
        validation=validation,
        run_dir=command.run_dir,
        on_event=show.on_event,
    )
    if not hasattr(model, "labels_"):
        return False
    model.report_.data, model.report_.preset = command.data.resolve().name, preset
    clock.stop(model.report_)
    if command.calibrate and model.calibrator_ is None:
        show.remark("there were too few held-out documents to calibrate on: the model gives scores, no probabilities")
    return True


# ---------------------------------------------------------------------- ensembles


def fit_ensemble(
    command: Train,
    config: EnsembleConfig,
    preset: str,
    train: Dataset,
    validation: Dataset | None,
    out: Console,
    show: Show,
) -> None:
    """Train all members, which choose and calibrate together; save, tell. Other processes only help to fine-tune."""
    clock, model = _TrainingClock(), Ensemble(config)
    if _fit_itself(command, model, preset, train, validation, clock, show):
        rows = ((name, what) for name, what in model.facts() if not name.startswith("member "))
        out.print(_members(model))
        _finish(command, model, clock, rows, train, out, show)


def _members(model: Ensemble) -> Table:
    """What each member is worth on the held-out documents, and all together."""
    table = Table(title="the members", title_style="bold")
    table.add_column("")
    for name in ("P@1", "P@3", "P@5", "weight"):
        table.add_column(name, justify="right")

    def cells(scores: Mapping[str, float] | None) -> list[str]:
        return [f"{scores[name]:.2f}" if scores else "-" for name in ("P@1", "P@3", "P@5")]

    for number, member in enumerate(model.report_.members or (), start=1):
        weight = "dropped" if member.weight is None else f"{member.weight:.3f}"
        table.add_row(f"{number}  {member.name}", *cells(member.scores), weight)
    table.add_section()
    table.add_row("together", *cells(model.report_.held_out_scores), "")
    return table


# ---------------------------------------------------------------------- all


def _finish(
    command: Train,
    model: Model,
    clock: _TrainingClock,
    rows: Iterator[tuple[str, str]],
    train: Dataset,
    out: Console,
    show: Show,
) -> None:
    """Save, with documents for labels to come if asked for, and print a summary."""
    if command.growing:
        from labelwise.incremental import keep_documents

        model = keep_documents(model, train, on_event=show.on_event)
    model.save(command.model)
    out.print(_summary(model, command.model, rows, time.perf_counter() - clock.begin))
    out.print(f"the model: {command.model}   its card: {command.model / 'README.md'}", markup=False)


def _summary(model: Model, path: Path, rows: Iterator[tuple[str, str]], seconds: float) -> Table:
    """What was trained, in a few lines."""
    report = model.report_
    table = Table(title=f"{path.name}, trained on {report.data}", title_style="bold", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    table.add_row("documents", f"{report.documents:,}")
    for row in rows:
        table.add_row(*row)
    table.add_row("time", f"{report.seconds:.1f} s, {report.cpu_seconds:.1f} CPU s; {seconds:.1f} s in all")
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    table.add_row("size on disk", megabytes(size))
    found = report.validation
    if found is not None:
        scores = "  ".join(f"{name} {found.scores[name]:.2f}" for name in ("P@1", "P@3", "P@5", "nDCG@5"))
        table.add_row("validation", f"{scores}\n{found.documents:,} documents: {_where(found)}")
        if report.tuning is not None:
            table.add_row("", "they also chose the settings, so these figures flatter a little")
        if model.calibrator_ is not None and found.calibration_error is not None:
            table.add_row("calibration error", f"{found.calibration_error:.2f} %")
    table.add_row("answers", "probabilities" if model.calibrator_ is not None else "scores, not calibrated")
    return table


def _where(found: HoldoutResult) -> str:
    if found.share is not None:
        return f"{100 * found.share:g} % of the data, held out"
    kinds = {"split": "the validation split", "learnt split": "the validation split, before it was learnt from too"}
    return kinds.get(found.kind or "", "a tenth of the data, held out")
