"""A contest as a table for the terminal and as a page of markdown."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan

from rich.table import Table

from labelwise.comparison.contest import METRICS, SystemComparison, SystemResult
from labelwise.comparison.measure import Costs
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
GENERATED = "The data are generated: no claim should rest on these figures alone."


def contest_table(contest: SystemComparison) -> Table:
    """Four lines for each system: P, R, nDCG and PSP by cut-off, with the costs beside the first."""
    judged = next((entry.evaluation for entry in contest.entries if entry.evaluation is not None), None)
    about = "" if judged is None else f"{judged.n_docs:,} documents, {judged.n_labels:,} labels; "
    caption = [f"{about}percent, {_spread(contest)}; times and memory of a process of its own"]
    if contest.generated:
        caption.append(GENERATED)
    table = Table(title=contest.data, caption="\n".join(caption))
    table.add_column("system", overflow="fold")
    table.add_column("")
    columns = [*(f"@{k}" for k in contest.ks), *_costs(contest)]
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    shown = [metric for metric in METRICS if f"{metric}@{contest.ks[0]}" in contest.metrics()]
    for entry in contest.entries:
        table.add_section()
        if entry.error is not None:
            table.add_row(entry.name, f"[red]failed[/]: {_escaped(entry.error)}")
            continue
        costs = [_plain(COSTS[name](entry.costs)) for name in _costs(contest)]
        for number, metric in enumerate(shown):
            cells = [_figure(entry, f"{metric}@{k}") for k in contest.ks]
            table.add_row(entry.name if number == 0 else "", metric, *cells, *(costs if number == 0 else ()))
    return table


def tests_table(contest: SystemComparison) -> Table | None:
    """Every system minus the first, with the interval of the difference and p; None if there is nothing to test."""
    tested = [entry for entry in contest.entries if entry.against_first is not None]
    if not tested:
        return None
    title = f"minus {contest.entries[0].name}"
    table = Table(title=title, caption=f"percent points, 95 % interval, p of the paired test; bold: p < {SIGNIFICANT}")
    table.add_column("system", overflow="fold")
    table.add_column("")
    for k in contest.ks:
        table.add_column(f"@{k}", justify="right", no_wrap=True)
    for entry in tested:
        table.add_section()
        for number, metric in enumerate(METRICS):
            found = [_difference(entry, f"{metric}@{k}") for k in contest.ks]
            if any(found):
                cells = [
                    "" if d is None else f"[bold]{_test(d)}[/]" if d.p_value < SIGNIFICANT else _test(d) for d in found
                ]
                table.add_row(entry.name if number == 0 else "", metric, *cells)
    return table


def contest_markdown(contest: SystemComparison) -> str:
    """The page: figures, costs, tests against the first, and figures by label frequency."""
    lines = [f"# Systems on {contest.data}", ""]
    if contest.generated:
        lines += [GENERATED, ""]
    metrics, good = contest.metrics(), [entry for entry in contest.entries if entry.error is None]
    lines += [f"Percent, {_spread(contest)}.", ""]
    lines += _markdown(["system", *metrics], [[e.name, *(_figure(e, m, plain=True) for m in metrics)] for e in good])
    lines += ["", "Training and prediction, each system in a process of its own.", ""]
    costs = _costs(contest)
    lines += _markdown(["system", *costs], [[e.name, *(_plain(COSTS[c](e.costs)) for c in costs)] for e in good])
    tested = [entry for entry in good if entry.against_first is not None]
    if tested:
        lines += ["", f"Minus {contest.entries[0].name}: percent points, 95 % interval, p of the paired test.", ""]
        rows = []
        for entry in tested:
            found = [_difference(entry, metric) for metric in metrics]
            rows.append([entry.name, *("" if d is None else _test(d) for d in found)])
        lines += _markdown(["system", *metrics], rows)
    lines += _by_frequency(contest, good)
    for entry in contest.failed:
        lines += ["", f"**{entry.name} failed**: {entry.error}"]
    return "\n".join(lines) + "\n"


def _by_frequency(contest: SystemComparison, good: list[SystemResult]) -> list[str]:
    """Recall of the labels of each bucket at the last cut-off."""
    judged = next((entry.evaluation for entry in good if entry.evaluation is not None), None)
    if judged is None or not judged.buckets:
        return []
    fewest = {name: bucket.fewest for name, bucket in judged.buckets.items()}
    metric = f"R@{contest.ks[-1]}"
    headings = [f"{name}: {describe_bucket(name, fewest)}" for name in judged.buckets]
    rows = []
    for entry in good:
        assert entry.evaluation is not None
        rows.append([entry.name, *(_score(entry.evaluation.buckets[name].scores[metric]) for name in judged.buckets)])
    return ["", f"{metric} of the labels by their frequency in training.", "", *_markdown(["system", *headings], rows)]


def _markdown(headings: list[str], rows: list[list[str]]) -> list[str]:
    lines = [headings, ["---"] * len(headings), *rows]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines]


def _costs(contest: SystemComparison) -> list[str]:
    """Columns in which any system has a figure."""
    return [name for name, of in COSTS.items() if any(of(entry.costs) is not None for entry in contest.entries)]


def _spread(contest: SystemComparison) -> str:
    if contest.n_seeds > 1:
        return f"mean ± standard deviation over {contest.n_seeds} seeds"
    return "± half the 95 % interval"


def _figure(entry: SystemResult, metric: str, *, plain: bool = False) -> str:
    score = None if entry.evaluation is None else entry.evaluation.scores.get(metric)
    if score is None:
        return ""
    deviation = entry.deviation(metric)
    if deviation is None and entry.seeds and len(entry.seeds) == 1:
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


def _difference(entry: SystemResult, metric: str) -> Difference | None:
    return None if entry.against_first is None else entry.against_first.differences.get(metric)


def _test(found: Difference) -> str:
    return f"{found.difference:+.2f} ({found.low:+.2f} … {found.high:+.2f}; p {found.p_value:.3f})"


def _plain(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def _escaped(text: str) -> str:
    return text.replace("[", "\\[")
