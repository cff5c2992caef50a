"""The parts of the page that tell how good a model is."""

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
from labelwise.report.findings import BINS, KS, LEAST_SUPPORT, SHOWN, Example, Findings, LabelScore
from labelwise.report.html import Html, join, paragraph, section, short, table, tag

LISTED = 12
"""Best and worst labels that are listed."""
EXCERPT = 300
MISSED = 12
MARKS = {"right": "✓", "wrong": "✗", "missed": "○"}


def metrics_part(findings: Findings | None, validation: HoldoutResult | None, absent: str) -> Html:
    """Figures with intervals; without a test, what training measured."""
    if findings is None:
        return section("metrics", "How good it is", paragraph(absent, kind="absent"), _validation(validation))
    found = findings.evaluation
    rows = []
    for metric in METRICS:
        names = [f"{metric}@{k}" for k in KS]
        if all(name in found.scores for name in names):
            rows.append([metric, *(score_cell(found.scores[name], name) for name in names)])
    words = (
        f"{found.n_docs:,} documents of the split {findings.split}, {found.n_labels:,} labels. Percent; below each "
        "figure the 95 % interval of the bootstrap over documents: what other test documents would change, not another "
        "training."
    )
    if not any(name.startswith("PSP") for name in found.scores):
        words += " PSP and figures by label frequency need the training split, which is not there."
    grid = table(["", *(f"@{k}" for k in KS)], rows, numbers=(1, 2, 3))
    return section("metrics", "How good it is", grid, paragraph(words, kind="note"))


def score_cell(score: Score, name: str) -> Html:
    """A figure with its interval."""
    if math.isnan(score.value):
        return Html("–")
    figure_ = tag("b", f"{score.value:.2f}", data_figure=name)
    if score.low is None or score.high is None:
        return figure_
    return join(figure_, tag("small", f"{score.low:.1f} – {score.high:.1f}"))


def _validation(validation: HoldoutResult | None) -> Html:
    """What held-out documents said in training."""
    if validation is None:
        return Html()
    scores = validation.scores
    words = f"In training it was measured on {validation.documents:,} documents: {validation.description}."
    cells = [tag("b", f"{value:.2f}", data_figure=name) for name, value in scores.items()]
    return join(paragraph(words), table(list(scores), [cells], numbers=range(len(scores))))


def frequency_part(findings: Findings | None, absent: str) -> Html:
    """The same for labels that training saw often, seldom, hardly."""
    title = "By label frequency"
    if findings is None or not findings.evaluation.buckets:
        reason = absent if findings is None else "The training split is not there to say how frequent labels are."
        return section("frequency", title, paragraph(reason, kind="absent"))
    metrics = ("P@5", "R@5", "nDCG@5", "PSP@5", "macro-F1@5", "coverage@5")
    buckets = findings.evaluation.buckets
    ranges = [describe_bucket(name, BUCKETS).removesuffix(" training documents") for name in buckets]
    rows: list[list[str]] = [
        ["training documents", *ranges],
        ["labels tested", *(f"{bucket.n_labels:,}" for bucket in buckets.values())],
        ["test documents", *(f"{bucket.n_docs:,}" for bucket in buckets.values())],
    ]
    rows += [
        [metric, *(score_cell(part.scores[metric], f"{name}:{metric}") for name, part in buckets.items())]
        for metric in metrics
    ]
    grid = table(["", *buckets], rows, numbers=range(1, 4))
    note = (
        "P counts right predictions of these labels and adds up to the whole; the others take only them as the truth."
    )
    return section("frequency", title, grid, paragraph(note, kind="note"))


def calibration_part(findings: Findings | None, absent: str) -> Html:
    """Whether 80 % means 80 %."""
    title = "Calibration"
    if findings is None:
        return section("calibration", title, paragraph(absent, kind="absent"))
    if findings.calibration is None:
        words = (
            "The model is not calibrated: its scores are no probabilities, so there is nothing to compare them with."
        )
        return section("calibration", title, paragraph(words, kind="absent"))
    error, probability, right, count = findings.calibration
    if not count.size:
        return section("calibration", title, paragraph("Nothing is predicted.", kind="absent"))
    sentence = join(
        "Calibration error ",
        tag("b", f"{error:.2f} %", data_figure="calibration error"),
        f" of {int(count.sum()):,} predictions, {BINS} bins of equal size.",
    )
    pictures = tag("div", _reliability(probability, right, count), _sizes(probability, count), class_="pair")
    return section("calibration", title, paragraph(sentence), pictures)


