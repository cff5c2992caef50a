"""A shallow, wide tree with clusters of any size, like that of Bonsai: k-way spherical k-means, level by level."""

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
# k-means may split off a few labels from one large cluster without end. Like Bonsai it stops at this depth; clusters
# that are still too large are then cut evenly.
DEPTH = 2
# Most elements of a block of centres, (width, n_block): 128 MB.
BLOCK = 1 << 25


def kmeans_tree(
    rows: Rows,
    known: Ints,
    config: IndexConfig,
    threads: tuple[ThreadPoolExecutor, int],
    seed: int,
    on_event: OnEvent | None,
) -> Tree:
    """Build the tree in which each node with more than `max_leaf` labels is split into at most `branching` nodes.

    A node that is small enough has a single child at each level below.

    Parameters
    ----------
    rows
        All labels.
    known
        Labels whose row is not zero; the other labels join the smallest clusters at the end.
    config
        See `IndexConfig`.
    threads
        A pool of threads, and their number.
    seed
        Random seed.
    on_event
        Called with progress events.
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
    """Cut a node into the least number of equal parts that are small enough."""
    n_parts = -(-len(members) // config.max_leaf)
    if n_parts == 1:
        return [members]
    clusters = balanced_clusters(rows.compact(members), n_parts, config, threads, seed)
    return [members[clusters == c] for c in range(n_parts)]


def _n_children(n_members: int, config: IndexConfig) -> int:
    """Number of children of a node: half full on average, so that most of them need no further split."""
    return min(config.branching or BRANCHING, -(-2 * n_members // config.max_leaf), n_members)


def kmeans(
    rows: Rows, n_clusters: int, config: IndexConfig, rng: np.random.Generator, spread: Spread = map
) -> npt.NDArray[np.int32]:
    """(n_rows,) clusters by spherical k-means, numbered from 0 without gaps; at least two.

    The first centres are random members. Clusters that lose all members are dropped. If all members are equal, they
    are distributed evenly.
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
    """(n_rows,) the cluster with the nearest centre, computed for a block of centres at a time.

    Centres are those of the `clusters` of the `drawn` rows.
    """
    n_block = min(n_clusters, max(BLOCK // max(rows.width, 1), 16))
    best, scores = np.zeros(len(rows), np.int32), np.full(len(rows), -np.inf, np.float32)
    for first in range(0, n_clusters, n_block):
        centres = drawn.centres(clusters, min(n_block, n_clusters - first), first)
        nearest, score = rows.nearest(centres, spread)
        better = score > scores
        best[better], scores[better] = nearest[better] + first, score[better]
    return best


def _join_smallest(sizes: list[int], n_more: int) -> list[int]:
    """Clusters for `n_more` further labels: each label joins the smallest cluster, of equal ones the first."""
    heap = [(size, cluster) for cluster, size in enumerate(sizes)]
    heapq.heapify(heap)
    chosen = []
    for _ in range(n_more):
        size, cluster = heap[0]
        chosen.append(cluster)
        heapq.heapreplace(heap, (size + 1, cluster))
    return chosen
