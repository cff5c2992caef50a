"""The weights of new labels: from examples against the documents of their cluster, or from a text alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from labelwise.config import IncrementalConfig
from labelwise.incremental.examples import LabelExamples
from labelwise.models.exemplars import Exemplars, below, no_entries
from labelwise.models.growth import Clusters, EncodedDocs, GrowthAdapter
from labelwise.rank.features import Features
from labelwise.rank.level_columns import Blocks
from labelwise.rank.level_trainer import LevelTrainer
from labelwise.rank.sparse_weights import LevelWeights, PrunedBlock
from labelwise.types import Csr, Floats, Ints, OnEvent

TOLERANCE, SWEEPS = 0.1, 50
"""A more exact solution than in training: with few labels and few documents it takes little time."""
MOST = 20
"""Total cost of a label's examples against a sample of documents; with more, the label is predicted too often."""


def weights_from_examples(
    adapter: GrowthAdapter,
    number: int,
    clusters: Clusters,
    which: Ints,
    negatives: Exemplars,
    docs: EncodedDocs,
    examples: LabelExamples,
    *,
    sampled: bool,
    seed: int = 0,
    on_event: OnEvent | None = None,
) -> Blocks:
    """The weights of labels with examples, in one tree: the problem of training, on the documents of the cluster.

    Parameters
    ----------
    number : of the tree
    clusters : (n_new,) the cluster of each new label
    which : the new labels that have examples
    negatives : documents without any of the new labels
    docs : the examples and the texts of the new labels
    sampled : whether the negatives are a sample of the cluster's documents, against which many examples must not
        outweigh
    """
    tree, level = adapter.label_trees[number]
    touched, inverse = np.unique(clusters[which], return_inverse=True)
    parents = inverse.astype(np.int32)
    own = Csr(examples.Y[:, which])
    more = examples.clusters(tree.clusters, clusters, tree.n_clusters)
    E = None
    if negatives.E is not None and docs.E is not None:
        E = np.concatenate((negatives.E.astype(np.float32), docs.E))
    trainer = LevelTrainer(
        adapter.features(below(negatives.features(), docs.X), E),
        below(no_entries(len(negatives), len(which)), own),
        parents,
        replace(
            adapter.ranker,
            tolerance=min(adapter.ranker.tolerance, TOLERANCE),
            max_sweeps=max(adapter.ranker.max_sweeps, SWEEPS),
            half_precision=_is_half(level),
        ),
        seed=seed,
        threads=adapter.threads,
        document_costs=np.concatenate((np.ones(len(negatives)), _costs(own))) if sampled else None,
    )
    teacher = below(negatives.near[number][:, touched], more[:, touched])
    solved = trainer.fit(teacher, name="learning the new labels", on_event=on_event)
    return {
        int(cluster): (
            solved.block(at),
            (tree.n_labels + which[solved.child_ids[solved.children(at)]]).astype(np.int32),
        )
        for at, cluster in enumerate(touched)
    }


def weights_from_texts(
    adapter: GrowthAdapter, number: int, clusters: Clusters, which: Ints, texts: Features, config: IncrementalConfig
) -> Blocks:
    """The weights of labels without examples: the features of their texts, as long as is usual in the cluster.

    The length is a share (`text_scale`) of the median of the cluster's labels, and the bias is their median. The
    scores are then like those of the cluster's labels, so that the calibration holds for them too.

    Parameters
    ----------
    number, clusters, which : as in `weights_from_examples`
    texts : features of the texts of the labels `which`
    """
    tree, level = adapter.label_trees[number]
    blocks = {}
    for cluster in np.unique(clusters[which]):
        mine = np.flatnonzero(clusters[which] == cluster)
        length, bias = _median_length_and_bias(level.block(int(cluster)))
        columns = list(_columns(texts, mine))
        features = np.unique(np.concatenate([used for used, _, _ in columns]))
        n_dense = texts.dense.shape[1]
        W = np.zeros((len(features) + n_dense, len(mine)), np.float32)
        for at, (used, values, dense) in enumerate(columns):
            scale = config.text_scale * length / max(float(np.sqrt(values @ values + dense @ dense)), 1e-12)
            W[np.searchsorted(features, used), at] = scale * values
            W[len(features) : -1, at] = scale * dense
        W[-1] = bias
        block = PrunedBlock.prune(W, features, n_dense=n_dense, threshold=0.0, most=None, half=_is_half(level))
        blocks[int(cluster)] = (block, (tree.n_labels + which[mine]).astype(np.int32))
    return blocks


def _costs(Y: Csr) -> Floats:
    """(n_docs,) costs that sum to at most `MOST` over the examples of each label."""
    shares = np.minimum(1, MOST / np.maximum(np.bincount(Y.indices, minlength=Y.shape[1]), 1))
    costs = np.ones(Y.shape[0])
    rows = np.flatnonzero(np.diff(Y.indptr))
    costs[rows] = np.maximum.reduceat(shares[Y.indices], Y.indptr[rows])
    return costs


def _columns(
    texts: Features, rows: Ints
) -> Iterator[tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32], npt.NDArray[np.float32]]]:
    """For each text, its sparse features, their values, and its dense features without the constant."""
    for row in rows:
        own = slice(texts.indptr[row], texts.indptr[row + 1])
        yield texts.indices[own], texts.data[own], texts.dense[row, :-1]


def _median_length_and_bias(block: PrunedBlock) -> tuple[float, float]:
    """The median length of the weights of a cluster's labels, and their median bias."""
    squares = np.bincount(block.entry_child, np.square(block.entry_value, dtype=np.float64), len(block.dense))
    lengths = np.sqrt(squares + np.square(block.dense[:, :-1], dtype=np.float64).sum(axis=1))
    known = lengths[lengths > 0]  # labels without documents have length 0
    return float(np.median(known)) if len(known) else 1.0, float(np.median(block.dense[:, -1]))


def _is_half(level: LevelWeights) -> bool:
    return level.entry_value.dtype == np.float16
