#!/usr/bin/env python3
"""Fits one small model of every kind and prints which bytes differ from those of an earlier run.

    python tools/digests.py --write FILE             fit all models, keep their digests in FILE
    python tools/digests.py --against FILE           fit all models, list every digest that moved; exit code 1 if any
    python tools/digests.py --against FILE --only parabel,ensemble

The same seed and data give the same bytes, so a commit that only moves code moves no digest. A digest is the SHA-256
of one file of a model folder, or of the predictions of the model and of its loaded copy. Bytes depend on the processor
and on the versions of numpy, numba and torch: FILE is only good on the machine that wrote it, and says so.
"""

from __future__ import annotations

import argparse
import atexit
import hashlib
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from labelwise import (  # noqa: E402
    Ensemble,
    EnsembleConfig,
    LinearTree,
    NewLabel,
    XTransformer,
    add_labels,
    generate_shop,
    keep_documents,
    load_model,
    load_preset,
    remove_labels,
    update,
)
from labelwise.integrations.onnx_export import export_model  # noqa: E402
from tests.features.tiny import write_model  # noqa: E402

SETTINGS: dict[str, Any] = {"threads": 2, "index": {"n_clusters": 16}}
FINE_TUNING: dict[str, Any] = {
    "epochs": 2.0,
    "batch_size": 16,
    "learning_rate": 2e-3,
    "head_learning_rate": 2e-2,
    "device": "cpu",
    "precision": "fp32",
}
MODELS: dict[str, Callable[[Path], Any]] = {}
"""One function for each kind: it gets an empty folder and gives a fitted model."""


def model(name: str) -> Callable[[Callable[[Path], Any]], Callable[[Path], Any]]:
    """Add a function to `MODELS`."""

    def add(fit: Callable[[Path], Any]) -> Callable[[Path], Any]:
        MODELS[name] = fit
        return fit

    return add


@cache
def data() -> tuple[Any, Any]:
    """Training and test documents, generated."""
    train, test = generate_shop(1200, 150).values()
    return train, test


