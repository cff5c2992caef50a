"""The embedding's share of a score, over the words that the encoder reads: integrated gradients.

Sundararajan, Taly and Yan, ICML 2017: the text's input embeddings are led in a straight line from those of a text whose
every word is masked, and the gradient along the way tells what each word adds. The sum over all words is the difference
between the two ends. The integral is taken at sixteen points (Gauss-Legendre); the little that this leaves is spread
over the words in proportion to their sizes, so that the sum is exact, and told as `error`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from labelwise.explain.result import Neural, Span, Word
from labelwise.features.encoder import Encoder
from labelwise.types import Floats

POINTS = 16
"""Points of the integral."""
TOLERANCE = 1e-5
"""How exactly base and words add up to the share."""
METHOD = f"integrated gradients from a masked text, {POINTS} points of Gauss-Legendre"


@dataclass(frozen=True)
class _Read:
    """A text as the encoder reads it."""

    ids: npt.NDArray[np.int64]
    """(n_tokens,) special ones included."""
    owner: npt.NDArray[np.int64]
    """(n_tokens,) the word of each token, -1 for special ones."""
    words: tuple[tuple[str, tuple[Span, ...]], ...]
    """How each word is written, and where it stands."""


class TokenReader:
    """What each word of a text adds to linear functions of its embedding."""

    def __init__(self, encoder: Encoder, text: str) -> None:
        self.encoder = encoder
        self.read = _read(encoder, text)
        self._way: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None

    def attribute(self, weights: Floats, share: float) -> Neural:
        """The share of a label's score over the words.

        Parameters
        ----------
        weights : (hidden,) of the embedding of length one
        share : what the model itself makes of the embedding
        """
        if not self.read.words:
            return Neural(share, share, (), 0.0, 0.0, METHOD)
        model, training = self.encoder.model, self.encoder.model.training
        model.eval()
        try:
            base, each = self._integrate(torch.from_numpy(np.asarray(weights, np.float32)))
        except (NotImplementedError, TypeError):  # the few models that take tokens only
            return Neural(share, share, (), 0.0, 0.0, "not divided: this encoder takes no input embeddings")
        finally:
            model.train(training)
        added = np.bincount(self.read.owner[self.read.owner >= 0], each[self.read.owner >= 0], len(self.read.words))
        sizes, missed = np.abs(added), share - base - added.sum()
        total = sizes.sum()
        added = added + missed * (sizes / total if total > 0 else np.full(len(added), 1 / len(added)))
        words = tuple(
            Word(term, float(value), spans)
            for (term, spans), value in zip(self.read.words, added.tolist(), strict=True)
        )
        error = float(abs(missed) / total) if total > 0 else 0.0
        return Neural(share, base, words, 0.0, error, METHOD)

    def _integrate(self, weights: torch.Tensor) -> tuple[float, Floats]:
        """The score of the masked text, and what each token adds."""
        weights = weights.to(self.encoder.device)
        if self._way is None:
            self._way = self._walk()
        way, embeddings, difference = self._way
        scores = functional.normalize(embeddings.float(), dim=1) @ weights  # (1 + POINTS,)
        _, parts = _points()
        (gradient,) = torch.autograd.grad(scores[1:] @ parts.to(scores), way, retain_graph=True)
        each = (gradient.sum(0) * difference).sum(1)
        return float(scores[0].detach()), each.double().cpu().numpy()

    def _walk(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Points on the way from the masked text to the text, the embedding at each of them, and the whole way."""
        encoder, device = self.encoder, self.encoder.device
        ids = torch.from_numpy(self.read.ids).to(device)
        table = encoder.model.get_input_embeddings()
        with torch.no_grad():
            there = table(ids).float()
            masked = torch.where(torch.from_numpy(self.read.owner >= 0).to(device), _mask(encoder), ids)
            start = table(masked).float()
        places, _ = _points()
        places = torch.cat((torch.zeros(1), places)).to(there)  # the first is the masked text itself
        difference = there - start
        with torch.enable_grad():
            way = (start + places[:, None, None] * difference).to(table.weight.dtype).requires_grad_()
            inputs = {"inputs_embeds": way}
            types = encoder.types_of(ids.expand(len(places), -1))
            if types is not None:
                inputs["token_type_ids"] = types
            return way, encoder.forward(inputs), difference


def _points() -> tuple[torch.Tensor, torch.Tensor]:
    """Where the gradient is taken between 0 and 1, and how much each point counts."""
    places, parts = np.polynomial.legendre.leggauss(POINTS)
    return torch.from_numpy((places + 1) / 2).float(), torch.from_numpy(parts / 2).float()


def _mask(encoder: Encoder) -> int:
    """The token that stands for a word that cannot be seen."""
    tokenizer = encoder.tokenizer
    for token in (tokenizer.mask_token_id, tokenizer.unk_token_id):
        if token is not None:
            return int(token)
    return encoder.pad_id


def _read(encoder: Encoder, text: str) -> _Read:
    ids = np.asarray(encoder.tokenize([text], threads=1)[0]).astype(np.int64)
    tokenizer: Any = encoder.tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        # One character for each lone surrogate, which no tokenizer takes.
        seen = backend.encode(text.encode("utf-8", "replace").decode("utf-8"))
        if seen.ids == ids.tolist():
            return _with_places(ids, seen, text)
    special = tokenizer.get_special_tokens_mask(ids.tolist(), already_has_special_tokens=True)
    owner = np.where(np.array(special, bool), -1, 0)
    owner[owner == 0] = np.arange(np.count_nonzero(owner == 0))
    pieces = [piece for piece, of in zip(tokenizer.convert_ids_to_tokens(ids.tolist()), owner, strict=True) if of >= 0]
    return _Read(ids, owner, tuple((piece, ()) for piece in pieces))


def _with_places(ids: npt.NDArray[np.int64], seen: Any, text: str) -> _Read:
    """Tokens gathered into the words that they are pieces of."""
    owner = np.full(len(ids), -1, np.int64)
    spans: list[Span] = []
    before: int | None = None
    for at, (word, special, (start, end)) in enumerate(
        zip(seen.word_ids, seen.special_tokens_mask, seen.offsets, strict=True)
    ):
        if special:
            before = None
            continue
        if word is not None and word == before:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
        owner[at], before = len(spans) - 1, word
    return _Read(ids, owner, tuple(_trimmed(text, *span) for span in spans))


def _trimmed(text: str, start: int, end: int) -> tuple[str, tuple[Span, ...]]:
    """A word without the white space that some tokenizers count in."""
    word = text[start:end]
    start, end = start + len(word) - len(word.lstrip()), end - (len(word) - len(word.rstrip()))
    return word.strip(), ((start, max(start, end)),)
