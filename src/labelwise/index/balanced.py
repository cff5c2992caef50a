"""Clusters of equal size: hierarchical balanced 2-means, and a final exchange among neighbouring clusters."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from labelwise.config import IndexConfig
from labelwise.events import Task
from labelwise.index.bisect import bisect
from labelwise.index.rows import Rows, Spread
from labelwise.kernels.cluster import exchange
from labelwise.types import Ints, OnEvent

Node: TypeAlias = tuple[Ints, int, int]
"""Members, first leaf, number of leaves."""

FAMILY = 16
"""Most clusters of a family: neighbouring clusters that exchange labels."""


def balanced_clusters(
    rows: Rows,
    n_clusters: int,
    config: IndexConfig,
    threads: tuple[ThreadPoolExecutor, int],
    seed: int = 0,
    on_event: OnEvent | None = None,
) -> npt.NDArray[np.int32]:
    """(n_rows,) the cluster of each row; sizes differ by at most one, and clusters with close numbers are similar.

    While a level has fewer nodes than there are threads, the threads share the work on each node; below that, each
    node is the work of one thread.
    """
    clusters = np.zeros(len(rows), np.int32)
    pool, n_threads = threads
    level: list[Node] = [(np.arange(len(rows)), 0, n_clusters)] if n_clusters > 1 else []
    depth = 0

    def split(node: Node, depth: int, spread: Spread) -> tuple[Node, Node]:
        members, first, n_leaves = node
        n_left, leaves_left = shares(len(members), n_leaves)
        left = bisect(rows.inside(members), n_left, config, np.random.default_rng([seed, depth, first]), spread)
        return (members[left], first, leaves_left), (members[~left], first + leaves_left, n_leaves - leaves_left)

    with Task(on_event, "clustering labels", total=n_clusters - 1, unit="nodes") as task:
        while level:
            pairs: Iterable[tuple[Node, Node]]
            if len(level) < n_threads:
                pairs = [split(node, depth, pool.map) for node in level]
            else:
                pairs = pool.map(split, level, [depth] * len(level), [map] * len(level))
            below: list[Node] = []
            for pair in pairs:
                task.advance()
                below.extend(pair)
            for members, first, n_leaves in below:
                if n_leaves == 1:
                    clusters[members] = first
            level, depth = [node for node in below if node[2] > 1], depth + 1
    _exchange_in_families(rows, clusters, n_clusters, config.sample, pool)
    return clusters


def shares(n_members: int, n_leaves: int) -> tuple[int, int]:
    """Number of members and of leaves in the left half of a node.

    The left half has half of the leaves, and the number of members with which every leaf can get ⌊n/k⌋ or ⌈n/k⌉.
    """
    half = n_leaves // 2
    size, n_larger = divmod(n_members, n_leaves)
    return half * size + n_larger * half // n_leaves, half


def _exchange_in_families(
    rows: Rows, clusters: npt.NDArray[np.int32], n_clusters: int, max_members: int, pool: ThreadPoolExecutor
) -> None:
    """Exchange labels between neighbouring clusters where both clusters gain, in place.

    Neighbouring clusters, a family, are those below one node some levels up. Halving decides early and for good: a
    label on the wrong side of a cut cannot reach the cluster that it fits best. Here labels are scored against all
    clusters of their family at once. Sizes do not change, and the sum of cosines to the centres never falls.
    """
    families = [(0, n_clusters)]
    while max(n_leaves for _, n_leaves in families) > FAMILY:
        halves = [((first, n // 2), (first + n // 2, n - n // 2)) for first, n in families]
        families = [half for pair in halves for half in pair]
    order = np.argsort(clusters, kind="stable")
    borders = np.searchsorted(clusters[order], [first for first, _ in families])

    def work(family: tuple[int, int], members: Ints) -> None:
        first, n_leaves = family
        if n_leaves < 2 or not n_leaves < len(members) <= max_members:
            return
        inside, own = rows.compact(members), clusters[members] - np.int32(first)
        exchange(inside.score_all(inside.centres(own, n_leaves)), own)
        clusters[members] = own + np.int32(first)

    list(pool.map(work, families, np.split(order, borders[1:])))
