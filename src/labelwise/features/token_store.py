"""The token ids of texts, tokenised once and stored as one flat array."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelwise import storage
from labelwise.engines.forks import native
from labelwise.errors import DataError, StorageError, UsageError
from labelwise.events import Task
from labelwise.features.encoder_checks import library_refusals
from labelwise.types import Ints, OnEvent

TEXTS_PER_BATCH = 4096
# More characters than a token of natural text has on average. A text that was cut too short is read again, in full.
CHARACTERS_PER_TOKEN = 8

_SPACE = re.compile(r"\s")


@dataclass(frozen=True)
class TokenStore:
    """The tokens of many texts, one text after the other, special tokens included."""

    tokens: npt.NDArray[np.unsignedinteger[Any]]
    """(n_tokens,) uint16, or uint32 where the vocabulary needs it."""
    indptr: npt.NDArray[np.int64]
    """(n_docs + 1,) where each text begins and ends."""

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, row: int) -> npt.NDArray[np.unsignedinteger[Any]]:
        """The tokens of one text."""
        row = range(len(self))[row]
        return self.tokens[self.indptr[row] : self.indptr[row + 1]]

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """(n_docs,) number of tokens of each text."""
        return np.diff(self.indptr)

    def share_of(self, token: int | None, *, n_special: int = 0) -> float:
        """The share of one token among all, without the special tokens that every text has; 0 for no token."""
        n_tokens = len(self.tokens) - n_special * len(self)
        if token is None or n_tokens <= 0:
            return 0.0
        return float(np.count_nonzero(self.tokens == token) / n_tokens)

    def take(self, rows: Ints) -> TokenStore:
        """The texts of these rows, in this order."""
        rows = np.asarray(rows)
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        lengths = self.lengths[rows]
        indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        shift = np.repeat(self.indptr[:-1][rows] - indptr[:-1], lengths)
        return TokenStore(self.tokens[np.arange(indptr[-1]) + shift], indptr)

    # ------------------------------------------------------------------ tokenising

    @classmethod
    def build(
        cls,
        texts: Sequence[str],
        tokenizer: Any,
        max_length: int,
        *,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> Self:
        """Tokenise texts with a Hugging Face tokenizer.

        Parameters
        ----------
        max_length
            Largest number of tokens of a text, special tokens included; special tokens are kept when the text is cut.
        threads
            1 to use a single thread; otherwise the tokenizer's own pool of threads. The result is the same.
        """
        if isinstance(texts, str):
            raise UsageError("expected a list of texts, got one string; write [text] for a single one")
        if max_length < 1:
            raise UsageError(f"max_length is {max_length}; it must be at least 1")
        dtype = np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32
        parts: list[npt.NDArray[np.unsignedinteger[Any]]] = [np.empty(0, dtype)]
        lengths: list[int] = []
        with _threads(threads), Task(on_event, "tokens", total=len(texts)) as task:
            for start in range(0, len(texts), TEXTS_PER_BATCH):
                batch = [_checked(text, start + at) for at, text in enumerate(texts[start : start + TEXTS_PER_BATCH])]
                refusals = library_refusals(
                    "the tokenizer cannot read these texts", "use another encoder", StorageError
                )
                with refusals, native.computing():
                    rows = _tokenise(batch, tokenizer, max_length)
                sizes = list(map(len, rows))
                part = np.fromiter(chain.from_iterable(rows), np.uint32, sum(sizes))
                if len(part) and int(part.max()) > np.iinfo(dtype).max:
                    raise StorageError(f"the tokenizer gives the token {part.max()}, but has {len(tokenizer)}")
                parts.append(part.astype(dtype, copy=False))
                lengths += sizes
                task.advance(len(batch))
        indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.array(lengths, np.int64))))
        return cls(np.concatenate(parts), indptr)

    # ------------------------------------------------------------------ saving and loading

    def save(self, path: Path | str) -> None:
        """Write a folder that `load` reads."""
        storage.save(path, kind="tokens", arrays={"tokens": self.tokens, "indptr": self.indptr})

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read what `save` wrote; the arrays are mapped into memory, not copied."""
        arrays = storage.load(path, kind="tokens").arrays
        return cls(arrays["tokens"], arrays["indptr"])


def batches(lengths: npt.NDArray[np.int64], batch_tokens: int, exact: bool) -> Iterator[tuple[int, int, int, bool]]:
    """Begin, end and width of batches of texts of descending lengths, and whether no text of the batch is padded."""
    begin = 0
    while begin < len(lengths):
        longest = int(lengths[begin])
        width = max(longest, 1) if exact else -(-max(longest, 1) // 8) * 8  # tensor cores need multiples of 8
        end = min(begin + max(1, batch_tokens // width), len(lengths))
        yield begin, end, width, bool(lengths[end - 1] == width)
        begin = end


def _checked(text: str, row: int) -> str:
    if not isinstance(text, str):
        raise DataError(
            f"text {row} is of class {type(text).__name__}, not a string; give every document a text, '' for none"
        )
    return text


def _tokenise(texts: list[str], tokenizer: Any, max_length: int) -> list[list[int]]:
    """The tokens of each text, at most `max_length`, with the special tokens."""
    limit = max_length * CHARACTERS_PER_TOKEN
    ends = [_end(text, limit) for text in texts]
    rows = _encode([text[:end] for text, end in zip(texts, ends, strict=True)], tokenizer, max_length)
    # A cut text that fills all places is correct: words do not change the tokens before them.
    poor = [at for at, row in enumerate(rows) if ends[at] < len(texts[at]) and len(row) < max_length]
    for at, row in zip(poor, _encode([texts[at] for at in poor], tokenizer, max_length), strict=True):
        rows[at] = row
    return rows


def _end(text: str, limit: int) -> int:
    """Where to cut a text: at the first space after `limit` characters."""
    space = _SPACE.search(text, limit) if len(text) > limit else None
    return space.start() if space else len(text)


def _encode(texts: list[str], tokenizer: Any, max_length: int) -> list[list[int]]:
    # Lone surrogates cannot be encoded as UTF-8, which the tokenizer needs.
    texts = [text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    if not limit_length(tokenizer, max_length):
        rows: list[list[int]] = tokenizer(texts, truncation=True, max_length=max_length)["input_ids"] if texts else []
        return rows
    return [encoding.ids for encoding in tokenizer.backend_tokenizer.encode_batch_fast(texts)]


def limit_length(tokenizer: Any, max_length: int) -> bool:
    """Have a tokenizer cut its texts and pad none; False for one of the few that are written in Python.

    The tokenizer keeps this, and its file has it.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return False
    backend.enable_truncation(max_length, direction=tokenizer.truncation_side)
    backend.no_padding()
    return True


@contextmanager
def _threads(threads: int | None) -> Iterator[None]:
    """Context that switches the thread pool of the tokenizers library, which only reads the environment."""
    name = "TOKENIZERS_PARALLELISM"
    given = os.environ.get(name)
    if threads == 1:
        os.environ[name] = "false"
    try:
        yield
    finally:
        if given is not None:
            os.environ[name] = given
        elif threads == 1:
            os.environ.pop(name, None)
