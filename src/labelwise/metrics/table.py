"""Evaluations and comparisons as rich tables."""

from collections.abc import Mapping
from math import isnan

from rich.markup import escape
from rich.table import Table

from labelwise.metrics.buckets import describe_bucket
from labelwise.metrics.evaluation import Evaluation, Score
from labelwise.metrics.paired import Comparison
from labelwise.metrics.tally import METRICS

IN_BUCKETS = ("P", "R", "nDCG", "PSP", "macro-F1", "coverage")
"""Metrics shown for each bucket; an evaluation holds all metrics."""
SHORT = ("P", "nDCG", "PSP")
"""Metrics of a short table."""
SIGNIFICANT = 0.05
"""Differences with a p-value below this are shown bold."""


def evaluation_table(evaluation: Evaluation, title: str | None = None, *, short: bool = False) -> Table:
    """A row per metric, a column per cut-off; the main metrics of each bucket follow unless the table is short."""
    suffixes = [f"@{k}" for k in evaluation.ks]
    if evaluation.threshold is not None:
        suffixes.append(f">={evaluation.threshold:g}")
    caption = [f"{evaluation.n_docs:,} documents, {evaluation.n_labels:,} labels; percent"]
    if evaluation.settings["bootstrap"]:
        caption[0] += ", ± half the 95 % interval"
    buckets = {} if short else evaluation.buckets
    fewest = {name: bucket.fewest for name, bucket in buckets.items()}
    for name, bucket in buckets.items():
        size = f"{bucket.n_labels:,} labels in {bucket.n_docs:,} documents"
        caption.append(f"{name}: {describe_bucket(name, fewest)}; {size}")
    table = Table(title=None if title is None else escape(title), caption=escape("\n".join(caption)))
    table.add_column("metric", no_wrap=True)
    for suffix in suffixes:
        table.add_column(suffix.replace(">=", "≥ "), justify="right", no_wrap=True)
    _add_rows(table, "", evaluation.scores, SHORT if short else METRICS, suffixes)
    for name, bucket in buckets.items():
        if bucket.n_labels:
            table.add_section()
            _add_rows(table, f"{name} ", bucket.scores, IN_BUCKETS, suffixes)
    return table


def _add_rows(
    table: Table, prefix: str, scores: Mapping[str, Score], metrics: tuple[str, ...], suffixes: list[str]
) -> None:
    for metric in metrics:
        cells = [_cell(scores.get(metric + suffix)) for suffix in suffixes]
        if any(cells):
            table.add_row(f"{prefix}{metric}", *cells)


def _cell(score: Score | None) -> str:
    if score is None:
        return ""
    if isnan(score.value):
        return "–"
    if score.low is None or score.high is None or isnan(score.low):
        return f"{score.value:.2f}"
    return f"{score.value:.2f} [dim]±{(score.high - score.low) / 2:.2f}[/]"


def comparison_table(comparison: Comparison, title: str | None = None, *, short: bool = False) -> Table:
    """A row per metric, or per metric of a short table: both figures, the difference, its interval and p-value."""
    first, second = comparison.names
    caption = (
        f"{comparison.n_docs:,} documents; percent; bold: p < {SIGNIFICANT}, from {comparison.resamples:,} resamples"
    )
    table = Table(title=None if title is None else escape(title), caption=caption)
    table.add_column("metric")
    for name in (escape(first), escape(second), "difference", "95 % interval", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    for metric, found in comparison.differences.items():
        if short and metric.partition("@")[0] not in SHORT:
            continue
        table.add_row(
            metric,
            f"{found.first:.2f}",
            f"{found.second:.2f}",
            f"{found.difference:+.2f}",
            f"{found.low:+.2f} … {found.high:+.2f}",
            f"{found.p_value:.3f}",
            style="bold" if found.p_value < SIGNIFICANT else None,
        )
    return table
