#!/usr/bin/env python3
"""LinearTree beside PECOS XR-Linear, napkinXC and omikuji: the same features, one run, one machine.

    python benchmarks/linear.py DATA [DATA ...] [--threads 2] [--systems …] [--matcher-negatives] [--json OUT] [--check]

DATA is a data set (a folder of jsonl splits) or a folder of ready features (X.trn.npz X.tst.npz Y.trn.npz Y.tst.npz).
Every system runs in a process of its own, one after the other. The peers are run by ../shared/bench/peers/run.py in
their own environment (see its README), which also makes the features with scikit-learn; labelwise's figures are taken
in the same way: CPU and wall seconds of embedding, clustering and training, prediction of the whole test set with one
and two threads (best of three, model saved and loaded), single queries, megabytes on disk, highest memory. Compiling
or loading labelwise's kernels is timed apart (`jit_s`).

Prints a markdown table and one JSON line per data set. With --check the exit code is 1 when a bar is missed: against
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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT.parent / "shared/bench/peers"
PYTHON = Path(os.environ.get("PEERS_VENV", Path.home() / ".cache/labelwise-peers")) / "bin/python"
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
    """What run.py measures, for labelwise."""
    import resource
    import time

    sys.path.insert(0, str(PEERS))
    import numpy as np
    import scipy.sparse as sp
    from run import ids_to_array, quality  # the peers' own yardstick

    def peak() -> float:
        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)

    def load(name: str) -> sp.csr_array:
        return sp.csr_array(sp.load_npz(folder / f"{name}.npz").tocsr().astype(np.float32))

    X, Y, X_test, Y_test = (load(name) for name in ("X.trn", "Y.trn", "X.tst", "Y.tst"))
    record: dict = {"rss_data_mib": peak()}

    def timed(key: str, call):
        wall, cpu = time.perf_counter(), time.process_time()
        answer = call()
        record[f"{key}_s"] = round(time.perf_counter() - wall, 3)
        record[f"{key}_cpu_s"] = round(time.process_time() - cpu, 3)
        return answer

    from dataclasses import replace
    from functools import partial

    from labelwise import __version__
    from labelwise.config import LinearTreeConfig
    from labelwise.index import build_tree, embed_labels
    from labelwise.models.linear_tree import LinearTree
    from labelwise.models.training_report import TrainingReport
    from labelwise.rank.features import Features
    from labelwise.rank.tree import train_tree

    config = LinearTreeConfig(threads=threads)
    if preset != "default":
        from labelwise.config.presets import load_linear_preset

        config = replace(load_linear_preset(preset), threads=threads)
    if negatives == "tfn+man":
        config = replace(config, ranker=replace(config.ranker, negatives="tfn+man"))

    def warm_up() -> None:
        tiny = LinearTree(
            replace(
                config, index=replace(config.index, n_clusters=None if config.index.method in ("none", "kmeans") else 4)
            )
        )
        small = np.flatnonzero(np.diff(Y[:400].indptr))
        tiny.fit(X[small], Y[small]).predict(X_test[:20])

    timed("jit", warm_up)
    record["rss_jit_mib"] = peak()
    index = replace(config.index, threads=threads)
    trees = []
    record.update({f"{key}{unit}": 0.0 for key in ("embed", "cluster", "train") for unit in ("_s", "_cpu_s")})
    total = dict(record)
    for number in range(config.n_trees):
        Z = timed("embed", lambda: embed_labels(Y, X, normalize_documents=index.normalize_documents, threads=threads))
        Z = [Z]  # let go of before the models are trained, as fit does
        tree = timed("cluster", lambda Z=Z, seed=number: build_tree(Z.pop(), replace(index, seed=seed)))
        trees.append(
            timed("train", lambda tree=tree, seed=number: train_tree(Features.of(X), Y, tree, config, seed=seed))
        )
        for key in total:
            if key.startswith(("embed_", "cluster_", "train_")):
                total[key] = round(total[key] + record[key], 3)
    record.update({key: value for key, value in total.items() if key.startswith(("embed_", "cluster_", "train_"))})
    record["rss_train_mib"] = peak()
    model = LinearTree(config)
    model.tfidf_, model.calibrator_, model.labels_ = None, None, [str(i) for i in range(Y.shape[1])]
    model.trees_, model.n_features_ = tuple(trees), X.shape[1]
    model.report_, model._searches = TrainingReport(), model._make_searches()
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "model"
        timed("save", partial(model.save, target))
        record["model_mb"] = round(sum(f.stat().st_size for f in target.rglob("*") if f.is_file()) / 1e6, 2)
        del model, trees
        loaded = timed("load", lambda: LinearTree.load(target))
        for n in dict.fromkeys((1, threads)):
            loaded.config = replace(config, threads=n)
            best = []
            for _ in range(3):
                found = timed(f"predict_{n}thr", lambda: loaded.predict(X_test))
                best.append((record[f"predict_{n}thr_s"], record[f"predict_{n}thr_cpu_s"]))
            record[f"predict_{n}thr_s"], record[f"predict_{n}thr_cpu_s"] = min(best)
        loaded.config = replace(config, threads=1)
        rows = [X_test[i : i + 1] for i in range(min(queries, X_test.shape[0]))]
        for row in rows[:20]:
            loaded.predict(row)
        times = []
        for row in rows:
            start = time.perf_counter()
            loaded.predict(row)
            times.append(1e3 * (time.perf_counter() - start))
        record["query_p50_ms"], record["query_p99_ms"] = (round(float(t), 3) for t in np.percentile(times, (50, 99)))
    record["rss_peak_mib"] = peak()
    matrix = found.matrix
    lists = []
    for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        order = np.argsort(-matrix.data[a:b], kind="stable")
        lists.append(matrix.indices[a:b][order])
    record.update(quality(ids_to_array(lists, 10), Y_test, Y))
    return {"system": f"labelwise {__version__}", "setting": negatives if preset == "default" else preset, **record}


def features_of(data: Path, scratch: Path) -> Path:
    """The folder of features: `data` itself, or made by the peers' script from a data set."""
    if (data / "X.trn.npz").is_file() and (data / "X.tst.npz").is_file():
        return data
    folder = scratch / data.name
    if not (folder / "features.json").is_file():
        subprocess.run(
            [str(PYTHON), str(PEERS / "features.py"), str(data), str(folder)], check=True, stdout=subprocess.DEVNULL
        )
    return folder


