"""How a system is measured, labelwise and peers alike: seconds, memory, sizes and the quality of its labels.

Only numpy and scipy are imported, so that the module works in the environments of all systems.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

Answer = TypeVar("Answer")
MATRICES = ("X.trn", "Y.trn", "X.tst", "Y.tst")
"""Files of a folder of features (.npz): features and 0/1 labels of the training and the test documents."""
TOP_K = 10
"""Labels that every system predicts for a document."""
SLOW_S = 20.0
"""A call that takes longer is not repeated."""


class Recorder:
    """Collects the figures of one run, in the order in which they are measured."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.figures: dict[str, Any] = {}
        self._quiet = quiet

    @contextlib.contextmanager
    def timed(self, key: str) -> Iterator[None]:
        """Record the wall seconds and the CPU seconds of all threads."""
        with silenced() if self._quiet else contextlib.nullcontext():
            wall, cpu = time.perf_counter(), time.process_time()
            yield
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        self.figures |= {f"{key}_s": round(wall, 3), f"{key}_cpu_s": round(cpu, 3)}

    def best_of(self, key: str, repeat: int, call: Callable[[], Answer]) -> Answer:
        """Record the fastest of some calls; returns the answer of the last one."""
        runs: list[tuple[float, float]] = []
        while len(runs) < repeat:
            with self.timed(key):
                answer = call()
            runs.append((self.figures[f"{key}_s"], self.figures[f"{key}_cpu_s"]))
            if runs[-1][0] > SLOW_S:
                break
        self.figures[f"{key}_s"], self.figures[f"{key}_cpu_s"] = min(runs)
        return answer

    def latency(self, queries: Sequence[Any], call: Callable[[Any], object]) -> None:
        """Record the median and the 99th percentile of calls with one query each, in milliseconds."""
        taken = []
        with silenced() if self._quiet else contextlib.nullcontext():
            for query in queries[:20]:  # caches are warm before the clock runs
                call(query)
            for query in queries:
                begin = time.perf_counter()
                call(query)
                taken.append(1000 * (time.perf_counter() - begin))
        for name, share in (("p50", 50), ("p99", 99)):
            self.figures[f"query_{name}_ms"] = round(float(np.percentile(taken, share)), 3)

    def memory(self, key: str) -> None:
        """Record the highest memory of the process so far, in MiB."""
        self.figures[f"rss_{key}_mib"] = peak_rss_mib()

    def per_document(self, n_docs: int) -> None:
        """Record the milliseconds that one thread takes for a document of the test set."""
        self.figures["predict_ms_per_doc"] = round(1000 * self.figures["predict_1thr_s"] / n_docs, 4)


def peak_rss_mib() -> float:
    """The highest memory of this process so far, in MiB."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


def folder_mb(folder: Path) -> float:
    """Size of the files below a folder, in MB (10^6 bytes)."""
    return round(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6, 2)


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Discard what is printed, by compiled code too, which writes to the file descriptors themselves."""
    with contextlib.ExitStack() as stack:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        stack.callback(os.close, nowhere)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for descriptor in (1, 2):
            saved = os.dup(descriptor)
            stack.callback(os.close, saved)
            stack.callback(os.dup2, saved, descriptor)
            os.dup2(nowhere, descriptor)
        yield


# ---------------------------------------------------------------------- data


def read_features(folder: Path) -> tuple[sp.csr_matrix, ...]:
    """X and Y of the training documents, X and Y of the test documents, float32 with sorted columns."""
    found = []
    for name in MATRICES:
        file = folder / f"{name}.npz"
        if not file.is_file():
            sys.exit(f"there is no {file}; make it with: python benchmarks/peers/make_features.py DATA {folder}")
        matrix = sp.csr_matrix(sp.load_npz(file), dtype=np.float32)
        matrix.sort_indices()
        found.append(matrix)
    X, Y, X_test, Y_test = found
    if X.shape[0] != Y.shape[0] or X_test.shape[0] != Y_test.shape[0]:
        sys.exit(f"features and labels in {folder} are of different numbers of documents")
    if X.shape[1] != X_test.shape[1] or Y.shape[1] != Y_test.shape[1]:
        sys.exit(f"training and test matrices in {folder} have different numbers of columns")
    return X, Y, X_test, Y_test


def describe(folder: Path, X: sp.csr_matrix, Y: sp.csr_matrix, X_test: sp.csr_matrix) -> dict[str, Any]:
    """The data's name and sizes, and how busy the machine is."""
    return {
        "data": folder.resolve().name,
        "train_docs": X.shape[0],
        "test_docs": X_test.shape[0],
        "features": X.shape[1],
        "labels": Y.shape[1],
        "load_average": round(os.getloadavg()[0], 2),
    }


# ---------------------------------------------------------------------- quality


def best_labels(scores: sp.csr_matrix) -> list[np.ndarray]:
    """Label ids of each row of scores, the best first."""
    rows = zip(scores.indptr[:-1], scores.indptr[1:], strict=True)
    return [scores.indices[a:b][np.argsort(-scores.data[a:b], kind="stable")] for a, b in rows]


def quality(found: Iterable[Sequence[int]], Y: sp.csr_matrix, Y_train: sp.csr_matrix) -> dict[str, float]:
    """P, R and PSP at 1, 3, 5 and nDCG@5 in percent, as `labelwise.metrics` defines them.

    Parameters
    ----------
    found
        (n_docs,) lists of label ids, the best first.
    Y
        (n_docs, n_labels) true labels.
    Y_train
        (n_train_docs, n_labels) labels of the training documents, whose frequencies give the propensities.
    """
    n_docs, weights = Y.shape[0], inverse_propensity(Y_train)
    discount = 1 / np.log2(np.arange(2, 7))
    sums = dict.fromkeys((*(f"{name}@{k}" for name in ("P", "R") for k in (1, 3, 5)), "nDCG@5"), 0.0)
    gained, possible = dict.fromkeys((1, 3, 5), 0.0), dict.fromkeys((1, 3, 5), 0.0)
    for row, ids in enumerate(found):
        true = Y.indices[Y.indptr[row] : Y.indptr[row + 1]]
        hits = np.isin(np.asarray(ids[:5], dtype=np.int64), true)
        heaviest = np.sort(weights[true])[::-1]
        for k in (1, 3, 5):
            right = int(hits[:k].sum())
            sums[f"P@{k}"] += right / k
            sums[f"R@{k}"] += right / max(len(true), 1)
            gained[k] += float(weights[np.asarray(ids[:k], dtype=np.int64)[hits[:k]]].sum())
            possible[k] += float(heaviest[:k].sum())
        if len(true):
            sums["nDCG@5"] += float(discount[: len(hits)][hits].sum() / discount[: len(true)].sum())
    result = {name: 100 * value / n_docs for name, value in sums.items()}
    result |= {f"PSP@{k}": 100 * gained[k] / possible[k] for k in (1, 3, 5)}
    return {name: round(value, 2) for name, value in result.items()}


def inverse_propensity(Y_train: sp.csr_matrix) -> np.ndarray:
    """Weight of each label, larger for a rare one (Jain et al. 2016, A = 0.55, B = 1.5)."""
    n_docs, n_labels = Y_train.shape
    frequency = np.bincount(Y_train.indices, minlength=n_labels)
    a, b = 0.55, 1.5
    return 1 + (np.log(n_docs) - 1) * (1 + b) ** a / (frequency + b) ** a
