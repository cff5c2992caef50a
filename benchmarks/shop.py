"""Measures how fast the generated shop is written, and the memory that this takes.

    python benchmarks/shop.py --products 1000000 --queries 100000 --check

The shop is written into a temporary folder. The output is a JSON line and a sentence; `--check` fails over 120 seconds.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from labelwise.datasets.shop import write_shop

LIMIT_SECONDS = 120


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--products", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help=f"fail over {LIMIT_SECONDS} seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        summary = write_shop(Path(folder) / "shop", options.products, options.queries, seed=options.seed)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # MiB on Linux
    counts = {name: value for name, value in asdict(summary).items() if name != "path"}
    print(json.dumps({"wall_s": round(wall, 1), "cpu_s": round(cpu, 1), "peak_rss_mib": round(peak), **counts}))
    print(
        f"{options.products:,} generated products with {options.queries:,} queries were written in {wall:.0f} s "
        f"({cpu:.0f} CPU-s, {peak:.0f} MiB at most, {summary.bytes_written / 1e6:.0f} MB); "
        f"{summary.tail_share:.1%} of the queries have under 100 training products."
    )
    return int(options.check and wall > LIMIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
