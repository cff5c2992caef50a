"""The report: an HTML page about a run, its data, its model and the model's predictions."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import numpy as np

from labelwise import __version__
from labelwise.data import Dataset, load_splits
from labelwise.errors import DataError, UsageError
from labelwise.models.base import Model, load_model
from labelwise.report.clusters import TreeDrawing, tree_drawing
from labelwise.report.html import Html, join, tag
from labelwise.report.quality import calibration_part, examples_part, frequency_part, labels_part, metrics_part
from labelwise.report.record import RunRecord, read_records
from labelwise.report.sections import data_part, model_part, time_part, training_history, training_part, tree_part
from labelwise.report.split_evaluation import SplitEvaluation, evaluate_split
from labelwise.report.summary import summary_part
from labelwise.storage import atomic_file, check_writable
from labelwise.types import Csr, OnEvent

PARTS = {
    "summary": "In short",
    "model": "Model",
    "metrics": "Metrics",
    "frequency": "By label frequency",
    "calibration": "Calibration",
    "labels": "Labels",
    "examples": "Examples",
    "tree": "Label tree",
    "training": "Training",
    "data": "Data",
    "time": "Time, memory",
}


def write_report(
    run_dir: Path | str,
    output: Path | str,
    *,
    model: Model | Path | str | None = None,
    data: Mapping[str, Dataset] | Path | str | None = None,
    split: str = "test",
    record: RunRecord | None = None,
    title: str | None = None,
    generated: bool = False,
    bootstrap: int = 1000,
    seed: int = 0,
    on_event: OnEvent | None = None,
) -> Path:
    """Write a self-contained HTML page about a run.

    Where an argument is missing, the page names the missing argument instead of the content.

    Parameters
    ----------
    run_dir
        The run directory: time and memory by stage, and the training curve.
    output
        The page to write; an error leaves no half-written page.
    model
        The trained model, or its folder, for the label tree and the predictions.
    data
        Splits by name, over the same labels (see `load_splits`), or the path of the data.
    split
        The split that the model is evaluated on.
    record
        The run of the run directory that the page is about; the latest one if not given.
    title
        Heading of the page.
    generated
        Whether a program made the data; the page then says so. Detected for the folder of a generated shop.
    bootstrap, seed
        Number of resamples for the intervals, and the random seed.

    Examples
    --------
    >>> write_report("runs/shop", "report.html", model="my-model", data="my-shop")
    """
    output = Path(output)
    if output.is_dir():
        raise UsageError(f"{output} is a folder; give a file to write, such as {output / 'report.html'}")
    check_writable(output, is_file=True)
    record = record or read_records(run_dir)[-1]
    name = Path(run_dir).resolve().name
    if isinstance(model, Path | str):
        name, model = Path(model).resolve().name, load_model(model)
    if isinstance(data, Path | str):
        generated = generated or (Path(data) / "shop.json").is_file()
        data = load_splits(data, on_event=on_event)
    if data and split not in data and split != "test":
        raise DataError(f"there is no split {split!r}; there are: {', '.join(data)}")
    page = _page(
        title or f"{name}: a run of labelwise", record, model, data, split, generated, bootstrap, seed, on_event
    )
    with atomic_file(output) as temporary:
        temporary.write_bytes(page.encode("utf-8", errors="replace"))
    return output


def _page(
    title: str,
    record: RunRecord,
    model: Model | None,
    splits: Mapping[str, Dataset] | None,
    split: str,
    generated: bool,
    bootstrap: int,
    seed: int,
    on_event: OnEvent | None,
) -> Html:
    """The page with all sections, in the order of PARTS."""
    train = splits.get("train") if splits else None
    evaluation: SplitEvaluation | None = None
    absent = _reason_for_no_evaluation(model, splits, split)
    if not absent and model is not None and splits:
        evaluation = evaluate_split(
            model, splits[split], train, split=split, bootstrap=bootstrap, seed=seed, on_event=on_event
        )
    no_model = "The model is not known: pass --model to see its settings, its label tree and its predictions."
    no_data = "The data are not known: pass --data to see their sizes."
    drawing, remarks = _tree(model, train, evaluation, no_model, on_event)
    curve, restarts, best_step = training_history(model, record)
    parts = {
        "summary": summary_part(evaluation, model, absent),
        "model": model_part(model, record, no_model),
        "metrics": metrics_part(evaluation, model.report_.validation if model else None, absent),
        "frequency": frequency_part(evaluation, absent),
        "calibration": calibration_part(evaluation, absent),
        "labels": labels_part(evaluation, absent),
        "examples": examples_part(evaluation, absent),
        "tree": tree_part(drawing, remarks),
        "training": training_part(
            curve, restarts, best_step, _reason_for_no_curve(model), len(model.members) if model else 1
        ),
        "data": data_part(splits, generated, no_data),
        "time": time_part(record),
    }
    links = (tag("a", words, href=f"#{part}") for part, words in PARTS.items())
    head = tag("header", tag("h1", title))
    way = tag("nav", *links, class_="parts", aria_label="parts of this page")
    body_parts = {**parts, "metrics": tag("div", parts["metrics"], parts["frequency"], class_="pair")}
    del body_parts["frequency"]
    foot = tag("footer", f"Written by labelwise {__version__}. This page loads nothing from other places.")
    program = Html(f"<script>{_file_text('page.js')}</script>")
    body = tag("body", head, way, tag("main", *body_parts.values()), foot, program)
    view = tag("meta", name="viewport", content="width=device-width, initial-scale=1")
    style = Html(f"<style>{_file_text('page.css')}</style>")
    # The browser may load nothing from anywhere, whatever a label or a text holds.
    policy = tag(
        "meta",
        http_equiv="Content-Security-Policy",
        content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'",
    )
    top = tag("head", Html('<meta charset="utf-8">'), view, policy, tag("title", title), style)
    return join(Html("<!doctype html>\n"), tag("html", top, body, lang="en"), Html("\n"))


def _file_text(name: str) -> str:
    return (files("labelwise.report") / name).read_text(encoding="utf-8")


def _reason_for_no_evaluation(model: Model | None, splits: Mapping[str, Dataset] | None, split: str) -> str:
    """Why the model cannot be evaluated; an empty string if it can."""
    if model is None:
        return "The model is not known, so nothing was predicted: pass --model."
    if not splits:
        return "There are no data to evaluate on: pass --data."
    if split not in splits:
        return f"The data have no split {split}, so nothing was evaluated; there are: {', '.join(splits)}."
    if not len(splits[split]):
        return f"The split {split} is empty, so nothing was evaluated."
    return ""


def _reason_for_no_curve(model: Model | None) -> str:
    if model is None:
        return "Nothing was fine-tuned in this run, so there is no curve."
    if all(member.encoder is not None for member in model.members):
        return "The encoder was not fine-tuned, so there is no curve."
    return "A linear model is solved, not trained step by step, so there is no curve."


def _tree(
    model: Model | None,
    train: Dataset | None,
    evaluation: SplitEvaluation | None,
    no_model: str,
    on_event: OnEvent | None,
) -> tuple[TreeDrawing | None, list[str]]:
    """The drawing of the label tree, and remarks about it."""
    if model is None:
        return None, [no_model]
    remarks = []
    first, trees = model.members[0], model.members[0].trees
    if len(model.members) > 1:
        remarks.append(f"The tree of the first of {len(model.members)} models.")
    if len(trees) > 1:
        remarks.append(f"The first of {len(trees)} trees, which differ in their random seeds.")
    if trees[0].depth == 1:
        remarks.append("There are no clusters: the model of each label is trained on all documents.")
    Y: Csr | None = None
    X: Csr | None = None
    tfidf = first.tfidf_
    if train is None:
        remarks.append("Words of clusters and numbers of documents need the training split: pass --data.")
    else:
        Y = Csr(train.with_labels(model.labels_).Y[:, : len(model.labels_)])
        if tfidf is None or train.texts is None:
            remarks.append("The model was trained on features without names, so clusters have no words.")
        else:
            X = tfidf.transform(train.texts, on_event=on_event)
    f1 = None
    if evaluation is not None:
        f1_of = {label.name: label.f1 for label in evaluation.labels}
        f1 = np.array([f1_of.get(name, np.nan) for name in model.labels_])
    drawing = tree_drawing(trees[0], model.labels_, Y=Y, X=X, tfidf=tfidf if X is not None else None, f1=f1)
    return drawing, remarks + drawing.remarks
