"""Parts that the scripts of the paper's tables share: options, encoders, rows with intervals, tests, markdown and JSON.

All rows are trained in this process, one after the other, so that data are read once and a GPU is set up once. Finished
stages of the run directory are reused. So times in these results are less exact than those of `labelwise compare`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))  # where labelwise is not installed
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from encoders import EncoderChoice
from output import machine, partial_file, print_event, say
from settings import add_settings, neural_settings

from labelwise.comparison.measure import Costs, Outcome, measure_system
from labelwise.comparison.runner import EvalSettings, find_outcome
from labelwise.comparison.splits import Splits
from labelwise.comparison.system import System
from labelwise.config import HoldoutConfig, LinearTreeConfig
from labelwise.data import ReadOptions
from labelwise.errors import LabelwiseError, UsageError
from labelwise.metrics import Comparison, Evaluation
from labelwise.metrics.evaluation import plain_figures
from labelwise.metrics.intervals import interval
from labelwise.predictions import Predictions
from labelwise.storage import write_json
from labelwise.storage.run_directory import RunDirectory

TOP_K = 20
"""Number of labels that are predicted for each document: ensembles need more than the five that count."""


# ---------------------------------------------------------------------- options


def parser_of(doc: str | None, *, data: str | None = "one", encoders: bool = True) -> argparse.ArgumentParser:
    """The options of all scripts; `data` is the number of data sets: "one", "many" or None."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if data is not None:
        parser.add_argument("data", type=Path, **({"nargs": "+"} if data == "many" else {}))
    parser.add_argument(
        "--run-dir", type=Path, help="run directory: finished stages and predictions are kept and reused"
    )
    parser.add_argument("--json", type=Path, help="write the results into this file")
    parser.add_argument("--most", type=int, help="number of documents of each split, for a trial of the script")
    if encoders:
        parser.add_argument(
            "--encoders",
            default="minilm,gte-small,mpnet",
            help="instead of BERT, RoBERTa, XLNet: names of encoders.toml, or NAME=FOLDER, by commas",
        )
        parser.add_argument("--preset", default="x-transformer", help="settings of X-Transformer, such as eurlex-4k")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--threads", type=int)
        parser.add_argument("--bootstrap", type=int, default=1000, help="number of resamples for the intervals")
        add_settings(parser)
    return parser


def run_script(main: Callable[[], None]) -> None:
    """Run a script; an error in its input ends it with one sentence."""
    try:
        main()
    except LabelwiseError as error:
        sys.exit(f"{Path(sys.argv[0]).name}: {error}")


def read_options() -> ReadOptions:
    """Options for real data, which have several documents with the same id."""
    return ReadOptions()


# ---------------------------------------------------------------------- rows


@dataclass
class Row:
    """A line of a table."""

    name: str
    columns: dict[str, str] = field(default_factory=dict)
    """The configuration, by column."""
    evaluation: Evaluation | None = None
    """None if the row was not run."""
    costs: Costs | None = None
    predictions: Predictions | None = None
    note: str | None = None
    """The reason why the row was not run, or a remark."""

    def to_dict(self, metrics: Sequence[str]) -> dict[str, Any]:
        """The row as plain data."""
        values: dict[str, Any] = {"name": self.name, **self.columns, "run": self.evaluation is not None}
        if self.evaluation is not None:
            values["scores"] = plain_figures({metric: self.evaluation.scores[metric] for metric in metrics})
            values["tail"] = {
                name: plain_figures({metric: bucket.scores[metric] for metric in metrics if metric in bucket.scores})
                for name, bucket in self.evaluation.buckets.items()
            }
        if self.costs is not None:
            values["costs"] = {name: value for name, value in asdict(self.costs).items() if value is not None}
        if self.note is not None:
            values["note"] = self.note
        return values


