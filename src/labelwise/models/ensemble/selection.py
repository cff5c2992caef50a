"""How models are combined, chosen on documents that they were not trained on: rule, weights, and which members stay.

All of it goes by the mean of P@1, P@3 and P@5. A change is made only where it gains more than twice its standard error
over the documents: many changes are tried, and few documents cannot decide. The result is never worse there than equal
weights are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from labelwise.config import Rule, ScoreSpace
from labelwise.models.ensemble.rules import RULES, Candidates
from labelwise.predictions.ranking import rank_best
from labelwise.types import Csr, Floats, Ints

KS = (1, 3, 5)
FACTORS = (0.0, 0.5, 2.0, 0.8, 1.25)
"""What a weight is multiplied by, tried in turn."""
ROUNDS = 10
ERRORS = 2.0
"""Standard errors that a change must gain."""
LEAST = 0.05
"""Share of an equal weight from which a weight of 0 begins anew."""


class HoldoutScorer:
    """Evaluates combinations of models on held-out documents."""

    def __init__(self, matrices: Sequence[Csr], Y: Csr, *, depth: int, over: ScoreSpace) -> None:
        """Lay the models' lists over the truth.

        Parameters
        ----------
        matrices : (n_docs, n_labels) each model's scores or probabilities
        Y : (n_docs, n_labels or more) the truth
        """
        self.lists, self.over = Candidates.of(matrices, depth), over
        keys = self.lists.rows * Y.shape[1] + self.lists.labels
        rows = np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(Y.indptr))
        self._right = np.isin(keys, rows * Y.shape[1] + Y.indices)
        self._counts: dict[Rule, npt.NDArray[np.float32]] = {}
        self.trials = 0

    def scores(self, rule: Rule, weights: Floats) -> Floats:
        """(n_docs,) the mean of P@1, P@3 and P@5 of each document, in percent."""
        self.trials += 1
        if rule not in self._counts:
            self._counts[rule] = self.lists.counts(rule, self.over)
        found = self.lists.matrix(self.lists.merge(self._counts[rule], rule, weights))
        indptr, best = rank_best(found, max(KS))
        counts = np.diff(indptr)
        rows = np.repeat(np.arange(len(counts)), counts)
        ranks = np.arange(len(best)) - np.repeat(indptr[:-1], counts)
        worth = np.array([sum(1 / k for k in KS if rank < k) for rank in range(max(KS))]) / len(KS)
        hits = np.bincount(rows, weights=self._right[best] * worth[ranks], minlength=len(counts))
        return np.asarray(100 * hits, np.float64)


def choose_rule(jury: HoldoutScorer, n_models: int) -> Rule:
    """The rule that serves models of equal weight best; the plain average where none is clearly better."""
    weights = np.full(n_models, 1 / n_models)
    best: Rule = "average"
    scores = jury.scores(best, weights)
    for rule in RULES:
        tried = jury.scores(rule, weights)
        if _gains(tried - scores):
            best, scores = rule, tried
    return best


def learn_weights(jury: HoldoutScorer, rule: Rule, start: Floats) -> Floats:
    """Weights with the sum 1, one changed at a time as long as that helps."""
    best = np.asarray(start, np.float64) / np.sum(start)
    scores, begin = jury.scores(rule, best), LEAST / len(best)
    movable = np.flatnonzero(best > 0)
    if len(movable) < 2:
        return best
    for _ in range(ROUNDS):
        before = best
        for model in movable:
            for factor in FACTORS:
                tried = best.copy()
                tried[model] = max(tried[model], begin) * factor
                if not tried.any():
                    continue
                tried /= tried.sum()
                judged = jury.scores(rule, tried)
                if _gains(judged - scores):
                    best, scores = tried, judged
        if best is before:
            break
    return best


def prune(jury: HoldoutScorer, rule: Rule, weights: Floats, least_gain: float) -> Ints:
    """(n_kept,) the models that stay: the least useful model is dropped again and again.

    Parameters
    ----------
    least_gain : points that a model must bring to stay
    """
    weights = np.array(weights, np.float64)
    while np.count_nonzero(weights) > 1:
        whole = jury.scores(rule, weights).mean()
        costs = {}
        for model in np.flatnonzero(weights):
            without = weights.copy()
            without[model] = 0
            costs[model] = whole - jury.scores(rule, without).mean()
        least = min(costs, key=lambda model: costs[model])
        if costs[least] >= least_gain:
            break
        weights[least] = 0
    return np.flatnonzero(weights)


def _gains(differences: Floats) -> bool:
    """Whether a change gains clearly more than chance would over these documents."""
    gain = float(differences.mean())
    return gain > 1e-9 and gain > ERRORS * float(differences.std()) / len(differences) ** 0.5
