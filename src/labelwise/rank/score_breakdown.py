"""The score of one linear model for one document, as a sum over its weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelwise.rank.features import Features
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class ScoreBreakdown:
    """The parts of a score."""

    columns: Ints
    """(n,) the document's features that the model has a weight for."""
    added: Floats
    """(n,) the contribution of each of these features."""
    dense: float
    """The contribution of all dense features (an embedding) together."""
    bias: float

    @property
    def score(self) -> float:
        """The sum of all parts."""
        return float(self.added.sum()) + self.dense + self.bias


def score_breakdown(level: LevelWeights, child: int, document: Features) -> ScoreBreakdown:
    """The score of a node or label, and its parts.

    Parameters
    ----------
    child : the node's number in its level
    document : a single document, with the dense features that the level was trained on, if any, and the constant last
    """
    place = position_of(level, child)
    features, weights = weights_at(level, place)
    _, mine, its = np.intersect1d(features, document.indices, assume_unique=True, return_indices=True)
    own, dense = level.dense[place].astype(np.float64), document.dense[0].astype(np.float64)
    return ScoreBreakdown(
        columns=document.indices[its].astype(np.int64),
        added=weights[mine] * document.data[its].astype(np.float64),
        dense=float(own[:-1] @ dense[:-1]),
        bias=float(own[-1] * dense[-1]) if len(own) else 0.0,
    )


def position_of(level: LevelWeights, child: int) -> int:
    """The position of a node's model among the models of its level."""
    return int(np.flatnonzero(level.child_ids == child)[0])


def weights_at(level: LevelWeights, place: int) -> tuple[Ints, Floats]:
    """The sparse features of the model at a position, and their weights."""
    block = _block(level, place)
    rows = slice(level.row_indptr[block], level.row_indptr[block + 1])
    entries = slice(level.entry_indptr[block], level.entry_indptr[block + 1])
    features = np.repeat(level.row_feature[rows], np.diff(level.row_end[rows], prepend=np.uint32(0)))
    mine = level.entry_child[entries] == place - level.child_indptr[block]
    return features[mine], level.entry_value[entries][mine].astype(np.float64)


def sibling_scores(level: LevelWeights, child: int, document: Features) -> tuple[Ints, Floats]:
    """All children of a node's parent, the node included, and their scores."""
    block = _block(level, position_of(level, child))
    children = slice(level.child_indptr[block], level.child_indptr[block + 1])
    scores = level.dense[children].astype(np.float64) @ document.dense[0].astype(np.float64)
    rows = slice(level.row_indptr[block], level.row_indptr[block + 1])
    ends = level.row_end[rows].astype(np.int64) + level.entry_indptr[block]
    starts = np.concatenate((level.entry_indptr[block : block + 1], ends[:-1]))
    _, known, its = np.intersect1d(level.row_feature[rows], document.indices, assume_unique=True, return_indices=True)
    for row, value in zip(known.tolist(), document.data[its].tolist(), strict=True):
        entries = slice(starts[row], ends[row])
        scores[level.entry_child[entries]] += value * level.entry_value[entries].astype(np.float64)
    return level.child_ids[children], scores


def _block(level: LevelWeights, place: int) -> int:
    return int(np.searchsorted(level.child_indptr, place, side="right")) - 1
