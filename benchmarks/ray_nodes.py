#!/usr/bin/env python3
"""Measures the engine ray on simulated nodes against threads: same bytes, CPU seconds, and what happens after kills.

    python benchmarks/ray_nodes.py DATA [--preset parabel] [--nodes 1,2,4] [--kills 20] [--seed 0] [--check]

A model is trained on the texts of DATA and predicts its test split: in threads, then on clusters of so many nodes with
one CPU each, all on this machine. The second training of each cluster counts: the first one loads the kernels into its
processes. Then it is trained again and again on two nodes while processes and nodes are killed at random. Printed are
wall and CPU seconds and whether all arrays of the model and all predictions are the same bytes. With --check the exit
code is 1 unless they are, and unless the CPU seconds are at most 1.15 times those of threads.
"""

import argparse
import hashlib
import logging
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from labelwise import LinearTree, engine, load_splits
from labelwise.engines import cpu_seconds

MOST_CPU = 1.15
SPARES = 4
"""Nodes that join before the kills; a node cannot be added later, beside the work."""


def digest(model: LinearTree, predictions) -> str:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        files = sorted((Path(folder) / "model").rglob("*.safetensors"))
        content = b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)
    rows = predictions.matrix
    content += b"".join(array.tobytes() for array in (rows.indptr, rows.indices, rows.data))
    return hashlib.sha256(content).hexdigest()[:12]


def workers() -> list[int]:
    """The processes of Ray that work on tasks."""
    found = []
    for place in Path("/proc").iterdir():
        try:
            if place.name.isdigit() and (place / "cmdline").read_bytes().startswith(b"ray::_run_batch"):
                found.append(int(place.name))
        except OSError:
            pass
    return found


class Killer:
    """Kills processes, and now and then one of the spare nodes."""

    def __init__(self, cluster, n_kills: int, chance: random.Random) -> None:
        self.cluster, self.left, self.chance = cluster, n_kills, chance
        self.processes = self.nodes = 0
        self.over = threading.Event()
        self.spares = [cluster.add_node(num_cpus=1) for _ in range(SPARES)]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while self.left and not self.over.wait(self.chance.uniform(0.05, 0.6)):
            if self.spares and self.chance.random() < SPARES / 20:
                self.cluster.remove_node(self.spares.pop(), allow_graceful=False)
                self.nodes += 1
            elif found := workers():
                try:
                    os.kill(self.chance.choice(found), signal.SIGKILL)
                except ProcessLookupError:
                    continue
                self.processes += 1
            else:
                continue
            self.left -= 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--preset", default="parabel")
    parser.add_argument("--nodes", default="1,2,4")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    from ray.cluster_utils import Cluster

    splits = load_splits(options.data)
    train, test = splits["train"], splits["test"]

    def once() -> tuple[float, float, str]:
        wall, cpu = time.perf_counter(), cpu_seconds()
        model = LinearTree(options.preset, calibrate=False, hold_out=0)
        model.fit(train.texts, train.Y, label_names=train.labels)
        predictions = model.predict(test.texts, top_k=5)
        return time.perf_counter() - wall, cpu_seconds() - cpu, digest(model, predictions)

    once()  # compiles
    wall, cpu, want = once()
    print("| where | wall s | CPU s | share of threads | bytes |\n|---|---|---|---|---|")
    print(f"| threads | {wall:.1f} | {cpu:.2f} | 1 | {want} |", flush=True)
    good = True
    for n_nodes in map(int, options.nodes.split(",")):
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        for _ in range(n_nodes - 1):
            cluster.add_node(num_cpus=1)
        try:
            with engine("ray", address=cluster.address):
                once()
                wall, there, found = once()
                same = "the same" if found == want else found
                print(f"| {n_nodes} nodes | {wall:.1f} | {there:.2f} | {there / cpu:.2f} | {same} |", flush=True)
                good &= found == want and there <= MOST_CPU * cpu
                if n_nodes == 2 and options.kills:
                    killer = Killer(cluster, options.kills, random.Random(options.seed))
                    seen, n_fits = set(), 0
                    while killer.left:
                        seen.add(once()[2])
                        n_fits += 1
                    killer.over.set()
                    killer.thread.join()
                    same = "the same" if seen == {want} else seen
                    good &= seen == {want}
                    what = f"{n_fits} fits, {killer.processes} processes and {killer.nodes} nodes killed"
                    print(f"| {what} | | | | {same} |", flush=True)
        finally:
            cluster.shutdown()
    return int(options.check and not good)


if __name__ == "__main__":
    sys.exit(main())
