"""The head of the page: a verdict in words, the headline figures, and what the measures mean."""

from __future__ import annotations

import math
from collections.abc import Iterable

from labelwise.models.base import Model
from labelwise.report.html import Child, Html, facts, paragraph, section, tag
from labelwise.report.split_evaluation import SplitEvaluation

TERMS = {
    "P": "precision: the share of the k best labels of a document that is right",
    "R": "recall: the share of a document's true labels that is among its k best labels",
    "nDCG": "like P, but right labels at the top of the list count more; 100 is the best possible order",
    "RP": "R-precision: like P, but divided by the number of true labels where a document has fewer than k",
    "PSP": "propensity-scored precision: like P, but right labels count more the rarer they are in training",
    "PSnDCG": "propensity-scored nDCG: like nDCG, but right labels count more the rarer they are in training",
    "micro-F1": "the harmonic mean of precision and recall, counted over all documents together",
    "macro-F1": "the mean of the F1 of all labels, where each label counts the same, frequent or rare",
    "coverage": "the share of the labels that is predicted rightly at least once",
    "F1": "the harmonic mean of the precision and the recall of a label",
    "ECE": "expected calibration error: the mean distance between a probability and how often it is right",
}


def term(name: str) -> Html:
    """A measure's name with its meaning as a tooltip; other words stay as they are."""
    meaning = TERMS.get(name.partition("@")[0])
    return tag("abbr", name, title=meaning) if meaning else Html(tag("span", name))


def legend(names: Iterable[str]) -> Html:
    """What these measures mean, folded."""
    rows: list[tuple[str, Child]] = [(name, TERMS[name]) for name in names if name in TERMS]
    return tag("details", tag("summary", "What the measures mean"), facts(rows))


def summary_part(evaluation: SplitEvaluation | None, model: Model | None, absent: str) -> Html:
    """The section on top: one sentence for people, then the figures that everybody asks for."""
    if evaluation is None:
        return section("summary", "In short", paragraph(absent, kind="absent"))
    scores = {name: score.value for name, score in evaluation.metrics.scores.items()}
    figures = [
        (name, f"{scores[name]:.1f} %") for name in ("P@1", "nDCG@5", "PSP@5") if not math.isnan(_of(scores, name))
    ]
    if evaluation.calibration is not None and not math.isnan(evaluation.calibration[0]):
        figures.append(("ECE", f"{evaluation.calibration[0]:.1f} %"))
    if model is not None and model.report_.seconds is not None:
        figures.append(("training", _duration(model.report_.seconds)))
    tiles = [tag("div", tag("dt", term(name)), tag("dd", value)) for name, value in figures]
    verdict = tag("p", " ".join(_verdict(evaluation, scores)), class_="verdict")
    return section("summary", "In short", verdict, tag("dl", *tiles, class_="tiles"))


def _of(scores: dict[str, float], name: str) -> float:
    return scores.get(name, math.nan)


def _verdict(evaluation: SplitEvaluation, scores: dict[str, float]) -> Iterable[str]:
    found = evaluation.metrics
    yield f"The first label is right for {scores['P@1']:.0f} of 100 documents of the split {evaluation.split}."
    if not math.isnan(_of(scores, "R@5")):
        yield f"The five best labels hold {scores['R@5']:.0f} % of the true ones."
    rare = found.buckets.get("tail")
    if rare is not None and rare.n_labels and not math.isnan(rare.scores["R@5"].value):
        yield f"Of the rare labels (at most five training documents) they hold {rare.scores['R@5'].value:.0f} %."
    if evaluation.calibration is None:
        yield "The model gives scores, not probabilities."
    elif not math.isnan(evaluation.calibration[0]):
        yield f"A probability is off by {evaluation.calibration[0]:.1f} points on average."


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
