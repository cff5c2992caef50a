"""The model card: the README.md of a saved model, written from what the model knows of itself.

`Model.report_` holds what the card cannot see in the model. `fit` puts in ``documents`` and ``pairs``; whoever
trains may add ``data``, ``preset``, ``trained`` (a date), ``seconds``, ``cpu_seconds``, ``tuning`` (trials, metric) and
``validation`` (documents, kind, scores, calibration_error), as `labelwise train` does. `labelwise.incremental`
adds ``added`` and ``updates``.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from labelwise import __version__

if TYPE_CHECKING:
    from labelwise.models.base import Model

PACKAGES = ("numpy", "scipy", "numba")
"""Packages whose versions could matter to the numbers in a model."""

HELD_OUT = {
    "split": "the validation split, which the model was not trained on",
    "learnt split": "the validation split, before the model learnt from it too (an encoder does not)",
    "share": "a share of the training documents, set aside; the encoder did not learn from them, the ranker then did",
    "part": "a part of the training documents, set aside; the model itself was then trained on all of them",
    "tenth": "a tenth of the training documents, set aside; the model itself was then trained on all of them",
}
"""What `validation["kind"]` means."""


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
        *_quality(report.get("validation"), report.get("tuning")),
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
    documents, pairs = report.get("documents", 0), report.get("pairs", 0)
    if documents:
        of = f" of {report['data']}" if "data" in report else ""
        yield "trained on", f"{documents:,} documents{of}, {pairs / documents:.1f} labels each"
    yield from model.facts()
    yield from _growth(report)
    if "preset" in report:
        yield "preset", f"{report['preset']}"
    if "seconds" in report:
        yield "training took", f"{report['seconds']:.1f} s, {report['cpu_seconds']:.1f} CPU s"
    if "trained" in report:
        yield "trained", f"{report['trained']}"


def _growth(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What was added after training: see `labelwise.incremental`."""
    added = report.get("added", [])
    if added:
        by_text = sum(one["examples"] == 0 for one in added)
        yield "labels added since", f"{len(added):,}, of which {by_text:,} by their text alone"
    updates = report.get("updates", [])
    if updates:
        yield "documents learnt from since", f"{sum(one['documents'] for one in updates):,}"


def _quality(validation: Mapping[str, Any] | None, tuning: Mapping[str, Any] | None) -> Iterator[str]:
    if validation is None:
        yield "Not measured. `labelwise evaluate MODEL DATA` does it."
        return
    scores: Mapping[str, float] = validation["scores"]
    yield f"Measured on {validation['documents']:,} documents, {HELD_OUT[validation['kind']]}. Percent."
    yield _table(list(scores), [[f"{value:.2f}" for value in scores.values()]])
    yield (
        "A document without true labels counts 0, labels never seen in training count as missed, and where fewer than "
        "k labels are predicted the missing ones are wrong."
    )
    error = validation.get("calibration_error")
    if error is not None:
        yield (
            f"Calibration error: {error:.2f} % (expected calibration error over 15 bins of equal size, the 20 best "
            "labels of a document; each half of these documents judged by the curve of the other half)."
        )
    if tuning is not None:
        yield (
            f"Settings were chosen by {tuning['metric']} on the same documents, the best of {tuning['trials']} trials: "
            "the figures flatter the model a little."
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
