"""Several models' lists of labels made into one: five rules, on the labels that any of the models lists.

Every model gives the best `depth` labels of a document with its values, which are scores or probabilities. What a model
does not list counts as its worst:

=================  ==============================================  =========================================
rule               what a listed label counts                      what one that is not listed counts
=================  ==============================================  =========================================
average            its value                                       probabilities: 0; scores: the list's lowest
rank_average       1 - rank / depth, ranks from 0                  0, as the rank `depth` would
sigmoid_average    1 / (1 + exp(-value))                           0
softmax_average    exp(value) / the list's sum of exp              0
round_robin        the lists' firsts, then their seconds, …        it waits for a list that has it
=================  ==============================================  =========================================

The first four are means, weighted where there are weights. `round_robin` asks the models in the order of their weights,
leaves out those without weight, and scores a place p of n as 1 - p / n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import numpy.typing as npt

from labelwise.config import Rule, ScoreSpace
from labelwise.events import Task
from labelwise.predictions.ranking import rank_best
from labelwise.types import Csr, Floats, OnEvent

if TYPE_CHECKING:
    from labelwise.models.base import Model

RULES: tuple[Rule, ...] = get_args(Rule)

DOCUMENTS_PER_BLOCK = 1 << 13
"""Documents whose lists are laid side by side at once, which bounds the memory of any number of them."""


@dataclass(frozen=True, eq=False)
class Combination:
    """How an ensemble combines the lists of its members."""

    rule: Rule
    space: ScoreSpace
    weights: Floats
    """(n_members,) with the sum 1."""
    candidates_per_model: int


@dataclass(frozen=True, eq=False)
class Candidates:
    """The labels that any of several models lists for some documents, and what each model says of them."""

    indptr: npt.NDArray[np.int64]
    """(n_docs + 1,) where the pairs of each document begin and end."""
    labels: npt.NDArray[np.int64]
    """(n_pairs,) ascending in each document."""
    values: npt.NDArray[np.float32]
    """(n_models, n_pairs), 0 where a model does not list the label."""
    ranks: npt.NDArray[np.int32]
    """(n_models, n_pairs) from 0; `depth` where a model does not list the label."""
    lowest: npt.NDArray[np.float32]
    """(n_models, n_docs) the lowest value that a model lists; 0 where it lists none."""
    depth: int
    n_labels: int

    @classmethod
    def of(cls, matrices: Sequence[Csr], depth: int) -> Candidates:
        """The best `depth` labels of each model's rows."""
        n_docs, n_labels = matrices[0].shape
        cut = [_best(matrix, depth) for matrix in matrices]
        pairs = np.unique(np.concatenate([keys for keys, _, _, _ in cut]))
        values = np.zeros((len(cut), len(pairs)), np.float32)
        ranks = np.full(values.shape, depth, np.int32)
        lowest = np.zeros((len(cut), n_docs), np.float32)
        for model, (keys, found, rank, indptr) in enumerate(cut):
            where = np.searchsorted(pairs, keys)
            values[model, where], ranks[model, where] = found, rank
            filled = np.flatnonzero(np.diff(indptr))
            lowest[model, filled] = found[indptr[filled + 1] - 1]  # best first, so the last is the lowest
        rows, labels = np.divmod(pairs, n_labels)
        return cls(np.searchsorted(rows, np.arange(n_docs + 1)), labels, values, ranks, lowest, depth, n_labels)

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """(n_pairs,) the document of each pair."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    def matrix(self, scores: npt.NDArray[np.float32]) -> Csr:
        """(n_docs, n_labels) these scores of the pairs."""
        parts: tuple[Any, ...] = (scores, self.labels, self.indptr)
        return Csr(parts, shape=(len(self.indptr) - 1, self.n_labels))

    def counts(self, rule: Rule, over: ScoreSpace) -> npt.NDArray[np.float32]:
        """(n_models, n_pairs) what each model says of each pair, by a rule; `merge` makes one of them."""
        listed = self.ranks < self.depth
        if rule == "average":
            return self.values if over == "probabilities" else np.where(listed, self.values, self.lowest[:, self.rows])
        if rule in ("rank_average", "round_robin"):
            return 1 - self.ranks.astype(np.float32) / np.float32(self.depth)
        if rule == "sigmoid_average":
            return np.where(listed, _sigmoid(self.values), np.float32(0))
        return self._softmax(listed)

    def _softmax(self, listed: npt.NDArray[np.bool_]) -> npt.NDArray[np.float32]:
        rows, n_docs = self.rows, len(self.indptr) - 1
        shares = np.zeros_like(self.values)
        for model, there in enumerate(listed):
            highest = np.zeros(n_docs, np.float32)
            first = self.ranks[model] == 0
            highest[rows[first]] = self.values[model, first]
            grown = np.exp(self.values[model, there] - highest[rows[there]])  # at most 1
            sums = np.bincount(rows[there], weights=grown, minlength=n_docs)
            shares[model, there] = grown / sums[rows[there]]
        return shares

    def merge(self, counts: npt.NDArray[np.float32], rule: Rule, weights: Floats) -> npt.NDArray[np.float32]:
        """(n_pairs,) one score of each pair.

        Parameters
        ----------
        counts : (n_models, n_pairs) what `counts` gave for the rule
        weights : (n_models,) 0 or more, not all 0; their sum does not matter
        """
        if rule != "round_robin":
            return np.asarray(weights / np.sum(weights), np.float32) @ counts
        asked = [model for model in np.argsort(-np.asarray(weights), kind="stable") if weights[model] > 0]
        n = len(asked) * self.depth
        places = np.full(counts.shape[1], n, np.int64)
        for turn, model in enumerate(asked):
            listed = self.ranks[model] < self.depth
            turns = self.ranks[model, listed].astype(np.int64) * len(asked) + turn
            places[listed] = np.minimum(places[listed], turns)
        return (1 - places / n).astype(np.float32)


def member_values(member: Model, scores: Csr, space: ScoreSpace) -> Csr:
    """The values of a member that are combined: its scores, or the probabilities for these scores."""
    if space == "scores":
        return scores
    assert member.calibrator_ is not None
    return member.calibrator_.transform_matrix(scores)


def combine(
    matrices: Sequence[Csr],
    rule: Rule,
    *,
    weights: Floats,
    depth: int,
    over: ScoreSpace = "scores",
    top_k: int,
    on_event: OnEvent | None = None,
) -> Csr:
    """(n_docs, n_labels) the `top_k` best labels of each document by a rule.

    Parameters
    ----------
    matrices : (n_docs, n_labels) each model's scores or probabilities
    weights : (n_models,) 0 or more, not all 0
    depth : labels that are taken from each model
    over : what the values are, which decides what a label that is not listed counts
    """
    n_docs, n_labels = matrices[0].shape
    data, labels, ends = [np.empty(0, np.float32)], [np.empty(0, np.int64)], [np.zeros(1, np.int64)]
    with Task(on_event, "combining", total=n_docs) as task:
        for begin in range(0, n_docs, DOCUMENTS_PER_BLOCK):
            lists = Candidates.of([Csr(matrix[begin : begin + DOCUMENTS_PER_BLOCK]) for matrix in matrices], depth)
            found = lists.matrix(lists.merge(lists.counts(rule, over), rule, weights))
            indptr, best = rank_best(found, top_k)
            data.append(found.data[best])
            labels.append(found.indices[best].astype(np.int64))
            ends.append(indptr[1:] + ends[-1][-1])
            task.advance(found.shape[0])
    parts: tuple[Any, ...] = (np.concatenate(data), np.concatenate(labels), np.concatenate(ends))
    matrix = Csr(parts, shape=(n_docs, n_labels))
    matrix.sort_indices()
    return matrix


def _best(matrix: Csr, depth: int) -> tuple[Any, Any, Any, Any]:
    """Keys row * n_labels + label, values and ranks of the best entries of every row, and their indptr."""
    indptr, best = rank_best(matrix, depth)
    counts = np.diff(indptr)
    rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), counts)
    ranks = np.arange(len(best)) - np.repeat(indptr[:-1], counts)
    keys = rows * matrix.shape[1] + matrix.indices[best]
    return keys, matrix.data[best].astype(np.float32), ranks.astype(np.int32), indptr


def _sigmoid(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    small = np.exp(-np.abs(values))  # never overflows
    return np.asarray(np.where(values >= 0, 1, small) / (1 + small), np.float32)
