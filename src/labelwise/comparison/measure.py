"""One system, measured: its predictions, and what they cost."""

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
from labelwise.errors import StorageError
from labelwise.models.linear_tree import LinearTree
from labelwise.models.registry import model_class
from labelwise.predictions import Predictions
from labelwise.types import Csr, OnEvent

_KIND = "predictions"
_TO_WARM_UP = 200


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What a system takes; None where it was not measured."""

    train_s: float | None = None
    """Wall seconds of training, those of stages that were found in the run directory included."""
    train_cpu_s: float | None = None
    """CPU seconds of the same, of all threads."""
    found_s: float = 0.0
    """How many of the wall seconds were spent before, on stages that were found."""
    predict_ms: float | None = None
    """Wall milliseconds for each of the documents, predicted together."""
    predict_cpu_ms: float | None = None
    peak_mib: float | None = None
    """Most memory of the process in training and prediction, with the data in it."""
    gpu_peak_mib: float | None = None
    """Most memory that torch held on the GPU."""
    model_mb: float | None = None
    """Size of the saved model."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """Predictions with their costs, as they lie in a run directory."""

    predictions: Predictions
    """Laid over the labels of the test documents."""
    costs: Costs
    model: Path | None = None
    """Folder of the model that predicted, where it was kept."""

    def save(self, folder: Path) -> None:
        """Write a folder that `load` reads, or add to it."""
        folder.mkdir(parents=True, exist_ok=True)
        found = self.predictions
        n_known = len(found.labels) if found.n_known is None else found.n_known
        about = {"n_known": n_known, "unknown": list(found.labels[n_known:])}
        storage.save(folder / "predictions", kind=_KIND, config=about, matrices={"Y_pred": found.matrix})
        storage.write_json(folder / "costs.json", self.costs)

    @classmethod
    def load(cls, folder: Path, splits: Splits) -> Self:
        """Read what `save` wrote, for the same test documents."""
        saved = storage.load(folder / "predictions", kind=_KIND)
        labels, n_known = splits.test.labels, saved.config["n_known"]
        matrix = saved.matrices["Y_pred"]
        if n_known != len(labels) or matrix.shape[0] != len(splits.test):
            raise StorageError(f"{folder} holds predictions of other documents; make them again")
        known = {field.name for field in fields(Costs)}
        costs = {name: value for name, value in storage.read_json(folder / "costs.json").items() if name in known}
        names = [*labels, *saved.config["unknown"]]
        model = folder / "model" if (folder / "model").is_dir() else None
        return cls(predictions=Predictions(matrix, names, splits.test.ids, n_known), costs=Costs(**costs), model=model)


class Clock:
    """Wall and CPU seconds of some work, and those that found stages of it had taken before.

    >>> clock = Clock(on_event)
    >>> model.fit(texts, Y, run_dir=run_dir, on_event=clock.on_event)
    >>> clock.seconds()
    """

    def __init__(self, listener: OnEvent | None = None) -> None:
        self._listener = listener
        self._seen: set[str] = set()
        self.found_s = self.found_cpu_s = 0.0
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def on_event(self, name: str, values: Mapping[str, Any]) -> None:
        """Listen to the stages, and pass everything on."""
        fresh = name == "stage" and values["folder"] not in self._seen
        if fresh:
            self._seen.add(values["folder"])
        if fresh and values["found"]:
            about = storage.read_json(Path(values["folder"]) / "stage.json")
            self.found_s += about["seconds"]
            self.found_cpu_s += about["cpu_seconds"]
        if self._listener is not None:
            self._listener(name, values)

    def spent(self) -> tuple[float, float]:
        """Wall and CPU seconds since it was made."""
        return time.perf_counter() - self._wall, time.process_time() - self._cpu

    def costs(self) -> Costs:
        """The same with what found stages had taken, as costs of training."""
        wall, cpu = self.spent()
        return Costs(train_s=wall + self.found_s, train_cpu_s=cpu + self.found_cpu_s, found_s=self.found_s)


def measure_system(
    system: System,
    splits: Splits,
    folder: Path,
    *,
    top_k: int,
    run_dir: Path | None,
    keep_model: bool = False,
    weigh: bool = True,
    on_event: OnEvent | None = None,
) -> Costs:
    """Train or load, predict, and write an `Outcome` into a folder; with `keep_model` the model beside it.

    A model that is not kept is saved and removed again to learn its size, unless not even that is wanted (`weigh`).

    Memory is not measured here: that is for a process that does nothing else (`labelwise.comparison.worker`).
    """
    if system.model is None:
        _warm_up(system, splits)
    reset_gpu_peak()
    clock = Clock(on_event)
    model = system.make(splits, run_dir=run_dir, on_event=clock.on_event)
    if system.model is None:
        costs = clock.costs()
    else:
        report = model.report_
        costs = Costs(train_s=report.seconds, train_cpu_s=report.cpu_seconds)
    test = splits.test
    few = test.take(np.arange(min(8, len(test))))
    model.predict(model.inputs(few), top_k=top_k)  # what a first call has to load is not the documents' fault
    clock = Clock()
    predictions = model.predict(model.inputs(test), top_k=top_k, ids=test.ids, on_event=on_event)
    wall, cpu = clock.spent()
    n_docs = max(len(test), 1)
    costs = replace(costs, predict_ms=1000 * wall / n_docs, predict_cpu_ms=1000 * cpu / n_docs)
    size = _model_size(system, model, folder, keep_model) if keep_model or weigh else None
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
    """Megabytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def _warm_up(system: System, splits: Splits) -> None:
    """Have numba's kernels loaded, or compiled, and torch imported before time is taken."""
    config = system.config.warm_up()
    for one in system.trained():
        model_class(one.config.kind)
    few = splits.train.take(np.arange(min(_TO_WARM_UP, len(splits.train))))
    used = np.unique(few.Y.indices)
    if len(used):
        index = replace(config.index, n_clusters=None)
        documents = few.documents
        settings = replace(config, index=index, holdout=HoldoutConfig(calibrate=False))
        model = LinearTree(settings).fit(documents, Csr(few.Y[:, used]))
        model.predict(documents[:8])


def reset_gpu_peak() -> None:
    """Forget what earlier work held on the GPU."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def gpu_peak_mib() -> float | None:
    """Most memory that torch held on the GPU; None without one."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    return float(torch.cuda.max_memory_allocated() / 2**20)
