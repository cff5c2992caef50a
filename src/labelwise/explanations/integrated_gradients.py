"""The embedding's share of a score, divided over the words of the text by integrated gradients.

Sundararajan, Taly and Yan, ICML 2017: the input embeddings move on a straight line from a text whose every word is
masked to the text itself, and the integral of the gradient along this line is the contribution of each word. The sum
over all words is the difference between the two ends. The integral is computed at sixteen points (Gauss-Legendre). Its
small error is distributed over the words in proportion to their contributions, so that the sum is exact, and is
reported as `error`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from labelwise.explanations.result import EmbeddingShare, Span, Word
from labelwise.features.encoder import Encoder
from labelwise.types import Floats

POINTS = 16
"""Number of points of the integral."""
TOKENS_AT_ONCE = 1 << 10
"""Tokens whose activations are in memory at once for the gradient: about 200 MB for MiniLM, 800 MB for BERT."""
TOLERANCE = 1e-5
"""Largest difference between the share and the sum of base and words."""
METHOD = f"integrated gradients from a masked text, {POINTS} points of Gauss-Legendre"


@dataclass(frozen=True)
class _Read:
    """The tokens of a text and its words."""

    ids: npt.NDArray[np.int64]
    """(n_tokens,) with special tokens."""
    owner: npt.NDArray[np.int64]
    """(n_tokens,) the word of each token; -1 for special tokens."""
    words: tuple[tuple[str, tuple[Span, ...]], ...]
    """Each word as written, and its positions in the text."""


class TokenReader:
    """The contribution of each word of a text to linear functions of its embedding."""

    def __init__(self, encoder: Encoder, text: str) -> None:
        self.encoder = encoder
        self.read = _read(encoder, text)

    def attribute(self, weights: Floats, shares: Sequence[float]) -> list[EmbeddingShare]:
        """The embedding's shares of several labels' scores, each divided over the words.

        Parameters
        ----------
        weights : (n_labels, hidden) of the embedding of length one
        shares : (n_labels,) as the model computes them
        """
        if not self.read.words:
            return [EmbeddingShare(share, share, (), 0.0, 0.0, METHOD) for share in shares]
        model, training = self.encoder.model, self.encoder.model.training
        model.eval()
        try:
            bases, each = self._integrate(torch.from_numpy(np.asarray(weights, np.float32)).to(self.encoder.device))
        except (NotImplementedError, TypeError):  # the few models that take tokens only
            method = "not divided: this encoder takes no input embeddings"
            return [EmbeddingShare(share, share, (), 0.0, 0.0, method) for share in shares]
        finally:
            model.train(training)
        return [self._spread(*parts) for parts in zip(shares, bases.tolist(), each, strict=True)]

    def _spread(self, share: float, base: float, each: Floats) -> EmbeddingShare:
        """The share with the contributions of tokens summed by word, and the error distributed over the words."""
        real = self.read.owner >= 0
        added: Floats = np.zeros(len(self.read.words))
        np.add.at(added, self.read.owner[real], each[real])
        sizes, missed = np.abs(added), share - base - float(added.sum())
        total = float(sizes.sum())
        added = added + missed * (sizes / total if total > 0 else np.full(len(added), 1 / len(added)))
        words = tuple(
            Word(term, value, spans) for (term, spans), value in zip(self.read.words, added.tolist(), strict=True)
        )
        return EmbeddingShare(share, base, words, 0.0, abs(missed) / total if total > 0 else 0.0, METHOD)

    def _integrate(self, weights: torch.Tensor) -> tuple[Floats, Floats]:
        """(n_labels,) scores of the masked text, and (n_labels, n_tokens) contributions of the tokens."""
        encoder, device = self.encoder, self.encoder.device
        ids = torch.from_numpy(self.read.ids).to(device)
        table = encoder.model.get_input_embeddings()
        with torch.no_grad():
            real = torch.from_numpy(self.read.owner >= 0).to(device)
            start = table(torch.where(real, _mask(encoder), ids)).float()
            difference = table(ids).float() - start
            bases = self._scores(start.unsqueeze(0), ids, weights)[0]
        each = torch.zeros(len(weights), len(ids), device=device)
        for places, parts in zip(*_points(max(1, TOKENS_AT_ONCE // len(ids))), strict=True):
            with torch.enable_grad():
                way = (start + places.to(device)[:, None, None] * difference).requires_grad_()
                scores = parts.to(device) @ self._scores(way, ids, weights)  # (n_labels,)
                for label in range(len(weights)):
                    more = label < len(weights) - 1
                    (gradient,) = torch.autograd.grad(scores[label], way, retain_graph=more)
                    each[label] += (gradient.sum(0) * difference).sum(1)
        return bases.double().cpu().numpy(), each.double().cpu().numpy()

    def _scores(self, embedded: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """(n_points, n_labels) scores of texts that are given as input embeddings."""
        inputs = {"inputs_embeds": embedded.to(self.encoder.model.dtype)}
        types = self.encoder.types_of(ids.expand(len(embedded), -1))
        if types is not None:
            inputs["token_type_ids"] = types
        return functional.normalize(self.encoder.forward(inputs), dim=1) @ weights.T


def _points(at_once: int) -> tuple[Sequence[torch.Tensor], Sequence[torch.Tensor]]:
    """The points between 0 and 1 where the gradient is computed, and their weights, in pieces of `at_once`."""
    places, parts = np.polynomial.legendre.leggauss(POINTS)
    pair = torch.from_numpy((places + 1) / 2).float(), torch.from_numpy(parts / 2).float()
    return pair[0].split(at_once), pair[1].split(at_once)


def _mask(encoder: Encoder) -> int:
    """The token that replaces a masked word."""
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
        # One character for each lone surrogate, which no tokenizer accepts.
        seen = backend.encode(text.encode("utf-8", "replace").decode("utf-8"))
        if seen.ids == ids.tolist():
            return _with_places(ids, seen, text)
    special = tokenizer.get_special_tokens_mask(ids.tolist(), already_has_special_tokens=True)
    owner = np.where(np.array(special, bool), -1, 0)
    owner[owner == 0] = np.arange(np.count_nonzero(owner == 0))
    pieces = [piece for piece, of in zip(tokenizer.convert_ids_to_tokens(ids.tolist()), owner, strict=True) if of >= 0]
    return _Read(ids, owner, tuple((piece, ()) for piece in pieces))


def _with_places(ids: npt.NDArray[np.int64], seen: Any, text: str) -> _Read:
    """The tokens with the words that they are parts of."""
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
    """A word without the white space that some tokenizers include."""
    word = text[start:end]
    start, end = start + len(word) - len(word.lstrip()), end - (len(word) - len(word.rstrip()))
    return word.strip(), ((start, max(start, end)),)