@cache
def encoder() -> str:
    """The name of a tiny random BERT, which lies in a folder of its own: no path gets into a model folder."""
    folder = Path(tempfile.mkdtemp(prefix="digests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_model(folder / "tiny-bert", "bert")
    os.environ["LABELWISE_ENCODERS"] = str(folder)
    return "tiny-bert"


def linear(preset: str, **changes: Any) -> LinearTree:
    """A linear model of the training documents, without held-out documents and calibration."""
    train, _ = data()
    config = load_preset(preset, **{"threads": 2, "holdout": {"calibrate": False}, **changes})
    return LinearTree(config).fit(train.texts, train.Y, label_names=train.labels)


def neural_config(preset: str, **changes: Any) -> Any:
    """Settings for the tiny encoder."""
    fine_tuning = {**FINE_TUNING, **changes.pop("matcher", {})}
    read = {"name": encoder(), "max_length": 16, "pooling": "mean"}
    return load_preset(preset, **{**SETTINGS, "encoder": read, "matcher": fine_tuning, **changes})


def neural(preset: str, *, validation: bool = False, run_dir: Path | None = None, **changes: Any) -> XTransformer:
    """X-Transformer with the tiny encoder."""
    train, test = data()
    options = {"validation": test} if validation else {}
    model = XTransformer(neural_config(preset, **changes))
    return model.fit(train.texts, train.Y, label_names=train.labels, run_dir=run_dir, **options)


for preset in ("default", "parabel", "xr-linear", "bonsai", "dismec", "plt", "slice"):
    MODELS[preset] = lambda _, preset=preset: linear(preset)


@model("matcher-negatives")
def _matcher_negatives(_: Path) -> Any:
    return linear("parabel", n_trees=1, ranker={"negatives": "tfn+man"}, tfidf={"opening": 4, "ngram_range": (1, 2)})


@model("features")
def _features(_: Path) -> Any:
    train, _ = data()
    X = linear("default").tfidf_.transform(train.texts)
    config = load_preset("parabel", **SETTINGS, holdout={"calibrate": False})
    return LinearTree(config).fit(X, train.Y, label_names=train.labels)


@model("calibrated")
def _calibrated(_: Path) -> Any:
    train, test = data()
    config = load_preset("parabel", n_trees=2, **SETTINGS)
    return LinearTree(config).fit(train.texts, train.Y, label_names=train.labels, validation=test)


@model("held-out")
def _held_out(_: Path) -> Any:
    return linear("parabel", n_trees=2, holdout={})


@model("held-out-neighbours")
def _held_out_neighbours(_: Path) -> Any:
    return linear("slice", holdout={})


@model("hybrid")
def _hybrid(_: Path) -> Any:
    return neural("hybrid")


@model("x-transformer")
def _x_transformer(folder: Path) -> Any:
    return neural("x-transformer", run_dir=folder / "run")


@model("x-transformer-zero-start")
def _zero_start(_: Path) -> Any:
    changes = {"init": "zero", "linear_term": False, "loss": "bce", "negatives_from": "out-of-fold", "folds": 2}
    return neural("x-transformer", matcher=changes, label_embedding="text-emb", features="neural")


@model("learnt-labels")
def _learnt_labels(_: Path) -> Any:
    return neural("x-transformer", validation=True, matcher={"learn_labels": True}, label_embedding="pifa-tfidf")


@model("validation-learnt")
def _validation_learnt(_: Path) -> Any:
    return neural("hybrid", validation=True, learn_validation=True, beam=5, score_transform="sigmoid")


def ensemble_config() -> EnsembleConfig:
    """A linear member, two that share a fine-tuned encoder, and one whose encoder is frozen."""
    members = (
        load_preset("parabel", n_trees=1, **SETTINGS),
        neural_config("x-transformer", label_embedding="pifa-tfidf"),
        neural_config("x-transformer", label_embedding="pifa-neural"),
        neural_config("hybrid"),
    )
    return EnsembleConfig(members=members, threads=2)


@model("ensemble")
def _ensemble(folder: Path) -> Any:
    train, _ = data()
    model = Ensemble(ensemble_config())
    return model.fit(train.texts, train.Y, label_names=train.labels, run_dir=folder / "run")


@model("ensemble-of-fitted")
def _ensemble_of_fitted(_: Path) -> Any:
    return Ensemble.of([linear("parabel", n_trees=1), linear("xr-linear", seed=1)], validation=data()[1])


@model("grown")
def _grown(_: Path) -> Any:
    train, test = data()
    kept = keep_documents(linear("parabel", n_trees=2), train)
    new = [NewLabel("bike bell", "a bell for bicycles", test.texts[:3]), NewLabel("tea cosy", "keeps tea warm", [])]
    return update(remove_labels(add_labels(kept, new), ["tea cosy"]), test.take(np.arange(40)))


@model("grown-x-transformer")
def _grown_neural(_: Path) -> Any:
    train, test = data()
    return add_labels(neural("x-transformer"), [NewLabel("bike bell", None, test.texts[:3])], data=train)


@model("exported")
def _exported(folder: Path) -> Any:
    neural("x-transformer").save(folder / "before")
    export_model(folder / "before", folder / "after", int8=True, ranker="int8")
    return load_model(folder / "after")


# ---------------------------------------------------------------------- digests


def digests(name: str) -> dict[str, str]:
    """What to compare of a model: one digest a file, one for predictions, one for those of the loaded copy."""
    with tempfile.TemporaryDirectory(prefix="digests-") as place:
        folder = Path(place)
        fitted = MODELS[name](folder)
        fitted.save(folder / "model")
        files = sorted(file for file in (folder / "model").rglob("*") if file.is_file())
        found = {file.relative_to(folder / "model").as_posix(): _of_file(file, folder) for file in files}
        found["predictions"] = _of_predictions(fitted)
        found["predictions when loaded"] = _of_predictions(load_model(folder / "model"))
    return found


def _of_file(file: Path, run: Path) -> str:
    """The digest of a file; of JSON without the seconds that training took, and without the folder of this run."""
    content = file.read_bytes()
    if file.suffix == ".json":
        content = re.sub(rb'"seconds": [0-9.e-]+', b'"seconds": 0', content.replace(str(run).encode(), b"RUN"))
    return hashlib.sha256(content).hexdigest()[:16]


def _of_predictions(fitted: Any) -> str:
    texts = data()[1].texts
    if fitted.tfidf_ is None:
        texts = linear("default").tfidf_.transform(texts)
    predictions = fitted.predict(texts, top_k=7)
    digest = hashlib.sha256(json.dumps(list(predictions.labels)).encode())
    for part in (predictions.matrix.indptr, predictions.matrix.indices, predictions.matrix.data):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:16]


def machine() -> dict[str, str]:
    """What the bytes depend on beside the code."""
    packages = ("numpy", "scipy", "numba", "torch", "transformers", "onnxruntime")
    return {
        "processor": _processor(),
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    flags = next((line for line in lines if line.startswith("flags")), "")
    return f"{platform.machine()} {hashlib.sha256(flags.encode()).hexdigest()[:8]}"


def moved(before: dict[str, str], now: dict[str, str]) -> Iterator[str]:
    """A line for each digest that differs."""
    for part in sorted(before.keys() | now.keys()):
        if before.get(part) != now.get(part):
            yield f"{part}: {before.get(part, 'not there')} -> {now.get(part, 'not there')}"


def main() -> int:
    """Fit, compare, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", help="keep the digests in this file")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with the digests of this file")
    parser.add_argument("--only", default="", help="names of models with commas between them; all if not given")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(MODELS)
    if unknown := [name for name in names if name not in MODELS]:
        parser.error(f"there is no model {unknown[0]!r}; there are: {', '.join(MODELS)}")
    before: dict[str, Any] = json.loads(options.against.read_text()) if options.against else {}
    if before and before["machine"] != machine():
        print(f"the file was made elsewhere, so bytes may differ: {before['machine']}, here {machine()}")
    found, n_moved, n_digests = {}, 0, 0
    for name in names:
        begin = time.perf_counter()
        found[name] = digests(name)
        n_digests += len(found[name])
        changes = list(moved(before["models"].get(name, {}), found[name])) if before else []
        n_moved += len(changes)
        told = f", {len(changes)} moved" if before else ""
        print(f"{name}: {len(found[name])} digests{told} ({time.perf_counter() - begin:.1f} s)", flush=True)
        for line in changes:
            print(f"  {line}")
    if options.write:
        options.write.write_text(json.dumps({"machine": machine(), "models": found}, indent=1) + "\n")
    if before:
        print(f"{n_moved} of {n_digests} digests of {len(names)} models moved")
    return int(n_moved > 0)


if __name__ == "__main__":
    raise SystemExit(main())
