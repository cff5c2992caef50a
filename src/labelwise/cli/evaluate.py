"""labelwise evaluate"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from labelwise.cli.command import Command
from labelwise.cli.show import Show
from labelwise.data import Dataset, Format, ReadOptions, load_dataset, load_splits
from labelwise.errors import DataError
from labelwise.metrics import Evaluation, Family, compare, evaluate
from labelwise.predictions import read_predictions


@dataclass(frozen=True, kw_only=True)
class Evaluate(Command):
    """Score a file of predictions against a data set: P, R, nDCG, PSP and more, with intervals, by label frequency.

    Try it: labelwise evaluate predictions.jsonl my-data --against other.jsonl
    """

    predictions: Annotated[Path, Positional, arg(metavar="PREDICTIONS")]
    """Predicted labels with scores: .jsonl, .csv (also .gz, .xz), .parquet, or a .npz matrix as PECOS writes it."""
    data: Annotated[Path, Positional, arg(metavar="DATA")]
    """The data set with the true labels."""
    split: str = "test"
    """The split that was predicted."""
    ks: tuple[int, ...] = (1, 3, 5)
    """Cut-offs."""
    against: Path | None = None
    """Another system's predictions: tests every difference between the two."""
    family: Family = "default"
    """Whose propensity constants PSP uses."""
    bootstrap: int = 1000
    """Resamples behind the intervals; 0 for none."""
    seed: int = 0
    """Seed of the resampling."""
    output: Path | None = None
    """Also write the figures into this JSON file."""
    json: bool = False
    """Print JSON instead of tables."""
    format: Format | None = None
    """The data's format; found by looking if not given."""
    read: ReadOptions = field(default_factory=ReadOptions)

    def run(self, out: Console, show: Show) -> None:
        """Read, score, compare, print."""
        truth, train = self._truth(show)
        first = self._evaluate(self.predictions, truth, train)
        results = {"evaluation": first.to_dict()}
        tables = [first.table(title=f"{self.predictions.name} on {self.data.resolve().name}, {self.split}")]
        if self.against is not None:
            second = self._evaluate(self.against, truth, train)
            tables.append(second.table(title=f"{self.against.name} on {self.data.resolve().name}, {self.split}"))
            names = (self.predictions.name, self.against.name)
            difference = compare(first, second, names=names, resamples=max(self.bootstrap, 1000), seed=self.seed)
            tables.append(difference.table())
            results |= {"against": second.to_dict(), "comparison": difference.to_dict()}
        if self.json:
            out.print(json.dumps(results, indent=2, ensure_ascii=False), markup=False)
        else:
            for table in tables:
                out.print(table)
        if self.output is not None:
            from labelwise.storage import write_json

            write_json(self.output, results)
            show.remark(f"written: {self.output}")

    def _truth(self, show: Show) -> tuple[Dataset, Dataset | None]:
        """The split that was predicted, and the training split for propensities and label frequencies."""
        options = asdict(self.read)
        if self.data.is_file():
            show.remark("a single file has no training split: no PSP, no figures by label frequency")
            return load_dataset(self.data, self.split, format=self.format, on_event=show.on_event, **options), None
        splits = load_splits(self.data, format=self.format, on_event=show.on_event, **options)
        if self.split not in splits:
            raise DataError(f"there is no split {self.split!r}; there are: {', '.join(splits)}", path=self.data)
        return splits[self.split], splits.get("train")

    def _evaluate(self, path: Path, truth: Dataset, train: Dataset | None) -> Evaluation:
        predictions = read_predictions(path, truth.labels, truth.ids)
        if len(predictions) != len(truth):
            raise DataError(
                f"there are predictions for {len(predictions)} documents but the split has {len(truth)}; "
                "give the predictions of exactly this split, in its order or with its ids",
                path=path,
            )
        return evaluate(
            truth.Y,
            predictions,
            ks=self.ks,
            Y_train=None if train is None else train.Y,
            family=self.family,
            bootstrap=self.bootstrap,
            seed=self.seed,
        )
