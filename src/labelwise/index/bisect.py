"""Balanced spherical 2-means: cuts a node of labels into two halves of given sizes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelwise.config import IndexConfig
from labelwise.index.rows import Rows, Spread, Vector
from labelwise.kernels.cluster import aim, halve

# The starting direction is the best of some trials on a share of the members. More trials, larger shares and more power
# steps cost more than they gain (sum of cosines on eurlex57k, usbills-4k, debdeps-15k; benchmarks/cluster.py).
TRIALS = 4
SHARE = 1 / 8
LEAST = 32
TRIAL_ITERATIONS = 3


def bisect(
    rows: Rows, n_left: int, config: IndexConfig, rng: np.random.Generator, spread: Spread = map
) -> npt.NDArray[np.bool_]:
    """Choose the members of the left half.

    Parameters
    ----------
    rows
        Members of the node, rows of length one.
    n_left
        Size of the left half.
    config
        `iterations` and `sample` are used.
    rng
        The random generator of the node.
    spread
        `map`, or the `map` of a pool, to share the work among threads.

    Returns
    -------
    left
        (n_rows,) bool with `n_left` true.
    """
    n_rows = len(rows)
    if not 0 < n_left < n_rows:
        return np.full(n_rows, n_left == n_rows)
    if rows.small and n_rows <= config.sample:
        return _bisect_small(rows, n_left, config.iterations, rng)
    drawn, n_drawn_left = _draw(rows, n_left, config.sample, rng)
    direction = _starting_direction(drawn, n_drawn_left, rng, spread)
    left, direction, _ = _two_means(drawn, n_drawn_left, direction, config.iterations, spread)
    return left if len(drawn) == n_rows else _cut(rows.score(direction, spread), n_left)


def _bisect_small(rows: Rows, n_left: int, iterations: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Choose the members of the left half of a small node, by one kernel."""
    n_rows = len(rows)
    n_share = min(max(round(SHARE * n_rows), LEAST), n_rows)
    share = np.sort(rng.choice(n_rows, n_share, replace=False)) if n_share < n_rows else np.arange(n_rows)
    pairs = rng.integers(n_share, size=(TRIALS, 2))
    pairs[:, 1] = (pairs[:, 0] + 1 + pairs[:, 1] % (n_share - 1)) % n_share  # two different members
    arrays = (
        (share, share, *rows.arrays) if len(rows.arrays) == 1 else rows.arrays
    )  # dense rows: the first two arrays are not read
    left: npt.NDArray[np.bool_] = halve(
        *arrays, rows.width, n_left, share, pairs, np.array([TRIAL_ITERATIONS, iterations])
    )
    return left


def _two_means(
    rows: Rows, n_left: int, direction: Vector, iterations: int, spread: Spread
) -> tuple[npt.NDArray[np.bool_], Vector, float]:
    """The left half, the difference of the two centres, and the sum of cosines to the centres.

    Members are ordered by their product with the difference of the two centres and cut after `n_left`. The sum of all
    members is constant, so the left centre determines the right one; and as fewer and fewer members change sides, the
    centre is updated by these members alone.
    """
    total = rows.sum(np.ones(len(rows), np.float32), spread)
    left = np.zeros(len(rows), bool)
    centre = np.zeros(rows.width, np.float32)
    objective = 0.0
    for _ in range(iterations):
        now = _cut(rows.score(direction, spread), n_left)
        moves = now.astype(np.float32) - left
        if not moves.any():
            break
        left = now
        centre += rows.sum(moves, spread)
        direction = np.empty_like(centre)
        objective = aim(centre, total, direction)
    return left, direction, objective


def _starting_direction(rows: Rows, n_left: int, rng: np.random.Generator, spread: Spread) -> Vector:
    """The direction that gives the best halves of a share of the members, among some trials."""
    share, n_share_left = _draw(rows, n_left, max(round(SHARE * len(rows)), LEAST), rng)
    trials = [
        _two_means(share, n_share_left, _difference(share, rng, spread), TRIAL_ITERATIONS, spread)
        for _ in range(TRIALS)
    ]
    return max(trials, key=lambda trial: trial[2])[1]


def _difference(rows: Rows, rng: np.random.Generator, spread: Spread) -> Vector:
    """The difference of two random members, after one power step towards the direction of largest variance.

    The best halves are those whose sums differ most: with real weights in place of the two signs, and without the
    sizes, this is the problem that the first principal component solves.
    """
    weights = np.zeros(len(rows), np.float32)
    weights[rng.choice(len(rows), 2, replace=False)] = 1, -1
    weights = rows.score(rows.sum(weights, spread), spread)
    return rows.sum(weights - weights.mean(), spread)


def _draw(rows: Rows, n_left: int, n_wanted: int, rng: np.random.Generator) -> tuple[Rows, int]:
    """A random sample of `n_wanted` rows (all rows if there are no more), and the size of its left half."""
    n_rows = len(rows)
    if n_rows <= n_wanted:
        return rows, n_left
    drawn = rows.subset(np.sort(rng.choice(n_rows, n_wanted, replace=False)))
    return drawn, min(max(round(n_wanted * n_left / n_rows), 1), n_wanted - 1)


def _cut(scores: Vector, n_left: int) -> npt.NDArray[np.bool_]:
    """Mask of the `n_left` highest scores; of equal scores the first."""
    threshold = np.partition(scores, len(scores) - n_left)[len(scores) - n_left]
    left: npt.NDArray[np.bool_] = scores > threshold
    ties = np.flatnonzero(scores == threshold)
    left[ties[: n_left - np.count_nonzero(left)]] = True
    return left
