"""Notices training that goes nowhere: a loss that is no number, that rises or never falls, embeddings all alike."""

from __future__ import annotations

import math

# Embeddings with such a mean cosine point all the same way: the text no longer matters. A head that knows nothing pulls
# them together at first, since all texts lack most clusters, so that it must have lasted for `LEAST_STEPS`.
ALL_ALIKE = 0.9995
# The loss may rise by half over the best so far before it counts as lost.
RISE = 1.5
# By this share of the steps, and no fewer than so many, it must be below what one answer for all documents would cost.
MUST_LEARN_BY, LEAST_STEPS = 0.4, 100


class DivergenceMonitor:
    """Judges what the host sees of training every few steps."""

    def __init__(self, *, constant_loss: float, total_steps: int) -> None:
        self.constant_loss, self.total_steps = constant_loss, total_steps
        self.best = math.inf
        self.last = math.inf
        self.alike_for = 0

    def go_back(self, best: float) -> None:
        """Forget steps that are undone; `best` is what it was at the point that training goes back to."""
        self.best, self.alike_for = best, 0

    @property
    def content(self) -> bool:
        """Whether the last look was at weights worth going back to: they had learnt, and were not on the way up."""
        return self.last <= min(self.constant_loss, 1.1 * self.best)

    def trouble(self, *, step: int, loss: float, alike: float, skipped: int, steps: int) -> str | None:
        """What is wrong, as the end of a sentence, or None.

        Parameters
        ----------
        step : steps done so far
        loss, alike : means over the last `steps` steps
        skipped : how many of those had gradients that were not finite
        """
        if not math.isfinite(loss):
            return "the loss is not a number any more"
        if skipped > max(2, steps // 2):
            return f"the gradients of {skipped} of the last {steps} steps were not finite"
        self.alike_for = self.alike_for + steps if alike > ALL_ALIKE else 0
        if self.alike_for >= LEAST_STEPS:
            return "all texts have the same embedding"
        self.last = loss
        if not self.constant_loss:  # one answer is right for all documents: there is nothing to learn
            return None
        if loss > RISE * self.best and loss > self.constant_loss:
            return f"the loss rose from {self.best:.4g} to {loss:.4g}"
        if step >= max(LEAST_STEPS, MUST_LEARN_BY * self.total_steps) and min(self.best, loss) > self.constant_loss:
            return f"the loss of {loss:.4g} does not fall below {self.constant_loss:.4g}, that of one answer for all"
        self.best = min(self.best, loss)
        return None
