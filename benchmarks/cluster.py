#!/usr/bin/env python3
"""Measures label embedding and balanced clustering of labelwise and PECOS, with equal labels and numbers of clusters.

    python benchmarks/cluster.py FEATURES [--threads 2] [--repeat 3] [--peers ENV] [--check]

FEATURES is a folder with X.trn.npz and Y.trn.npz, made by benchmarks/peers/make_features.py. Each system runs in its
own process, after its kernels are compiled. Printed are wall and CPU seconds of embedding and of clustering (the best
of --repeat by CPU seconds). Both systems cluster the embeddings that PECOS computed, into the number of clusters that
PECOS chooses. The objective is the sum over labels of the cosine to the centre of their cluster; larger is better.
Random seeds 0, 1 and 2 show its variance.

PECOS runs in the environment that benchmarks/peers/install.py makes. With --check the exit code is 1 unless labelwise
clusters in at most as many CPU seconds as PECOS and its mean objective is at least as high.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from peers.environment import add_peers_option, peers_python

ROOT = Path(__file__).resolve().parents[1]

# Run by the python of each system: PECOS leaves its embeddings and cluster numbers in the scratch folder.
WORKER = """
import json, sys, time
from pathlib import Path
import numpy as np, scipy.sparse as sp

system, features, scratch, threads, repeat = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), *map(int, sys.argv[4:])
X = sp.load_npz(features / "X.trn.npz").tocsr().astype(np.float32)
Y = sp.load_npz(features / "Y.trn.npz").tocsr().astype(np.float32)


def measure(call):
    best = None
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        answer = call()
        times = time.process_time() - cpu, time.perf_counter() - wall
        best = min(best, times) if best else times
    return best, answer


if system == "pecos":
    from importlib.metadata import version
    from pecos.xmc import Indexer, LabelEmbeddingFactory

    name = version("libpecos")
    embed, Z = measure(lambda: LabelEmbeddingFactory.create(Y, X, method="pifa", threads=threads))
    sp.save_npz(scratch / "Z.npz", Z.tocsr(), compressed=False)

    def cluster(seed):
        tree = Indexer.gen(Z, threads=threads, seed=seed, max_leaf_size=100, nr_splits=16)
        return tree[-1].tocsr().indices
else:
    from labelwise import __version__ as name
    from labelwise.config import IndexConfig
    from labelwise.index import build_tree, embed_labels

    embed_labels(Y[:50], X[:50])
    embed, _ = measure(lambda: embed_labels(Y, X, normalize_documents=True, threads=threads))
    Z = sp.csr_array(sp.load_npz(scratch / "Z.npz"))
    n_clusters = int(np.load(scratch / "pecos.0.npy").max()) + 1
    build_tree(Z[:300], IndexConfig(n_clusters=4), threads=threads)

    def cluster(seed):
        return build_tree(Z, IndexConfig(n_clusters=n_clusters), seed=seed, threads=threads).clusters

times, _ = measure(lambda: cluster(0))
objectives = []
for seed in range(3):
    clusters = cluster(seed)
    if seed == 0:
        np.save(scratch / f"{system}.0.npy", clusters)
    C = sp.csr_matrix((np.ones(len(clusters), np.float32), clusters, np.arange(len(clusters) + 1)))
    sums = C.T.tocsr() @ sp.csr_matrix(Z)
    objectives.append(round(float(np.sqrt(sums.multiply(sums).sum(axis=1)).sum()), 2))
print(json.dumps({
    "version": name, "embed_cpu_s": round(embed[0], 3), "embed_wall_s": round(embed[1], 3),
    "cluster_cpu_s": round(times[0], 3), "cluster_wall_s": round(times[1], 3), "objectives": objectives,
    "objective": round(sum(objectives) / 3, 2), "labels": len(clusters), "clusters": int(clusters.max()) + 1,
}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path, help="folder with X.trn.npz and Y.trn.npz")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    add_peers_option(parser)
    parser.add_argument("--check", action="store_true", help="exit 1 when slower or worse than PECOS")
    args = parser.parse_args()
    if not (args.features / "X.trn.npz").is_file():
        sys.exit(f"there is no {args.features / 'X.trn.npz'}; make it with benchmarks/peers/make_features.py")
    systems = {"pecos": peers_python(args.peers), "labelwise": sys.executable}
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        for system, python in systems.items():
            command = [
                str(python),
                "-c",
                WORKER,
                system,
                str(args.features),
                scratch,
                str(args.threads),
                str(args.repeat),
            ]
            environment = dict(os.environ)
            if system == "labelwise":
                environment["PYTHONPATH"] = str(ROOT / "src")
            done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
            if done.returncode:
                sys.exit(f"{system} failed:\n{done.stderr[-2000:]}")
            results[system] = json.loads(done.stdout.splitlines()[-1])

    ours, pecos = results["labelwise"], results["pecos"]
    record = {
        "benchmark": "cluster",
        "data": args.features.name,
        "threads": args.threads,
        "load_average": round(os.getloadavg()[0], 2),
        "cpu_share_of_pecos": round(ours["cluster_cpu_s"] / pecos["cluster_cpu_s"], 3),
        "objective_share_of_pecos": round(ours["objective"] / pecos["objective"], 4),
        **results,
    }
    print(json.dumps(record))
    print(
        f"{args.features.name}, {ours['labels']:,} labels into {ours['clusters']} clusters: labelwise takes "
        f"{ours['cluster_cpu_s']:.2f} CPU seconds ({ours['cluster_wall_s']:.2f} wall) "
        f"against {pecos['cluster_cpu_s']:.2f} "
        f"({pecos['cluster_wall_s']:.2f}) of PECOS, for an objective of {ours['objective']:.1f} against "
        f"{pecos['objective']:.1f}; embedding {ours['embed_cpu_s']:.2f} against {pecos['embed_cpu_s']:.2f}."
    )
    passed = record["cpu_share_of_pecos"] <= 1.0 and record["objective_share_of_pecos"] >= 1.0
    sys.exit(1 if args.check and not passed else 0)


if __name__ == "__main__":
    main()
