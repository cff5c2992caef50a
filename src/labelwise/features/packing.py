"""Packed batches: texts one after the other in a single row, without padding, so that only real tokens are computed.

A model that calls its attention through transformers' attention interface accepts another attention function. The one
of this module lets a token attend to its own text alone: flash attention over texts of any length on a GPU, a block
mask elsewhere. Whether a model can be packed is found out by trying (`make_packer`), not by its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from labelwise.errors import need
from labelwise.features.fused import FusedModel

if TYPE_CHECKING:
    import torch

    from labelwise.features.encoder import Encoder
else:
    torch = need("torch", extra="neural", purpose="encoders")

NAME = "labelwise-packed"
# Largest distance between the embeddings of a packed text and of the text alone, relative to their length, in 32 and in
# 16 bits.
MAX_ERROR, MAX_ERROR_16 = 1e-4, 5e-2


def packed_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    cu_seq_lens_q: torch.Tensor | None = None,
    max_length_q: int = 0,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention within texts; query, key and value are (1, heads, n_tokens, size of a head).

    There is no dropout on the attention: the kernel for texts of any length does not support it.
    """
    if cu_seq_lens_q is None or kwargs.get("sliding_window") is not None:
        raise NotImplementedError("packed attention needs the borders of the texts and no sliding window")
    if query.is_cuda:
        from torch.nn.attention.varlen import varlen_attn

        q, k, v = (x.squeeze(0).transpose(0, 1) for x in (query, key, value))  # (n_tokens, heads, size)
        if scaling is not None and abs(scaling * q.shape[-1] ** 0.5 - 1) > 1e-6:
            q = q * (scaling * q.shape[-1] ** 0.5)
        found = varlen_attn(q, k, v, cu_seq_lens_q, cu_seq_lens_q, max_length_q, max_length_q)
        return found.unsqueeze(0), None  # type: ignore[union-attr]  # a pair only if asked for
    text = torch.searchsorted(cu_seq_lens_q[1:], torch.arange(query.shape[2], device=query.device), right=True)
    own = text.unsqueeze(0) == text.unsqueeze(1)  # (n_tokens, n_tokens)
    found = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=own, scale=scaling)
    return found.transpose(1, 2), None