def measure(system: str, folder: Path, args: argparse.Namespace) -> dict:
    name, _, setting = system.partition(":")
    if name == "labelwise":
        preset, negatives = ("default", setting or "tfn") if setting in ("", "tfn", "tfn+man") else (setting, "tfn")
        command = [sys.executable, __file__, "--worker", str(folder), negatives, preset, "--threads", str(args.threads)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    else:
        command = [str(PYTHON), str(PEERS / "run.py"), name, str(folder), "--threads", str(args.threads)]
        command += ["--negatives", setting] if setting.startswith("tfn") else ["--trees", setting] if setting else []
        environment = dict(os.environ)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{system} on {folder.name} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--systems", default="labelwise,pecos,napkinxc,omikuji", help="name or name:setting, by commas")
    parser.add_argument("--matcher-negatives", action="store_true", help="also TFN+MAN of labelwise and PECOS")
    parser.add_argument("--features", type=Path, default=ROOT / "bench-cache", help="where features are kept")
    parser.add_argument("--json", type=Path, help="also append the JSON lines to this file")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
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
    missed = bars(results)
    print("\n" + ("every bar that could be judged is met" if not missed else "missed: " + "; ".join(missed)))
    sys.exit(1 if args.check and missed else 0)


def bars(results: dict[str, dict[str, dict]]) -> list[str]:
    """The bars that are missed, a phrase each."""
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
