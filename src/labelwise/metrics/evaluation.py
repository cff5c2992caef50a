"""Evaluation: all metrics of one system, with intervals, in total and by label frequency."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from labelwise.config.settings import Count, Range, Seed, checked_value
from labelwise.errors import DataError, UsageError
from labelwise.metrics.buckets import BUCKETS, assign_buckets, check_buckets
from labelwise.metrics.intervals import Contributions, Key, bootstrap_intervals, collect
from labelwise.metrics.propensity import Family, family_constants, inverse_propensity
from labelwise.metrics.relevance import (
    MarkedPredictions,
    Scored,
    check_ks,
    checked_truth,
    count_labels,
    mark_predictions,
)
from labelwise.metrics.tally import METRICS, RATIOS, Ratio, count_by_label, tally_gains
from labelwise.predictions import Predictions
from labelwise.predictions.notebook import html_table
from labelwise.storage import write_json
from labelwise.types import Csr, Floats, Ints

if TYPE_CHECKING:
    from rich.table import Table


logger = logging.getLogger(__name__)
TRAINED_ON = 0.5
"""With this share of documents that the model was trained on, an evaluation says so."""
Resamples = Annotated[int, Range(at_least=0)]
"""A number of resamples; 0 for no intervals."""


@dataclass(frozen=True)
class Score:
    """The value of a metric in percent; nan where there was nothing to measure."""

    value: float
    low: float | None = None
    high: float | None = None
    """The 95 % interval, where the metric has one."""


@dataclass(frozen=True)
class Bucket:
    """The figures of the labels in one range of training frequency."""

    fewest: int
    """Least number of training documents of the bucket's labels."""
    n_labels: int
    """Number of the bucket's labels that occur in the truth."""
    n_docs: int
    """Number of documents that have at least one of these labels."""
    scores: dict[str, Score]


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """The result of `evaluate`. ``evaluation["P@1"]`` is a figure in percent, ``.table()`` shows all of them."""

    n_docs: int
    n_labels: int
    ks: tuple[int, ...]
    threshold: float | None
    scores: dict[str, Score]
    """Figures by name: "P@1", "PSP@5", "micro-F1@3", and "micro-F1>=0.5" for a threshold."""
    buckets: dict[str, Bucket]
    """The figures by label frequency, the most frequent labels first; empty without training counts."""
    settings: dict[str, Any]
    """Constants that the figures depend on: family, a, b, bootstrap, seed."""
    truth: str
    """Hash of the truth, by which two evaluations of the same documents are recognised."""
    contributions: Contributions = field(repr=False)
    """The contribution of each document to each metric, for paired tests; not saved."""

    def __repr__(self) -> str:
        figures = ", ".join(f"{name} {self.scores[name].value:.2f}" for name in self._main())
        return f"Evaluation({self.n_docs:,} documents, {self.n_labels:,} labels: {figures})"

    def _main(self) -> list[str]:
        """Names of the figures that say most: P at every cut-off, nDCG at the last."""
        wanted = [*(f"P@{k}" for k in self.ks[:3]), f"nDCG@{self.ks[-1]}"]
        return [name for name in wanted if name in self.scores]

    def _repr_html_(self) -> str:
        """A small table of the figures over all labels, for notebooks."""
        suffixes = [f"@{k}" for k in self.ks]
        if self.threshold is not None:
            suffixes.append(f">={self.threshold:g}")
        rows = []
        for metric in METRICS:
            found = [self.scores.get(metric + suffix) for suffix in suffixes]
            if any(found):
                rows.append((metric, *("" if one is None else _figure(one.value) for one in found)))
        caption = f"{self.n_docs:,} documents, {self.n_labels:,} labels; percent"
        return html_table(("", *suffixes), rows, caption)

    def __getitem__(self, name: str) -> float:
        if name not in self.scores:
            raise KeyError(f"{name!r} was not measured; there are {', '.join(self.scores)}")
        return self.scores[name].value

    def to_dict(self) -> dict[str, Any]:
        """Everything but the documents' contributions, ready for JSON; nan becomes None."""
        return {
            "n_docs": self.n_docs,
            "n_labels": self.n_labels,
            "ks": list(self.ks),
            "threshold": self.threshold,
            "scores": plain_figures(self.scores),
            "buckets": {
                name: {**asdict(bucket), "scores": plain_figures(bucket.scores)}
                for name, bucket in self.buckets.items()
            },
            "settings": dict(self.settings),
            "truth": self.truth,
        }

    def save(self, path: Path | str) -> None:
        """Write `to_dict` as JSON; the file appears whole or not at all."""
        write_json(path, self.to_dict())

    def table(self, *, title: str | None = None, short: bool = False) -> "Table":
        """A rich table: a row per metric and a column per cut-off, for all labels and for each bucket.

        With `short`: P, nDCG and PSP of all labels only.
        """
        from labelwise.metrics.table import evaluation_table

        return evaluation_table(self, title, short=short)


