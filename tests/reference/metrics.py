"""Plain twins of the metrics: one document after the other, sets and lists, percent by percent."""

from math import log2

import numpy as np

Truth = list[set[int]]
Scores = list[dict[int, float]]


def ranking(scores: dict[int, float], k: int | None = None) -> list[int]:
    """Labels by descending score, equal scores by number; the first k of them."""
    return sorted(scores, key=lambda label: (-scores[label], label))[:k]


def gain(flags, weights=None) -> float:
    """Sum of (weighted) flags, discounted by rank."""
    weights = weights or [1.0] * len(flags)
    return sum(w * flag / log2(rank + 1) for rank, (flag, w) in enumerate(zip(flags, weights, strict=True), 1))


def ideal(n_true: int, k: int) -> float:
    return gain([1] * min(n_true, k)) or 1.0


def mean(values) -> float:
    values = list(values)
    return 100 * sum(values) / len(values) if values else float("nan")


def share(part: float, whole: float) -> float:
    return 100 * part / whole if whole else float("nan")


def flags(truth: Truth, scores: Scores, k: int) -> list[list[int]]:
    return [[int(label in true) for label in ranking(row, k)] for true, row in zip(truth, scores, strict=True)]


def precision(truth: Truth, scores: Scores, k: int) -> float:
    return mean(sum(row) / k for row in flags(truth, scores, k))


def recall(truth: Truth, scores: Scores, k: int) -> float:
    found = flags(truth, scores, k)
    return mean(sum(row) / len(true) if true else 0 for true, row in zip(truth, found, strict=True))


def r_precision(truth: Truth, scores: Scores, k: int) -> float:
    found = flags(truth, scores, k)
    return mean(sum(row) / min(k, len(true)) if true else 0 for true, row in zip(truth, found, strict=True))


def ndcg(truth: Truth, scores: Scores, k: int) -> float:
    found = flags(truth, scores, k)
    return mean(gain(row) / ideal(len(true), k) for true, row in zip(truth, found, strict=True))


def psp(truth: Truth, scores: Scores, k: int, weights) -> float:
    reached = best = 0.0
    for true, row in zip(truth, scores, strict=True):
        reached += sum(weights[label] for label in ranking(row, k) if label in true)
        best += sum(sorted((weights[label] for label in true), reverse=True)[:k])
    return share(reached, best)


def psndcg(truth: Truth, scores: Scores, k: int, weights) -> float:
    reached = best = 0.0
    for true, row in zip(truth, scores, strict=True):
        top = ranking(row, k)
        perfect = sorted((weights[label] for label in true), reverse=True)[:k]
        reached += gain([label in true for label in top], [weights[label] for label in top]) / ideal(len(true), k)
        best += gain([1] * len(perfect), perfect) / ideal(len(true), k)
    return share(reached, best)


def chosen(scores: Scores, k: int | None, threshold: float | None) -> list[set[int]]:
    limit = -np.inf if threshold is None else threshold
    return [{label for label in ranking(row, k) if row[label] >= limit} for row in scores]


def micro_f1(truth: Truth, scores: Scores, k: int | None = None, threshold: float | None = None) -> float:
    picked = chosen(scores, k, threshold)
    right = sum(len(true & pick) for true, pick in zip(truth, picked, strict=True))
    return share(2 * right, sum(map(len, truth)) + sum(map(len, picked)))


def macro_f1(truth: Truth, scores: Scores, k: int | None = None, threshold: float | None = None) -> float:
    picked = chosen(scores, k, threshold)
    values = []
    for label in sorted(set().union(*truth)):
        n_true = sum(label in true for true in truth)
        n_picked = sum(label in pick for pick in picked)
        right = sum(label in true and label in pick for true, pick in zip(truth, picked, strict=True))
        values.append(2 * right / (n_true + n_picked))
    return mean(values)


def coverage(truth: Truth, scores: Scores, k: int) -> float:
    found = set()
    for true, row in zip(truth, scores, strict=True):
        found |= true & set(ranking(row, k))
    return share(len(found), len(set().union(*truth)))


def within(truth: Truth, labels: set[int]) -> Truth:
    """The truth of one bucket."""
    return [true & labels for true in truth]


def only_with_labels(truth: Truth, scores: Scores) -> tuple[Truth, Scores]:
    """The documents that have any."""
    kept = [i for i, true in enumerate(truth) if true]
    return [truth[i] for i in kept], [scores[i] for i in kept]


def peers_quality(top: np.ndarray, truth: np.ndarray, counts: np.ndarray, n_train: int) -> dict[str, float]:
    """What the script that measures other systems reports, on dense arrays.

    top: (n_docs, k) label numbers, best first, -1 where there is none. truth: (n_docs, n_labels) 0/1.
    """
    weights = 1 + (np.log(n_train) - 1) * 2.5**0.55 / (counts + 1.5) ** 0.55
    right = np.take_along_axis(truth, np.maximum(top, 0), axis=1) * (top >= 0)
    n_true = truth.sum(axis=1)
    result = {}
    for k in (1, 3, 5):
        result[f"P@{k}"] = 100 * right[:, :k].sum() / (k * len(truth))
        result[f"R@{k}"] = 100 * np.mean(right[:, :k].sum(axis=1) / np.where(n_true, n_true, 1))
    discount = 1 / np.log2(1 + np.arange(1, 6))
    perfect = [discount[: min(5, n)].sum() if n else 1.0 for n in n_true]
    result["nDCG@5"] = 100 * np.mean(right[:, :5] @ discount / perfect)
    best = np.sort(truth * weights, axis=1)[:, ::-1][:, :5].sum()
    result["PSP@5"] = 100 * (right[:, :5] * weights[np.maximum(top[:, :5], 0)]).sum() / best
    return result
