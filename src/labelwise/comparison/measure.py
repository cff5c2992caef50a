"""Measurement of one system: its predictions, and their costs in time, memory and disk space."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from labelwise import storage
from labelwise.comparison.splits import Splits
from labelwise.comparison.system import System
from labelwise.config import HoldoutConfig
from labelwise.engines import cpu_seconds
from labelwise.errors import StorageError
from labelwise.models.linear_tree import LinearTree
from labelwise.models.registry import model_class
from labelwise.predictions import Predictions
from labelwise.types import Csr, OnEvent

_KIND = "predictions"
_WARM_UP_DOCS = 200


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Costs of a system; None where a cost was not measured."""

    train_s: float | None = None
    """Wall seconds of training, including those of stages that were found in the run directory."""
    train_cpu_s: float | None = None
    """CPU seconds of training on all threads, including those of found stages."""
    found_s: float = 0.0
    """The part of `train_s` that earlier runs spent on found stages."""
    predict_ms: float | None = None
    """Wall milliseconds for one document, where all documents are predicted together."""
    predict_cpu_ms: float | None = None
    """CPU milliseconds for one document."""
    peak_mib: float | None = None
    """Peak memory of the process in training and prediction, including the data."""
    gpu_peak_mib: float | None = None
    """Peak memory that torch allocated on the GPU."""
    model_mb: float | None = None
    """Size of the saved model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """Predictions with their costs, as a run directory keeps them."""

    predictions: Predictions
    """Predictions over the labels of the test documents."""
    costs: Costs
    model: Path | None = None
    """Folder of the model, if it was kept."""

    def save(self, folder: Path) -> None:
        """Write predictions and costs into a folder, which may exist."""
        folder.mkdir(parents=True, exist_ok=True)
        predictions = self.predictions
        n_known = len(predictions.labels) if predictions.n_known is None else predictions.n_known
        about = {"n_known": n_known, "unknown": list(predictions.labels[n_known:])}
        storage.save(folder / "predictions", kind=_KIND, config=about, matrices={"Y_pred": predictions.matrix})
        storage.write_json(folder / "costs.json", self.costs)

    @classmethod
    def load(cls, folder: Path, splits: Splits) -> Self:
        """Read a folder that `save` wrote for these test documents."""
        saved = storage.load(folder / "predictions", kind=_KIND)
        labels, n_known = splits.test.labels, saved.config["n_known"]
        matrix = saved.matrices["Y_pred"]
        if n_known != len(labels) or matrix.shape[0] != len(splits.test):
            raise StorageError(f"{folder} holds predictions of other documents; predict again")
        known = {field.name for field in fields(Costs)}
        costs = {name: value for name, value in storage.read_json(folder / "costs.json").items() if name in known}
        names = [*labels, *saved.config["unknown"]]
        model = folder / "model" if (folder / "model").is_dir() else None
        return cls(predictions=Predictions(matrix, names, splits.test.ids, n_known), costs=Costs(**costs), model=model)


class TrainingTimer:
    """Wall and CPU seconds of a training, to which the seconds of stages found in the run directory are added.

    >>> timer = TrainingTimer(on_event)
    >>> model.fit(texts, Y, run_dir=run_dir, on_event=timer.on_event)
    >>> timer.costs()
    """

    def __init__(self, listener: OnEvent | None = None) -> None:
        self._listener = listener
        self._stages: set[str] = set()
        self.found_s = self.found_cpu_s = 0.0
        self._wall, self._cpu = time.perf_counter(), cpu_seconds()

    def on_event(self, name: str, values: Mapping[str, Any]) -> None:
        """Add the seconds of a found stage, once for each stage; pass every event on to the listener."""
        first = name == "stage" and values["folder"] not in self._stages
        if first:
            self._stages.add(values["folder"])
        if first and values["found"]:
            stage = storage.read_json(Path(values["folder"]) / "stage.json")
            self.found_s += stage["seconds"]
            self.found_cpu_s += stage["cpu_seconds"]
        if self._listener is not None:
            self._listener(name, values)

    def elapsed(self) -> tuple[float, float]:
        """Wall and CPU seconds since the timer was created."""
        return time.perf_counter() - self._wall, cpu_seconds() - self._cpu

    def costs(self) -> Costs:
        """The costs of training so far, including found stages."""
        wall, cpu = self.elapsed()
        return Costs(train_s=wall + self.found_s, train_cpu_s=cpu + self.found_cpu_s, found_s=self.found_s)


def measure_system(
    system: System,
    splits: Splits,
    folder: Path,
    *,
    top_k: int,
    run_dir: Path | None,
    keep_model: bool = False,
    measure_size: bool = True,
    on_event: OnEvent | None = None,
) -> Costs:
    """Train or load a system, predict the test documents, and write an `Outcome` into a folder. Returns the costs.

    With `keep_model` the folder also gets the model. Otherwise the model is saved to a temporary folder for its size,
    unless `measure_size` is false.

    Memory is not measured here, since the process may hold other things: see `labelwise.comparison.worker`.
    """
    if system.model is None:
        _warm_up(system, splits)
    reset_gpu_peak()
    timer = TrainingTimer(on_event)
    model = system.model_for(splits, run_dir=run_dir, on_event=timer.on_event)
    if system.model is None:
        costs = timer.costs()
    else:
        report = model.report_
        costs = Costs(train_s=report.seconds, train_cpu_s=report.cpu_seconds)
    test = splits.test
    first_docs = test.take(np.arange(min(8, len(test))))
    model.predict(model.inputs(first_docs), top_k=top_k)  # what a first call has to load is not the documents' fault
    timer = TrainingTimer()
    predictions = model.predict(model.inputs(test), top_k=top_k, ids=test.ids, on_event=on_event)
    wall, cpu = timer.elapsed()
    n_docs = max(len(test), 1)
    costs = replace(costs, predict_ms=1000 * wall / n_docs, predict_cpu_ms=1000 * cpu / n_docs)
    size = _model_size(system, model, folder, keep_model) if keep_model or measure_size else None
    costs = replace(costs, gpu_peak_mib=gpu_peak_mib(), model_mb=size)
    Outcome(predictions=predictions.with_labels(test.labels), costs=costs).save(folder)
    return costs


def _model_size(system: System, model: Any, folder: Path, keep: bool) -> float:
    if system.model is not None:
        return folder_mb(Path(system.model))
    if keep:
        model.save(folder / "model")
        return folder_mb(folder / "model")
    with tempfile.TemporaryDirectory() as scratch:
        model.save(Path(scratch) / "model")
        return folder_mb(Path(scratch) / "model")


def folder_mb(folder: Path) -> float:
    """Size of all files of a folder in megabytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def _warm_up(system: System, splits: Splits) -> None:
    """Load or compile the kernels and import torch, so that this is not part of the measured time."""
    config = system.config.warm_up()
    for one in system.trained():
        model_class(one.config.kind)
    first_docs = splits.train.take(np.arange(min(_WARM_UP_DOCS, len(splits.train))))
    used = np.unique(first_docs.Y.indices)
    if len(used):
        index = replace(config.index, n_clusters=None)
        documents = first_docs.documents
        settings = replace(config, index=index, holdout=HoldoutConfig(calibrate=False))
        model = LinearTree(settings).fit(documents, Csr(first_docs.Y[:, used]))
        model.predict(documents[:8])


def reset_gpu_peak() -> None:
    """Start to measure peak memory on the GPU from the memory that is allocated now."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def gpu_peak_mib() -> float | None:
    """Peak memory that torch allocated on the GPU; None without a GPU."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    return float(torch.cuda.max_memory_allocated() / 2**20)
