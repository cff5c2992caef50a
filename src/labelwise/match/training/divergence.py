"""Detects training that diverged: a loss that is no number, rises or never falls, or embeddings that are all equal."""

from __future__ import annotations

import math

MAX_SIMILARITY = 0.9995
"""Embeddings with a larger mean cosine all point in one direction: they no longer depend on the text. A new head pulls
them together at first, since all texts lack most clusters, so this must last for `MIN_STEPS`."""
MAX_RISE = 1.5
"""The loss may rise to this multiple of the best so far."""
LEARNING_DEADLINE, MIN_STEPS = 0.4, 100
"""By this share of the steps, and not before this number of steps, the loss must be below the constant loss."""


class DivergenceMonitor:
    """Judges training by loss, similarity and skipped steps, read every few steps."""

    def __init__(self, *, constant_loss: float, total_steps: int) -> None:
        self.constant_loss, self.total_steps = constant_loss, total_steps
        self.best = math.inf
        """The lowest loss so far."""
        self.last = math.inf
        self.similar_steps = 0
        """Number of the last steps whose embeddings were all the same."""

    def go_back(self, best: float) -> None:
        """Forget steps that were undone; `best` is the lowest loss at the step that training returns to."""
        self.best, self.similar_steps = best, 0

    @property
    def is_learning(self) -> bool:
        """Whether training may later return to the present weights: they beat constant scores and do not get worse."""
        return self.last <= min(self.constant_loss, 1.1 * self.best)

    def reason_to_restart(self, *, step: int, loss: float, similarity: float, skipped: int, steps: int) -> str | None:
        """The end of a sentence that says what is wrong, or None.

        Parameters
        ----------
        step : steps done so far
        loss, similarity : means over the last `steps` steps; similarity is the mean cosine of two embeddings
        skipped : number of those steps whose gradients were not finite
        """
        if not math.isfinite(loss):
            return "the loss is not a number any more"
        if skipped > max(2, steps // 2):
            return f"the gradients of {skipped} of the last {steps} steps were not finite"
        self.similar_steps = self.similar_steps + steps if similarity > MAX_SIMILARITY else 0
        if self.similar_steps >= MIN_STEPS:
            return "all texts have the same embedding"
        self.last = loss
        if not self.constant_loss:  # the same scores are right for all documents: there is nothing to learn
            return None
        if loss > MAX_RISE * self.best and loss > self.constant_loss:
            return f"the loss rose from {self.best:.4g} to {loss:.4g}"
        if step >= max(MIN_STEPS, LEARNING_DEADLINE * self.total_steps) and min(self.best, loss) > self.constant_loss:
            constant = f"{self.constant_loss:.4g}, that of the same scores for all documents"
            return f"the loss of {loss:.4g} does not fall below {constant}"
        self.best = min(self.best, loss)
        return None
