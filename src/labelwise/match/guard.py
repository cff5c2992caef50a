"""Notices training that goes nowhere: a loss that is no number, that rises or never falls, embeddings all alike."""

from __future__ import annotations

import math

# Embeddings whose mean has nearly their own length point all the same way: the text no longer matters.
ALL_ALIKE = 0.9995
# The loss may rise by half over the best so far before it counts as lost.
RISE = 1.5
# By this share of the steps, and no fewer than so many, it must be below what one answer for all documents would cost.
MUST_LEARN_BY, LEAST_STEPS = 0.4, 100


class Guard:
    """Judges what the host sees of training every few steps."""

    def __init__(self, *, constant_loss: float, total_steps: int) -> None:
        self.constant_loss, self.total_steps = constant_loss, total_steps
        self.best = math.inf

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
        if alike > ALL_ALIKE:
            return "all texts have the same embedding"
        if not self.constant_loss:  # one answer is right for all documents: there is nothing to learn
            return None
        if loss > RISE * self.best and loss > self.constant_loss:
            return f"the loss rose from {self.best:.4g} to {loss:.4g}"
        if step >= max(LEAST_STEPS, MUST_LEARN_BY * self.total_steps) and min(self.best, loss) > self.constant_loss:
            return f"the loss of {loss:.4g} does not fall below {self.constant_loss:.4g}, that of one answer for all"
        self.best = min(self.best, loss)
        return None
