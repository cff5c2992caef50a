"""The models of new labels: from examples, against the documents of their cluster, or from a text alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from labelwise.config import IncrementalConfig
from labelwise.incremental.adapters import Clusters, EncodedDocs, GrowAdapter
from labelwise.incremental.columns import Blocks
from labelwise.incremental.examples import Examples
from labelwise.models.exemplars import Exemplars, below, no_entries
from labelwise.rank.features import Features
from labelwise.rank.level_trainer import LevelTrainer
from labelwise.rank.sparse_weights import LevelWeights, PrunedBlock
from labelwise.types import Csr, Floats, Ints, OnEvent

TOLERANCE, SWEEPS = 0.1, 50
"""Few labels and few documents: more care than in training costs nothing."""
MOST = 20
"""What the examples of a label count for at most, against a sample of documents: more would be believed too often."""


def few_shot(
    kind: GrowAdapter,
    number: int,
    clusters: Clusters,
    which: Ints,
    memory: Exemplars,
    seen: EncodedDocs,
    examples: Examples,
    *,
    sampled: bool,
    seed: int = 0,
    on_event: OnEvent | None = None,
) -> Blocks:
    """Models of labels with examples in one tree: the same problem as in training, on the cluster's documents.

    Parameters
    ----------
    number : of the tree
    clusters : (n_new,) where the new labels belong
    which : those of them that have examples
    memory : documents without any of the new labels
    seen : examples and texts of the new labels
    sampled : whether the documents of a cluster are only a few of many, so that many examples may not outweigh them
    """
    tree, level = kind.stands[number]
    touched, inverse = np.unique(clusters[which], return_inverse=True)
    parents = inverse.astype(np.int32)
    own = Csr(examples.Y[:, which])
    more = examples.clusters(tree.clusters, clusters, tree.n_clusters)
    E = None
    if memory.E is not None and seen.E is not None:
        E = np.concatenate((memory.E.astype(np.float32), seen.E))
    trainer = LevelTrainer(
        kind.features(below(memory.features(), seen.X), E),
        below(no_entries(len(memory), len(which)), own),
        parents,
        replace(
            kind.ranker,
            tolerance=min(kind.ranker.tolerance, TOLERANCE),
            max_sweeps=max(kind.ranker.max_sweeps, SWEEPS),
            half_precision=_is_half(level),
        ),
        seed=seed,
        threads=kind.threads,
        document_costs=np.concatenate((np.ones(len(memory)), _costs(own))) if sampled else None,
    )
    teacher = below(memory.near[number][:, touched], more[:, touched])
    solved = trainer.fit(teacher, name="learning the new labels", on_event=on_event)
    return {
        int(cluster): (
            solved.block(at),
            (tree.n_labels + which[solved.child_ids[solved.children(at)]]).astype(np.int32),
        )
        for at, cluster in enumerate(touched)
    }


def by_text(
    kind: GrowAdapter, number: int, clusters: Clusters, which: Ints, text: Features, config: IncrementalConfig
) -> Blocks:
    """Models of labels of which a text is all that is known: the text itself, as long as is usual in the cluster.

    The length is a share (`text_scale`) of the median of the cluster's labels, the bias their median, so that scores
    are like theirs and mean the same probability.

    Parameters
    ----------
    number, clusters, which : as in `few_shot`
    text : features of the texts of the labels `which`
    """
    tree, level = kind.stands[number]
    blocks = {}
    for cluster in np.unique(clusters[which]):
        mine = np.flatnonzero(clusters[which] == cluster)
        length, bias = _usual(level.block(int(cluster)))
        columns = list(_columns(text, mine))
        features = np.unique(np.concatenate([used for used, _, _ in columns]))
        n_dense = text.dense.shape[1]
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
    """(n_docs,) costs by which no label's examples count for more than `MOST` in all."""
    shares = np.minimum(1, MOST / np.maximum(np.bincount(Y.indices, minlength=Y.shape[1]), 1))
    costs = np.ones(Y.shape[0])
    rows = np.flatnonzero(np.diff(Y.indptr))
    costs[rows] = np.maximum.reduceat(shares[Y.indices], Y.indptr[rows])
    return costs


def _columns(
    text: Features, rows: Ints
) -> Iterator[tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32], npt.NDArray[np.float32]]]:
    """Of each text, its sparse features, their values, and the dense ones but the constant."""
    for row in rows:
        own = slice(text.indptr[row], text.indptr[row + 1])
        yield text.indices[own], text.data[own], text.dense[row, :-1]


def _usual(block: PrunedBlock) -> tuple[float, float]:
    """The median length of a cluster's weights, and its median bias."""
    squares = np.bincount(block.entry_child, np.square(block.entry_value, dtype=np.float64), len(block.dense))
    lengths = np.sqrt(squares + np.square(block.dense[:, :-1], dtype=np.float64).sum(axis=1))
    known = lengths[lengths > 0]  # labels without documents have none
    return float(np.median(known)) if len(known) else 1.0, float(np.median(block.dense[:, -1]))


def _is_half(level: LevelWeights) -> bool:
    return level.entry_value.dtype == np.float16
