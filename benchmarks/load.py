"""Measures how long loading takes, compared with decompression and JSON alone.

    python benchmarks/load.py [--data DATA] [--check]

DATA has train.jsonl.xz; the default is eurlex57k in the folder that the variable LABELWISE_DATA names. Targets:
`load_dataset` of train.jsonl.xz within 1.3 times the wall time of lzma + json.loads per line in the same process; the
same data from parquet within 3 s. The best of three each.
"""

import argparse
import json
import lzma
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from settings import data_folder

from labelwise.data import convert, load_dataset

RATIO_TARGET, PARQUET_TARGET, ROUNDS = 1.3, 3.0, 3


def plain(path: Path) -> None:
    with lzma.open(path, "rb") as lines:
        for line in lines:
            json.loads(line)


def best(work: Callable[[], object]) -> dict[str, float]:
    times = []
    for _ in range(ROUNDS):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall, cpu = min(times)
    return {"wall_s": round(wall, 3), "cpu_s": round(cpu, 3)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder() / "eurlex57k", help="folder with train.jsonl.xz")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    arguments = parser.parse_args()
    train = arguments.data / "train.jsonl.xz"
    if not train.is_file():
        print(f"there is no {train}; give a data set by --data, or its folder by the variable LABELWISE_DATA")
        return int(arguments.check)
    alone = best(lambda: plain(train))
    loaded = best(lambda: load_dataset(arguments.data))
    with tempfile.TemporaryDirectory() as folder:
        convert(arguments.data, Path(folder) / "parquet", "parquet")
        parquet = best(lambda: load_dataset(Path(folder) / "parquet"))
    ratio = loaded["wall_s"] / alone["wall_s"]
    met = ratio <= RATIO_TARGET and parquet["wall_s"] <= PARQUET_TARGET
    figures = {"data": arguments.data.name, "lzma_json": alone, "load": loaded, "parquet": parquet}
    print(json.dumps({**figures, "ratio": round(ratio, 3), "met": met}))
    print(
        f"Loading {arguments.data.name} takes {loaded['wall_s']:.2f} s, {ratio:.2f} times lzma + json alone "
        f"(target {RATIO_TARGET}), and {parquet['wall_s']:.2f} s from parquet (target {PARQUET_TARGET:.0f} s): "
        f"{'both targets are met' if met else 'a target is missed'}."
    )
    return int(arguments.check and not met)


if __name__ == "__main__":
    sys.exit(main())
