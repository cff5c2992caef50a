"""The clusters that a step scores if there are too many to score all.

These are the clusters of the documents of the batch, and a random sample of the others. Each of the sample counts for
several clusters, so the expected loss and the expected gradient are those of all clusters. Memory and time of a step
depend on the size of the sample.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Sample(NamedTuple):
    """Some of the clusters."""

    clusters: Tensor
    """(most,) their numbers."""
    weights: Tensor
    """(most,) the number of clusters that each of them counts for."""
    place: Tensor
    """(n_clusters + 1,) the place of every cluster in the sample; `most` if it is not in the sample."""


def sample(true: Tensor, n_clusters: int, most: int) -> Sample:
    """Draw `most` of the clusters. Shapes depend only on the sizes, and nothing waits for the device.

    Parameters
    ----------
    true : (batch, any) int64, the documents' clusters; n_clusters means none
    """
    device = true.device
    # Random numbers from 0 to 1; true clusters get a larger number, so they are always among the largest.
    key = torch.rand(n_clusters + 1, device=device).scatter_(0, true.reshape(-1), 2.0)[:n_clusters]
    found, clusters = key.topk(most)
    n_true = (key > 1).sum().clamp(max=most)
    others = (n_clusters - n_true) / (most - n_true).clamp(min=1)
    place = torch.full((n_clusters + 1,), most, device=device)
    place[clusters] = torch.arange(most, device=device)
    return Sample(clusters, torch.where(found > 1, 1.0, others), place)
