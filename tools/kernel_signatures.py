#!/usr/bin/env python3
"""Writes the list of kernels that are compiled ahead: src/labelwise/kernels/signatures.json.

    python tools/kernel_signatures.py

Training, evaluation and prediction of the default model on generated texts, a server's loading of it, and all models of
tools/digests.py run in processes of their own; each tells for which types it called which kernel. The seconds of each
are measured with an empty folder for compiled kernels. To be run after a kernel or a call of one has changed;
tests/kernels/test_preparing.py says when.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "src" / "labelwise" / "kernels" / "signatures.json"
COMMANDS = ("train shop model --overwrite", "evaluate model shop", "predict model some.jsonl")


def called() -> set[tuple[str, str]]:
    """Kernels and types that this process has compiled or read, except for those that only other kernels call."""
    found = set()
    for file in (ROOT / "src" / "labelwise" / "kernels").glob("*.py"):
        module = sys.modules.get(f"labelwise.kernels.{file.stem}")
        for name, value in vars(module).items() if module else ():
            if getattr(value, "__module__", "") == module.__name__ and not name.startswith("_"):
                types = [repr(tuple(one)) for one in getattr(value, "signatures", ())]
                found |= {(f"{file.stem}.{name}", one) for one in types}
    return found


def record(purpose: str) -> set[tuple[str, str]]:
    """What a piece of work calls; in the current folder."""
    if purpose == "linear":
        from labelwise.cli import main

        for command in COMMANDS:
            with suppress(SystemExit):
                main([*command.split(), "--quiet"])
    elif purpose == "serving":
        from labelwise.serve.model_pool import load_version

        load_version(Path("model"))
    else:
        from labelwise import Tfidf, convert, load_splits
        from labelwise.config import TfidfConfig

        texts = load_splits("shop")["train"].texts or []
        for analyzer in ("char", "char_wb"):
            Tfidf(TfidfConfig(analyzer=analyzer, ngram_range=(2, 3))).fit_transform(texts)
        convert("shop", "as-xc", to="xc", overwrite=True)
        load_splits("as-xc")
        sys.argv = ["digests.py", "--write", "digests.json"]
        with suppress(SystemExit):
            runpy.run_path(str(ROOT / "tools" / "digests.py"), run_name="__main__")
    return called()


def seconds(kernels: list[tuple[str, str]]) -> list[float]:
    """CPU seconds of compiling each."""
    from labelwise.kernels.preparing import Kernel

    found = []
    for kernel, types in kernels:
        begin = time.process_time()
        Kernel(kernel, types, (), 0.0).compile()
        found.append(round(time.process_time() - begin, 2))
    return found


def run(*arguments: str, folder: Path, **variables: str) -> Any:
    """The JSON that this program prints in another process."""
    command = [sys.executable, str(Path(__file__).resolve()), *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")} | variables
    output = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(output.stdout.splitlines()[-1])


def main() -> None:
    """Run all the work twice, since the first time kernels that others call are compiled too; then measure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shop = [sys.executable, "-m", "labelwise", "shop", "shop", "--products", "3000", "--queries", "600", "--quiet"]
        subprocess.run(shop, cwd=folder, check=True)
        (folder / "some.jsonl").write_text('{"text": "red cotton play mat"}\n' * 3)
        purposes: dict[tuple[str, str], list[str]] = {}
        for purpose in ("linear", "serving", "all"):
            run("record", purpose, folder=folder)
            found = run("record", purpose, folder=folder)
            for kernel, types in found:
                purposes.setdefault((kernel, types), []).append(purpose)
        kernels = sorted(purposes)
        (folder / "kernels.json").write_text(json.dumps(kernels))
        took = run("seconds", folder=folder, NUMBA_CACHE_DIR=str(folder / "cache"))
        rows = [
            {"kernel": name, "types": types, "for": sorted({*purposes[name, types]} - {"all"}), "seconds": cost}
            for (name, types), cost in zip(kernels, took, strict=True)
        ]
    LIST.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        result: Any = sorted(record(sys.argv[2]))
        print(json.dumps(result))
    elif sys.argv[1:2] == ["seconds"]:
        print(seconds([tuple(one) for one in json.loads(Path("kernels.json").read_text())]))
    else:
        main()
