"""Where the network's own scores of labels begin, where the matcher learns labels beside their clusters.

Clusters alone teach an encoder nothing about the labels inside one. Labels are therefore scored by rows of the same
head, with cross-entropy, which says how sure to be where most answers are "no". From zero such a head takes long to
learn; here it begins as a linear model on the pretrained embeddings.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from labelwise.events import Task
from labelwise.types import Csr, Floats, OnEvent

# Of the linear model that training begins from: passes over the documents, or steps if those are more, documents of a
# step, learning rate.
_EPOCHS, _STEPS, _BATCH, _RATE = 8, 400, 512, 3e-3


def fit_labels(
    E: Floats, Y: Csr, *, device: torch.device, seed: int = 0, on_event: OnEvent | None = None
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Log-odds of labels by a linear model on embeddings: where the head begins.

    Parameters
    ----------
    E : (n_docs, hidden) embeddings of length one
    Y : (n_docs, n_labels)

    Returns
    -------
    weight : (n_labels, hidden)
    bias : (n_labels,)
    """
    n_docs, n_labels = Y.shape
    share = (np.bincount(Y.indices, minlength=n_labels) + 0.5) / (n_docs + 1)
    rows = torch.from_numpy(np.asarray(E, np.float32)).to(device) * E.shape[1] ** 0.5
    bias = torch.from_numpy(np.log(share / (1 - share)).astype(np.float32)).to(device).requires_grad_()
    weight = torch.zeros((n_labels, E.shape[1]), device=device, requires_grad=True)
    optimizer = torch.optim.Adam([weight, bias], lr=_RATE)
    steps = max(_STEPS, _EPOCHS * -(-n_docs // _BATCH))
    falling = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    with Task(on_event, "starting the labels", total=steps, unit="steps") as task:
        for chosen in _batches(n_docs, steps, seed):
            part = Y[chosen]
            places = np.repeat(np.arange(len(chosen)) * n_labels, np.diff(part.indptr)) + part.indices
            truth = torch.zeros(len(chosen) * n_labels, device=device)
            truth[torch.from_numpy(places).to(device)] = 1.0
            scores = functional.linear(rows[torch.from_numpy(chosen).to(device)], weight, bias).reshape(-1)
            loss = functional.binary_cross_entropy_with_logits(scores, truth, reduction="sum") / len(chosen)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            falling.step()
            task.advance()
    return weight.detach().cpu().numpy(), bias.detach().cpu().numpy()


def _batches(n_docs: int, steps: int, seed: int) -> Iterator[npt.NDArray[np.int64]]:
    """Rows of so many steps, each document once in every pass."""
    rng = np.random.default_rng(seed)
    batches = (
        order for _ in range(steps) for order in np.split(rng.permutation(n_docs), range(_BATCH, n_docs, _BATCH))
    )
    return islice(batches, steps)
