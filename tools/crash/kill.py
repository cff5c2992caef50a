"""Kill each writing command, half of the times at a random operation on files, half at a random time.

    python tools/crash/kill.py --cases 200

Afterwards the destination must be the old one or the new one, whole; the repeated command must succeed and give the
same files as an undisturbed one (times in JSON files and model cards apart); and no temporary files may be left then.
The exit code is 1 if anything failed.
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
from injection import Plan


def main() -> int:
    """Kill, look, repeat, print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [one.name for one in (*SETTINGS, *ENCODER)]
    parser.add_argument("--commands", nargs="*", choices=names, default=[one.name for one in SETTINGS])
    parser.add_argument("--cases", type=int, default=20, help="kills of each command")
    parser.add_argument("--minutes", type=float, default=None, help="stop after so long")
    parser.add_argument("--seed", type=int, default=0, help="of the points and times")
    parser.add_argument("--in-steps", action="store_true", help="without the exchange of two folders")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    chance, begin = random.Random(options.seed), time.monotonic()
    rows: dict[str, dict[str, int]] = {}
    failures: list[str] = []
    if options.in_steps:
        from labelwise.storage import replacing

        replacing._exchange_call = lambda: None  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), tuple(one for one in (*SETTINGS, *ENCODER) if one.name in options.commands))
        for name in bench.settings:
            bench.measure(name)
            counts: Counter[str] = Counter()
            for number in range(options.cases):
                if options.minutes is not None and time.monotonic() - begin > 60 * options.minutes:
                    break
                plan, delay, how = Plan(bench.work), None, ""
                if number % 2:
                    plan.kill_at = chance.randint(1, len(bench.points[name]))
                    how = f"killed at operation {plan.kill_at} ({bench.points[name][plan.kill_at - 1]})"
                else:
                    delay = chance.uniform(0, bench.seconds[name])
                    how = f"killed after {delay:.3f} s"
                bench.prepare(name)
                code = bench.command(name, plan, kill_after=delay).code
                counts["died" if code < 0 else "ended before"] += 1
                counts["left temporary files"] += bool(bench.leftovers())
                found = [*bench.problems_now(name), *bench.problems_after_repeat(name)]
                failures += [f"{name}, {how}: {problem}" for problem in found]
            rows[name] = dict(sorted(counts.items()))
            print(name, rows[name], file=sys.stderr)
    return summary(rows, failures, options.json)


if __name__ == "__main__":
    sys.exit(main())
