"""Blocks of texts: bounded pieces of work that are encoded, hashed and counted independently of each other."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from labelwise.config import TfidfConfig
from labelwise.features.characters import character_table, to_bytes
from labelwise.features.texts import check_text
from labelwise.kernels.counts import tally
from labelwise.kernels.tokens import (
    add_openings,
    fold_characters,
    hash_windows,
    hash_words,
    spell_codes,
    spell_words,
)

# Big enough to make a kernel call cheap, small enough for a block's terms to stay in the cache. Fixed, so that
# the number of threads cannot change the result.
CHARACTERS_PER_BLOCK = 1 << 19
TEXTS_PER_BLOCK = 1 << 14
BYTES_PER_SLAB = 1 << 22

ALL = np.iinfo(np.int64).max
"""Number of words that are read where there is no limit."""
OPENING = "^"
"""Prefix of the terms of a text's opening; no word begins with it."""


@dataclass(frozen=True)
class Tokens:
    """The terms of some documents by position, in the order of the texts."""

    hashes: npt.NDArray[np.uint64]
    """(n_tokens,)"""
    starts: npt.NDArray[np.uint32]
    """(n_tokens,) where each token begins in `source`."""
    ends: npt.NDArray[np.uint32]
    """(n_tokens,)"""
    indptr: npt.NDArray[np.int64]
    """(n_docs + 1,)"""
    opening: npt.NDArray[np.bool_]
    """(n_tokens,) whether a token counts as a term of the text's opening; empty where openings are not counted."""
    source: npt.NDArray[np.uint8] | npt.NDArray[np.uint32]
    """The documents' bytes, or their folded characters."""


@dataclass(frozen=True)
class CountedBlock:
    """The terms of some documents, counted; `n_pairs` are its (document, term) pairs."""

    indptr: npt.NDArray[np.int64]
    """(n_docs + 1,)"""
    term: npt.NDArray[np.integer[Any]]
    """(n_pairs,) the block's own term numbers."""
    count: npt.NDArray[np.integer[Any]]
    """(n_pairs,)"""
    hashes: npt.NDArray[np.uint64]
    """(n_terms,)"""
    starts: npt.NDArray[np.uint32]
    """(n_terms,) where each term appeared first in `source`."""
    ends: npt.NDArray[np.uint32]
    """(n_terms,)"""
    opening: npt.NDArray[np.bool_]
    """(n_terms,) whether a term belongs to the opening; empty where openings are not counted."""
    source: npt.NDArray[np.uint8] | npt.NDArray[np.uint32]
    """The block's bytes, or its folded characters."""

    def packed(self, slabs: SlabAllocator) -> CountedBlock:
        """A smaller copy with the counts only, so that many blocks can be kept."""
        term = slabs.copy(self.term, np.uint16 if len(self.hashes) <= 1 << 16 else np.int32)
        count = slabs.copy(self.count, np.uint16 if self.count.max(initial=0) < 1 << 16 else np.int32)
        nothing = np.empty(0, np.uint32)
        indptr = slabs.copy(self.indptr, np.int64)
        return CountedBlock(
            indptr, term, count, np.empty(0, np.uint64), nothing, nothing, np.empty(0, np.bool_), nothing
        )