class Experiment(ExitStack):
    """Data, run directory and evaluation of one script; a context manager."""

    def __init__(
        self, options: argparse.Namespace, *, ks: tuple[int, ...] = (1, 3, 5), data: Path | None = None
    ) -> None:
        super().__init__()
        self.options = options
        self._done: list[dict[str, Any]] = []
        self.settings = EvalSettings(ks=ks, bootstrap=options.bootstrap)
        self.path = Path(options.data if data is None else data)
        self.splits = Splits.read(self.path, options=read_options(), max_docs=options.most, on_event=print_event)
        place = options.run_dir or Path(self.enter_context(TemporaryDirectory()))
        self.run = self.enter_context(RunDirectory(place, purpose=Path(sys.argv[0]).stem, on_event=print_event))

    def metrics(self, *names: str) -> list[str]:
        """Names of metrics with cut-offs: P@1, P@3, P@5, R@1, … for P and R."""
        return [f"{name}@{k}" for name in names for k in self.settings.ks]

    def linear(self, preset: str) -> System:
        """A linear preset as a system, trained once on all training documents, as published: none are held out."""
        settings = {"seed": self.options.seed, "threads": self.options.threads, "calibrate": False}
        return System(name=preset, preset=preset, settings=settings)

    def neural(self, name: str, encoder: EncoderChoice, preset: str | None = None, **changes: Any) -> System:
        """X-Transformer or another preset with an encoder, with the options of the command line and further changes."""
        settings = neural_settings(self.options, self.splits.name)
        settings = {**settings, "seed": self.options.seed, "threads": self.options.threads, **changes}
        settings["encoder"] = {**settings["encoder"], **encoder.settings}
        given = settings["matcher"].get("learning_rate")
        if given is not None and encoder.learning_rate is not None:
            settings["matcher"] = {**settings["matcher"], "learning_rate": min(given, encoder.learning_rate)}
        return System(name=name, preset=preset or self.options.preset, settings=settings)

    def ensemble(self, name: str, members: Sequence[System], **settings: Any) -> System:
        """The `Ensemble` of labelwise: trained together, with weights that held-out documents choose."""
        holdout = HoldoutConfig(learn_validation=bool(self.options.learn_validation))
        settings = {"seed": self.options.seed, "threads": self.options.threads, "holdout": holdout, **settings}
        return System(name=name, members=tuple(members), settings=settings)

    def row(self, system: System, *, keep_model: bool = False, **columns: str) -> tuple[Row, Outcome | None]:
        """Train a system, or reuse its predictions; the row reports a failure."""
        splits, learns = self.splits, self.options.learn_validation
        if learns and isinstance(system.config, LinearTreeConfig):  # models with an encoder do this in fit
            if splits.validation is None:
                raise UsageError(f"--learn-validation: {splits.name} has no validation split; leave it out")
            splits = replace(splits, train=splits.train.followed_by(splits.validation))

        def compute(folder: Path) -> None:
            options: dict[str, Any] = {"top_k": TOP_K, "run_dir": self.run.path, "on_event": print_event}
            measure_system(system, splits, folder, keep_model=keep_model, measure_size=False, **options)

        say(f"{system.name} …")
        inputs = {**system.identity(splits), "top_k": TOP_K, "kept": keep_model}
        return self._found(system.name, partial(find_outcome, self.run, splits, inputs, compute), columns)

    def special(
        self, name: str, inputs: Mapping[str, Any], compute: Callable[[], tuple[Predictions, Costs]], **columns: str
    ) -> Row:
        """A row that is not a preset: `compute` returns predictions and costs, kept under `inputs` and the data."""

        def write(folder: Path) -> None:
            predictions, costs = compute()
            Outcome(predictions=predictions.with_labels(self.splits.test.labels), costs=costs).save(folder)

        say(f"{name} …")
        everything = {**inputs, "row": name, "learnt": self.splits.learnt, "judged": self.splits.judged, "top_k": TOP_K}
        return self._found(name, partial(find_outcome, self.run, self.splits, everything, write), columns)[0]

    def evaluated(self, name: str, predictions: Predictions, costs: Costs | None = None, **columns: str) -> Row:
        """A row with the evaluation of given predictions."""
        evaluation = self.settings.evaluate(self.splits, predictions)
        row = Row(name, columns, evaluation, costs, predictions)
        say(f"{name}: " + "  ".join(f"{metric} {evaluation[metric]:.2f}" for metric in self.metrics("P")))
        if self.options.json is not None:  # a script that is interrupted leaves its finished rows
            self._done.append(row.to_dict(self.metrics("P", "R", "PSP")))
            write_json(partial_file(self.options.json), {**self.about(), "rows": self._done})
        return row

    def _found(self, name: str, find: Callable[[], Outcome], columns: dict[str, str]) -> tuple[Row, Outcome | None]:
        try:
            outcome = find()
        except (LabelwiseError, RuntimeError, MemoryError) as error:  # a full GPU is a RuntimeError
            reason = str(error).strip().partition("\n")[0]
            say(f"{name} failed: {reason}")
            return Row(name, columns, note=f"failed: {reason}"), None
        return self.evaluated(name, outcome.predictions, outcome.costs, **columns), outcome

    def test(self, first: Row, second: Row) -> Comparison | None:
        """First minus second on the same documents; None if one of them was not run."""
        if first.evaluation is None or second.evaluation is None:
            return None
        return self.settings.test(first.evaluation, second.evaluation, (first.name, second.name))

    def about(self) -> dict[str, Any]:
        """Data, settings and machine, for the results file."""
        splits, options = self.splits, self.options
        return {
            "data": splits.name,
            "generated": splits.generated,
            "documents": {
                "train": len(splits.train),
                "validation": None if splits.validation is None else len(splits.validation),
                "test": len(splits.test),
            },
            "labels": splits.train.n_labels,
            "trial on documents": options.most,
            "options": {name: str(value) for name, value in vars(options).items() if value is not None},
            "machine": machine(),
        }


