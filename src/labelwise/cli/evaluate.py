"""labelwise evaluate"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from rich.console import Console
from tyro.conf import Positional, arg

from labelwise.cli.columns import as_trained
from labelwise.cli.command import Command, DeviceOption, check_not_read, prepare_kernels
from labelwise.cli.engine import EngineOptions
from labelwise.cli.show import Show
from labelwise.data import Dataset, Format, ReadOptions, load_dataset, load_splits
from labelwise.errors import DataError, UsageError
from labelwise.metrics import Evaluation, Family, calibration_error, compare, evaluate
from labelwise.models.base import Model, load_model
from labelwise.models.calibrator import CALIBRATED_ON
from labelwise.predictions import Predictions, read_predictions
from labelwise.storage import check_writable


@dataclass(frozen=True, kw_only=True)
class Evaluate(EngineOptions, Command):
    """Evaluate a model or a file of predictions on a data set: P, R, nDCG, PSP and more, with intervals, by label
    frequency, and the calibration error of a model that gives probabilities.

    Try it: labelwise evaluate my-model my-data --against other-predictions.jsonl
    """

    groups: ClassVar = {
        "measures": ("ks", "family", "bootstrap", "seed", "against"),
        "where it runs": ("engine", "address"),
        "output": ("short", "output", "json", "quiet"),
    }

    predictions: Annotated[Path, Positional, arg(metavar="MODEL|PREDICTIONS")]
    """Folder of a trained model, or a file of labels with scores: .jsonl, .csv (also .gz, .xz), .parquet, or a .npz
    matrix as PECOS writes it."""
    data: Annotated[Path, Positional, arg(metavar="DATA")]
    """The data set with the true labels."""
    split: str = "test"
    """The split to evaluate on."""
    ks: tuple[int, ...] = (1, 3, 5)
    """Cut-offs."""
    against: Path | None = None
    """Another model or file of predictions, with which the first one is compared: differences, intervals, p-values."""
    family: Family = "default"
    """Family of data sets whose propensity constants PSP uses."""
    bootstrap: int = 1000
    """Number of resamples for the intervals; 0 for no intervals."""
    seed: int = 0
    """Random seed of the resampling."""
    short: bool = False
    """Print P, nDCG and PSP only; with --against only the table of differences. Files and JSON hold everything."""
    output: Path | None = None
    """Also write the metrics into this JSON file."""
    json: bool = False
    """Print JSON instead of tables."""
    format: Format | None = None
    """Format of the data; detected if not given."""
    device: DeviceOption = None
    """Device of the encoder, if the model has one."""
    read: ReadOptions = field(default_factory=ReadOptions)

    def run(self, out: Console, show: Show) -> None:
        """Read, evaluate, compare, print."""
        if not self.ks or min(self.ks) < 1:
            raise UsageError(f"--ks {' '.join(map(str, self.ks))}: give cut-offs of 1 or more, such as 1 3 5")
        if self.output is not None:
            check_writable(self.output, is_file=True)
            check_not_read(self.output, self.predictions, self.against, self.data)
        for path in filter(None, (self.predictions, self.against)):
            if not path.exists():
                raise DataError("there is no such model or file of predictions; check the spelling", path=path)
        folders = [path for path in (self.predictions, self.against) if path is not None and path.is_dir()]
        if folders:
            prepare_kernels(show)
        models = {path: load_model(path, device=self.device) for path in folders}
        truth, train = self._truth(next(iter(models.values()), None), show)
        first, error = self._evaluate(self.predictions, models, truth, train, show)
        results: dict[str, Any] = {"evaluation": first.to_dict(), **_calibration_entry(error)}
        tables = [first.table(title=self._title(self.predictions), short=self.short)]
        errors = {self.predictions.name: error}
        if self.against is not None:
            second, error = self._evaluate(self.against, models, truth, train, show)
            tables.append(second.table(title=self._title(self.against)))
            names = (self.predictions.name, self.against.name)
            difference = compare(first, second, names=names, resamples=max(self.bootstrap, 1000), seed=self.seed)
            tables = [difference.table(short=True)] if self.short else [*tables, difference.table()]
            other = {**second.to_dict(), **_calibration_entry(error)}
            results |= {"against": other, "comparison": difference.to_dict()}
            errors[self.against.name] = error
        if self.output is not None:
            from labelwise.storage import write_json

            write_json(self.output, results)
        if self.json:
            out.print(json.dumps(results, indent=2, ensure_ascii=False), markup=False)
        else:
            for table in tables:
                out.print(table)
            for name, error in errors.items():
                if error is not None:
                    size = f"{CALIBRATED_ON} labels a document, 15 bins of equal size"
                    out.print(f"{name}: calibration error {error:.2f} % ({size})", markup=False)
        if self.output is not None:
            show.remark(f"written: {self.output}")

    def _truth(self, model: Model | None, show: Show) -> tuple[Dataset, Dataset | None]:
        """The split to evaluate on, and the training split for propensities and label frequencies."""
        read = self.read
        if model is not None:
            read = as_trained(read, model, self.data, show, split=self.split, format=self.format)
        options = asdict(read)
        if self.data.is_file():
            show.remark("a single file has no training split: no PSP, no metrics by label frequency")
            return load_dataset(self.data, self.split, format=self.format, on_event=show.on_event, **options), None
        splits = load_splits(self.data, format=self.format, on_event=show.on_event, **options)
        if self.split not in splits:
            raise DataError(f"there is no split {self.split!r}; there are: {', '.join(splits)}", path=self.data)
        return splits[self.split], splits.get("train")

    def _evaluate(
        self, path: Path, models: Mapping[Path, Model], truth: Dataset, train: Dataset | None, show: Show
    ) -> tuple[Evaluation, float | None]:
        """The evaluation, and the calibration error of a calibrated model."""
        model = models.get(path)
        if model is None:
            predictions = _in_order(read_predictions(path, truth.labels, truth.ids), path, truth)
        else:
            top_k = max((*self.ks, CALIBRATED_ON))
            predictions = model.predict(model.inputs(truth), top_k, ids=truth.ids, on_event=show.on_event)
            predictions = predictions.with_labels(truth.labels)
        if len(predictions) != len(truth):
            raise DataError(
                f"there are predictions for {len(predictions)} documents but the split has {len(truth)}; "
                "give the predictions of exactly this split, in its order or with its ids",
                path=path,
            )
        evaluation = evaluate(
            truth.Y,
            predictions,
            ks=self.ks,
            Y_train=None if train is None else train.Y,
            family=self.family,
            bootstrap=self.bootstrap,
            seed=self.seed,
        )
        calibrated = model is not None and model.calibrator_ is not None
        return evaluation, calibration_error(truth.Y, predictions.top_k(CALIBRATED_ON)) if calibrated else None

    def _title(self, path: Path) -> str:
        split = "" if self.data.is_file() else f", {self.split}"
        return f"{path.name} on {self.data.resolve().name}{split}"


def _in_order(predictions: Predictions, path: Path, truth: Dataset) -> Predictions:
    """Predictions that are named by the documents' places in the file, in the order of the documents."""
    names = truth.names
    if truth.ids is not None or predictions.ids in (None, names) or set(predictions.ids or ()) != set(names):
        return predictions
    return read_predictions(path, truth.labels, names)


def _calibration_entry(error: float | None) -> dict[str, float]:
    return {} if error is None else {"calibration_error": error}
