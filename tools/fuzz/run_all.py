#!/usr/bin/env python3
"""Runs all fuzz targets, one after the other, and prints a table; the exit code is 1 if any of them found a failure.

    python tools/fuzz/run_all.py --minutes 30            a new random seed, which the table names
    python tools/fuzz/run_all.py --minutes 30 --seed 5   the cases of this seed again, as far as the time allows

`make fuzz MINUTES=30` does the same. The minutes are shared among the targets by their weights. Failing cases are kept
in the folder of --keep, one folder for each target.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TARGETS = {
    "model_folders": 3.0,
    "encoder_folders": 2.0,
    "pecos_folders": 1.0,
    "presets": 0.5,
    "prediction_files": 0.5,
    "data_files": 3.0,
    "api_edges": 1.0,
    "http_bodies": 1.0,
}
"""The targets, and how much of the time each gets; each is a program with --minutes, --seed, --json and --keep."""
NO_TARGETS = ("run_all", "runner", "mutate")
"""Programs of this folder that are parts of the targets."""
MORE_SECONDS = 1200.0
"""Seconds that a target may take besides its share: to train its models, and to compile kernels."""


@dataclass(frozen=True)
class Outcome:
    """What became of a target."""

    name: str
    code: int
    seconds: float
    summary: dict[str, Any]

    @property
    def cases(self) -> int | None:
        """Number of cases; None where the target wrote no summary."""
        return self.summary.get("cases")

    @property
    def failed(self) -> int | None:
        """Number of failures."""
        return self.summary.get("failed")


def shares(names: list[str], minutes: float) -> dict[str, float]:
    """The minutes of each target."""
    total = sum(TARGETS[name] for name in names)
    return {name: minutes * TARGETS[name] / total for name in names}


def run_target(name: str, minutes: float, seed: int, keep: Path, folder: Path = HERE) -> Outcome:
    """Run a target in a process of its own, with what it prints on this terminal."""
    summary = keep / f"{name}.json"
    summary.unlink(missing_ok=True)
    command = [sys.executable, str(folder / f"{name}.py"), "--minutes", f"{minutes:.3f}", "--seed", str(seed)]
    command += ["--json", str(summary), "--keep", str(keep / name)]
    begin = time.monotonic()
    try:
        code = subprocess.run(command, timeout=60 * minutes + MORE_SECONDS).returncode
    except subprocess.TimeoutExpired:
        code = 124
    found: dict[str, Any] = {}
    if summary.is_file():
        found = json.loads(summary.read_text(encoding="utf-8"))
    return Outcome(name, code, time.monotonic() - begin, found)


def table(outcomes: list[Outcome], seed: int) -> str:
    """All outcomes, a line each."""
    lines = [f"{'target':<18}{'cases':>10}{'failed':>8}{'seconds':>9}  seed {seed}"]
    for one in outcomes:
        cases = "-" if one.cases is None else f"{one.cases:,}"
        failed = "-" if one.failed is None else f"{one.failed:,}"
        end = "good" if one.code == 0 else "not ended in time" if one.code == 124 else f"FAILED, exit code {one.code}"
        lines.append(f"{one.name:<18}{cases:>10}{failed:>8}{one.seconds:>9.0f}  {end}")
    return "\n".join(lines)


def main() -> int:
    """Run, print the table, and return 1 if a target failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5, help="minutes of all targets together")
    parser.add_argument("--seed", type=int, help="random seed of all targets; a new one if not given")
    parser.add_argument("--targets", nargs="+", choices=list(TARGETS), help="only these")
    parser.add_argument("--json", type=Path, help="file for all summaries")
    parser.add_argument("--keep", type=Path, help="folder for failing cases and summaries")
    options = parser.parse_args()
    seed = int(time.time()) % 1_000_000 if options.seed is None else options.seed
    keep = options.keep or Path(tempfile.mkdtemp(prefix="labelwise-fuzz-"))
    keep.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for name, minutes in shares(options.targets or list(TARGETS), options.minutes).items():
        print(f"{name}: {minutes:.1f} minutes, seed {seed}", flush=True)
        outcomes.append(run_target(name, minutes, seed, keep))
    print(f"\n{table(outcomes, seed)}\nsummaries and failing cases: {keep}")
    if options.json:
        found = {one.name: {"code": one.code, **one.summary} for one in outcomes}
        options.json.write_text(json.dumps({"seed": seed, **found}, indent=1) + "\n", encoding="utf-8")
    return 1 if any(one.code != 0 for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
