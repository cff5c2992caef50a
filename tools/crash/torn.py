"""Load a model while another process saves two models over each other: is a mixture of both ever accepted?

    python tools/crash/torn.py --cases 10000

Three models are fitted in a temporary folder: linear trees A and B, three trees each, and an ensemble C of two members.
A writer saves A, B and C in turn at one place, `--cases` times. Readers load from there all the while and predict. Each
answer must be that of A, of B or of C, and no load may fail. With `--in-steps` the saves do without the exchange of two
folders, as on systems that have none. The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import os
import sys
import tempfile
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from harness import toy_data

from labelwise import Ensemble, LinearTree, load_model
from labelwise.storage import replacing

Answer = list[list[tuple[str, float]]]


def main() -> int:
    """Save and load, print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000, help="number of overwriting saves")
    parser.add_argument("--minutes", type=float, default=None, help="stop after so long")
    parser.add_argument("--readers", type=int, default=1, help="processes that load")
    parser.add_argument("--seed", type=int, default=0, help="of the data")
    parser.add_argument("--in-steps", action="store_true", help="without the exchange of two folders")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = attack(Path(folder), options)
    print(json.dumps(result) if options.json else "\n".join(f"{name}: {value}" for name, value in result.items()))
    return 1 if result["mixtures"] or result["refused"] or result["leftovers"] or result["writer"] else 0


def attack(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Start the writer and the readers, and count what the readers saw."""
    texts, labels = toy_data(400, 60, options.seed)
    names = [f"label {number}" for number in range(60)]
    other = [[names[59 - names.index(name)] for name in row] for row in labels]
    models: list[Any] = [
        LinearTree("parabel", n_trees=3).fit([*texts, " ".join(names)], [*rows, names]) for rows in (labels, other)
    ]
    models.append(
        Ensemble.of([LinearTree("parabel", seed=seed).fit([*texts, ""], [*labels, names]) for seed in (1, 2)])
    )
    answers = [answer(model, texts) for model in models]
    assert answers[0] != answers[1] != answers[2] != answers[0]
    models[0].save(folder / "model")
    context = multiprocessing.get_context("fork")
    end, counts = context.Event(), context.Queue()
    readers = [context.Process(target=read, args=(folder, texts, answers, end, counts)) for _ in range(options.readers)]
    for reader in readers:
        reader.start()
    begin, saves = time.monotonic(), 0
    if options.in_steps:
        replacing._exchange_call = lambda: None  # type: ignore[assignment]
    writer = ""
    try:
        for saves in range(1, options.cases + 1):
            models[saves % 3].save(folder / "model")
            if options.minutes is not None and time.monotonic() - begin > 60 * options.minutes:
                break
            if saves % 500 == 0:
                print(f"{saves} saves, {time.monotonic() - begin:.0f} s", file=sys.stderr)
    except Exception as error:  # counted as a failure
        writer = f"{type(error).__name__}: {error}"
    end.set()
    seen: collections.Counter[str] = sum((counts.get() for _ in readers), collections.Counter())
    for reader in readers:
        reader.join()
    refused = {key: value for key, value in seen.items() if key not in ("A", "B", "C", "mixture")}
    return {
        "saves": saves,
        "loads": seen.total(),
        "loads by model": {name: seen[name] for name in "ABC"},
        "mixtures": seen["mixture"],
        "refused": refused,
        "writer": writer,
        "leftovers": sorted(entry.name for entry in folder.iterdir() if entry.name != "model"),
        "seconds": round(time.monotonic() - begin, 1),
    }


def answer(model: Any, texts: list[str]) -> Answer:
    """The best labels of some texts."""
    return [list(row) for row in model.predict(texts[:20], top_k=5, threads=1)]


def read(folder: Path, texts: list[str], answers: list[Answer], end: Event, counts: Any) -> None:
    """Load and predict until the end, and send the counts."""
    seen: collections.Counter[str] = collections.Counter()
    while not end.is_set():
        try:
            found = answer(load_model(folder / "model"), texts)
            seen["ABC"[answers.index(found)] if found in answers else "mixture"] += 1
        except Exception as error:  # what kind is counted
            seen[f"{type(error).__name__}: {error}"[:200].replace(str(folder), "")] += 1
    counts.put(seen)
    counts.close()
    counts.join_thread()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
