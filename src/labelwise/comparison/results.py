"""Results of a comparison: of each system, of all of them together, and means over random seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from statistics import fmean, stdev
from typing import Any, Literal

import numpy as np

from labelwise.comparison.measure import Costs
from labelwise.metrics import Comparison, Evaluation, Score
from labelwise.metrics.intervals import Contributions, bootstrap_intervals

METRICS = ("P", "R", "nDCG", "PSP")
"""Metrics of the tables; an evaluation holds more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SystemResult:
    """The result of one system: its evaluation and its costs, or the reason of its failure."""

    name: str
    kind: Literal["trained", "model", "file"]
    evaluation: Evaluation | None = None
    """Over several seeds, the evaluation of their mean; None if the system failed."""
    seeds: tuple[Mapping[str, float], ...] = ()
    """Metrics of each seed, by name."""
    costs: Costs = field(default_factory=Costs)
    """Means over the seeds."""
    against_first: Comparison | None = None
    """This system minus the first one; None for the first one itself, and if one of the two failed."""
    error: str | None = None

    def deviation(self, metric: str) -> float | None:
        """The standard deviation of a metric over the seeds, that of a sample; None for a single seed."""
        return stdev(seed[metric] for seed in self.seeds) if len(self.seeds) > 1 else None

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values for JSON."""
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
    """The results of all systems on one data set."""

    data: str
    generated: bool
    ks: tuple[int, ...]
    n_seeds: int
    results: tuple[SystemResult, ...]

    @property
    def failed(self) -> list[SystemResult]:
        """The results of the systems that failed."""
        return [result for result in self.results if result.error is not None]

    def metrics(self) -> list[str]:
        """Names of the metrics that the tables show."""
        scores = next((result.evaluation.scores for result in self.results if result.evaluation is not None), {})
        return [f"{metric}@{k}" for metric in METRICS for k in self.ks if f"{metric}@{k}" in scores]

    def to_dict(self) -> dict[str, Any]:
        """All results as plain values for JSON."""
        about = {"data": self.data, "generated": self.generated, "ks": list(self.ks), "seeds": self.n_seeds}
        return {**about, "systems": [result.to_dict() for result in self.results]}


def pooled(evaluations: Sequence[Evaluation]) -> Evaluation:
    """The mean of several evaluations on the same documents, such as those of one system's seeds, with intervals.

    The contributions of each document are averaged, so that intervals and tests are those of the mean over the seeds.
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
    """The mean of each cost that all of them have."""
    values: dict[str, Any] = {}
    for cost in fields(Costs):
        given = [getattr(one, cost.name) for one in costs]
        values[cost.name] = None if any(value is None for value in given) else fmean(given)
    return Costs(**values)
