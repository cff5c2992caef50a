"""Builds the label tree: labels with similar embeddings share a cluster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.config import IndexConfig
from labelwise.engines.threads import available_cores
from labelwise.errors import DataError, UsageError
from labelwise.index.balanced import balanced_clusters
from labelwise.index.kmeans import kmeans_tree
from labelwise.index.rows import Rows
from labelwise.index.tree import Tree
from labelwise.types import Csr, Ints, OnEvent

FLAT_UP_TO = 64
"""Up to this number of clusters the tree has one flat level, unless `branching` is set."""
BRANCHING = 16
"""Most children of a node above more clusters than that."""


def build_tree(
    Z: Any,
    config: IndexConfig | None = None,
    *,
    seed: int = 0,
    threads: int | None = None,
    on_event: OnEvent | None = None,
) -> Tree:
    """Build the tree above the labels.

    Parameters
    ----------
    Z
        (n_labels, n_features) label embeddings, sparse or dense: rows of length one, as `embed_labels` returns them.
        Rows of zeros (labels of which nothing is known) do not affect the others and are spread evenly over the
        clusters.
    config
        See `IndexConfig`.
    seed
        Random seed, from which each node of the tree derives its own.
    threads
        Threads to use; all cores if not given. The tree does not depend on their number.
    on_event
        Called with progress events.

    Returns
    -------
    tree
        With ``balanced`` and ``random``, clusters whose sizes differ by at most one.
    """
    config = (config or IndexConfig()).validated("index")
    n_threads = threads or available_cores()
    rows = _rows(Z)
    n_labels = len(rows)
    _check(config, n_labels)
    if config.method == "none":
        return Tree((np.zeros(n_labels, np.int32),))
    known = _known(rows)
    with ThreadPoolExecutor(n_threads) as pool:
        if config.method == "kmeans":
            return kmeans_tree(rows, known, config, (pool, n_threads), seed, on_event)
        n_clusters = config.n_clusters or choose_n_clusters(n_labels, config.max_leaf)
        clusters = np.empty(n_labels, np.int32)
        if config.method == "random":
            order = np.random.default_rng(seed).permutation(n_labels)
            clusters[order] = np.arange(n_labels) * n_clusters // n_labels
        else:
            clusters[known] = balanced_clusters(
                rows.subset(known), n_clusters, config, (pool, n_threads), seed, on_event
            )
            unknown = np.setdiff1d(np.arange(n_labels), known, assume_unique=True)
            clusters[unknown] = _fill_up(clusters[known], n_clusters, len(unknown))
    tree = Tree((*_binary_parents(n_clusters), clusters))
    return tree.with_branching(max(2, config.branching or (n_clusters if n_clusters <= FLAT_UP_TO else BRANCHING)))


def choose_n_clusters(n_labels: int, max_leaf: int = 100) -> int:
    """The number of clusters that the paper's own code chooses: about max_leaf / 2 to max_leaf labels in each.

    >>> [choose_n_clusters(n) for n in (3_956, 13_330, 30_938, 501_070)]  # Table 2
    [64, 256, 512, 8192]
    """
    return min(n_labels, 1 << (n_labels // max_leaf + 1).bit_length())


def _fill_up(clusters: npt.NDArray[np.int32], n_clusters: int, n_more: int) -> npt.NDArray[np.int32]:
    """(n_more,) clusters for further labels, the smallest clusters first, so that sizes differ by at most one."""
    order = np.argsort(np.bincount(clusters, minlength=n_clusters), kind="stable")
    return order[np.arange(n_more) % n_clusters].astype(np.int32)


def _binary_parents(n_clusters: int) -> list[npt.NDArray[np.int32]]:
    """The levels of the binary tree above the clusters; a node with one leaf has itself as its only child."""
    level, parents = [n_clusters], []
    while max(level) > 1:
        below, parent = [], []
        for node, n_leaves in enumerate(level):
            halves = [n_leaves] if n_leaves == 1 else [n_leaves // 2, n_leaves - n_leaves // 2]
            below += halves
            parent += [node] * len(halves)
        parents.append(np.array(parent, np.int32))
        level = below
    return parents


def _rows(Z: Any) -> Rows:
    Z = Csr(Z) if sp.issparse(Z) else np.asarray(Z)  # type: ignore[call-overload]  # any sparse format will do
    if Z.ndim != 2 or not Z.shape[0]:
        raise DataError(f"Z must be a matrix with a row for every label, not of shape {Z.shape}")
    rows = Rows.of(Z)
    if not np.isfinite(rows.arrays[-1]).all():
        raise DataError("Z holds NaN or infinity; compute the label embeddings by embed_labels")
    return rows


def _known(rows: Rows) -> Ints:
    """Labels whose row is not zero."""
    if len(rows.arrays) == 1:
        return np.flatnonzero(rows.arrays[0].any(axis=1))
    indptr, _, data = rows.arrays
    if np.count_nonzero(data) < len(data):  # explicit zeros
        indptr = np.concatenate(([0], np.cumsum(data != 0)))[indptr]
    return np.flatnonzero(np.diff(indptr))


def _check(config: IndexConfig, n_labels: int) -> None:
    """Refuse more clusters than labels."""
    if config.n_clusters is not None and config.n_clusters > n_labels:
        raise UsageError(f"n_clusters is {config.n_clusters}; with {n_labels} labels it must be from 1 to {n_labels}")
