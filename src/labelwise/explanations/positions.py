"""The positions of tf-idf terms in a text, as spans of characters of the original text."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt

from labelwise.explanations.result import Span
from labelwise.features.blocks import Analyzer
from labelwise.features.characters import AWKWARD, to_bytes
from labelwise.features.tfidf import Tfidf
from labelwise.kernels.tokens import SPACE
from labelwise.types import Ints


def term_places(tfidf: Tfidf, text: str) -> dict[int, tuple[Span, ...]]:
    """The positions of every known term of a text, ascending, by the column of the term."""
    config, analyzer = tfidf.settings_, Analyzer(tfidf.settings_)
    source = np.frombuffer(to_bytes(text, config.lowercase), np.uint8)
    found = analyzer.tokens(source, np.array([len(source)], np.int64))
    if config.analyzer == "word":
        character = _characters(source, text, config.lowercase)
        spans = np.stack((character[found.starts], character[found.ends]), axis=1)
    else:
        begin, end = _folded(source, text, analyzer.table, config.analyzer == "char_wb", config.lowercase)
        spans = np.stack((begin[found.starts], end[found.ends.astype(np.int64) - 1]), axis=1)
    places: defaultdict[int, list[Span]] = defaultdict(list)
    columns = tfidf.vocabulary_.find(found.hashes)
    for column, (start, stop) in zip(columns.tolist(), spans.tolist(), strict=True):
        if column >= 0:
            places[column].append((start, stop))
    return {column: tuple(sorted(there)) for column, there in places.items()}


def _characters(source: npt.NDArray[np.uint8], text: str, lowercase: bool) -> Ints:
    """(n_bytes + 1,) the character of the text that each byte of the source belongs to; the last entry is the end."""
    begins = (source & 0xC0) != 0x80
    of_byte = np.append(np.cumsum(begins) - 1, np.count_nonzero(begins))
    characters: Ints = _given(text, lowercase)[of_byte]
    return characters


def _given(text: str, lowercase: bool) -> Ints:
    """(n_characters + 1,) for each character of the source, which may be lower-cased, the character of the text."""
    sizes = np.ones(len(text), np.int64)
    if lowercase and any(letter in text for letter in AWKWARD):
        sizes = np.array([len(letter.lower()) for letter in text], np.int64)
    return np.append(np.repeat(np.arange(len(text)), sizes), len(text))


def _folded(
    source: npt.NDArray[np.uint8], text: str, table: npt.NDArray[np.uint32], bounded: bool, lowercase: bool
) -> tuple[Ints, Ints]:
    """Begin and end, in the text, of each code of `fold_characters`."""
    characters, given = source.tobytes().decode("utf-8", "surrogatepass"), _given(text, lowercase)
    begins: list[int] = []
    ends: list[int] = []
    before = True  # white space, or nothing yet
    for at, letter in enumerate(characters):
        space = bool(table[ord(letter)] & SPACE)
        if bounded and space != before:  # a word begins or ends: the space there has no width
            begins.append(at)
            ends.append(at)
        if space and not bounded and before and ends and at:
            ends[-1] = at + 1
        elif not (space and bounded):
            begins.append(at)
            ends.append(at + 1)
        before = space
    if bounded and not before:
        begins.append(len(characters))
        ends.append(len(characters))
    # The end of a character that lower-casing made longer is the end of all of it.
    last = np.array(ends, np.int64)
    after = np.where(last > 0, given[np.maximum(last, 1) - 1] + 1, 0)
    first = given[np.array(begins, np.int64)]
    return first, np.where(np.array(begins, np.int64) == last, first, after)