def _reliability(probability: Any, right: Any, count: Any) -> Html:
    chart = Chart(Scale(0, 1, "predicted probability", percent=True), Scale(0, 1, "share that is right", percent=True))
    chart.line([(0, 0), (1, 1)], "faint dashed")
    points = list(zip(probability.tolist(), right.tolist(), strict=True))
    # One imagined right and one wrong prediction, so that a bin of one is not sure of itself.
    share = (right * count + 1) / (count + 2)
    spread = 2 * np.sqrt(share * (1 - share) / (count + 2))
    for (x, y), s, d in zip(points, share.tolist(), spread.tolist(), strict=True):
        chart.upright(x, min(y, max(s - d, 0.0)), max(y, min(s + d, 1.0)), "one")
    chart.line(points, "one")
    told = [f"{x:.0%} promised, {y:.0%} right, {n:,} predictions" for (x, y), n in zip(points, count, strict=True)]
    chart.points(points, "one", told)
    words = "Points: what came true, with two standard errors. Dashed: as promised. Bins of equal width."
    return figure(chart.render("Share of right predictions over their probability"), words)


def _sizes(probability: Any, count: Any) -> Html:
    top = 10 ** math.ceil(math.log10(max(int(count.max()), 10)))
    chart = Chart(Scale(0, 1, "predicted probability", percent=True), Scale(0.7, top, "predictions", log=True))
    for x, n in zip(probability.tolist(), count.tolist(), strict=True):
        left = min(int(x * BINS), BINS - 1) / BINS
        chart.bar(left, left + 1 / BINS, n, "one", f"{n:,} predictions around {x:.0%}")
    return figure(chart.render("Number of predictions over their probability"), "How many predictions each bin holds.")


def labels_part(findings: Findings | None, absent: str) -> Html:
    """The labels that fare best and worst."""
    title = "Best and worst labels"
    if findings is None:
        return section("labels", title, paragraph(absent, kind="absent"))
    ranked = findings.ranked()
    if not ranked:
        return section("labels", title, paragraph("No document of the split has a label.", kind="absent"))
    several = ranked[0].support >= LEAST_SUPPORT
    cut = "the first label" if findings.cut == 1 else f"the first {findings.cut} labels"
    words = (
        f"A label counts as predicted for a document if it is among {cut}, the mean number of labels of a document. "
        f"{len(findings.labels):,} labels occur in the split"
        + (f"; judged are the {len(ranked):,} with {LEAST_SUPPORT} or more test documents" if several else "")
        + (f"; never seen in training, so impossible to find: {findings.n_unseen:,}" if findings.n_unseen else "")
        + ". Train and test: documents that have it; P, R and F1 in percent."
    )
    worst = sorted(ranked, key=lambda label: (label.f1, -label.support, label.name))
    tables = (
        tag("div", tag("h3", name), _label_table(some[:LISTED]), class_=f"labels-{name}")
        for name, some in (("worst", worst), ("best", ranked))
    )
    return section("labels", title, paragraph(words), tag("div", *tables, class_="pair"))


def _label_table(labels: Sequence[LabelScore]) -> Html:
    rows = [
        [
            short(label.name, 60),
            "–" if label.trained is None else f"{label.trained:,}",
            f"{label.support:,}",
            f"{label.precision:.0f}",
            f"{label.recall:.0f}",
            tag("b", f"{label.f1:.1f}"),
        ]
        for label in labels
    ]
    return table(["label", "train", "test", "P", "R", "F1"], rows, numbers=range(1, 6))


def examples_part(findings: Findings | None, absent: str) -> Html:
    """Documents with what was predicted."""
    title = "Examples"
    if findings is None:
        return section("examples", title, paragraph(absent, kind="absent"))
    calibrated = findings.calibration is not None
    legend = join(
        *(
            join(_mark(name), f" {words}  ")
            for name, words in (
                ("right", "predicted and true"),
                ("wrong", "predicted and not true"),
                ("missed", f"true, but not among the first {SHOWN}"),
            )
        )
    )
    groups = []
    for kind in dict.fromkeys(example.kind for example in findings.examples):
        cards = (_card(example, calibrated) for example in findings.examples if example.kind == kind)
        groups.append(join(tag("h3", kind.capitalize()), tag("div", *cards, class_="cards")))
    number = "Numbers are probabilities." if calibrated else "Numbers are scores: the model is not calibrated."
    return section("examples", title, paragraph(legend, kind="legend"), paragraph(number, kind="note"), *groups)


def _mark(name: str) -> Html:
    return tag("span", MARKS[name], class_=f"sign {name}", role="img", aria_label=name)


def _card(example: Example, calibrated: bool) -> Html:
    words = "(These data have no texts.)" if example.text is None else short(example.text, EXCERPT)
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
        for label in example.missed[:MISSED]
    ]
    if len(example.missed) > MISSED:
        lines.append(tag("li", f"and {len(example.missed) - MISSED:,} more missed"))
    return tag(
        "article",
        tag("p", words or "(an empty text)"),
        tag("ul", *lines),
        tag("p", f"document {short(example.name, 60)}", class_="note"),
    )
