"""Metrics in Prometheus' text format. Only the event loop's thread changes them."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Counter:
    """A number for each combination of labels."""

    def __init__(self, name: str, about: str, labels: Sequence[str] = (), kind: str = "counter") -> None:
        self.name, self.about, self.labels, self.kind = name, about, labels, kind
        self.values: dict[tuple[str, ...], float] = {}

    def add(self, *labels: str, by: float = 1.0) -> None:
        """Increase the number."""
        self.values[labels] = self.values.get(labels, 0.0) + by

    def set(self, *labels: str, to: float) -> None:
        """Set the number, for a gauge."""
        self.values[labels] = to

    def lines(self) -> Iterator[str]:
        """The exposition."""
        yield from _head(self.name, self.about, self.kind)
        for values, number in self.values.items():
            yield f"{self.name}{_labels(self.labels, values)} {number:.12g}"


class Histogram:
    """Counts of values by bucket, for each value of one label."""

    def __init__(self, name: str, about: str, label: str, bounds: Sequence[float]) -> None:
        self.name, self.about, self.label, self.bounds = name, about, label, bounds
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def observe(self, label: str, value: float) -> None:
        """Count a value."""
        counts = self._counts.setdefault(label, [0] * (len(self.bounds) + 1))
        counts[bisect_left(self.bounds, value)] += 1
        self._sums[label] = self._sums.get(label, 0.0) + value

    def lines(self) -> Iterator[str]:
        """The exposition."""
        yield from _head(self.name, self.about, "histogram")
        bounds = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
        for label, counts in self._counts.items():
            for bound, count in zip(bounds, accumulate(counts), strict=True):
                yield f"{self.name}_bucket{_labels((self.label, 'le'), (label, bound))} {count}"
            yield f"{self.name}_sum{_labels((self.label,), (label,))} {self._sums[label]:.12g}"
            yield f"{self.name}_count{_labels((self.label,), (label,))} {sum(counts)}"


class ServerMetrics:
    """All metrics of a server."""

    def __init__(self) -> None:
        self.requests = Counter("labelwise_requests_total", "Requests answered.", ("method", "path", "status"))
        self.seconds = Histogram("labelwise_request_seconds", "From request to answer.", "path", SECONDS)
        self.texts = Counter("labelwise_texts_total", "Texts that were given labels.", ("model",))
        self.batches = Histogram("labelwise_batch_texts", "Texts predicted together.", "model", SIZES)
        self.predicting = Histogram("labelwise_predict_seconds", "Time of a batch in the model.", "model", SECONDS)
        self.refused = Counter("labelwise_refused_total", "Requests refused, by reason.", ("code",))
        self.reloads = Counter("labelwise_reloads_total", "New versions loaded, or not.", ("model", "outcome"))
        self.waiting = Counter("labelwise_queue_texts", "Texts in the queue.", ("model",), "gauge")
        self.versions = Counter("labelwise_model_info", "The version that answers.", ("model", "version"), "gauge")
        self.memory = Counter("process_resident_memory_bytes", "Memory in use.", (), "gauge")
        self.cpu = Counter("process_cpu_seconds_total", "Processor time used.")

    def text(self) -> str:
        """The exposition of all metrics."""
        self.cpu.set(to=time.process_time())
        resident = resident_bytes()
        if resident is not None:
            self.memory.set(to=resident)
        return "\n".join(line for metric in vars(self).values() for line in metric.lines()) + "\n"


def resident_bytes() -> int | None:
    """Resident memory of this process from /proc; None on systems without /proc."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def _head(name: str, about: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    if not names:
        return ""
    escaped = (value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for value in values)
    return "{" + ",".join(f'{name}="{value}"' for name, value in zip(names, escaped, strict=True)) + "}"
