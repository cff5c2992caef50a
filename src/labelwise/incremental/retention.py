"""The documents that a model keeps: some documents of each cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labelwise.config import IncrementalConfig
from labelwise.data import Dataset
from labelwise.errors import DataError, UsageError
from labelwise.models.exemplars import Exemplars
from labelwise.models.growth import Clusters, GrowthAdapter
from labelwise.rank.negatives import teacher_forcing
from labelwise.types import Csr, Ints, OnEvent


def exemplars_of(
    adapter: GrowthAdapter,
    data: Dataset,
    config: IncrementalConfig,
    *,
    clusters: Sequence[Clusters] | None = None,
    most: int | None = None,
    on_event: OnEvent | None = None,
) -> Exemplars:
    """Some documents of each cluster, as features.

    Parameters
    ----------
    data : documents over the model's labels, which may have further labels after those
    clusters : for each tree, the clusters to take documents of; all clusters if not given
    most : largest number of documents of a cluster; `per_cluster` if not given
    """
    if config.per_cluster < 1:
        raise UsageError(f"per_cluster is {config.per_cluster}; it must be at least 1")
    model, n_labels = adapter.model, adapter.label_trees[0][0].n_labels
    Y = Csr(data.Y[:, :n_labels])
    if not Y.nnz:
        raise DataError("none of these documents has a label of the model; give training documents of the model")
    rows = _chosen_rows(adapter, Y, most or config.per_cluster, config.seed, clusters)
    chosen = data.take(rows)
    docs = adapter.encoded_docs(model.reading(model.inputs(chosen), on_event=on_event))
    own = Csr(Y[rows])
    return Exemplars.of(docs.X, docs.E, own, adapter.training_clusters(docs, own))


def _chosen_rows(adapter: GrowthAdapter, Y: Csr, most: int, seed: int, clusters: Sequence[Clusters] | None) -> Ints:
    """Rows of documents, ascending; a document counts for all clusters, in all trees, that it has labels in."""
    chosen = np.zeros(Y.shape[0], np.bool_)
    for number, (tree, _) in enumerate(adapter.label_trees):
        documents = teacher_forcing(Y, tree.clusters, tree.n_clusters).tocsc()
        for cluster in range(tree.n_clusters) if clusters is None else np.unique(clusters[number]):
            there = documents.indices[documents.indptr[cluster] : documents.indptr[cluster + 1]]
            rest = there[~chosen[there]]
            wanted = most - (len(there) - len(rest))
            if wanted > 0:  # each cluster has its own seed
                random = np.random.default_rng((seed, number, int(cluster)))
                chosen[random.permutation(rest)[:wanted]] = True
    return np.flatnonzero(chosen)
