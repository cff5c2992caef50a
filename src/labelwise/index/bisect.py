"""A node of labels into two halves of given sizes: balanced spherical 2-means."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelwise.config import IndexConfig
from labelwise.index.rows import Rows, Spread, Vector
from labelwise.kernels.cluster import aim

POWER_STEPS = 2


def bisect(
    rows: Rows, n_left: int, config: IndexConfig, rng: np.random.Generator, spread: Spread = map
) -> npt.NDArray[np.bool_]:
    """Choose the members of the left half.

    Parameters
    ----------
    rows
        Members of the node, of length one.
    n_left
        Size of the left half.
    config
        `iterations` and `sample` count here.
    rng
        The node's own.
    spread
        `map`, or a pool's, to share the work among threads.

    Returns
    -------
    left
        (n_rows,) bool with `n_left` true.
    """
    n_rows = len(rows)
    if not 0 < n_left < n_rows:
        return np.full(n_rows, n_left == n_rows)
    if n_rows <= config.sample:
        left, _ = _two_means(rows, n_left, config.iterations, rng, spread)
        return left
    drawn = rows.subset(np.sort(rng.choice(n_rows, config.sample, replace=False)))
    n_drawn_left = min(max(round(config.sample * n_left / n_rows), 1), config.sample - 1)
    _, direction = _two_means(drawn, n_drawn_left, config.iterations, rng, spread)
    return _cut(rows.score(direction, spread), n_left)


def _two_means(
    rows: Rows, n_left: int, iterations: int, rng: np.random.Generator, spread: Spread
) -> tuple[npt.NDArray[np.bool_], Vector]:
    """The left half, and the difference of the centres that made it.

    Members are ordered by their product with the difference of the two centres and cut after `n_left`. As the sum of
    all members does not change, one centre tells the other; and as fewer and fewer members change sides, the centre
    is corrected by those alone.
    """
    total = rows.sum(np.ones(len(rows), np.float32), spread)
    direction = _start(rows, rng, spread)
    left = np.zeros(len(rows), bool)
    centre = np.zeros(rows.width, np.float32)
    for _ in range(iterations):
        now = _cut(rows.score(direction, spread), n_left)
        moves = now.astype(np.float32) - left
        if not moves.any():
            break
        left = now
        centre += rows.sum(moves, spread)
        direction = np.empty_like(centre)
        aim(centre, total, direction)
    return left, direction


def _start(rows: Rows, rng: np.random.Generator, spread: Spread) -> Vector:
    """A direction along which the members differ much.

    The difference of two members drawn by lot, turned towards the first principal component by power steps: the
    best halves are those whose sums differ most, and without the sizes and signs that is the component's own problem.
    """
    weights = np.zeros(len(rows), np.float32)
    weights[rng.choice(len(rows), 2, replace=False)] = 1, -1
    direction = rows.sum(weights, spread)
    for _ in range(POWER_STEPS):
        weights = rows.score(direction, spread)
        weights -= weights.mean()
        highest = np.abs(weights).max()
        if highest > 0:
            weights /= highest
        direction = rows.sum(weights, spread)
    return direction


def _cut(scores: Vector, n_left: int) -> npt.NDArray[np.bool_]:
    """The `n_left` highest scores; of equal ones the first."""
    threshold = np.partition(scores, len(scores) - n_left)[len(scores) - n_left]
    left = scores > threshold
    ties = np.flatnonzero(scores == threshold)
    left[ties[: n_left - np.count_nonzero(left)]] = True
    return left
