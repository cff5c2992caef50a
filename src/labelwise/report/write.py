"""The report: one page that tells of a run, its data, its model and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import numpy as np

from labelwise import __version__
from labelwise.data import Dataset, load_splits
from labelwise.errors import DataError, UsageError
from labelwise.models.base import Model, load_model
from labelwise.report.clusters import Picture, draw_tree
from labelwise.report.findings import Findings, examine
from labelwise.report.html import Html, join, tag
from labelwise.report.quality import calibration_part, examples_part, frequency_part, labels_part, metrics_part
from labelwise.report.record import Record, read_records
from labelwise.report.sections import data_part, history_of, model_part, time_part, training_part, tree_part
from labelwise.storage import atomic_file
from labelwise.types import Csr, OnEvent

PARTS = {
    "model": "Model",
    "metrics": "How good it is",
    "frequency": "By label frequency",
    "calibration": "Calibration",
    "labels": "Best and worst labels",
    "examples": "Examples",
    "tree": "Tree of labels",
    "training": "Training",
    "data": "Data",
    "time": "Time and memory",
}


def write_report(
    run_dir: Path | str,
    output: Path | str,
    *,
    model: Model | Path | str | None = None,
    data: Mapping[str, Dataset] | Path | str | None = None,
    split: str = "test",
    record: Record | None = None,
    title: str | None = None,
    generated: bool = False,
    bootstrap: int = 1000,
    seed: int = 0,
    on_event: OnEvent | None = None,
) -> Path:
    """Write a self-contained HTML page about a run.

    What is not given is not shown, and the page says so in its place.

    Parameters
    ----------
    run_dir
        The run directory: time and memory by stage, and the training curve.
    output
        The page to write; it appears whole or not at all.
    model
        The model that was trained, or its folder: its tree, and what it predicts.
    data
        Splits by name, over the same labels (see `load_splits`), or where they lie.
    split
        The split that the model is tested on.
    record
        Which of the run directory's runs it is about; the latest if not given.
    title
        The page's heading.
    generated
        The data were made by a program, which the page then says; found by itself where they lie in a shop's folder.
    bootstrap, seed
        Resamples behind the intervals, and where chance begins.

    Examples
    --------
    >>> write_report("runs/shop", "report.html", model="my-model", data="my-shop")
    """
    output = Path(output)
    if output.is_dir():
        raise UsageError(f"{output} is a folder; give a file to write, such as {output / 'report.html'}")
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
    with atomic_file(output) as aside:
        aside.write_bytes(page.encode("utf-8", errors="replace"))
    return output


def _page(
    title: str,
    record: Record,
    model: Model | None,
    splits: Mapping[str, Dataset] | None,
    split: str,
    generated: bool,
    bootstrap: int,
    seed: int,
    on_event: OnEvent | None,
) -> Html:
    """All parts, in the order of PARTS."""
    train = splits.get("train") if splits else None
    findings: Findings | None = None
    absent = _absent(model, splits, split)
    if not absent and model is not None and splits:
        findings = examine(model, splits[split], train, split=split, bootstrap=bootstrap, seed=seed, on_event=on_event)
    no_model = "The model is not known: pass --model to see what it is made of and what it predicts."
    no_data = "The data are not known: pass --data to see them."
    picture, remarks = _tree(model, train, findings, no_model, on_event)
    curve, restarts, best_step = history_of(model, record)
    parts = {
        "model": model_part(model, record, no_model),
        "metrics": metrics_part(findings, model.report_.validation if model else None, absent),
        "frequency": frequency_part(findings, absent),
        "calibration": calibration_part(findings, absent),
        "labels": labels_part(findings, absent),
        "examples": examples_part(findings, absent),
        "tree": tree_part(picture, remarks),
        "training": training_part(curve, restarts, best_step, _no_curve(model), len(model.members) if model else 1),
        "data": data_part(splits, generated, no_data),
        "time": time_part(record),
    }
    links = (tag("a", words, href=f"#{part}") for part, words in PARTS.items())
    head = tag("header", tag("h1", title), tag("nav", *links, aria_label="parts of this page"))
    foot = tag("footer", f"Written by labelwise {__version__}. This page needs nothing outside of itself.")
    body = tag(
        "body", head, tag("main", *(parts[part] for part in PARTS)), foot, Html(f"<script>{_part('page.js')}</script>")
    )
    view = tag("meta", name="viewport", content="width=device-width, initial-scale=1")
    style = Html(f"<style>{_part('page.css')}</style>")
    # No page may be fetched from anywhere, whatever a label or a text says.
    policy = tag(
        "meta",
        http_equiv="Content-Security-Policy",
        content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'",
    )
    top = tag("head", Html('<meta charset="utf-8">'), view, policy, tag("title", title), style)
    return join(Html("<!doctype html>\n"), tag("html", top, body, lang="en"), Html("\n"))


def _part(name: str) -> str:
    return (files("labelwise.report") / name).read_text(encoding="utf-8")


def _absent(model: Model | None, splits: Mapping[str, Dataset] | None, split: str) -> str:
    """Why nothing can be told of predictions; empty if something can."""
    if model is None:
        return "The model is not known, so nothing was predicted: pass --model."
    if not splits:
        return "There are no data to test on: pass --data."
    if split not in splits:
        return f"The data have no split {split}, so nothing was tested; there are: {', '.join(splits)}."
    if not len(splits[split]):
        return f"The split {split} is empty, so nothing was tested."
    return ""


def _no_curve(model: Model | None) -> str:
    if model is None:
        return "Nothing was fine-tuned in this run, so there is no curve."
    if all(member.encoder is not None for member in model.members):
        return "The encoder was used as it was pretrained: nothing was fine-tuned, so there is no curve."
    return "A linear model is solved, not trained step by step: there is no curve."


def _tree(
    model: Model | None, train: Dataset | None, findings: Findings | None, no_model: str, on_event: OnEvent | None
) -> tuple[Picture | None, list[str]]:
    """The tree with its words, and what has to be said about it."""
    if model is None:
        return None, [no_model]
    remarks = []
    first, trees = model.members[0], model.members[0].trees
    if len(model.members) > 1:
        remarks.append(f"The tree of the first of {len(model.members)} models.")
    if len(trees) > 1:
        remarks.append(f"The first of {len(trees)} trees, which differ by chance.")
    if trees[0].depth == 1:
        remarks.append("There are no clusters: each label has a model of its own over all documents.")
    Y: Csr | None = None
    X: Csr | None = None
    tfidf = first.tfidf_
    if train is None:
        remarks.append("Words and numbers of documents need the training split: pass --data.")
    else:
        Y = Csr(train.with_labels(model.labels_).Y[:, : len(model.labels_)])
        if tfidf is None or train.texts is None:
            remarks.append("The model reads features that have no names, so clusters have no words.")
        else:
            X = tfidf.transform(train.texts, on_event=on_event)
    f1 = None
    if findings is not None:
        known = {label.name: label.f1 for label in findings.labels}
        f1 = np.array([known.get(name, np.nan) for name in model.labels_])
    picture = draw_tree(trees[0], model.labels_, Y=Y, X=X, tfidf=tfidf if X is not None else None, f1=f1)
    return picture, remarks + picture.remarks
