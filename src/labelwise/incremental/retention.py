"""Which documents stand for a cluster, and how a model keeps them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labelwise.config import IncrementalConfig
from labelwise.data import Dataset
from labelwise.errors import DataError, UsageError
from labelwise.incremental.adapters import Clusters, GrowAdapter
from labelwise.models.exemplars import Exemplars
from labelwise.models.prediction_cache import PredictionCache
from labelwise.rank.negatives import teacher_forcing
from labelwise.types import Csr, Ints, OnEvent


def remember(
    kind: GrowAdapter,
    data: Dataset,
    config: IncrementalConfig,
    *,
    clusters: Sequence[Clusters] | None = None,
    most: int | None = None,
    on_event: OnEvent | None = None,
) -> Exemplars:
    """Some documents of each cluster, as the model sees them.

    Parameters
    ----------
    data : documents over the model's labels, perhaps with others behind them
    clusters : for each tree, those that documents are wanted of; all if not given
    most : documents of a cluster; `per_cluster` if not given
    """
    if config.per_cluster < 1:
        raise UsageError(f"per_cluster is {config.per_cluster}; it must be at least 1")
    n_labels = kind.stands[0][0].n_labels
    Y = Csr(data.Y[:, :n_labels])
    if not Y.nnz:
        raise DataError("none of these documents has a label of the model; give some that it was trained on")
    rows = _choose(kind, Y, most or config.per_cluster, config.seed, clusters)
    chosen = data.take(rows)
    seen = kind.read(PredictionCache(kind.model.inputs(chosen), threads=kind.threads, on_event=on_event))
    own = Csr(Y[rows])
    return Exemplars.of(seen.X, seen.E, own, kind.near(seen, own))


def _choose(kind: GrowAdapter, Y: Csr, most: int, seed: int, clusters: Sequence[Clusters] | None) -> Ints:
    """Rows of documents, ascending; a document serves all clusters, and all trees, that it has labels in."""
    chosen = np.zeros(Y.shape[0], np.bool_)
    for number, (tree, _) in enumerate(kind.stands):
        documents = teacher_forcing(Y, tree.clusters, tree.n_clusters).tocsc()
        for cluster in range(tree.n_clusters) if clusters is None else np.unique(clusters[number]):
            there = documents.indices[documents.indptr[cluster] : documents.indptr[cluster + 1]]
            rest = there[~chosen[there]]
            wanted = most - (len(there) - len(rest))
            if wanted > 0:  # the seed is the cluster's own
                random = np.random.default_rng((seed, number, int(cluster)))
                chosen[random.permutation(rest)[:wanted]] = True
    return np.flatnonzero(chosen)
