#!/usr/bin/env python3
"""Measures how cost grows: LinearTree on the generated shop, with more labels, then with more documents.

    python benchmarks/scaling.py [--labels 1000,…] [--documents 10000,…] [--plot OUT.svg] [--json OUT] [--check]

Labels grow with a constant number of documents per label (--documents-per-label); documents grow with a constant number
of labels (--fixed-labels). Every point runs in its own process: data generation, tf-idf, label embedding, clustering
and training, then the prediction of 2,000 test documents with one thread. Training holds out no documents here. Printed
are CPU seconds, and the peak memory above the memory of a process that has trained a tiny model, as a markdown table
and a JSON line. With --check the exit code is 1 unless training grows at most 1.3 times as fast as the (document,
label) pairs from one point to the next, and prediction per document at most as fast as the logarithm of the number of
labels.
"""

import argparse
import json
import math
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def worker(n_documents: int, n_labels: int, threads: int) -> dict:
    import resource
    import time

    from labelwise import LinearTree, LinearTreeConfig, Tfidf, generate_shop
    from labelwise.config import HoldoutConfig
    from labelwise.engines.allocator import limit_heap_growth

    config = LinearTreeConfig(threads=threads, holdout=HoldoutConfig(share=0, calibrate=False))

    def seconds(call):
        start = time.process_time()
        answer = call()
        return round(time.process_time() - start, 4), answer

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    limit_heap_growth()  # as the commands do
    small = generate_shop(1_000, 500)["train"]
    LinearTree(config).fit(small.texts, small.Y).predict(small.texts[:10])  # compiles
    base = peak()
    n_test = 2_000
    generate_s, shop = seconds(
        lambda: generate_shop(n_documents + n_test, n_labels, test_fraction=n_test / (n_documents + n_test))
    )
    train, test = shop["train"], shop["test"]
    generated = peak()
    tfidf = Tfidf()
    tfidf_s, X = seconds(lambda: tfidf.fit_transform(train.texts))
    X_test = tfidf.transform(test.texts)
    model = LinearTree(config)
    fit_s, _ = seconds(lambda: model.fit(X, train.Y))
    highest = peak()
    predict_s = min(seconds(lambda: model.predict(X_test, threads=1))[0] for _ in range(5))
    tree = model.trees_[0].tree
    return {
        "documents": len(train),
        "labels": n_labels,
        "pairs": int(train.Y.nnz),
        "clusters": tree.n_clusters,
        "levels": [int(tree.n_nodes(level)) for level in range(1, tree.depth)],
        "generate_cpu_s": generate_s,
        "tfidf_cpu_s": tfidf_s,
        "fit_cpu_s": fit_s,
        "fit_us_per_pair": round(1e6 * fit_s / train.Y.nnz, 2),
        "fit_us_per_document": round(1e6 * fit_s / len(train), 1),
        "fit_us_per_label": round(1e6 * fit_s / n_labels, 1),
        "predict_us_per_document": round(1e6 * predict_s / len(test), 1),
        "rss_generated_mib": round(generated - base),
        "rss_mib": round(highest - base),
        "rss_kib_per_document": round(1024 * (highest - base) / len(train), 2),
        "rss_kib_per_label": round(1024 * (highest - base) / n_labels, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", default="1000,10000,100000,1000000", help="numbers of labels, by commas")
    parser.add_argument("--documents-per-label", type=float, default=2.0)
    parser.add_argument("--documents", default="10000,100000,1000000", help="numbers of documents, by commas")
    parser.add_argument("--fixed-labels", type=int, default=5_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plot", type=Path, help="draw a log-log picture into this .png or .svg file")
    parser.add_argument("--json", type=Path, help="also write the line to this file")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--worker", nargs=2, type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(worker(*args.worker, args.threads)))
        return
    labels = [int(n) for n in args.labels.split(",")]
    documents = [int(n) for n in args.documents.split(",")]
    series = {
        "labels": [run(max(int(n * args.documents_per_label), 2_000), n, args.threads) for n in labels],
        "documents": [run(n, args.fixed_labels, args.threads) for n in documents],
    }
    columns = ("documents", "labels", "pairs", "clusters", "tfidf_cpu_s", "fit_cpu_s", "fit_us_per_pair")
    columns += ("fit_us_per_document", "fit_us_per_label", "predict_us_per_document")
    columns += ("rss_mib", "rss_kib_per_document", "rss_kib_per_label")
    for name, points in series.items():
        print(f"\ngrowing {name} (generated data)\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
        for point in points:
            print(f"| {' | '.join(f'{point[column]:,}' for column in columns)} |")
    missed = missed_targets(series)
    line = json.dumps({"benchmark": "scaling", "threads": args.threads, **series})
    print(f"\n{line}\n\n" + ("both targets are met" if not missed else "missed: " + "; ".join(missed)))
    if args.json:
        args.json.write_text(line + "\n", encoding="utf-8")
    if args.plot:
        draw(series, args.plot)
    sys.exit(1 if args.check and missed else 0)


def run(n_documents: int, n_labels: int, threads: int) -> dict:
    command = [sys.executable, __file__, "--worker", str(n_documents), str(n_labels), "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{n_documents} documents, {n_labels} labels failed:\n{done.stderr[-2000:]}")
    line = done.stdout.splitlines()[-1]
    print(line, file=sys.stderr, flush=True)  # so that a long run shows progress
    return json.loads(line)


def missed_targets(series: dict[str, list[dict]]) -> list[str]:
    missed = []
    for name, points in series.items():
        for small, large in pairwise(points):
            growth = (large["fit_cpu_s"] / small["fit_cpu_s"]) / (large["pairs"] / small["pairs"])
            if growth > 1.3:
                missed.append(f"{name}: training grew {growth:.2f} times as fast as the pairs to {large['pairs']:,}")
            allowed = math.log(large["labels"]) / math.log(small["labels"])
            slower = large["predict_us_per_document"] / small["predict_us_per_document"]
            if name == "labels" and slower > allowed:
                missed.append(f"prediction grew {slower:.2f} times to {large['labels']:,} labels, log L {allowed:.2f}")
    return missed


def draw(series: dict[str, list[dict]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    panels = (
        ("fit_cpu_s", "training, CPU seconds", "pairs"),
        ("predict_us_per_document", "prediction, µs per document", "labels"),
    )
    for axes, (key, title, along) in zip(figure.subplots(1, 2), panels, strict=True):
        for (name, points), colour in zip(series.items(), ("#0072b2", "#e69f00"), strict=True):
            if along == "labels" and name != "labels":
                continue
            axes.loglog([p[along] for p in points], [p[key] for p in points], "o-", color=colour, label=f"more {name}")
        axes.set_title(f"{title} (generated data)", fontsize=11)
        axes.set_xlabel({"pairs": "(document, label) pairs in training", "labels": "labels"}[along])
        axes.grid(True, which="major", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
