"""Systems on the same documents: trained or found, evaluated, each tested against the first."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal

import numpy as np

from labelwise.comparison.measure import Costs, Outcome
from labelwise.comparison.splits import Splits
from labelwise.comparison.system import System, check_names
from labelwise.comparison.worker import DataLocation, measure_alone
from labelwise.errors import DataError, LabelwiseError, UsageError
from labelwise.metrics import Comparison, Evaluation, Family, Score, compare, evaluate
from labelwise.metrics.intervals import Contributions, bootstrap_intervals
from labelwise.predictions import Predictions, read_predictions
from labelwise.storage.run_directory import RunDirectory
from labelwise.types import OnEvent

METRICS = ("P", "R", "nDCG", "PSP")
"""What the tables show; an evaluation holds more."""
FILES = (".jsonl", ".csv", ".parquet", ".npz", ".gz", ".xz")
"""How files of predictions end."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SystemResult:
    """One system of the table."""

    name: str
    kind: Literal["trained", "model", "file"]
    evaluation: Evaluation | None = None
    """Over several seeds, that of their mean; None if the system failed."""
    seeds: tuple[Mapping[str, float], ...] = ()
    """Figures of each seed, by name."""
    costs: Costs = field(default_factory=Costs)
    """The mean over seeds."""
    against_first: Comparison | None = None
    """This system minus the first; None for the first itself, and where one of both failed."""
    error: str | None = None

    def deviation(self, metric: str) -> float | None:
        """How far seeds lie apart: the standard deviation of a sample; None for a single one."""
        return stdev(seed[metric] for seed in self.seeds) if len(self.seeds) > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        values: dict[str, Any] = {"name": self.name, "kind": self.kind, "costs": asdict(self.costs)}
        if self.error is not None:
            return {**values, "error": self.error}
        values["evaluation"] = None if self.evaluation is None else self.evaluation.to_dict()
        if len(self.seeds) > 1:
            values["seeds"] = [dict(seed) for seed in self.seeds]
            values["deviation"] = {metric: self.deviation(metric) for metric in self.seeds[0]}
        if self.against_first is not None:
            values["against_first"] = self.against_first.to_dict()
        return values


@dataclass(frozen=True, kw_only=True, eq=False)
class SystemComparison:
    """What `run_contest` found."""

    data: str
    generated: bool
    ks: tuple[int, ...]
    n_seeds: int
    entries: tuple[SystemResult, ...]

    @property
    def failed(self) -> list[SystemResult]:
        """The systems that did not make it."""
        return [entry for entry in self.entries if entry.error is not None]

    def metrics(self) -> list[str]:
        """Names of the figures that the tables show."""
        there = next((entry.evaluation.scores for entry in self.entries if entry.evaluation is not None), {})
        return [f"{metric}@{k}" for metric in METRICS for k in self.ks if f"{metric}@{k}" in there]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        about = {"data": self.data, "generated": self.generated, "ks": list(self.ks), "seeds": self.n_seeds}
        return {**about, "systems": [entry.to_dict() for entry in self.entries]}


@dataclass(frozen=True, kw_only=True)
class EvalSettings:
    """How systems are judged."""

    ks: tuple[int, ...] = (1, 3, 5)
    family: Family = "default"
    bootstrap: int = 1000
    seed: int = 0
    """Of the resampling."""
    n_seeds: int = 1
    """Trainings of each system, from seeds 0, 1, 2, …"""

    @property
    def top_k(self) -> int:
        """How many labels of a document are predicted."""
        return max(10, *self.ks)

    def judge(self, splits: Splits, predictions: Predictions) -> Evaluation:
        """All figures of some predictions."""
        return evaluate(
            splits.test.Y,
            predictions,
            ks=self.ks,
            Y_train=splits.Y_train,
            family=self.family,
            bootstrap=self.bootstrap,
            seed=self.seed,
        )

    def test(self, first: Evaluation, second: Evaluation, names: tuple[str, str]) -> Comparison:
        """The differences in what the tables show."""
        metrics = [f"{metric}@{k}" for metric in METRICS for k in self.ks if f"{metric}@{k}" in first.scores]
        resamples = max(self.bootstrap, 1000)
        return compare(first, second, metrics=metrics, names=names, resamples=resamples, seed=self.seed)


def run_contest(
    systems: Sequence[System],
    source: DataLocation,
    *,
    settings: EvalSettings | None = None,
    run_dir: Path | str | None = None,
    against: Mapping[str, Path] | None = None,
    on_event: OnEvent | None = None,
) -> SystemComparison:
    """Train every system in a process of its own, or find what an earlier run left, and compare them.

    Parameters
    ----------
    against
        Files with other systems' predictions of the same documents, by name.
    run_dir
        Where models, predictions and the stages of training are kept and found again; nothing is kept if not given.

    A system that fails has its reason in its entry; the others go on.
    """
    settings, against = settings or EvalSettings(), against or {}
    if settings.n_seeds < 1:
        raise UsageError(f"the number of seeds is {settings.n_seeds}; it must be at least 1")
    check_names([*(system.name for system in systems), *against])
    splits = source.read(on_event)
    entries = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(run_dir) if run_dir is not None else Path(scratch)
        with RunDirectory(folder, purpose="compare", on_event=on_event) as run:
            for number, system in enumerate(systems, 1):
                if on_event is not None:
                    on_event("remark", {"text": f"system {number} of {len(systems)}: {system.name}"})
                entries.append(_entry(system, source, splits, settings, run, on_event))
    for name, path in against.items():
        make = partial(_read_file, path, splits, settings)
        entries.append(_told(SystemResult(name=name, kind="file"), make))
    return SystemComparison(
        data=splits.name,
        generated=splits.generated,
        ks=settings.ks,
        n_seeds=settings.n_seeds,
        entries=tuple(_tested(entries, settings)),
    )


