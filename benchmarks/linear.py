#!/usr/bin/env python3
"""LinearTree compared with PECOS XR-Linear, napkinXC and omikuji: the same features, one run, one machine.

    python benchmarks/linear.py DATA [DATA ...] [--threads 2] [--systems …] [--peers ENV] [--matcher-negatives]
        [--json OUT] [--check]

DATA is a data set (a folder of jsonl splits) or a folder of features (X.trn.npz X.tst.npz Y.trn.npz Y.tst.npz). The
features of a data set are scikit-learn's tf-idf, made by benchmarks/peers/make_features.py and kept in --features.
Every system runs in a process of its own, one after the other: the peers by benchmarks/peers/run_peer.py, in the
environment that benchmarks/peers/install.py makes. labelwise is measured by the same code: CPU and wall seconds of
embedding, clustering and training, prediction of the whole test set with one and two threads (best of three, model
saved and loaded), single queries, megabytes on disk, highest memory. Training alone is compared: labelwise holds out no
documents and fits no calibration here. Compiling or loading labelwise's kernels is timed apart (`jit_s`).

Prints a markdown table and one JSON line per data set. With --check the exit code is 1 if a target is missed: against
PECOS at its defaults, P@1, 3, 5 at most 0.15 below; training at most 1/5 of its CPU seconds in the geometric mean and
1/3 on any set; clustering not slower; prediction and single queries at most 1/2; disk at most 0.6; memory at most 1.0;
with --matcher-negatives, TFN+MAN at most twice our TFN and 1/15 of PECOS's.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from peers.environment import VERSIONS, add_peers_option, peers_python

if TYPE_CHECKING:
    from labelwise.config import LinearTreeConfig

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / "benchmarks" / "peers"
COLUMNS = {
    "embed cpu s": "embed_cpu_s",
    "cluster cpu s": "cluster_cpu_s",
    "train s": "train_s",
    "train cpu s": "train_cpu_s",
    "predict 1 thr cpu s": "predict_1thr_cpu_s",
    "query p50 ms": "query_p50_ms",
    "query p99 ms": "query_p99_ms",
    "MB": "model_mb",
    "RSS train MiB": "rss_train_mib",
    "P@1": "P@1",
    "P@3": "P@3",
    "P@5": "P@5",
    "PSP@5": "PSP@5",
}


def run_labelwise(folder: Path, threads: int, negatives: str, preset: str, queries: int = 500) -> dict:
    """The figures of labelwise that peers/run_peer.py prints of a peer."""
    import numpy as np
    import scipy.sparse as sp
    from peers.measurements import TOP_K, Recorder, best_labels, describe, folder_mb, quality, read_features

    matrices = read_features(folder)
    X, Y, X_test, Y_test = map(sp.csr_array, matrices)
    recorder = Recorder()
    recorder.memory("data")

    from labelwise import __version__
    from labelwise.engines.allocator import limit_heap_growth
    from labelwise.index import build_tree, embed_labels
    from labelwise.models.linear_tree import LinearTree
    from labelwise.rank.features import Features
    from labelwise.rank.tree import train_tree

    limit_heap_growth()  # as the commands do
    config = configuration(threads, negatives, preset)
    with recorder.timed("jit"):
        clusters = None if config.index.method in ("none", "kmeans") else 4
        tiny = LinearTree(replace(config, index=replace(config.index, n_clusters=clusters)))
        small = np.flatnonzero(np.diff(Y[:400].indptr))
        tiny.fit(X[small], Y[small]).predict(X_test[:20])
    recorder.memory("jit")

    stages = [f"{stage}{unit}" for stage in ("embed", "cluster", "train") for unit in ("_s", "_cpu_s")]
    sums, trees = dict.fromkeys(stages, 0.0), []
    for seed in range(config.n_trees):
        with recorder.timed("embed"):
            Z = embed_labels(Y, X, normalize_documents=config.index.normalize_documents, threads=threads)
        with recorder.timed("cluster"):
            tree = build_tree(Z, config.index, seed=seed, threads=threads)
        del Z  # before the models are trained, as fit does
        with recorder.timed("train"):
            trees.append(train_tree(Features.of(X), Y, tree, config, seed=seed))
        sums = {key: round(value + recorder.figures[key], 3) for key, value in sums.items()}
    recorder.figures |= sums
    recorder.memory("train")
    del tree, trees
    with recorder.timed("fit"):  # the same stages once more, now as a user runs them
        model = LinearTree(config).fit(X, Y)
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "model"
        with recorder.timed("save"):
            model.save(target)
        recorder.figures["model_mb"] = folder_mb(target)
        del model
        with recorder.timed("load"):
            loaded = LinearTree.load(target)
        for n in dict.fromkeys((threads, 1)):
            loaded.config = replace(config, threads=n)
            found = recorder.best_of(f"predict_{n}thr", 3, lambda: loaded.predict(X_test, top_k=TOP_K))
        recorder.per_document(X_test.shape[0])
        rows = [X_test[i : i + 1] for i in range(min(queries, X_test.shape[0]))]
        recorder.latency(rows, lambda row: loaded.predict(row, top_k=TOP_K))
    recorder.memory("peak")
    about = {"system": f"labelwise {__version__}", "setting": negatives if preset == "default" else preset}
    about |= {"threads": threads} | describe(folder, *matrices[:3])
    return about | recorder.figures | quality(best_labels(found.matrix), Y_test, Y)


def configuration(threads: int, negatives: str, preset: str) -> "LinearTreeConfig":
    """A linear model that learns from all documents and fits no calibration, as the peers do."""
    from labelwise.config import HoldoutConfig, LinearTreeConfig
    from labelwise.config.presets import load_linear_preset

    config = LinearTreeConfig() if preset == "default" else load_linear_preset(preset)
    ranker = replace(config.ranker, negatives="tfn+man") if negatives == "tfn+man" else config.ranker
    return replace(config, ranker=ranker, threads=threads, holdout=HoldoutConfig(share=0, calibrate=False))


def features_of(data: Path, scratch: Path) -> Path:
    """The folder of features: `data` itself, or the one that is made of a data set."""
    if (data / "X.trn.npz").is_file() and (data / "X.tst.npz").is_file():
        return data
    folder = scratch / data.name
    if not (folder / "Y.tst.npz").is_file():  # the file that is written last
        command = [sys.executable, str(PEERS / "make_features.py"), str(data), str(folder)]
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:
            sys.exit(f"no features could be made of {data}")
    return folder


def measure(system: str, folder: Path, args: argparse.Namespace) -> dict:
    name, _, setting = system.partition(":")
    if name == "labelwise":
        preset, negatives = ("default", setting or "tfn") if setting in ("", "tfn", "tfn+man") else (setting, "tfn")
        command = [sys.executable, __file__, "--worker", str(folder), negatives, preset, "--threads", str(args.threads)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    else:
        command = [sys.executable, str(PEERS / "run_peer.py"), name, str(folder), "--peers", str(args.peers)]
        command += ["--threads", str(args.threads)]
        command += ["--negatives", setting] if setting.startswith("tfn") else ["--trees", setting] if setting else []
        environment = dict(os.environ)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{system} on {folder.name} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="*", help="data sets, or folders of features")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--systems", default="labelwise,pecos,napkinxc,omikuji", help="name or name:setting, by commas")
    parser.add_argument("--matcher-negatives", action="store_true", help="also TFN+MAN of labelwise and PECOS")
    parser.add_argument(
        "--features", type=Path, default=ROOT / "bench-cache", help="folder for the features that are made"
    )
    add_peers_option(parser)
    parser.add_argument("--json", type=Path, help="also append the JSON lines to this file")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--worker", nargs=3, metavar=("FOLDER", "NEGATIVES", "PRESET"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(run_labelwise(Path(args.worker[0]), args.threads, args.worker[1], args.worker[2])))
        return
    if not args.data:
        parser.error("name at least one data set")
    systems = args.systems.split(",")
    if args.matcher_negatives:
        systems += ["labelwise:tfn+man", "pecos:tfn+man"]
    names = {system.partition(":")[0] for system in systems}
    for name in sorted(names - {"labelwise", *VERSIONS}):
        parser.error(f"there is no system {name}; known are labelwise, {', '.join(VERSIONS)}")
    if names & set(VERSIONS):
        peers_python(args.peers)  # exits where there is none, before any work
    results: dict[str, dict[str, dict]] = {}
    for data in args.data:
        folder = features_of(data, args.features)
        results[data.name] = {system: measure(system, folder, args) for system in systems}
        line = json.dumps({"data": data.name, "load_average": round(os.getloadavg()[0], 2), **results[data.name]})
        print(f"\n### {data.name}\n\n| system | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}")
        for record in results[data.name].values():
            cells = [("-" if record.get(key) is None else f"{record[key]:g}") for key in COLUMNS.values()]
            print(f"| {record['system']} {record['setting']} | {' | '.join(cells)} |")
        print(f"\n{line}", flush=True)
        if args.json:
            with args.json.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
    missed = missed_targets(results)
    print("\n" + ("every target that could be checked is met" if not missed else "missed: " + "; ".join(missed)))
    sys.exit(1 if args.check and missed else 0)


def missed_targets(results: dict[str, dict[str, dict]]) -> list[str]:
    """A phrase for each target that is missed."""
    missed, shares, gains = [], [], []
    for name, systems in results.items():
        ours, pecos = systems.get("labelwise"), systems.get("pecos")
        if ours is None or pecos is None:
            continue
        for k in ("P@1", "P@3", "P@5"):
            gains.append(ours[k] - pecos[k])
            if ours[k] < pecos[k] - 0.15:
                missed.append(f"{name} {k} {ours[k]} against {pecos[k]}")
        shares.append(ours["train_cpu_s"] / pecos["train_cpu_s"])
        limits = {
            "train_cpu_s": 1 / 3,
            "cluster_cpu_s": 1.0,
            "predict_1thr_cpu_s": 0.5,
            "query_p50_ms": 0.5,
            "query_p99_ms": 0.5,
            "model_mb": 0.6,
            "rss_train_mib": 1.0,
        }
        missed += [
            f"{name} {key} {ours[key]} is {ours[key] / pecos[key]:.2f} of {pecos[key]}, not {limit:.2f}"
            for key, limit in limits.items()
            if ours[key] > limit * pecos[key]
        ]
        both, pecos_both = systems.get("labelwise:tfn+man"), systems.get("pecos:tfn+man")
        if both and pecos_both:
            if both["train_cpu_s"] > 2 * ours["train_cpu_s"]:
                missed.append(f"{name} TFN+MAN takes {both['train_cpu_s'] / ours['train_cpu_s']:.2f} of our TFN, not 2")
            if both["train_cpu_s"] > pecos_both["train_cpu_s"] / 15:
                missed.append(f"{name} TFN+MAN takes {both['train_cpu_s'] / pecos_both['train_cpu_s']:.3f} of PECOS's")
    if shares:
        mean = 1.0
        for share in shares:
            mean *= share ** (1 / len(shares))
        print(f"\ntraining takes {mean:.3f} of PECOS's CPU seconds (geometric mean of {len(shares)} sets)")
        print(f"P@k minus PECOS's, mean over sets and k: {sum(gains) / len(gains):+.2f}")
        if mean > 0.2:
            missed.append(f"training takes {mean:.3f} of PECOS's CPU seconds, not 0.2")
        if sum(gains) <= 0:
            missed.append("P@k is not above PECOS's on the mean")
    return missed


if __name__ == "__main__":
    main()
