"""Pooling: one vector per text from one state per token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labelwise.config import PoolingMethod
from labelwise.errors import UsageError, need

if TYPE_CHECKING:
    import torch
else:
    torch = need("torch", extra="neural", purpose="encoders")


def pool(
    output: Any, mask: torch.Tensor | None, kind: PoolingMethod, *, left: bool = False, last: bool = False
) -> torch.Tensor:
    """(batch, hidden) float32 vectors, whatever the precision of the model.

    Nothing here waits for the device or has a shape that depends on the data, so that it can be compiled and captured.

    Parameters
    ----------
    output
        The output of a transformers model; its `last_hidden_state` is (batch, width, hidden).
    mask
        (batch, width), 1 for real tokens; None if there is no padding.
    kind
        The classification token's state, the mean over real tokens, or the model's own pooler.
    left
        Whether texts are padded on the left.
    last
        Whether the classification token is the last token of a text, as in XLNet, and not the first.
    """
    if kind == "pooler":
        pooled: torch.Tensor | None = output.get("pooler_output")
        if pooled is None:
            raise UsageError('this encoder has no pooler; use pooling="cls" or "mean"')
        return pooled.float()
    states: torch.Tensor = output.last_hidden_state
    if kind == "cls":
        if mask is None or left == last:  # at the edge, where no padding can be
            return states[:, -1 if last else 0].float()
        lengths = mask.sum(1)
        place = (lengths - 1).clamp(min=0) if last else (states.shape[1] - lengths).clamp(max=states.shape[1] - 1)
        return states[torch.arange(states.shape[0], device=states.device), place].float()
    if mask is None:
        return states.float().mean(1)
    real = mask.bool().unsqueeze(-1)
    return torch.where(real, states.float(), 0.0).sum(1) / real.sum(1).clamp(min=1)