def combine_rows(experiment: Experiment, name: str, rows: Sequence[Row], rule: str, **columns: str) -> Row:
    """An ensemble of several rows: their rankings are combined by a rule, with equal weights."""
    from labelwise.models.ensemble.rules import combine

    lists = [row.predictions for row in rows]
    if not rows or any(found is None for found in lists):
        missing = ", ".join(row.name for row in rows if row.predictions is None)
        return Row(name, columns, note=f"not run: it needs {missing or 'members'}")
    labels = experiment.splits.test.labels
    matrices = [found.matrix[:, : len(labels)] for found in lists if found is not None]
    matrix = combine(matrices, rule, weights=np.ones(len(matrices)), depth=TOP_K, over="probabilities", top_k=TOP_K)
    costs = [row.costs for row in rows if row.costs is not None]
    return experiment.evaluated(name, Predictions(matrix, labels, experiment.splits.test.ids), summed(costs), **columns)


def summed(costs: Sequence[Costs]) -> Costs:
    """The sum of the costs of members that are trained separately."""
    values = {}
    for name in ("train_s", "train_cpu_s", "predict_ms", "predict_cpu_ms", "model_mb"):
        given = [getattr(cost, name) for cost in costs]
        values[name] = None if any(value is None for value in given) else sum(given)
    return Costs(**values)


def relative(
    first: Evaluation, second: Evaluation, metric: str, *, resamples: int = 1000, seed: int = 0
) -> dict[str, float]:
    """Improvement of the first over the second in percent, with the 95 % interval of the paired bootstrap."""
    parts = []
    for evaluation in (first, second):
        above, below = evaluation.contributions.place["", metric]
        columns = evaluation.contributions.columns
        parts.append((columns[above].astype(np.float64), columns[below].astype(np.float64)))

    def gain(weights: Any) -> float:
        ours, theirs = ((weights @ above) / (weights @ below) for above, below in parts)
        return float(100 * (ours / theirs - 1)) if theirs > 0 else float("nan")

    n_docs, rng = first.n_docs, np.random.default_rng(seed)
    drawn = np.empty(resamples)
    for number in range(resamples):
        drawn[number] = gain(np.bincount(rng.integers(n_docs, size=n_docs), minlength=n_docs).astype(np.float64))
    low, high = interval(drawn)
    return {"percent": gain(np.ones(n_docs)), "low": low, "high": high}


def improvements(row: Row, anchor: Row | None, metrics: list[str]) -> dict[str, Any] | None:
    """Improvement over Parabel in percent, by metric."""
    if anchor is None or row.evaluation is None or anchor.evaluation is None or row is anchor:
        return None
    return {metric: relative(row.evaluation, anchor.evaluation, metric) for metric in metrics}
