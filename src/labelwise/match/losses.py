"""The losses of the matcher: what a score g(x, k) costs where a document has the cluster, and where it has not.

`LOSSES` is the table of all losses. Equation 4 of the paper is the squared hinge: the loss of a document is the sum
over clusters of max(0, 1 - M~ g)^2 with M~ = 2 M - 1, where M = 1 for the clusters of the document's labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor
from torch.nn import functional

from labelwise.config import MatcherLoss
from labelwise.types import Csr

Shares = npt.NDArray[np.float64]
"""(n_clusters,) the share of the documents that have a cluster."""


@dataclass(frozen=True)
class Loss:
    """One loss, and the least value that a network without knowledge of the text can reach."""

    elementwise: Callable[[Tensor, Tensor], Tensor]
    """Called with scores and signs M~, both (batch, n_clusters); gives the loss of every single score."""
    constant: Callable[[Shares], Shares]
    """Called with the share p of the documents that have a cluster; gives the mean loss of the best score that is the
    same for all documents, for each cluster."""


def _squared_hinge(scores: Tensor, signs: Tensor) -> Tensor:
    return functional.relu(1 - scores * signs).square()


def _hinge(scores: Tensor, signs: Tensor) -> Tensor:
    return functional.relu(1 - scores * signs)


def _cross_entropy(scores: Tensor, signs: Tensor) -> Tensor:
    return functional.softplus(-(scores * signs))


def _entropy(p: Shares) -> Shares:
    """-p log p - (1 - p) log(1 - p), 0 at both ends."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.nan_to_num(p * np.log(p)) - np.nan_to_num((1 - p) * np.log1p(-p))


LOSSES: dict[MatcherLoss, Loss] = {
    "squared-hinge": Loss(_squared_hinge, lambda p: 4 * p * (1 - p)),  # the best constant is 2p - 1
    "hinge": Loss(_hinge, lambda p: 2 * np.minimum(p, 1 - p)),  # the more frequent answer, -1 or 1
    "bce": Loss(_cross_entropy, _entropy),  # log(p / (1 - p))
}
"""All losses, by the names that `labelwise.config.MatcherLoss` lists."""

LABEL_LOSS: MatcherLoss = "bce"
"""The loss of the one-vs-all head over labels. A document has few of very many labels: cross-entropy also tells the
network how sure to be of a "no", and its scores are log-odds, as `labelwise.match.heads.LabelHead` takes them."""


def document_losses(
    scores: Tensor, signs: Tensor, kind: MatcherLoss, *, mean: bool, weights: Tensor | None = None
) -> Tensor:
    """(batch,) the loss of each document: summed over clusters, or their mean.

    Parameters
    ----------
    scores : (batch, n_clusters)
    signs : (batch, n_clusters), M~: 1 for the document's clusters, -1 for the others
    weights : (n_clusters,) the number of clusters that each of these represents; one each if not given
    """
    each = LOSSES[kind].elementwise(scores, signs)
    if weights is None:
        return each.mean(dim=1) if mean else each.sum(dim=1)
    total = (each * weights).sum(dim=1)
    return total / weights.sum() if mean else total


def constant_loss(M: Csr, kind: MatcherLoss, *, mean: bool) -> float:
    """The loss of the best scores that are the same for every document: a network must beat it to have learnt.

    Parameters
    ----------
    M : (n_docs, n_clusters) which clusters a document has
    """
    shares = np.bincount(M.indices, minlength=M.shape[1]) / M.shape[0]
    each = LOSSES[kind].constant(shares)
    return float(each.mean() if mean else each.sum())