def _figure(value: float) -> str:
    return "–" if isnan(value) else f"{value:.2f}"


def evaluate(
    Y: Csr,
    Y_pred: Scored,
    *,
    ks: Sequence[int] = (1, 3, 5),
    Y_train: Csr | None = None,
    train_counts: Sequence[int] | Ints | None = None,
    n_train_docs: int | None = None,
    family: Family = "default",
    threshold: float | None = None,
    buckets: Mapping[str, int] | None = BUCKETS,
    bootstrap: int = 1000,
    seed: int = 0,
) -> Evaluation:
    """Evaluate predictions by every metric of `labelwise.metrics`.

    Parameters
    ----------
    Y
        (n_docs, n_labels) true labels.
    Y_pred
        (n_docs, n_labels) scores of the best labels, or a `Predictions` object.
    ks
        Cut-offs.
    Y_train
        (n_train, n_labels) training labels. Without them (or `train_counts`) there are no PSP and no buckets.
    train_counts, n_train_docs
        Instead of `Y_train`: (n_labels,) number of training documents of each label, and their total number.
    family
        Family of data sets whose propensity constants are used.
    threshold
        Also measure F1 of all predictions with at least this score.
    buckets
        Least number of training documents of the labels in each bucket, by name of the bucket; None for no buckets.
    bootstrap
        Number of resamples for the intervals; 0 for no intervals.
    seed
        Random seed of the resampling.

    Examples
    --------
    >>> from labelwise import LinearTree, evaluate, generate_shop
    >>> train, test = generate_shop(500, 100).values()
    >>> model = LinearTree().fit(train.texts, train.Y, label_names=train.labels)
    >>> evaluation = evaluate(test.Y, model.predict(test.texts, top_k=5), Y_train=train.Y)
    >>> evaluation["P@1"]
    76.0
    >>> table = evaluation.table()  # rich.print shows it
    """
    ks = check_ks(ks)
    bootstrap, seed = checked_value(Resamples, bootstrap, "bootstrap"), checked_value(Seed, seed, "seed")
    threshold = checked_value(float | None, threshold, "threshold")
    n_train_docs = checked_value(Count | None, n_train_docs, "n_train_docs")
    constants = family_constants(family)
    Y = checked_truth(Y)
    share = Y_pred.trained_share if isinstance(Y_pred, Predictions) else None
    if share is not None and share >= TRAINED_ON:
        logger.warning(
            "%.0f %% of these documents were trained on: the figures say little of new documents; evaluate on held-out "
            "documents",
            100 * share,
        )
    marked = mark_predictions(Y, Y_pred, max(ks))
    n_labels = Y.shape[1]
    counts, weights = _training(Y_train, train_counts, n_train_docs, n_labels, constants)
    named = check_buckets(buckets or {}) if counts is not None else {}
    scope = assign_buckets(counts, named) if named and counts is not None else np.zeros(n_labels, dtype=np.uint8)

    views = [_View(marked, ks, [f"@{k}" for k in ks])]
    if threshold is not None:
        above = mark_predictions(Y, Y_pred, None, threshold=threshold)
        views.append(_View(above, (above.longest,), [f">={threshold:g}"], ("micro-F1", "macro-F1")))
    ratios: dict[Key, Ratio] = {}
    means: dict[Key, float] = {}
    for view in views:
        ratios.update(view.ratios(weights, scope, list(named)))
        means.update(view.means(scope, list(named)))
    contributions, values = collect(ratios)
    intervals = bootstrap_intervals(contributions, bootstrap, seed) if bootstrap else {}
    found = {key: Score(value, *intervals.get(key, (None, None))) for key, value in values.items()}
    found.update((key, Score(value)) for key, value in means.items())
    order = [metric + suffix for metric in METRICS for view in views for suffix in view.suffixes]

    true = np.bincount(marked.truth, minlength=n_labels) > 0
    parts = {}
    for i, (name, fewest) in enumerate(named.items()):
        parts[name] = Bucket(
            fewest=fewest,
            n_labels=int(np.count_nonzero(true & (scope == i))),
            n_docs=int(ratios[name, f"R@{ks[0]}"][1].sum()),  # the documents that R is averaged over
            scores={metric: found[name, metric] for metric in order if (name, metric) in found},
        )
    settings: dict[str, Any] = {"bootstrap": bootstrap, "seed": seed}
    if weights is not None:
        settings = {"family": family, "a": constants[0], "b": constants[1], **settings}
    return Evaluation(
        n_docs=marked.n_docs,
        n_labels=n_labels,
        ks=ks,
        threshold=threshold,
        scores={metric: found["", metric] for metric in order if ("", metric) in found},
        buckets=parts,
        settings=settings,
        truth=marked.digest,
        contributions=contributions,
    )


