"""Which clusters a step scores where there are too many of them.

Those that a document of the batch has, and others drawn at random, each of which stands for several: the expected loss
and its expected gradient are those of all clusters. Memory and time of a step then depend on the number drawn.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Sample(NamedTuple):
    """Some of the clusters."""

    clusters: Tensor
    """(most,) which ones."""
    weights: Tensor
    """(most,) for how many clusters each of them stands."""
    place: Tensor
    """(n_clusters + 1,) where a cluster is among them; `most` for those that are not, and for none."""


def sample(true: Tensor, n_clusters: int, most: int) -> Sample:
    """Draw `most` of the clusters. Shapes depend on the sizes alone, and nothing waits for the device.

    Parameters
    ----------
    true : (batch, any) int64, the documents' clusters; n_clusters stands for none
    """
    device = true.device
    # Numbers drawn from 0 to 1; the true clusters have a larger one, so that they are always among the largest.
    key = torch.rand(n_clusters + 1, device=device).scatter_(0, true.reshape(-1), 2.0)[:n_clusters]
    found, clusters = key.topk(most)
    n_true = (key > 1).sum().clamp(max=most)
    others = (n_clusters - n_true) / (most - n_true).clamp(min=1)
    place = torch.full((n_clusters + 1,), most, device=device)
    place[clusters] = torch.arange(most, device=device)
    return Sample(clusters, torch.where(found > 1, 1.0, others), place)
