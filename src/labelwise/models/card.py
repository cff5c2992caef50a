"""The model card: the README.md of a saved model, written from what the model knows of itself.

What the model itself cannot show is in its training report: see `labelwise.models.training_report`.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from labelwise import __version__

if TYPE_CHECKING:
    from labelwise.models.base import Model
    from labelwise.models.training_report import HoldoutResult, TrainingReport, Tuning

PACKAGES = ("numpy", "scipy", "numba")
"""Packages whose versions could matter to the numbers in a model."""


def render_card(model: Model) -> str:
    """The card in Markdown."""
    report = model.report_
    answers = "probabilities" if model.calibrator_ is not None else "scores (it is not calibrated: no probabilities)"
    reads = "texts" if model.tfidf_ is not None else "rows of features"
    parts = [
        f"# {model.title()} over {len(model.labels_):,} labels",
        f"A labelwise {__version__} model that reads {reads} and answers with labels and their {answers}.",
        _table(("", ""), _facts(model)),
        "## How good it is",
        *_quality(report.validation, report.tuning),
        "## How to use it",
        _usage(model),
        "## Settings that differ from the default",
        _settings(model.config),
        "## Versions",
        ", ".join(
            [f"labelwise {__version__}", f"Python {platform.python_version()}"]
            + [f"{name} {version(name)}" for name in PACKAGES]
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _facts(model: Model) -> Iterator[tuple[str, str]]:
    report = model.report_
    if report.documents:
        of = "" if report.data is None else f" of {report.data}"
        yield (
            "trained on",
            f"{report.documents:,} documents{of}, {(report.pairs or 0) / report.documents:.1f} labels each",
        )
    if report.columns is not None:
        yield "columns", report.columns.describe()
    if report.fingerprint is not None:
        yield "fingerprint of the data", report.fingerprint
    yield from model.facts()
    yield from _growth(report)
    if report.preset is not None:
        yield "preset", report.preset
    if report.seconds is not None:
        yield "training took", f"{report.seconds:.1f} s, {report.cpu_seconds or 0:.1f} CPU s"
    if report.trained is not None:
        yield "trained", report.trained


def _growth(report: TrainingReport) -> Iterator[tuple[str, str]]:
    """What was added after training: see `labelwise.incremental`."""
    if report.added:
        by_text = sum(one.examples == 0 for one in report.added)
        yield "labels added since", f"{len(report.added):,}, of which {by_text:,} by their text alone"
    if report.updates:
        yield "documents learnt from since", f"{sum(one.documents for one in report.updates):,}"


def _quality(validation: HoldoutResult | None, tuning: Tuning | None) -> Iterator[str]:
    if validation is None:
        yield "Not measured. `labelwise evaluate MODEL DATA` does it."
        return
    scores = validation.scores
    yield f"Measured on {validation.documents:,} documents, {validation.description}. Percent."
    yield _table(list(scores), [[f"{value:.2f}" for value in scores.values()]])
    yield (
        "A document without true labels counts 0, labels never seen in training count as missed, and where fewer than "
        "k labels are predicted the missing ones are wrong."
    )
    error = validation.calibration_error
    if error is not None:
        yield (
            f"Calibration error: {error:.2f} % (expected calibration error over 15 bins of equal size, the 20 best "
            "labels of a document; each half of these documents judged by the curve of the other half)."
        )
    if tuning is not None:
        yield (
            f"Settings were chosen by {tuning.metric} on the same documents, the best of {tuning.trials} trials: "
            "so the figures are slightly too high."
        )


def _usage(model: Model) -> str:
    command = (
        "labelwise predict MODEL texts.txt --top-k 5" if model.tfidf_ is not None else "labelwise predict MODEL DATA"
    )
    python = '["a text"]' if model.tfidf_ is not None else "X"
    code = [
        "import labelwise",
        'model = labelwise.load_model("MODEL")',
        f"print(model.predict({python}, top_k=5)[0])",
    ]
    return "\n".join(["```sh", command, "```", "", "```python", *code, "```"])


def _settings(config: Any) -> str:
    rows = list(_differences(config, type(config)(), ""))
    return _table(("setting", "here", "default"), rows) if rows else "None."


def _differences(config: Any, default: Any, prefix: str) -> Iterator[tuple[str, str, str]]:
    for field in fields(config):
        here, usual = getattr(config, field.name), getattr(default, field.name)
        if is_dataclass(here):
            yield from _differences(here, usual, f"{prefix}{field.name}.")
        elif field.name == "members":
            for number, member in enumerate(here, start=1):
                yield from _differences(member, type(member)(), f"member {number}: ")
        elif here != usual and field.compare:
            yield f"{prefix}{field.name}", f"{here}", f"{usual}"


def _table(head: Sequence[str], rows: Any) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