@dataclass(frozen=True, eq=False)
class _View:
    """Marked predictions, their cut-offs, and the metrics to compute at these cut-offs."""

    marked: MarkedPredictions
    ks: tuple[int, ...]
    suffixes: list[str]
    metrics: tuple[str, ...] = METRICS

    def ratios(self, weights: Floats | None, scope: Ints, buckets: list[str]) -> dict[Key, Ratio]:
        total, parts = tally_gains(self.marked, self.ks, weights, scope, max(1, len(buckets)))
        return {
            (bucket, metric + suffix): RATIOS[metric](part, cut)
            for bucket, part in zip(["", *buckets], [total, *parts], strict=False)
            for metric in RATIOS
            for cut, suffix in enumerate(self.suffixes)
            if metric in self.metrics and (weights is not None or not metric.startswith("PS"))
        }

    def means(self, scope: Ints, buckets: list[str]) -> dict[Key, float]:
        found = {}
        inside = np.full(self.marked.n_labels, len(buckets))
        inside[: scope.size] = scope
        for k, suffix in zip(self.ks, self.suffixes, strict=True):
            counts = count_by_label(self.marked, k)
            for i, bucket in enumerate(["", *buckets]):
                among = None if i == 0 else inside == i - 1
                found[bucket, f"macro-F1{suffix}"] = counts.macro_f1(among)
                if "coverage" in self.metrics:
                    found[bucket, f"coverage{suffix}"] = counts.coverage(among)
        return found


def _training(
    Y_train: Csr | None,
    train_counts: Sequence[int] | Ints | None,
    n_train_docs: int | None,
    n_labels: int,
    constants: tuple[float, float],
) -> tuple[Ints | None, Floats | None]:
    """(n_labels,) training counts and inverse propensities; None without training labels or counts."""
    if Y_train is not None and train_counts is not None:
        raise UsageError("Y_train and train_counts have the same meaning; pass one of them")
    train = Y_train if Y_train is not None else train_counts
    if train is None:
        return None, None
    name = "Y_train" if Y_train is not None else "train_counts"
    counts = count_labels(train, name=name)
    if counts.size != n_labels:
        raise DataError(
            f"{name} has {counts.size} labels but Y has {n_labels}; "
            "both need the same labels in the same order: use Dataset.with_labels"
        )
    if Y_train is not None:
        n_train_docs = Y_train.shape[0]
    return counts, inverse_propensity(counts, *constants, n_docs=n_train_docs)


def plain_figures(figures: Mapping[str, Any]) -> dict[str, dict[str, float | None]]:
    """Dataclasses of figures as dicts that can be written as JSON: nan becomes None."""
    return {
        name: {key: None if value is None or isnan(value) else value for key, value in asdict(figure).items()}
        for name, figure in figures.items()
    }
