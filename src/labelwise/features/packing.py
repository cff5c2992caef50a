"""Texts one after the other in a single row, without padding: all arithmetic of a batch goes into real tokens.

A model that sends its attention through transformers' attention interface can be given a function of our own, which
lets a token see its own text alone: flash attention over texts of any length on a GPU, a block mask elsewhere. Whether
a model does so is found out by trying (`can_pack`), not by its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from labelwise.errors import need
from labelwise.features.fused import Fused

if TYPE_CHECKING:
    import torch

    from labelwise.features.encoder import Encoder
else:
    torch = need("torch", extra="neural", purpose="encoders")

NAME = "labelwise-packed"
# How far the embedding of a packed text may be from that of the text alone, by length, in 32 bits and in 16.
MOST_ERROR, MOST_ERROR_16 = 1e-4, 5e-2


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

    Attention itself has no dropout here: the kernel for texts of any length knows none.
    """
    if cu_seq_lens_q is None or kwargs.get("sliding_window") is not None:
        raise NotImplementedError("only whole texts that are told apart can attend to themselves")
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
    """Makes packed batches for an encoder and pools what comes out."""

    def __init__(self, encoder: Encoder, first_position: int) -> None:
        self.encoder, self.first_position = encoder, first_position
        self._model: Any = encoder.model

    def compile(self) -> None:
        """Have torch fuse what the model computes; the first batch of a shape then takes long."""
        self._model = Fused(self.encoder.model, self.encoder.hidden_size)

    def batch(
        self,
        tokens: torch.Tensor,
        starts: torch.Tensor,
        lengths: torch.Tensor,
        n_tokens: int,
        longest: int,
    ) -> dict[str, Any]:
        """The model's inputs: a row of `n_tokens` tokens.

        Shapes depend on the sizes alone, and nothing waits for the device. What the texts leave free is filled with
        texts of padding tokens, so that every number in a batch is finite.

        Parameters
        ----------
        tokens : (n,) integers, all texts one after the other
        starts, lengths : (batch,) int64; a text may have length 0, together they have at most `n_tokens`
        longest : no text is longer than this
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
        """The model's attention is ours for a while."""
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

    Tried on a few tokens: two texts in one row must have the embeddings that they have alone.
    """
    from transformers.modeling_utils import AttentionInterface

    if encoder.pooling == "pooler" or encoder.left:
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
    if encoder.pad_id + 1 + n <= places:  # RoBERTa counts from behind the padding's number
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
        return None  # it takes no such arguments, or does something else with them
    finally:
        AttentionInterface.register(NAME, packed_attention)
        model.train(training)
    # Relative to their length: encoders made for cosines give embeddings of small numbers.
    first = min(errors, key=lambda first: errors[first])
    most = MOST_ERROR if low == torch.float32 else MOST_ERROR_16
    return Packer(encoder, first) if calls and errors[first] < most else None


@contextmanager
def _attention(config: Any) -> Iterator[None]:
    """The model's attention is ours for a while."""
    before = config._attn_implementation
    config._attn_implementation_internal = NAME
    try:
        yield
    finally:
        config._attn_implementation_internal = before
