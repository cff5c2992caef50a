"""The sections of the page about model, data, tree, training, time and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelwise.data import Dataset
from labelwise.data.stats import HEAD_DOCUMENTS, describe, label_counts
from labelwise.models.base import Model
from labelwise.report.chart import Chart, Point, Scale, figure
from labelwise.report.clusters import TreeDrawing
from labelwise.report.html import Child, Html, facts, join, json_script, paragraph, section, table, tag
from labelwise.report.record import RunRecord
from labelwise.types import Ints

MAX_STAGES = 40
MAX_EVENTS = 200
MAX_POINTS = 1_000
"""Largest number of points of a curve."""


def data_part(splits: Mapping[str, Dataset] | None, generated: bool, absent: str) -> Html:
    """The section about the data: sizes, and the long tail of the labels."""
    if not splits:
        return section("data", "Data", paragraph(absent, kind="absent"))
    if "train" not in splits:
        rows: list[tuple[str, Child]] = [(f"{name} documents", f"{len(part):,}") for name, part in splits.items()]
        rows.append(("labels", f"{next(iter(splits.values())).n_labels:,}"))
        words = "There is no training split, so there is no plot of the label tail."
        return section("data", "Data", facts(rows), paragraph(words, kind="absent"))
    stats = describe(splits)
    rows = [("training documents", f"{stats.n_train:,}")]
    rows += [("validation documents", f"{stats.n_validation:,}")] if stats.n_validation else []
    rows += [("test documents", f"{stats.n_test:,}")] if "test" in splits else []
    rows += [
        ("labels", f"{stats.n_labels:,}"),
        ("labels in training", f"{stats.n_labels_train:,}"),
        ("labels per document", f"{stats.labels_per_document:.2f}"),
        ("documents per label", f"{stats.documents_per_label:.2f}"),
        (f"labels with more than {HEAD_DOCUMENTS} documents", f"{stats.n_head_labels:,} ({stats.head_share:.1%})"),
        ("labels with 1 to 5 documents", f"{stats.n_tail_labels:,}"),
    ]
    if "test" in splits:
        rows.append(("test labels unseen in training", f"{stats.n_unseen_labels:,}"))
    if stats.word_percentiles is not None:
        rows.append(("words of a document, median", f"{stats.word_percentiles['50']:,}"))
    if stats.n_duplicates_test:
        rows.append(("test texts found in training", f"{stats.n_duplicates_test:,}"))
    made = paragraph("These data were made by a program: no text in them is real.", kind="note") if generated else None
    return section(
        "data", "Data", made, tag("div", facts(rows), tail_figure(label_counts(splits["train"])), class_="pair")
    )


def tail_figure(counts: Ints) -> Html:
    """A chart of the training documents of the labels, most frequent first, both axes logarithmic."""
    used = np.sort(counts[counts > 0])[::-1]
    if not used.size:
        return paragraph("No label has a training document.", kind="absent")
    # Steps are drawn only where the height changes.
    kept = np.unique(np.concatenate(([0], np.flatnonzero(np.diff(used)) + 1, [used.size - 1])))
    points: list[Point] = [(float(i + 1), float(used[i])) for i in kept]
    right, top = max(used.size, 10), max(float(used[0]) * 1.5, 10.0)
    chart = Chart(
        Scale(1, float(right), "labels, most frequent first", log=True),
        Scale(0.8, top, "training documents", log=True),
    )
    chart.line(points, "one", floor=0.8, steps=True)
    if top > HEAD_DOCUMENTS:
        chart.line([(1, HEAD_DOCUMENTS), (right, HEAD_DOCUMENTS)], "faint dashed")
    chart.points(points[:1], "one", [f"the most frequent label has {used[0]:,} documents"])
    words = f"The long tail: {int((used <= 5).sum()):,} of {counts.size:,} labels have 1 to 5 documents"
    words += f", {counts.size - used.size:,} have none." if used.size < counts.size else "."
    return figure(chart.render("Training documents of the labels, most frequent first"), words)


def model_part(model: Model | None, record: RunRecord, absent: str) -> Html:
    """The section about the model: its kind, sizes and settings, and the command that trained it."""
    rows: list[tuple[str, Child]] = []
    if model is not None:
        report = model.report_
        rows += [("model", model.title()), *model.facts()]
        named = (("preset", report.preset), ("data", report.data), ("trained", report.trained))
        rows += [(name, value) for name, value in named if value is not None]
        if report.seconds is not None:
            rows.append(("training took", f"{report.seconds:,.1f} s, {report.cpu_seconds or 0:,.1f} CPU s"))
    if record.command is not None:
        rows.append(("command", tag("code", " ".join(["labelwise", *record.command]))))
    rows.append(
        ("run", f"{record.runs[0]['started'].replace('T', ' ')[:19]} UTC, labelwise {record.runs[0]['labelwise']}")
    )
    reason = paragraph(absent, kind="absent") if model is None else None
    return section("model", "Model", reason, facts(rows))


def tree_part(drawing: TreeDrawing | None, remarks: Sequence[str]) -> Html:
    """The section about the label tree, which the program of the page draws."""
    notes = [paragraph(words, kind="absent" if drawing is None else "note") for words in remarks]
    if drawing is None:
        return section("tree", "Label tree", *notes)
    explanation = (
        "Each tile is a cluster of labels, or a label. Choose a tile to look inside. Its words are the most "
        "characteristic ones of its documents; its labels are the most frequent ones."
    )
    areas = [("d", "documents"), ("n", "labels")] if drawing.nodes[0]["d"] is not None else [("n", "labels")]
    options = (tag("option", words, value=value) for value, words in areas)
    choice = tag("label", "area: ", tag("select", *options, id="tree-area"))
    controls = tag("div", tag("nav", id="tree-path", aria_label="path in the tree"), choice, class_="controls")
    legend = tag("p", id="tree-legend", class_="note")
    view = tag(
        "div",
        controls,
        tag("div", id="tree-map"),
        legend,
        tag("div", id="tree-detail", aria_live="polite"),
        id="tree-view",
        hidden="",
    )
    without = tag(
        "noscript",
        paragraph("The tree is drawn by a program inside this page, which your browser does not run.", kind="absent"),
    )
    nodes = json_script("tree-data", drawing.nodes)
    return section("tree", "Label tree", paragraph(explanation), view, without, *notes, nodes)


def training_part(
    curve: Sequence[Mapping[str, float]], restarts: Sequence[str], best_step: int | None, absent: str, n_models: int = 1
) -> Html:
    """The section about fine-tuning: loss, recall and learning rate by step."""
    title = "Training"
    if not curve:
        return section("training", title, paragraph(absent, kind="absent"))
    last = max(point["step"] for point in curve)
    x = Scale.around([0.0, float(last)], "step")
    figures = []
    for name, words, caption in (
        ("loss", "loss", "Mean loss of the batches since the last point."),
        ("recall", "recall, %", "True clusters of held-out documents among the best ones, in percent."),
        ("rate", "learning rate", "Learning rate of the encoder."),
    ):
        runs = _pieces(curve, name)
        values = [y for run in runs for _, y in run]
        if not values:
            continue
        chart = Chart(x, Scale.around(values, words, from_zero=name != "recall"))
        for number, run in enumerate(runs):
            chart.line(run, "one" if number == len(runs) - 1 else "faint dashed")
            if len(run) == 1:  # one point makes no line
                chart.points(run, "one", [f"step {run[0][0]:,.0f}: {run[0][1]:.4g}"])
        if name == "recall":
            points = runs[-1]
            chart.points(points, "one", [f"step {a:,.0f}: {b:.2f} %" for a, b in points])
            if best_step is not None:
                chart.upright(best_step, chart.y.low, chart.y.high, "two dashed", f"kept: step {best_step:,}")
                caption += f" The weights of step {best_step:,} were kept."
        figures.append(figure(chart.render(f"{words} by step"), caption))
    if not restarts:
        note = paragraph("Training never diverged, so it never went back to an earlier step.", kind="note")
    else:
        note = join(
            paragraph(f"Training went back {len(restarts)} times, each time with a quarter of the learning rate:"),
            tag("ul", *(tag("li", reason) for reason in restarts)),
        )
    model = paragraph(f"The first of {n_models} models that was fine-tuned.", kind="note") if n_models > 1 else None
    return section("training", title, model, tag("div", *figures, class_="pair"), note)


def _pieces(curve: Sequence[Mapping[str, float]], name: str) -> list[list[Point]]:
    """The points of one curve, in pieces: a new piece begins where training went back to an earlier step."""
    pieces: list[list[Point]] = [[]]
    for point in curve:
        if name in point and np.isfinite(point[name]):
            if pieces[-1] and point["step"] <= pieces[-1][-1][0]:
                pieces.append([])
            pieces[-1].append((float(point["step"]), float(point[name])))
    return [_thinned(piece) for piece in pieces if piece]


def _thinned(points: list[Point]) -> list[Point]:
    if len(points) <= MAX_POINTS:
        return points
    kept = np.unique(np.linspace(0, len(points) - 1, MAX_POINTS).astype(int))
    return [points[i] for i in kept]


def time_part(record: RunRecord) -> Html:
    """The section about time and memory of each stage, with a timeline."""
    stages = sorted(record.stages, key=lambda pair: -pair[0].seconds)[:MAX_STAGES]
    keep = {id(stage) for stage, _ in stages}
    rows: list[list[Child]] = []
    longest = max((stage.seconds for stage, _ in stages), default=0.0) or 1.0
    gpu = any(stage.gpu_peak_bytes is not None for stage, _ in stages)
    for stage, found in record.stages:
        if id(stage) not in keep:
            continue
        row: list[Child] = [
            join(stage.name, tag("small", stage.folder.name.rpartition("-")[2][:8])),
            {True: "found", False: "computed", None: "used"}[found],  # None: the run does not record it
            join(f"{stage.seconds:,.2f}", bar(stage.seconds / longest)),
            f"{stage.cpu_seconds:,.2f}",
            _megabytes(stage.peak_bytes),
        ]
        row += [_megabytes(stage.gpu_peak_bytes)] if gpu else []
        rows.append([*row, _megabytes(stage.n_bytes)])
    words = [
        "“Found” stages were computed by an earlier run: time and memory are those of that run.",
        "Memory is the peak memory of the whole process while the stage was computed"
        + ("; on the GPU, the peak since the start of the process." if gpu else "."),
    ]
    if any(stage.peak_bytes is None for stage, _ in stages):
        words.append("Where memory is missing, it was not recorded.")
    if len(record.stages) > len(stages):
        words.append(f"The table shows the {MAX_STAGES} longest of {len(record.stages)} stages.")
    if record.seconds is None:
        words.append("A run did not finish, or is still running.")
    else:
        computed = sum(stage.seconds for stage, found in record.stages if found is False)
        rest = max(record.seconds - computed, 0.0)
        words.append(
            f"The runs took about {record.seconds:,.0f} s, of which about {rest:,.0f} s were spent outside of these "
            "stages, such as for reading data and writing models."
        )
    head = ["stage", "", "seconds", "CPU s", "memory", *(["GPU"] if gpu else []), "on disk"]
    grid = table(head, rows, numbers=range(2, 7)) if rows else paragraph("The run finished no stage.", kind="absent")
    return section("time", "Time and memory", grid, paragraph(" ".join(words), kind="note"), _timeline(record))


def _timeline(record: RunRecord) -> Html:
    events = list(record.timeline())
    rows = [[f"{seconds:,.1f} s", words] for seconds, words in events[:MAX_EVENTS]]
    left = len(events) - len(rows)
    more = paragraph(f"{left:,} later events are omitted.", kind="note") if left else None
    if not rows:
        return Html()
    return tag("details", tag("summary", "Timeline"), table(["after", "finished"], rows, numbers=[0]), more)


def bar(share: float) -> Html:
    """A bar below a number, whose length is a share of the cell."""
    return tag("i", class_="bar", style=f"width:{100 * min(max(share, 0.0), 1.0):.1f}%")


def _megabytes(n_bytes: int | None) -> str:
    return "–" if n_bytes is None else f"{n_bytes / 1e6:,.1f} MB"


def training_history(model: Model | None, record: RunRecord) -> tuple[list[dict[str, Any]], list[str], int | None]:
    """The training curve, the reasons for going back to earlier steps, and the step whose weights were kept."""
    for member in () if model is None else model.members:
        history = member.history
        if history is not None and history.curve:
            measured_recall = any("recall" in point for point in history.curve)
            return history.curve, history.restarts, history.best_step if measured_recall else None
    curve: list[dict[str, Any]] = list(record.curve())
    restarts = [words for words in record.remarks() if "going back to step" in words] if curve else []
    measured = [point for point in curve if "recall" in point]
    best = max(measured, key=lambda point: point["recall"])["step"] if measured else None
    return curve, restarts, best
