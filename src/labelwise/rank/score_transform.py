"""How the score of a label's cluster and its ranker become one score."""

from __future__ import annotations

import numpy as np

from labelwise.types import Csr


def bounded(scores: Csr, *, sigmoid: bool) -> Csr:
    """Scores between 0 and 1: by the logistic function where they have no bounds."""
    data = 1 / (1 + np.exp(-scores.data.astype(np.float64))) if sigmoid else np.clip(scores.data, 0, 1)
    return Csr((data, scores.indices, scores.indptr), shape=scores.shape)
