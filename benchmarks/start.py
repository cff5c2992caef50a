"""Measures how soon a large linear model answers, and its memory: weights are memory-mapped, not read.

    python benchmarks/start.py [--products 200000] [--queries 100000] [--keep FOLDER]

The script trains a linear model on the generated shop and exports it with weights of 8 bits. Then it measures, each in
its own process: `load_model` and one prediction, with and without a comparison of checksums; and `labelwise serve`
until its first answer. Memory is given as Linux counts it: memory of the process alone, and pages of the model's files,
which all processes that map them share. The files are in the page cache, as on any machine that has read them once.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROUNDS = 3
FORMS = {"as trained": "model", "ranker int8": "model-int8"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--products", type=int, default=200_000)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="keep the models in this folder for the next run")
    parser.add_argument("--measure", choices=("checked", "unchecked"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(first_prediction(args.keep, args.measure == "checked")))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = args.keep or Path(name)
        if not (folder / "model-int8").is_dir():
            prepare(folder, args.products, args.queries)
        print("| weights | MB on disk | what | seconds | own MiB | MiB of the model's files |")
        print("|---|---|---|---|---|---|")
        for title, place in FORMS.items():
            model = folder / place
            size = sum(file.stat().st_size for file in model.rglob("*") if file.is_file()) / 1e6
            ways = {
                "load, checksums compared, one text": lambda model=model: started(model, "checked"),
                "load, one text": lambda model=model: started(model, "unchecked"),
                "`labelwise serve` to the first answer": lambda model=model: first_answer(model),
            }
            for what, measure in ways.items():
                rounds = [measure() for _ in range(ROUNDS)]
                best = [statistics.median(column) for column in zip(*rounds, strict=True)]
                print(f"| {title} | {size:.0f} | {what} | {best[0]:.2f} | {best[1]:.0f} | {best[2]:.0f} |", flush=True)


def prepare(folder: Path, products: int, queries: int) -> None:
    from labelwise import LinearTree, generate_shop
    from labelwise.integrations.onnx_export import export_model

    train = generate_shop(products, queries)["train"]
    LinearTree().fit(train.texts, train.Y, label_names=train.labels).save(folder / "model")
    export_model(folder / "model", folder / "model-int8", ranker="int8", overwrite=True)
    print(f"{len(train):,} products, {len(train.labels):,} labels", flush=True)


def started(model: Path, how: str) -> list[float]:
    """Seconds and memory of a process that loads and predicts; without imports, since every model needs them."""
    command = [sys.executable, __file__, "--keep", str(model), "--measure", how]
    found: list[float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    return found


def first_prediction(model: Path, verify: bool) -> list[float]:
    from labelwise import load_model
    from labelwise.models.linear_tree import LinearTree  # noqa: F401  # imported before the clock starts

    begin = time.perf_counter()
    loaded = load_model(model, verify=verify)  # kept, or its pages are given back before they are counted
    loaded.predict(["red cotton play mat"], top_k=5)
    return [time.perf_counter() - begin, *memory("self")]


def first_answer(model: Path) -> list[float]:
    """Seconds from the command to the first answer, and the memory then."""
    command = [sys.executable, "-m", "labelwise", "serve", str(model), "--port", "0"]
    begin = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            port = next(line["port"] for line in map(json.loads, server.stderr) if line["event"] == "listening")
            body = json.dumps({"text": "red cotton play mat"}).encode()
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/v1/suggest", body, {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                answer.read()
            return [time.perf_counter() - begin, *memory(str(server.pid))]
        finally:
            server.terminate()


def memory(process: str) -> tuple[float, float]:
    """MiB of a process alone, and MiB of the model's files that it maps."""
    own, mapped, file = 0, 0, ""
    for line in Path(f"/proc/{process}/smaps").read_text(encoding="utf-8").splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            file = line
        elif line.startswith("Rss:") and file.endswith(".safetensors"):
            mapped += int(line.split()[1])
        elif line.startswith("Anonymous:"):
            own += int(line.split()[1])
    return own / 1024, mapped / 1024


if __name__ == "__main__":
    main()
