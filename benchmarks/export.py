"""Measures exported models on this machine's CPU: embeddings and predictions per second, size, P@1.

    python benchmarks/export.py DATA/gutenberg-lcsh [--train 4000] [--test 1500] [--rounds 5] [--check]

The script trains a hybrid (tf-idf and all-MiniLM-L6-v2) on a sample of a data set, and exports it as ONNX with 32 bits,
with 8 bits, and with 8 bits in the ranker too. The forms are measured in turns, each in its own process: otherwise the
threads of onnxruntime and torch compete for the cores. If openvino is installed it reads the same files. CPU seconds
are reported with wall time, since the machine may have other work. Other work slows torch most, since its threads wait
for each other. So `--pinned` starts one process with one thread on every core and adds up the rates: this is the fair
comparison on a machine with other work. `--keep FOLDER` keeps the models for the next run.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

EXPORTS: dict[str, dict[str, Any]] = {
    "onnx": {},
    "onnx-int8": {"int8": True},
    "onnx-int8, ranker int8": {"int8": True, "ranker": "int8"},
}
OPENVINO = {"openvino": "onnx", "openvino, int8 file": "onnx-int8"}
"""Forms whose files are those of another form, read by OpenVINO."""
SPEED, LOSS = 3.0, 0.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--train", type=int, default=4000)
    parser.add_argument("--test", type=int, default=1500)
    parser.add_argument("--timed", type=int, default=512, help="documents of a round")
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="a folder for the models")
    parser.add_argument("--check", action="store_true", help=f"fail below {SPEED:g} x torch or above {LOSS} P@1 lost")
    parser.add_argument(
        "--pinned", action="store_true", help="one process with one thread on each core, rates added up"
    )
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.data, args.measure, args.timed)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = args.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "test.json").is_file():
            prepare(args, folder)
        compare(args, folder)


def prepare(args: argparse.Namespace, folder: Path) -> None:
    """Train, export, and keep the test documents."""
    from labelwise import XTransformer, load_dataset, load_preset
    from labelwise.integrations.onnx_export import export_model

    parts = [load_dataset(args.data, split=name) for name in ("train", "test")]
    rng = np.random.default_rng(0)
    train, test = (
        part.take(np.sort(rng.permutation(len(part))[:most]))
        for part, most in zip(parts, (args.train, args.test), strict=True)
    )
    config = load_preset("hybrid")
    config = dataclasses.replace(config, encoder=dataclasses.replace(config.encoder, max_length=args.max_length))
    XTransformer(config).fit(train.texts, train.Y, label_names=train.labels).save(folder / "torch")
    for name, options in EXPORTS.items():
        export_model(folder / "torch", folder / name, overwrite=True, **options)
    truth = [[test.labels[at] for at in part] for part in np.split(test.Y.indices, test.Y.indptr[1:-1])]
    (folder / "test.json").write_text(json.dumps({"texts": test.texts, "labels": truth}), encoding="utf-8")


def compare(args: argparse.Namespace, folder: Path) -> None:
    """Measure all forms in turns, print the table, and check the targets."""
    forms = ["torch", *EXPORTS, *(OPENVINO if find_spec("openvino") else ())]
    measured: dict[str, list[dict[str, float]]] = {form: [] for form in forms}
    for number in range(args.rounds):
        for form in forms if number % 2 == 0 else reversed(forms):
            measured[form].append(started(folder, form, "speed", args))
    keys = ("embeddings", "embeddings CPU", "predictions", "predictions CPU")
    middles = {form: {key: statistics.median(each[key] for each in measured[form]) for key in keys} for form in forms}
    best = {form: {key: max(each[key] for each in measured[form]) for key in keys} for form in forms}
    print(
        "| form | embeddings/s | per CPU s | predictions/s | per CPU s | folder MB | P@1 |"
        "\n|---|---|---|---|---|---|---|"
    )
    precision = {}
    for form in forms:
        precision[form] = started(folder, form, "quality", args)["P@1"]
        model = folder / OPENVINO.get(form, form)
        size = sum(file.stat().st_size for file in model.rglob("*") if file.is_file()) / 1e6
        rates = " | ".join(f"{best[form][key]:.0f} ({middles[form][key]:.0f})" for key in keys)
        print(f"| {form} | {rates} | {size:.0f} | {precision[form]:.2f} |", flush=True)
    ratios = {key: best["onnx-int8"][key] / best["torch"][key] for key in keys}
    usual = {key: middles["onnx-int8"][key] / middles["torch"][key] for key in keys}
    lost = precision["torch"] - precision["onnx-int8"]
    print(f"The best (and the median) of {args.rounds} rounds of {args.timed} documents.")
    for title, each in (("best rounds", ratios), ("medians", usual)):
        print(f"onnx-int8 over torch, {title}:", ", ".join(f"{key} {ratio:.2f} x" for key, ratio in each.items()))
    print(f"P@1 lost: {lost:.2f}")
    print("rounds:", json.dumps({f: [{k: round(v) for k, v in e.items()} for e in measured[f]] for f in forms}))
    if args.check and (min(*ratios.values(), *usual.values()) < SPEED or lost > LOSS):
        sys.exit(f"missed: {SPEED:g} x torch in all rates, by best rounds and by medians, and at most {LOSS} P@1 lost")


def started(folder: Path, form: str, what: str, args: argparse.Namespace) -> dict[str, float]:
    """The figures that a new process measures; with --pinned one process on each core, with rates added up."""
    reader = ":openvino" if form in OPENVINO else ""
    command = [sys.executable, __file__, str(folder / OPENVINO.get(form, form))]
    command += ["--measure", what + reader, "--timed", str(args.timed)]
    cores = sorted(os.sched_getaffinity(0)) if args.pinned and what == "speed" else []
    commands = [["taskset", "-c", str(core), *command] for core in cores] or [command]
    running = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in commands]
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        sys.exit(f"{form} could not be measured")
    found: list[dict[str, float]] = [json.loads(output) for output in outputs]
    # Documents per CPU second are averaged: two cores have two CPU seconds in a second.
    return {key: sum(each[key] for each in found) / (len(found) if key.endswith("CPU") else 1) for key in found[0]}


def measure(folder: Path, what: str, timed: int) -> dict[str, float]:
    """Documents per second, or P@1."""
    from labelwise import load_model

    model, test = load_model(folder), json.loads((folder.parent / "test.json").read_text(encoding="utf-8"))
    texts, encoder = test["texts"], model.matcher_.encoder_
    what, _, reader = what.partition(":")
    if reader:
        encoder._session = OpenVino(encoder.folder / "model.onnx")
    if what == "quality":
        pairs = zip(model.predict(texts, top_k=1), test["labels"], strict=True)
        return {"P@1": 100 * float(np.mean([bool(found) and found[0][0] in true for found, true in pairs]))}
    texts = texts[:timed]
    tokens = encoder.tokenize(texts)
    found = {}
    for name, work in (("embeddings", lambda: encoder.embed(tokens)), ("predictions", lambda: model.predict(texts))):
        work()
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        found[name] = len(texts) / (time.perf_counter() - wall)
        found[f"{name} CPU"] = len(texts) / (time.process_time() - cpu)
    return found


class OpenVino:
    """OpenVINO instead of onnxruntime, in the precision that OpenVINO chooses: bfloat16 if the CPU has it."""

    def __init__(self, file: Path) -> None:
        import openvino

        from labelwise.engines.threads import available_cores

        core, cores = openvino.Core(), available_cores()
        options = {"NUM_STREAMS": cores, "INFERENCE_NUM_THREADS": cores}
        self.model = core.compile_model(core.read_model(file), "CPU", options)
        self.local = threading.local()

    def run(self, outputs: list[str], inputs: dict[str, Any]) -> list[Any]:
        if not hasattr(self.local, "request"):
            self.local.request = self.model.create_infer_request()
        found = self.local.request.infer(inputs)
        return [np.array(found[name]) for name in outputs]


if __name__ == "__main__":
    main()
