"""A shallow, wide tree with clusters of any size, as Bonsai's: k-way spherical k-means, level by level."""

from __future__ import annotations

import heapq
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from labelwise.config import IndexConfig
from labelwise.events import Task
from labelwise.index.balanced import balanced_clusters
from labelwise.index.rows import Rows, Spread
from labelwise.index.tree import Tree
from labelwise.types import Ints, OnEvent

BRANCHING = 100
# k-means may go on for ever to split off a few labels from one large cluster. Bonsai stops at a depth; so do we, and
# cut what is too large by then evenly.
DEPTH = 2
# Numbers in a block of centres, (width, n_block): 128 MB.
BLOCK = 1 << 25


def kmeans_tree(
    rows: Rows,
    known: Ints,
    config: IndexConfig,
    threads: tuple[ThreadPoolExecutor, int],
    seed: int,
    on_event: OnEvent | None,
) -> Tree:
    """The tree in which nodes with more than `max_leaf` labels are split up, into at most `branching` each.

    Nodes that are small enough stay one node down to the last level.

    Parameters
    ----------
    rows
        All labels.
    known
        Labels whose row is not zero; the others join the smallest clusters at the end.
    config
        See `IndexConfig`.
    threads
        A pool of threads, and how many they are.
    seed
        Random seed.
    on_event
        Hears of progress.
    """
    pool, n_threads = threads

    def split(members: Ints, node: int, depth: int, spread: Spread) -> list[Ints]:
        if len(members) <= config.max_leaf:
            return [members]
        inside = rows.inside(members)
        rng = np.random.default_rng([seed, depth, node])
        clusters = kmeans(inside, _n_children(len(members), config), config, rng, spread)
        return [members[clusters == c] for c in range(clusters.max() + 1)]

    level: list[Ints] = [known]
    parents: list[npt.NDArray[np.int32]] = []
    with Task(on_event, "clustering labels", total=DEPTH + 1, unit="levels") as task:
        while any(len(members) > config.max_leaf for members in level):
            depth = len(parents)
            groups: list[list[Ints]]
            if depth == DEPTH:
                groups = [_cut_evenly(rows, members, config, threads, seed) for members in level]
            elif len(level) < n_threads:
                groups = [split(members, node, depth, pool.map) for node, members in enumerate(level)]
            else:
                numbers = range(len(level))
                groups = list(pool.map(split, level, numbers, [depth] * len(level), [map] * len(level)))
            parents.append(np.repeat(np.arange(len(groups), dtype=np.int32), [len(group) for group in groups]))
            level = [members for group in groups for members in group]
            task.advance()
    clusters = np.empty(len(rows), np.int32)
    for cluster, members in enumerate(level):
        clusters[members] = cluster
    unknown = np.setdiff1d(np.arange(len(rows)), known, assume_unique=True)
    clusters[unknown] = _join_smallest([len(members) for members in level], len(unknown))
    return Tree((*parents, clusters))


def _cut_evenly(
    rows: Rows, members: Ints, config: IndexConfig, threads: tuple[ThreadPoolExecutor, int], seed: int
) -> list[Ints]:
    """The least number of equal parts that are small enough."""
    n_parts = -(-len(members) // config.max_leaf)
    if n_parts == 1:
        return [members]
    clusters = balanced_clusters(rows.compact(members), n_parts, config, threads, seed)
    return [members[clusters == c] for c in range(n_parts)]


def _n_children(n_members: int, config: IndexConfig) -> int:
    """So many that they are half full on average, so that most need no further split."""
    return min(config.branching or BRANCHING, -(-2 * n_members // config.max_leaf), n_members)


def kmeans(
    rows: Rows, n_clusters: int, config: IndexConfig, rng: np.random.Generator, spread: Spread = map
) -> npt.NDArray[np.int32]:
    """(n_rows,) clusters by spherical k-means, numbered from 0 without gaps; at least two.

    It starts from members drawn by lot. Clusters that lose all members are given up. Members that are all alike are
    dealt out evenly.
    """
    drawn = rows
    if len(rows) > config.sample:
        drawn = rows.subset(np.sort(rng.choice(len(rows), max(config.sample, n_clusters), replace=False)))
    clusters = np.full(len(drawn), -1, np.int32)
    clusters[rng.choice(len(drawn), n_clusters, replace=False)] = np.arange(n_clusters)
    for _ in range(config.iterations):
        before, clusters = clusters, _assign(drawn, drawn, clusters, n_clusters, spread)
        if np.array_equal(before, clusters):
            break
    if drawn is not rows:
        clusters = _assign(rows, drawn, clusters, n_clusters, spread)
    used, numbered = np.unique(clusters, return_inverse=True)
    if len(used) == 1:
        numbered = np.arange(len(rows)) * n_clusters // len(rows)
    return numbered.astype(np.int32)


def _assign(rows: Rows, drawn: Rows, clusters: Ints, n_clusters: int, spread: Spread) -> npt.NDArray[np.int32]:
    """(n_rows,) the nearest centre of the clusters of the drawn rows, a block of centres at a time."""
    n_block = min(n_clusters, max(BLOCK // max(rows.width, 1), 16))
    best, scores = np.zeros(len(rows), np.int32), np.full(len(rows), -np.inf, np.float32)
    for first in range(0, n_clusters, n_block):
        centres = drawn.centres(clusters, min(n_block, n_clusters - first), first)
        nearest, score = rows.nearest(centres, spread)
        better = score > scores
        best[better], scores[better] = nearest[better] + first, score[better]
    return best


def _join_smallest(sizes: list[int], n_more: int) -> list[int]:
    """Clusters for `n_more` further labels, each time the smallest, of equal ones the first."""
    heap = [(size, cluster) for cluster, size in enumerate(sizes)]
    heapq.heapify(heap)
    chosen = []
    for _ in range(n_more):
        size, cluster = heap[0]
        chosen.append(cluster)
        heapq.heapreplace(heap, (size + 1, cluster))
    return chosen
