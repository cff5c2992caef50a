"""Tables of a comparison for the terminal, and its page in Markdown."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

from rich.markup import escape
from rich.table import Table

from labelwise.comparison.measure import Costs
from labelwise.comparison.results import METRICS, SystemComparison, SystemResult
from labelwise.metrics.buckets import describe_bucket
from labelwise.metrics.evaluation import Score
from labelwise.metrics.intervals import Difference
from labelwise.metrics.table import SIGNIFICANT

COSTS: dict[str, Callable[[Costs], float | None]] = {
    "train s": lambda costs: costs.train_s,
    "CPU s": lambda costs: costs.train_cpu_s,
    "ms a document": lambda costs: costs.predict_ms,
    "MiB": lambda costs: costs.peak_mib,
    "GPU MiB": lambda costs: costs.gpu_peak_mib,
    "MB on disk": lambda costs: costs.model_mb,
}
GENERATED = "The data are generated: no claim should rest on these results alone."


def systems_table(comparison: SystemComparison) -> Table:
    """A table with four rows for each system: P, R, nDCG and PSP by cut-off, the costs in the first row."""
    found = next((result.evaluation for result in comparison.results if result.evaluation is not None), None)
    about = "" if found is None else f"{found.n_docs:,} documents, {found.n_labels:,} labels; "
    caption = [f"{about}percent, {_spread(comparison)}; times and memory of a process of its own"]
    if comparison.generated:
        caption.append(GENERATED)
    table = Table(title=escape(comparison.data), caption="\n".join(caption))
    table.add_column("system", overflow="fold")
    table.add_column("")
    columns = [*(f"@{k}" for k in comparison.ks), *_costs(comparison)]
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    shown = [metric for metric in METRICS if f"{metric}@{comparison.ks[0]}" in comparison.metrics()]
    for result in comparison.results:
        table.add_section()
        if result.error is not None:
            table.add_row(escape(result.name), f"[red]failed[/]: {escape(result.error)}")
            continue
        costs = [_plain(COSTS[name](result.costs)) for name in _costs(comparison)]
        for number, metric in enumerate(shown):
            cells = [_figure(result, f"{metric}@{k}") for k in comparison.ks]
            table.add_row(escape(result.name) if number == 0 else "", metric, *cells, *(costs if number == 0 else ()))
    return table


def differences_table(comparison: SystemComparison) -> Table | None:
    """A table of the differences of every system to the first, with intervals and p-values; None for one system."""
    tested = [result for result in comparison.results if result.against_first is not None]
    if not tested:
        return None
    title = escape(f"minus {comparison.results[0].name}")
    table = Table(title=title, caption=f"percent points, 95 % interval, p of the paired test; bold: p < {SIGNIFICANT}")
    table.add_column("system", overflow="fold")
    table.add_column("")
    for k in comparison.ks:
        table.add_column(f"@{k}", justify="right", no_wrap=True)
    for result in tested:
        table.add_section()
        for number, metric in enumerate(METRICS):
            found = [_difference(result, f"{metric}@{k}") for k in comparison.ks]
            if any(found):
                cells = [
                    "" if d is None else f"[bold]{_test(d)}[/]" if d.p_value < SIGNIFICANT else _test(d) for d in found
                ]
                table.add_row(escape(result.name) if number == 0 else "", metric, *cells)
    return table


def comparison_markdown(comparison: SystemComparison) -> str:
    """The page: metrics, costs, differences to the first system, and recall by label frequency."""
    lines = [f"# Systems on {comparison.data}", ""]
    if comparison.generated:
        lines += [GENERATED, ""]
    metrics, good = comparison.metrics(), [result for result in comparison.results if result.error is None]
    lines += [f"Percent, {_spread(comparison)}.", ""]
    lines += _markdown(["system", *metrics], [[e.name, *(_figure(e, m, plain=True) for m in metrics)] for e in good])
    lines += ["", "Training and prediction, each system in a process of its own.", ""]
    costs = _costs(comparison)
    lines += _markdown(["system", *costs], [[e.name, *(_plain(COSTS[c](e.costs)) for c in costs)] for e in good])
    tested = [result for result in good if result.against_first is not None]
    if tested:
        lines += ["", f"Minus {comparison.results[0].name}: percent points, 95 % interval, p of the paired test.", ""]
        rows = []
        for result in tested:
            found = [_difference(result, metric) for metric in metrics]
            rows.append([result.name, *("" if d is None else _test(d) for d in found)])
        lines += _markdown(["system", *metrics], rows)
    lines += _by_frequency(comparison, good)
    for result in comparison.failed:
        lines += ["", f"**{result.name} failed**: {result.error}"]
    return "\n".join(lines) + "\n"


def _by_frequency(comparison: SystemComparison, good: list[SystemResult]) -> list[str]:
    """The section about the recall of the labels of each bucket at the last cut-off."""
    found = next((result.evaluation for result in good if result.evaluation is not None), None)
    if found is None or not found.buckets:
        return []
    fewest = {name: bucket.fewest for name, bucket in found.buckets.items()}
    metric = f"R@{comparison.ks[-1]}"
    headings = [f"{name}: {describe_bucket(name, fewest)}" for name in found.buckets]
    rows = []
    for result in good:
        assert result.evaluation is not None
        rows.append([result.name, *(_score(result.evaluation.buckets[name].scores[metric]) for name in found.buckets)])
    return ["", f"{metric} of the labels by their frequency in training.", "", *_markdown(["system", *headings], rows)]


def _markdown(headings: list[str], rows: list[list[str]]) -> list[str]:
    lines = [headings, ["---"] * len(headings), *rows]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines]


def _costs(comparison: SystemComparison) -> list[str]:
    """Names of the costs that were measured for at least one system."""
    return [name for name, of in COSTS.items() if any(of(result.costs) is not None for result in comparison.results)]


def _spread(comparison: SystemComparison) -> str:
    if comparison.n_seeds > 1:
        return f"mean ± standard deviation over {comparison.n_seeds} seeds"
    return "± half the 95 % interval"


def _figure(result: SystemResult, metric: str, *, plain: bool = False) -> str:
    score = None if result.evaluation is None else result.evaluation.scores.get(metric)
    if score is None:
        return ""
    deviation = result.deviation(metric)
    if deviation is None and result.seeds and len(result.seeds) == 1:
        return _score(score, plain=plain)
    spread = f"±{deviation:.2f}"
    return f"{score.value:.2f} {spread}" if plain else f"{score.value:.2f} [dim]{spread}[/]"


def _score(score: Score, *, plain: bool = True) -> str:
    if isnan(score.value):
        return "–"
    if score.low is None or score.high is None or isnan(score.low):
        return f"{score.value:.2f}"
    half = f"±{(score.high - score.low) / 2:.2f}"
    return f"{score.value:.2f} {half}" if plain else f"{score.value:.2f} [dim]{half}[/]"


def _difference(result: SystemResult, metric: str) -> Difference | None:
    return None if result.against_first is None else result.against_first.differences.get(metric)


def _test(found: Difference) -> str:
    return f"{found.difference:+.2f} ({found.low:+.2f} … {found.high:+.2f}; p {found.p_value:.3f})"


def _plain(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3g}"
