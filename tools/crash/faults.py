"""Fail the n-th operation on files of each writing command, for n = 1, 2, … until the command succeeds.

    python tools/crash/faults.py --commands train convert

Operations are opens, writes, fsyncs, renames, removals, locks and mmaps on files of the destination's folder. Writes
that are not made in Python are failed by limits of the file size. Each time the outcome must be one sentence and an
exit code that is not 0, or the whole result where the failed operation was not needed; the old data must be intact, and
nothing may be left behind unless it was the removal that failed. Then the command is repeated undisturbed: it must give
the same files as ever. The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from harness import ENCODER, SETTINGS, Bench, summary
from injection import REMOVING, Plan

SIZES = (0, 1, 100, 1_000, 4_096, 10_000, 30_000, 100_000)
"""Limits of the file size that are tried, in bytes."""


def main() -> int:
    """Try every point of every command, print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [one.name for one in (*SETTINGS, *ENCODER)]
    parser.add_argument("--commands", nargs="*", choices=names, default=[one.name for one in SETTINGS])
    parser.add_argument("--cases", type=int, default=None, help="points of each command, drawn; all if not given")
    parser.add_argument("--part", default="1/1", help="the I-th of N parts of the points, for N runs side by side")
    parser.add_argument("--minutes", type=float, default=None, help="stop after so long")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn points and of the kinds of errors")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    chance, begin = random.Random(options.seed), time.monotonic()
    rows: dict[str, dict[str, int]] = {}
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), tuple(one for one in (*SETTINGS, *ENCODER) if one.name in options.commands))
        for name in bench.settings:
            bench.measure(name)
            plans = [Plan(bench.work, fail_at=at + 1) for at in range(len(bench.points[name]))]
            plans += [Plan(bench.work, file_size=size) for size in SIZES]
            if options.cases is not None and len(plans) > options.cases:
                plans = chance.sample(plans, options.cases)
            counts: Counter[str] = Counter()
            for plan in plans[part - 1 :: parts]:
                if options.minutes is not None and time.monotonic() - begin > 60 * options.minutes:
                    break
                plan.variant = chance.randrange(3)
                plan.report = bench.folder / "points.txt"
                found = list(problems(bench, name, plan, counts))
                failures += [f"{name}, {told(plan)}: {problem}" for problem in found]
            rows[name] = {"points": len(bench.points[name]), **dict(sorted(counts.items()))}
            print(name, rows[name], file=sys.stderr)
    return summary(rows, failures, options.json)


def problems(bench: Bench, name: str, plan: Plan, counts: Counter[str]) -> list[str]:
    """One case: what is wrong."""
    bench.prepare(name)
    ended = bench.command(name, plan)
    code, said, found = ended.code, ended.err.splitlines(), list(bench.problems_now(name))
    counts["refused" if code else "succeeded"] += 1
    in_use = name == "runs --prune" and operation(plan) == "fcntl.flock"  # then the result counts as in use, and stays
    if code == 0 and bench.present(name) != bench.new[name] and not in_use:
        found.append("the exit code is 0, but the result is not there")
    if code != 0 and (code not in (1, 2) or len(said) != 1 or not said[0].startswith("labelwise: ")):
        found.append(f"exit code {code}, and not one sentence: {' | '.join(said)[-700:]}")
    left = bench.leftovers()
    if left and not operation(plan).startswith(REMOVING):
        found.append(f"leftovers: {left}")
    return found + list(bench.problems_after_repeat(name))


def operation(plan: Plan) -> str:
    """What failed."""
    assert plan.report is not None
    seen = plan.report.read_text().split("\n")
    return seen[plan.fail_at - 1] if plan.fail_at is not None and plan.fail_at <= len(seen) else "file size"


def told(plan: Plan) -> str:
    """A case in words, to be tried again."""
    if plan.file_size is not None:
        return f"files of at most {plan.file_size} bytes"
    return f"operation {plan.fail_at} ({operation(plan)}) fails, variant {plan.variant}"


if __name__ == "__main__":
    sys.exit(main())