def prediction_files(place: Path) -> dict[str, Path]:
    """Files of predictions by their names: those in a folder, or a single one."""
    if place.is_file():
        files = [place]
    elif place.is_dir():
        files = sorted(file for file in place.iterdir() if file.suffix in FILES and file.is_file())
    else:
        raise DataError("there is no such folder or file of predictions; check the spelling", path=place)
    if not files:
        raise DataError("no file of predictions is there: .jsonl, .csv, .parquet or .npz", path=place)
    check_names(file.name.partition(".")[0] for file in files)
    return {file.name.partition(".")[0]: file for file in files}


def find_outcome(
    run: RunDirectory, splits: Splits, inputs: Mapping[str, Any], compute: Callable[[Path], Any]
) -> Outcome:
    """What a system predicts: found in the run directory, or written into a folder by `compute`, and kept.

    Parameters
    ----------
    inputs
        All that the predictions depend on, such as `System.identity`.
    compute
        Writes an `Outcome` into the folder that it is given.
    """

    def computed() -> Outcome | Path:
        folder = run.scratch("system", inputs)
        shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
        folder.mkdir(parents=True)
        try:
            compute(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    def save(folder: Outcome | Path, path: Path) -> None:
        shutil.move(str(folder), str(path))

    found = run.stage(
        "system", inputs=inputs, compute=computed, save=save, load=lambda path: Outcome.load(path, splits)
    )
    assert isinstance(found, Outcome)  # what is returned was always loaded
    return found


def _entry(
    system: System,
    source: DataLocation,
    splits: Splits,
    settings: EvalSettings,
    run: RunDirectory,
    on_event: OnEvent | None,
) -> SystemResult:
    """Train a system from each of its seeds, and judge it."""

    def measured(seeded: System, folder: Path) -> None:
        # The process has the run directory open itself, and writes its events there.
        measure_alone(seeded, source, folder, top_k=settings.top_k, run_dir=run.path, on_event=on_event)

    def make() -> tuple[list[Evaluation], Costs]:
        outcomes = []
        for seed in range(settings.n_seeds if system.model is None else 1):
            seeded = system.with_seed(seed) if settings.n_seeds > 1 else system
            # Memory is measured in a process of its own only: what was measured otherwise is no substitute.
            inputs = {**seeded.identity(splits), "top_k": settings.top_k, "alone": True}
            outcomes.append(find_outcome(run, splits, inputs, partial(measured, seeded)))
        return [settings.judge(splits, outcome.predictions) for outcome in outcomes], mean_costs(
            [outcome.costs for outcome in outcomes]
        )

    return _told(SystemResult(name=system.name, kind="trained" if system.model is None else "model"), make)


def _read_file(path: Path, splits: Splits, settings: EvalSettings) -> tuple[list[Evaluation], Costs]:
    predictions = read_predictions(path, splits.test.labels, splits.test.ids)
    if len(predictions) != len(splits.test):
        raise DataError(
            f"there are predictions for {len(predictions)} documents but the split has {len(splits.test)}", path=path
        )
    return [settings.judge(splits, predictions)], Costs()


def _told(entry: SystemResult, make: Callable[[], tuple[list[Evaluation], Costs]]) -> SystemResult:
    """The entry with its figures, or with what went wrong."""
    try:
        evaluations, costs = make()
    except LabelwiseError as error:
        return replace(entry, error=str(error))
    seeds = tuple({name: score.value for name, score in e.scores.items()} for e in evaluations)
    return replace(entry, evaluation=pooled(evaluations), seeds=seeds, costs=costs)


def _tested(entries: Sequence[SystemResult], settings: EvalSettings) -> list[SystemResult]:
    """Every system but the first tested against it."""
    first = entries[0]
    if first.evaluation is None:
        return list(entries)
    tested = [first]
    for entry in entries[1:]:
        found = None
        if entry.evaluation is not None:
            found = settings.test(entry.evaluation, first.evaluation, (entry.name, first.name))
        tested.append(replace(entry, against_first=found))
    return tested


def pooled(evaluations: Sequence[Evaluation]) -> Evaluation:
    """The mean of evaluations of the same documents, such as several seeds' of one system, with intervals of the mean.

    The documents' contributions are averaged, so that tests see what the mean of the seeds does with each document.
    """
    first = evaluations[0]
    if len(evaluations) == 1:
        return first
    columns = np.stack([evaluation.contributions.columns for evaluation in evaluations]).mean(axis=0, dtype=np.float64)
    contributions = Contributions(np.asarray(columns, np.float32), first.contributions.place)
    bootstrap, seed = first.settings["bootstrap"], first.settings["seed"]
    intervals = bootstrap_intervals(contributions, bootstrap, seed) if bootstrap else {}

    def mean(bucket: str, scores: Sequence[Mapping[str, Score]]) -> dict[str, Score]:
        return {
            name: Score(fmean(part[name].value for part in scores), *intervals.get((bucket, name), (None, None)))
            for name in scores[0]
        }

    buckets = {
        name: replace(bucket, scores=mean(name, [evaluation.buckets[name].scores for evaluation in evaluations]))
        for name, bucket in first.buckets.items()
    }
    scores = mean("", [evaluation.scores for evaluation in evaluations])
    return replace(first, scores=scores, buckets=buckets, contributions=contributions)


def mean_costs(costs: Sequence[Costs]) -> Costs:
    """Mean of each figure that all have."""
    values: dict[str, Any] = {}
    for figure in fields(Costs):
        given = [getattr(one, figure.name) for one in costs]
        values[figure.name] = None if any(value is None for value in given) else fmean(given)
    return Costs(**values)