class SlabAllocator:
    """Copies arrays into slabs of memory that return to the system as soon as nothing in them is used.

    Arrays of this size that are allocated one by one stay with the process after they are freed, at the very time when
    the features need the memory.
    """

    def __init__(self) -> None:
        self._slab = np.empty(0, np.uint8)

    def copy(self, array: npt.NDArray[Any], dtype: type[np.generic]) -> npt.NDArray[Any]:
        """A copy of an array, converted to a type."""
        n_bytes = -(-array.size * np.dtype(dtype).itemsize // 8) * 8  # whole words, so that all stay aligned
        if n_bytes > len(self._slab):
            self._slab = np.frombuffer(mmap.mmap(-1, max(n_bytes, BYTES_PER_SLAB)), np.uint8)
        place, self._slab = self._slab[:n_bytes], self._slab[n_bytes:]
        copy = place.view(dtype)[: array.size]
        copy[:] = array
        return copy


class Analyzer:
    """Finds and counts the terms of texts."""

    def __init__(self, config: TfidfConfig) -> None:
        self.config = config = config.resolved()
        self.n_grams = cast("tuple[int, int]", config.ngram_range)
        self.table = character_table(config.lowercase)

    def count(self, texts: list[str]) -> CountedBlock:
        """Count the terms of one block of texts."""
        encoded = [to_bytes(text, self.config.lowercase) for text in texts]
        ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
        found = self.tokens(np.frombuffer(b"".join(encoded), np.uint8), ends)
        indptr, term, count, first = tally(found.hashes, found.indptr)
        opening = found.opening[first] if found.opening.size else found.opening
        places = (found.starts[first], found.ends[first])
        return CountedBlock(indptr, term, count, found.hashes[first], *places, opening, found.source)

    def tokens(self, source: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> Tokens:
        """Find the terms of documents.

        Parameters
        ----------
        source : (n_bytes,) the documents one after the other, encoded by `to_bytes`
        ends : (n_docs,) where each document ends
        """
        config = self.config
        n_min, n_max = self.n_grams
        opening = np.empty(0, np.bool_)
        if config.analyzer != "word":
            bounded = config.analyzer == "char_wb"
            codes, *pieces = fold_characters(source, ends, self.table, bounded)
            hashes, begins, stops, indptr = hash_windows(codes, *pieces, n_min, n_max, bounded)
            return Tokens(hashes, begins, stops, indptr, opening, codes)
        starts, words = _starts(ends), (self.table, config.min_token_length)
        hashes, begins, stops, indptr = found = hash_words(source, starts, ends, *words, n_min, n_max, ALL)
        if config.opening:
            opened = hash_words(source, starts, ends, *words, 1, config.opening_ngrams, config.opening)
            hashes, begins, stops, indptr, opening = add_openings(*found, *opened)
        return Tokens(hashes, begins, stops, indptr, opening, source)

    def spell(
        self, block: CountedBlock, which: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """The letters of some of a block's terms, and the size of each term."""
        starts, ends = block.starts[which], block.ends[which]
        letters: npt.NDArray[np.uint8]
        sizes: npt.NDArray[np.int64]
        if self.config.analyzer != "word":
            letters, sizes = spell_codes(block.source, starts, ends)
            return letters, sizes
        letters, sizes = spell_words(block.source, self.table, self.config.min_token_length, starts, ends)
        if block.opening.size:
            opening = block.opening[which]
            letters = np.insert(letters, _starts(np.cumsum(sizes))[opening], ord(OPENING))
            sizes = sizes + opening
        return letters, sizes

    def hash_terms(self, terms: list[str]) -> npt.NDArray[np.uint64]:
        """(n_terms,) hashes of terms as they are written, 0 for terms that this analyzer would never produce."""
        if self.config.analyzer != "word":
            codes = np.frombuffer("".join(terms).encode("utf-32-le", "surrogatepass"), np.uint32)
            term_ends = np.cumsum([len(term) for term in terms])
            longest = max(map(len, terms), default=1)
            tokens = hash_windows(codes, term_ends, np.arange(len(terms) + 1), 1, longest, False)
            return _whole_hashes(tokens, term_ends)
        encoded = [term.encode("utf-8", "surrogatepass") for term in terms]
        term_ends = np.cumsum([len(term) for term in encoded])
        source = np.frombuffer(b"".join(encoded), np.uint8)
        starts = _starts(term_ends)
        words = (self.table, self.config.min_token_length)
        hashes = _whole_hashes(hash_words(source, starts, term_ends, *words, *self.n_grams, ALL), term_ends)
        letters, sizes = spell_words(source, self.table, self.config.min_token_length, starts, term_ends)
        spelled, begin = letters.tobytes(), 0
        for i, size in enumerate(sizes.tolist()):
            if spelled[begin : begin + size] != encoded[i]:  # such as a capital letter where all is lower-cased
                hashes[i] = 0
            begin += size
        return hashes


def _whole_hashes(tokens: tuple[Any, ...], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """(n_docs,) the hash of the token that spans the whole document, 0 where there is none."""
    token_hashes, token_starts, token_ends, indptr = tokens
    doc = np.repeat(np.arange(len(ends)), np.diff(indptr))
    starts = _starts(ends)
    whole = (token_starts == starts[doc]) & (token_ends == ends[doc])
    hashes = np.zeros(len(ends), np.uint64)
    hashes[doc[whole]] = token_hashes[whole]
    return hashes


def _starts(ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Begins of adjacent spans, from their ends."""
    return np.concatenate((np.zeros(1, np.int64), ends[:-1]))[: len(ends)]


def text_blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Cut a stream of texts into blocks of about equal size; each text is checked."""
    block: list[str] = []
    size = n_before = 0
    for text in texts:
        check_text(text, n_before + len(block))
        block.append(text)
        size += len(text)
        if size >= CHARACTERS_PER_BLOCK or len(block) >= TEXTS_PER_BLOCK:
            yield block
            n_before += len(block)
            block, size = [], 0
    if block:
        yield block
