"""Measures the evaluation of 100,000 documents with a million labels and ten predictions each.

    python benchmarks/metrics.py [--docs 100000] [--labels 1000000] [--check]

*_s are wall seconds, *_cpu_s are CPU seconds of all threads, after a warm-up on a small matrix. `numpy_s` is the
computation of P, R, nDCG and PSP in plain numpy (a global sort for the ranking, isin for the hits), without label
buckets, F1, coverage and PSnDCG: less than half of what `evaluate_s` measures. The output is a JSON line and a
sentence. With --check the exit code is 1 if evaluation without the bootstrap takes more than 5 s.
"""

import argparse
import json
import sys
import time

import numpy as np
import scipy.sparse as sp

from labelwise.metrics import compare, evaluate, inverse_propensity

LIMIT_S = 5.0
KS = (1, 3, 5)


def make(n_docs: int, n_labels: int, per_doc: int, rng: np.random.Generator) -> sp.csr_array:
    """Labels with a long tail: most of them are rare."""
    labels = (n_labels * rng.random(n_docs * per_doc) ** 3).astype(np.int32)
    rows = np.repeat(np.arange(n_docs), per_doc)
    return sp.coo_array((rng.random(rows.size, dtype=np.float32), (rows, labels)), shape=(n_docs, n_labels)).tocsr()


def plain_numpy(Y: sp.csr_array, Y_pred: sp.csr_array, weights: np.ndarray) -> dict[str, float]:
    n_docs, n_labels = Y.shape
    rows = np.repeat(np.arange(n_docs), np.diff(Y_pred.indptr))
    order = np.lexsort((Y_pred.indices, -Y_pred.data, rows))
    place = np.arange(rows.size) - np.repeat(Y_pred.indptr[:-1], np.diff(Y_pred.indptr))
    top = np.full((n_docs, max(KS)), -1, dtype=np.int64)
    kept = place < max(KS)
    top[rows[kept], place[kept]] = Y_pred.indices[order][kept]
    true_rows = np.repeat(np.arange(n_docs), np.diff(Y.indptr))
    known = true_rows * np.int64(n_labels) + Y.indices
    hit = np.isin(np.arange(n_docs)[:, None] * np.int64(n_labels) + top, known) & (top >= 0)
    size = np.diff(Y.indptr)
    gain = 1 / np.log2(np.arange(2, max(KS) + 2))
    heavy = np.lexsort((-weights[Y.indices], true_rows))
    true_place = np.arange(true_rows.size) - np.repeat(Y.indptr[:-1], size)
    result = {}
    for k in KS:
        found = hit[:, :k].sum(axis=1)
        result[f"P@{k}"] = 100 * found.mean() / k
        result[f"R@{k}"] = 100 * (found / np.maximum(size, 1)).mean()
        ideal = np.concatenate(([1.0], np.cumsum(gain[:k])))[np.minimum(size, k)]
        result[f"nDCG@{k}"] = 100 * ((hit[:, :k] * gain[:k]).sum(axis=1) / ideal).mean()
        reached = (hit[:, :k] * weights[top[:, :k]]).sum()
        result[f"PSP@{k}"] = 100 * reached / weights[Y.indices][heavy][true_place < k].sum()
    return result


class Clock:
    """Wall and CPU seconds of the calls made through it."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}

    def time(self, key, call):
        wall, cpu = time.perf_counter(), time.process_time()
        answer = call()
        self.taken[f"{key}_s"] = round(time.perf_counter() - wall, 3)
        self.taken[f"{key}_cpu_s"] = round(time.process_time() - cpu, 3)
        return answer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--check", action="store_true", help=f"exit 1 if it takes more than {LIMIT_S} s")
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    Y_train, Y = make(2 * args.docs, args.labels, 6, rng), make(args.docs, args.labels, 6, rng)
    other = make(args.docs, args.labels, 6, rng)
    Y_pred = (0.6 * Y + other).tocsr()  # about twelve predictions per document, half of them correct
    rival = (0.5 * Y + other).tocsr()
    evaluate(Y[:100], Y_pred[:100], Y_train=Y_train, bootstrap=10)

    clock = Clock()
    found = clock.time("evaluate", lambda: evaluate(Y, Y_pred, Y_train=Y_train, bootstrap=0))
    weights = inverse_propensity(Y_train)
    plain = clock.time("numpy", lambda: plain_numpy(Y, Y_pred, weights))
    worst = max(abs(found[name] - value) for name, value in plain.items())
    if worst > 1e-9:
        print(f"the results of evaluate and of plain numpy differ by {worst}", file=sys.stderr)
        return 1
    full = clock.time("with_bootstrap", lambda: evaluate(Y, Y_pred, Y_train=Y_train, bootstrap=args.resamples))
    second = evaluate(Y, rival, Y_train=Y_train, bootstrap=0)
    clock.time("compare", lambda: compare(full, second, resamples=args.resamples))
    taken = clock.taken
    bootstrap_s = round(taken["with_bootstrap_s"] - taken["evaluate_s"], 3)
    record = {
        "docs": args.docs,
        "labels": args.labels,
        "predictions": int(Y_pred.nnz),
        "resamples": args.resamples,
        **taken,
        "bootstrap_s": bootstrap_s,
    }
    print(json.dumps(record))
    print(
        f"All metrics of {args.docs:,} documents over {args.labels:,} labels took {taken['evaluate_s']:.2f} s "
        f"(a part of them in plain numpy {taken['numpy_s']:.2f} s); "
        f"{args.resamples:,} bootstrap resamples took {bootstrap_s:.2f} s more."
    )
    return int(args.check and taken["evaluate_s"] > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
