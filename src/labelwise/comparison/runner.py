"""Comparison of systems on the same documents: each is trained or loaded, evaluated, and tested against the first."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from labelwise.comparison.measure import Costs, Outcome
from labelwise.comparison.results import METRICS, SystemComparison, SystemResult, mean_costs, pooled
from labelwise.comparison.splits import Splits
from labelwise.comparison.system import System, check_names
from labelwise.comparison.worker import DataLocation, measure_in_process
from labelwise.errors import DataError, LabelwiseError, UsageError
from labelwise.events import heard
from labelwise.metrics import Comparison, Evaluation, Family, compare, evaluate
from labelwise.predictions import Predictions, read_predictions
from labelwise.storage.run_directory import RunDirectory
from labelwise.types import OnEvent

FILES = (".jsonl", ".csv", ".parquet", ".npz", ".gz", ".xz")
"""Suffixes of files of predictions."""


@dataclass(frozen=True, kw_only=True)
class EvalSettings:
    """Settings of the evaluation of all systems."""

    ks: tuple[int, ...] = (1, 3, 5)
    family: Family = "default"
    bootstrap: int = 1000
    seed: int = 0
    """Random seed of the resampling."""
    n_seeds: int = 1
    """Number of trainings of each system, with the random seeds 0, 1, 2, …"""

    @property
    def top_k(self) -> int:
        """Number of labels that are predicted for each document."""
        return max(10, *self.ks)

    def evaluate(self, splits: Splits, predictions: Predictions) -> Evaluation:
        """The evaluation of predictions for the test documents."""
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
        """The differences of two evaluations in the metrics of the tables."""
        metrics = [f"{metric}@{k}" for metric in METRICS for k in self.ks if f"{metric}@{k}" in first.scores]
        resamples = max(self.bootstrap, 1000)
        return compare(first, second, metrics=metrics, names=names, resamples=resamples, seed=self.seed)


def run_comparison(
    systems: Sequence[System],
    source: DataLocation,
    *,
    settings: EvalSettings | None = None,
    run_dir: Path | str | None = None,
    against: Mapping[str, Path] | None = None,
    on_event: OnEvent | None = None,
) -> SystemComparison:
    """Compare systems, each of them trained in a process of its own or taken from an earlier run.

    If a system fails, its result holds the reason; the other systems are compared.

    Parameters
    ----------
    against
        Files with other systems' predictions of the same documents, by name.
    run_dir
        Folder that keeps models, predictions and stages of training for later runs; nothing is kept if not given.
    """
    settings, against = settings or EvalSettings(), against or {}
    if settings.n_seeds < 1:
        raise UsageError(f"the number of seeds is {settings.n_seeds}; it must be at least 1")
    on_event = heard(on_event)
    check_names([*(system.name for system in systems), *against])
    splits = source.read(on_event)
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(run_dir) if run_dir is not None else Path(scratch)
        with RunDirectory(folder, purpose="compare", on_event=on_event) as run:
            for number, system in enumerate(systems, 1):
                if on_event is not None:
                    on_event("remark", {"text": f"system {number} of {len(systems)}: {system.name}"})
                results.append(_system_result(system, source, splits, settings, run, on_event))
    for name, path in against.items():
        measure = partial(_file_evaluation, path, splits, settings)
        results.append(_with_evaluation(SystemResult(name=name, kind="file"), measure))
    return SystemComparison(
        data=splits.name,
        generated=splits.generated,
        ks=settings.ks,
        n_seeds=settings.n_seeds,
        results=tuple(_with_tests(results, settings)),
    )


def prediction_files(path: Path) -> dict[str, Path]:
    """Files of predictions by name: all of a folder, or a single file."""
    if path.is_file():
        files = [path]
    elif path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in FILES and file.is_file())
    else:
        raise DataError("there is no such folder or file of predictions; check the spelling", path=path)
    if not files:
        raise DataError("the folder has no file of predictions: .jsonl, .csv, .parquet or .npz", path=path)
    check_names(file.name.partition(".")[0] for file in files)
    return {file.name.partition(".")[0]: file for file in files}


def find_outcome(
    run: RunDirectory, splits: Splits, inputs: Mapping[str, Any], compute: Callable[[Path], Any]
) -> Outcome:
    """The outcome of a system from the run directory; if it is not there, `compute` writes it.

    Parameters
    ----------
    inputs
        Everything that the predictions depend on, such as `System.identity`.
    compute
        A function that writes an `Outcome` into the folder that is its argument.
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

    outcome = run.stage(
        "system", inputs=inputs, compute=computed, save=save, load=lambda path: Outcome.load(path, splits)
    )
    assert isinstance(outcome, Outcome)  # a stage always returns what was loaded
    return outcome


def _system_result(
    system: System,
    source: DataLocation,
    splits: Splits,
    settings: EvalSettings,
    run: RunDirectory,
    on_event: OnEvent | None,
) -> SystemResult:
    """The result of one system: trained with each of its random seeds, and evaluated."""

    def compute(seeded: System, folder: Path) -> None:
        # The process opens the run directory itself, and writes its events there.
        measure_in_process(seeded, source, folder, top_k=settings.top_k, run_dir=run.path, on_event=on_event)

    def measure() -> tuple[list[Evaluation], Costs]:
        outcomes = []
        for seed in range(settings.n_seeds if system.model is None else 1):
            seeded = system.with_seed(seed) if settings.n_seeds > 1 else system
            # Memory is measured only in a process of its own, so other outcomes must not be reused here.
            inputs = {**seeded.identity(splits), "top_k": settings.top_k, "alone": True}
            outcomes.append(find_outcome(run, splits, inputs, partial(compute, seeded)))
        return [settings.evaluate(splits, outcome.predictions) for outcome in outcomes], mean_costs(
            [outcome.costs for outcome in outcomes]
        )

    result = SystemResult(name=system.name, kind="trained" if system.model is None else "model")
    return _with_evaluation(result, measure)


def _file_evaluation(path: Path, splits: Splits, settings: EvalSettings) -> tuple[list[Evaluation], Costs]:
    """The evaluation of a file of predictions, whose costs are not known."""
    predictions = read_predictions(path, splits.test.labels, splits.test.ids)
    if len(predictions) != len(splits.test):
        raise DataError(
            f"there are predictions for {len(predictions)} documents but the split has {len(splits.test)}", path=path
        )
    return [settings.evaluate(splits, predictions)], Costs()


def _with_evaluation(result: SystemResult, measure: Callable[[], tuple[list[Evaluation], Costs]]) -> SystemResult:
    """The result with evaluation and costs, or with the reason of the failure."""
    try:
        evaluations, costs = measure()
    except LabelwiseError as error:
        return replace(result, error=str(error))
    seeds = tuple({name: score.value for name, score in e.scores.items()} for e in evaluations)
    return replace(result, evaluation=pooled(evaluations), seeds=seeds, costs=costs)


def _with_tests(results: Sequence[SystemResult], settings: EvalSettings) -> list[SystemResult]:
    """The results, all but the first of them with the test against the first."""
    first = results[0]
    if first.evaluation is None:
        return list(results)
    tested = [first]
    for result in results[1:]:
        test = None
        if result.evaluation is not None:
            test = settings.test(result.evaluation, first.evaluation, (result.name, first.name))
        tested.append(replace(result, against_first=test))
    return tested