class Packer:
    """Makes packed batches for an encoder and pools the states of their texts."""

    def __init__(self, encoder: Encoder, first_position: int) -> None:
        self.encoder, self.first_position = encoder, first_position
        self._model: Any = encoder.model

    def compile(self) -> None:
        """Compile the model; the first batch of each shape then takes long."""
        self._model = FusedModel(self.encoder.model, self.encoder.hidden_size)

    def batch(
        self,
        tokens: torch.Tensor,
        starts: torch.Tensor,
        lengths: torch.Tensor,
        n_tokens: int,
        longest: int,
    ) -> dict[str, Any]:
        """The model's inputs: a row of `n_tokens` tokens.

        Shapes depend on the sizes alone, and nothing waits for the device. The rest of the row is filled with texts of
        padding tokens, so that every number in a batch is finite.

        Parameters
        ----------
        tokens : (n,) integers, all texts one after the other
        starts, lengths : (batch,) int64; a text may have length 0, and the lengths sum to at most `n_tokens`
        longest : upper bound of the lengths
        """
        device = tokens.device
        n_texts, n_fill = len(starts), -(-n_tokens // longest)
        free = n_tokens - lengths.sum()
        fill = (free - longest * torch.arange(n_fill, device=device)).clamp(0, longest)
        ends = torch.cumsum(torch.cat((lengths, fill)), 0)
        borders = torch.nn.functional.pad(ends, (1, 0))  # (n_texts + n_fill + 1,)
        place = torch.arange(n_tokens, device=device)
        text = torch.searchsorted(ends, place, right=True)  # (n_tokens,)
        offset = place - borders[text]
        real = text < n_texts
        where = torch.where(real, starts[text.clamp(max=n_texts - 1)] + offset, 0)
        input_ids = torch.where(real, tokens[where].long(), self.encoder.pad_id).unsqueeze(0)
        inputs: dict[str, Any] = {
            "input_ids": input_ids,
            "position_ids": (offset + self.first_position).unsqueeze(0),
            "cu_seq_lens_q": borders.int(),
            "max_length_q": longest,
        }
        types = self.encoder.types_of(input_ids)
        if types is not None:
            inputs["token_type_ids"] = types
        return inputs

    def attention(self) -> AbstractContextManager[None]:
        """Context in which the model uses packed attention."""
        return _attention(self.encoder.model.config)

    def forward(self, batch: dict[str, Any], n_texts: int) -> torch.Tensor:
        """(n_texts, hidden) float32 vectors of a packed batch."""
        with self.attention():
            states: torch.Tensor = self._model(**batch, return_dict=True).last_hidden_state[0]  # (n_tokens, hidden)
        borders: torch.Tensor = batch["cu_seq_lens_q"].long()
        if self.encoder.pooling == "cls":
            at = borders[1 : n_texts + 1] - 1 if self.encoder.cls_last else borders[:n_texts]
            return states[at.clamp(max=len(states) - 1)].float()
        place = torch.arange(len(states), device=states.device)
        text = torch.searchsorted(borders[1:], place, right=True).clamp(max=n_texts)
        sums = torch.zeros((n_texts + 1, states.shape[1]), device=states.device).index_add(0, text, states.float())
        return sums[:n_texts] / (borders[1 : n_texts + 1] - borders[:n_texts]).clamp(min=1).unsqueeze(1)


def make_packer(encoder: Encoder) -> Packer | None:
    """A packer, or None if the model cannot be packed.

    Tested on a few tokens: two texts packed in one row must get the same embeddings as each text alone.
    """
    from transformers.modeling_utils import AttentionInterface

    if encoder.pooling == "pooler" or encoder.pads_left:
        return None
    if encoder.device.type == "cuda":
        try:
            from torch.nn.attention.varlen import varlen_attn  # noqa: F401
        except ImportError:
            return None
    calls = 0

    def counted(*args: Any, **kwargs: Any) -> tuple[torch.Tensor, None]:
        nonlocal calls
        calls += 1
        return packed_attention(*args, **kwargs)

    AttentionInterface.register(NAME, counted)
    model, device, training = encoder.model, encoder.device, encoder.model.training
    low = torch.bfloat16 if device.type == "cuda" else torch.float32  # flash attention reads no 32-bit numbers
    tokens = torch.tensor(encoder.tokenizer("one two three")["input_ids"] * 2, device=device)
    n = len(tokens) // 2
    starts, lengths = torch.tensor([0, n + 1], device=device), torch.tensor([n, n - 1], device=device)
    places = getattr(model.config, "max_position_embeddings", None) or 0
    firsts = {0}
    if encoder.pad_id + 1 + n <= places:  # RoBERTa's positions start after the id of the padding
        firsts.add(encoder.pad_id + 1)
    errors: dict[int, float] = {}
    model.eval()
    try:
        with torch.no_grad(), torch.autocast(device.type, dtype=low, enabled=low != torch.float32):
            alone = encoder.forward(encoder.batch(tokens, starts, lengths, n))
            for first in firsts:
                packer = Packer(encoder, first)
                together = packer.forward(packer.batch(tokens, starts, lengths, 2 * n + 3, n), 2)
                errors[first] = float(((together - alone).norm(dim=1) / alone.norm(dim=1)).max())
    except (TypeError, ValueError, RuntimeError, AttributeError, LookupError, AssertionError, NotImplementedError):
        return None  # the model does not take these arguments, or uses them in another way
    finally:
        AttentionInterface.register(NAME, packed_attention)
        model.train(training)
    # Errors are relative to the length: encoders that are trained for cosines give embeddings of small numbers.
    first = min(errors, key=lambda first: errors[first])
    limit = MAX_ERROR if low == torch.float32 else MAX_ERROR_16
    return Packer(encoder, first) if calls and errors[first] < limit else None


@contextmanager
def _attention(config: Any) -> Iterator[None]:
    """Context in which the model uses packed attention; its own attention is restored afterwards."""
    before = config._attn_implementation
    config._attn_implementation_internal = NAME
    try:
        yield
    finally:
        config._attn_implementation_internal = before
