"""What `labelwise export` brings on this machine's CPU: embeddings and predictions per second, size, P@1.

    python benchmarks/export.py shared/data/gutenberg-lcsh [--train 6000] [--test 2000] [--max-length 128] [--rounds 3]

Trains a hybrid (tf-idf beside all-MiniLM-L6-v2) on documents drawn from a data set, exports it as ONNX in 32 and in 8
bits, and measures the three forms by turns, each in a process of its own: onnxruntime's and torch's threads would
otherwise take the cores from each other. CPU seconds stand beside wall time, since the machine may have other work.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

FORMS = ("torch", "onnx", "onnx-int8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--train", type=int, default=6000)
    parser.add_argument("--test", type=int, default=2000)
    parser.add_argument("--timed", type=int, default=512, help="documents of a round")
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.data, args.measure == "quality", args.timed)))
        return
    with tempfile.TemporaryDirectory() as name:
        compare(args, Path(name))


def compare(args: argparse.Namespace, folder: Path) -> None:
    from labelwise import XTransformer, load_dataset, load_preset
    from labelwise.export import export_model

    parts = [load_dataset(args.data, split=name, allow_duplicate_ids=True) for name in ("train", "test")]
    rng = np.random.default_rng(0)
    train, test = (
        part.take(np.sort(rng.permutation(len(part))[:most]))
        for part, most in zip(parts, (args.train, args.test), strict=True)
    )
    config = load_preset("hybrid")
    config = dataclasses.replace(config, encoder=dataclasses.replace(config.encoder, max_length=args.max_length))
    XTransformer(config).fit(train.texts, train.Y, label_names=train.labels).save(folder / "torch")
    export_model(folder / "torch", folder / "onnx")
    export_model(folder / "torch", folder / "onnx-int8", int8=True)
    truth = [[test.labels[at] for at in part] for part in np.split(test.Y.indices, test.Y.indptr[1:-1])]
    (folder / "test.json").write_text(json.dumps({"texts": test.texts, "labels": truth}), encoding="utf-8")
    print(f"{args.data.name}: {len(train):,} training documents, {len(test):,} test documents", flush=True)
    measured: dict[str, list[dict[str, float]]] = {form: [] for form in FORMS}
    for number in range(args.rounds):
        for form in FORMS if number % 2 == 0 else reversed(FORMS):
            measured[form].append(started(folder / form, "speed", args))
    print("form       MB    embeddings/s  (per CPU s)  predictions/s  (per CPU s)   P@1   vectors off by")
    for form in FORMS:
        quality = started(folder / form, "quality", args)
        best = {key: statistics.median(each[key] for each in measured[form]) for key in measured[form][0]}
        size = sum(file.stat().st_size for file in (folder / form / "matcher" / "encoder").iterdir()) / 1e6
        speeds = "  ".join(
            f"{best[key]:9.0f}     ({best[key + ' CPU']:6.0f})  " for key in ("embeddings", "predictions")
        )
        print(f"{form:9}{size:5.0f}  {speeds} {quality['P@1']:6.2f}   {quality['off']:.1g}", flush=True)
    for key in ("embeddings", "embeddings CPU", "predictions", "predictions CPU"):
        base, rest = (statistics.median(e[key] for e in measured[f]) for f in ("torch", "onnx-int8"))
        print(f"{key}: onnx-int8 is {rest / base:.2f} x torch (medians of {args.rounds} rounds)")
    print("rounds:", json.dumps({f: [{k: round(v) for k, v in e.items()} for e in measured[f]] for f in FORMS}))


def started(model: Path, what: str, args: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, __file__, str(model), "--measure", what, "--timed", str(args.timed)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def measure(folder: Path, quality: bool, timed: int) -> dict[str, float]:
    """Documents per second, or P@1 and the distance of the vectors from torch's."""
    from labelwise import load_model

    model, test = load_model(folder), json.loads((folder.parent / "test.json").read_text(encoding="utf-8"))
    texts, encoder = test["texts"], model.matcher_.encoder_
    if quality:
        pairs = zip(model.predict(texts, top_k=1), test["labels"], strict=True)
        hits = [bool(found) and found[0][0] in true for found, true in pairs]
        E, file = encoder.embed(texts), folder.parent / "torch.npy"
        if folder.name == "torch":
            np.save(file, E)
        return {"P@1": 100 * float(np.mean(hits)), "off": float(np.abs(E - np.load(file)).max())}
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


if __name__ == "__main__":
    main()
