"""The sections of the page about the predictions: metrics, calibration, labels, examples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from labelwise.metrics import BUCKETS, Score
from labelwise.metrics.buckets import describe_bucket
from labelwise.metrics.tally import METRICS
from labelwise.models.training_report import HoldoutResult
from labelwise.report.chart import Chart, Scale, figure
from labelwise.report.html import Html, join, paragraph, section, short, table, tag
from labelwise.report.split_evaluation import BINS, KS, MIN_SUPPORT, N_PREDICTED, Example, LabelScore, SplitEvaluation
from labelwise.report.summary import TERMS, legend, term

N_LISTED = 12
"""Number of best and of worst labels that are listed."""
MAX_EXCERPT = 300
"""Longest excerpt of a text in characters."""
MAX_MISSED = 12
"""Largest number of missed labels that an example lists."""
MARKS = {"right": "✓", "wrong": "✗", "missed": "○"}


def metrics_part(evaluation: SplitEvaluation | None, validation: HoldoutResult | None, absent: str) -> Html:
    """The section about metrics with intervals; without an evaluation, the metrics measured in training."""
    if evaluation is None:
        return section("metrics", "Metrics", paragraph(absent, kind="absent"), _validation(validation))
    found = evaluation.metrics
    rows = []
    for metric in METRICS:
        names = [f"{metric}@{k}" for k in KS]
        if all(name in found.scores for name in names):
            rows.append([term(metric), *(score_cell(found.scores[name], name) for name in names)])
    words = (
        f"{found.n_docs:,} documents of the split {evaluation.split}, {found.n_labels:,} labels. In percent. Below "
        "each value is its 95 % interval from a bootstrap over documents: it shows the variation between test sets, "
        "not between trainings."
    )
    if not any(name.startswith("PSP") for name in found.scores):
        words += " PSP and metrics by label frequency need the training split, which is missing."
    grid = table(["", *(f"@{k}" for k in KS)], rows, numbers=(1, 2, 3))
    return section("metrics", "Metrics", grid, paragraph(words, kind="note"), legend(METRICS))


def score_cell(score: Score, name: str) -> Html:
    """A metric with its interval."""
    if math.isnan(score.value):
        return Html("–")
    value = tag("b", f"{score.value:.2f}", data_figure=name)
    if score.low is None or score.high is None:
        return value
    return join(value, tag("small", f"{score.low:.1f} – {score.high:.1f}"))


def _validation(validation: HoldoutResult | None) -> Html:
    """The metrics on held-out documents that the training report holds."""
    if validation is None:
        return Html()
    scores = validation.scores
    words = f"In training the model was evaluated on {validation.documents:,} documents: {validation.description}."
    cells = [tag("b", f"{value:.2f}", data_figure=name) for name, value in scores.items()]
    return join(paragraph(words), table(list(scores), [cells], numbers=range(len(scores))))


def frequency_part(evaluation: SplitEvaluation | None, absent: str) -> Html:
    """The section about metrics of frequent, less frequent and rare labels."""
    title = "Metrics by label frequency"
    if evaluation is None or not evaluation.metrics.buckets:
        reason = absent if evaluation is None else "The training split is missing, so label frequencies are not known."
        return section("frequency", title, paragraph(reason, kind="absent"))
    metrics = ("P@5", "R@5", "nDCG@5", "PSP@5", "macro-F1@5", "coverage@5")
    buckets = evaluation.metrics.buckets
    ranges = [describe_bucket(name, BUCKETS).removesuffix(" training documents") for name in buckets]
    rows: list[list[str]] = [
        ["training documents", *ranges],
        ["labels in the split", *(f"{bucket.n_labels:,}" for bucket in buckets.values())],
        ["test documents", *(f"{bucket.n_docs:,}" for bucket in buckets.values())],
    ]
    rows += [
        [term(metric), *(score_cell(part.scores[metric], f"{name}:{metric}") for name, part in buckets.items())]
        for metric in metrics
    ]
    grid = table(["", *buckets], rows, numbers=range(1, 4))
    note = (
        "P counts correct predictions of these labels, so its values add up to P of all labels. For the other metrics "
        "only the labels of the column are the truth."
    )
    return section("frequency", title, grid, paragraph(note, kind="note"))


def calibration_part(evaluation: SplitEvaluation | None, absent: str) -> Html:
    """The section about calibration: whether predictions of 80 % are correct in 80 % of the cases."""
    title = "Calibration"
    if evaluation is None:
        return section("calibration", title, paragraph(absent, kind="absent"))
    if evaluation.calibration is None:
        words = "The model is not calibrated: its scores are not probabilities, so there is no calibration error."
        return section("calibration", title, paragraph(words, kind="absent"))
    error, probability, right, count = evaluation.calibration
    if not count.size:
        return section("calibration", title, paragraph("The model predicts no label.", kind="absent"))
    sentence = join(
        tag("abbr", "Calibration error", title=TERMS["ECE"]),
        " ",
        tag("b", f"{error:.2f} %", data_figure="calibration error"),
        f" of {int(count.sum()):,} predictions, {BINS} bins of equal size.",
    )
    pictures = tag("div", _reliability(probability, right, count), _sizes(probability, count), class_="pair")
    return section("calibration", title, paragraph(sentence), pictures)


def _reliability(probability: Any, right: Any, count: Any) -> Html:
    y = Scale(0, 1, "share that is correct", percent=True)
    chart = Chart(Scale(0, 1, "predicted probability", percent=True), y)
    chart.line([(0, 0), (1, 1)], "faint dashed")
    points = list(zip(probability.tolist(), right.tolist(), strict=True))
    # One correct and one wrong prediction are added, so that a bin of one prediction has a wide interval.
    share = (right * count + 1) / (count + 2)
    spread = 2 * np.sqrt(share * (1 - share) / (count + 2))
    for (x, y), s, d in zip(points, share.tolist(), spread.tolist(), strict=True):
        chart.upright(x, min(y, max(s - d, 0.0)), max(y, min(s + d, 1.0)), "one")
    chart.line(points, "one")
    tooltips = [
        f"predicted {x:.0%}, correct {y:.0%}, {n:,} predictions" for (x, y), n in zip(points, count, strict=True)
    ]
    chart.points(points, "one", tooltips)
    words = "Points: share of correct predictions, with two standard errors. Dashed: perfect calibration."
    return figure(chart.render("Share of correct predictions by probability"), f"{words} Bins of equal width.")


def _sizes(probability: Any, count: Any) -> Html:
    top = 10 ** math.ceil(math.log10(max(int(count.max()), 10)))
    chart = Chart(Scale(0, 1, "predicted probability", percent=True), Scale(0.7, top, "predictions", log=True))
    for x, n in zip(probability.tolist(), count.tolist(), strict=True):
        left = min(int(x * BINS), BINS - 1) / BINS
        chart.bar(left, left + 1 / BINS, n, "one", f"{n:,} predictions around {x:.0%}")
    return figure(chart.render("Number of predictions by probability"), "Number of predictions in each bin.")


def labels_part(evaluation: SplitEvaluation | None, absent: str) -> Html:
    """The section about the labels with the best and the worst F1."""
    title = "Best and worst labels"
    if evaluation is None:
        return section("labels", title, paragraph(absent, kind="absent"))
    ranked = evaluation.ranked_labels()
    if not ranked:
        return section("labels", title, paragraph("No document of the split has a label.", kind="absent"))
    enough = ranked[0].support >= MIN_SUPPORT
    cut = "its best label" if evaluation.cut == 1 else f"its {evaluation.cut} best labels"
    unseen = evaluation.n_unseen
    words = (
        f"A label counts as predicted for a document if it is among {cut}, the mean number of labels of a document. "
        f"{len(evaluation.labels):,} labels occur in the split"
        + (f"; the tables are about the {len(ranked):,} with {MIN_SUPPORT} or more test documents" if enough else "")
        + (f"; {unseen:,} have no training document and cannot be predicted" if unseen else "")
        + ". Train, test: numbers of documents with the label. P, R and F1 in percent."
    )
    worst = sorted(ranked, key=lambda label: (label.f1, -label.support, label.name))
    tables = (
        tag("div", tag("h3", name), _label_table(labels[:N_LISTED]), class_=f"labels-{name}")
        for name, labels in (("worst", worst), ("best", ranked))
    )
    return section("labels", title, paragraph(words), tag("div", *tables, class_="pair"))


def _label_table(labels: Sequence[LabelScore]) -> Html:
    rows = [
        [
            short(label.name, 60),
            "–" if label.n_train is None else f"{label.n_train:,}",
            f"{label.support:,}",
            f"{label.precision:.0f}",
            f"{label.recall:.0f}",
            tag("b", f"{label.f1:.1f}"),
        ]
        for label in labels
    ]
    return table(["label", "train", "test", "P", "R", "F1"], rows, numbers=range(1, 6))


def examples_part(evaluation: SplitEvaluation | None, absent: str) -> Html:
    """The section about examples: documents with predicted, correct and missed labels."""
    title = "Examples"
    if evaluation is None:
        return section("examples", title, paragraph(absent, kind="absent"))
    calibrated = evaluation.calibration is not None
    legend = join(
        *(
            join(_mark(name), f" {words}  ")
            for name, words in (
                ("right", "predicted and true"),
                ("wrong", "predicted and not true"),
                ("missed", f"true, but not among the {N_PREDICTED} best"),
            )
        )
    )
    groups = []
    for kind in dict.fromkeys(example.kind for example in evaluation.examples):
        cards = (_card(example, calibrated) for example in evaluation.examples if example.kind == kind)
        groups.append(join(tag("h3", kind.capitalize()), tag("div", *cards, class_="cards")))
    note = "Numbers are probabilities." if calibrated else "Numbers are scores: the model is not calibrated."
    return section("examples", title, paragraph(legend, kind="legend"), paragraph(note, kind="note"), *groups)


def _mark(name: str) -> Html:
    return tag("span", MARKS[name], class_=f"sign {name}", role="img", aria_label=name)


def _card(example: Example, calibrated: bool) -> Html:
    words = "(These data have no texts.)" if example.text is None else short(example.text, MAX_EXCERPT)
    lines = [
        tag(
            "li",
            _mark("right" if right else "wrong"),
            tag("span", short(label, 80), class_="name"),
            tag("span", f"{100 * score:.0f} %" if calibrated else f"{score:.3g}", class_="score"),
            class_="right" if right else "wrong",
        )
        for label, score, right in example.predicted
    ]
    lines += [
        tag(
            "li",
            _mark("missed"),
            tag("span", short(label, 80), class_="name"),
            tag("span", "missed", class_="score"),
            class_="missed",
        )
        for label in example.missed[:MAX_MISSED]
    ]
    if len(example.missed) > MAX_MISSED:
        lines.append(tag("li", f"and {len(example.missed) - MAX_MISSED:,} more missed labels"))
    return tag(
        "article",
        tag("p", words or "(an empty text)"),
        tag("ul", *lines),
        tag("p", f"document {short(example.name, 60)}", class_="note"),
    )
