#!/usr/bin/env python3
"""Measures tf-idf of the same texts by labelwise, scikit-learn and PECOS, one after the other.

    python benchmarks/tfidf.py [--data DATA] [--threads 2] [--repeat 3] [--peers ENV] [--check]

DATA is a data set; the default is eurlex57k in the folder that the variable LABELWISE_DATA names. The training texts
are a list in memory. Each system fits and transforms them in its own process. Printed are wall and CPU seconds (the
best of --repeat) and the peak memory of the process. labelwise and scikit-learn compute the same features, and the
script compares them. PECOS splits texts at spaces only and keeps upper case. Loading or compiling labelwise's kernels
is timed separately (`first_call_s`).

PECOS runs in the environment that benchmarks/peers/install.py makes, and is left out if there is none. With --check the
exit code is 1 unless labelwise needs at most 1/4 of scikit-learn's CPU seconds, at most 1/2 of PECOS's, and at most
scikit-learn's memory.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from peers.environment import add_peers_option, python_of
from settings import data_folder

ROOT = Path(__file__).resolve().parents[1]

# Run by the Python of each system: reads a text file with one document per line, prints one JSON object.
WORKER = """
import json, resource, sys, time

system, path, threads, repeat, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]


def measure(call):
    wall, cpu = time.perf_counter(), time.process_time()
    answer = call()
    return time.perf_counter() - wall, time.process_time() - cpu, answer


def read():
    with open(path, encoding="utf-8", newline="\\n") as file:
        return [line[:-1] for line in file]


result = {}
if system == "labelwise":
    from labelwise import Tfidf, __version__ as version

    texts = read()
    result["first_call_s"] = measure(lambda: Tfidf(threads=threads).fit_transform(texts[:100]))[0]

    def call():
        return Tfidf(threads=threads).fit_transform(texts)
elif system == "scikit-learn":
    import numpy as np
    from sklearn import __version__ as version
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = read()

    def call():
        vectorizer = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\\b\\w+\\b", dtype=np.float32)
        return vectorizer.fit_transform(texts)
else:
    from importlib.metadata import version as of
    from pecos.utils.featurization.text.vectorizers import Tfidf

    version = of("libpecos")
    texts = read()

    def call():
        return Tfidf.train(texts, {"sublinear_tf": True, "threads": threads}).predict(texts, threads=threads)

result["rss_before_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
times = []
for _ in range(repeat):
    X = None  # the last one's features are not to count twice
    wall, cpu, X = measure(call)
    times.append((cpu, wall))
result["rss_peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
result["cpu_s"], result["wall_s"] = min(times)
result |= {"version": version, "docs": X.shape[0], "features": X.shape[1], "nnz": int(X.nnz)}
if out != "-":
    import scipy.sparse as sp

    X = sp.csr_matrix(X)
    X.sort_indices()
    sp.save_npz(out, X, compressed=False)
print(json.dumps({key: round(value, 3) if isinstance(value, float) else value for key, value in result.items()}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder() / "eurlex57k")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    add_peers_option(parser)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    args = parser.parse_args()
    if not args.data.exists():
        print(f"no data at {args.data}; give a data set with --data", file=sys.stderr)
        sys.exit(1 if args.check else 0)

    from labelwise import load_dataset

    texts = load_dataset(args.data, "train").texts or []
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "texts.txt"
        # One document per line, so that each process reads them quickly; line breaks inside of texts become spaces.
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(" ".join(text.split()) + "\n" for text in texts)
        systems = {"labelwise": sys.executable, "scikit-learn": sys.executable}
        if python_of(args.peers).exists():
            systems["pecos"] = str(python_of(args.peers))
        results = {}
        for system, python in systems.items():
            out = "-" if system == "pecos" else str(Path(scratch) / f"{system}.npz")
            command = [python, "-c", WORKER, system, str(path), str(args.threads), str(args.repeat), out]
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")} if system != "pecos" else dict(os.environ)
            environment["OMP_NUM_THREADS"] = str(args.threads)
            done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
            if done.returncode:
                sys.exit(f"{system} failed:\n{done.stderr[-2000:]}")
            results[system] = json.loads(done.stdout.splitlines()[-1])
        import scipy.sparse as sp

        difference = abs(
            sp.load_npz(Path(scratch) / "labelwise.npz") - sp.load_npz(Path(scratch) / "scikit-learn.npz")
        ).max()

    ours, sklearn, pecos = (results.get(name) for name in ("labelwise", "scikit-learn", "pecos"))
    record = {
        "benchmark": "tfidf",
        "data": args.data.name,
        "docs": len(texts),
        "characters": sum(map(len, texts)),
        "threads": args.threads,
        "load_average": round(os.getloadavg()[0], 2),
        "max_difference_to_scikit_learn": float(difference),
        "cpu_share_of_scikit_learn": round(ours["cpu_s"] / sklearn["cpu_s"], 3),
        "cpu_share_of_pecos": round(ours["cpu_s"] / pecos["cpu_s"], 3) if pecos else None,
        "memory_share_of_scikit_learn": round(ours["rss_peak_mib"] / sklearn["rss_peak_mib"], 3),
        **results,
    }
    print(json.dumps(record))
    against = f"{sklearn['cpu_s']:.2f} of scikit-learn"
    against += f" and {pecos['cpu_s']:.2f} of PECOS" if pecos else " (PECOS is not installed here)"
    print(
        f"{args.data.name}, {len(texts):,} texts: labelwise takes {ours['cpu_s']:.2f} CPU seconds "
        f"({ours['wall_s']:.2f} wall) against {against}; peak memory {ours['rss_peak_mib']:.0f} MiB "
        f"against {sklearn['rss_peak_mib']:.0f}; largest difference to scikit-learn's values {difference:.1e}."
    )
    passed = (
        record["cpu_share_of_scikit_learn"] <= 1 / 4
        and pecos is not None
        and record["cpu_share_of_pecos"] <= 1 / 2
        and record["memory_share_of_scikit_learn"] <= 1.0
        and difference <= 1e-6
    )
    sys.exit(1 if args.check and not passed else 0)


if __name__ == "__main__":
    main()
