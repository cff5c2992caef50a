"""Terms and their numbers: found by hash, spelled by their bytes, saved as flat arrays."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt

from labelwise.kernels.terms import add_terms, eight_letters, find_terms, gather_letters
from labelwise.kernels.validate import TABLE_CROWDED, TABLE_FULL, TABLE_VALUES, wrong_table
from labelwise.storage.checks import Arrays
from labelwise.types import Ints

_SMALLEST_TABLE = 1024
LONGEST_RUN = 4096
"""The most filled slots in a row: of a million terms no more than a hundred are to be expected, and a search through
very many would never seem to end."""
_PROBLEMS: Mapping[int, str] = {
    TABLE_VALUES: "names a term that there is not, or one twice",
    TABLE_FULL: "has more than half of its slots filled",
    TABLE_CROWDED: "has terms that a search does not find, or very many of them in a row",
}


class Vocabulary:
    """Distinct terms, numbered from zero.

    The UTF-8 bytes of all terms are stored in `letters`, those of term `i` in `letters[offsets[i]:offsets[i + 1]]`.
    `keys` and `values` are an open-addressing hash table of at most half its capacity.
    """

    def __init__(
        self,
        letters: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        keys: npt.NDArray[np.uint64],
        values: npt.NDArray[np.int32],
    ) -> None:
        self.letters, self.offsets, self.keys, self.values = letters, offsets, keys, values

    @classmethod
    def build(cls, letters: npt.NDArray[np.uint8], sizes: Ints, hashes: npt.NDArray[np.uint64]) -> Self:
        """A vocabulary of distinct terms in the given order; a term with hash 0 is never found."""
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        keys, values = _empty_table(len(hashes))
        findable = np.flatnonzero(hashes)
        add_terms(hashes[findable], 0, keys, values)
        values[values >= 0] = findable[values[values >= 0]]
        return cls(letters, offsets, keys, values)

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> Self:
        """The vocabulary that saved arrays hold, checked; nothing is copied."""
        letters = arrays.take("letters", np.uint8, (None,))
        offsets = arrays.offsets("offsets", end=len(letters))
        keys = arrays.take("keys", np.uint64, (None,))
        values = arrays.take("values", np.int32, (len(keys),))
        if len(keys).bit_count() != 1:
            raise arrays.wrong("keys", f"has {len(keys)} slots, which is no power of two")
        problem = wrong_table(keys, values, len(offsets) - 1, LONGEST_RUN)
        if problem:
            raise arrays.wrong("values" if problem == TABLE_VALUES else "keys", _PROBLEMS[problem])
        if not _are_texts(letters, offsets):
            raise arrays.wrong("letters", "is no UTF-8")
        return cls(letters, offsets, keys, values)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def term(self, number: int) -> str:
        """The term of this number, as text."""
        return bytes(self.letters[self.offsets[number] : self.offsets[number + 1]]).decode("utf-8", "surrogatepass")

    def terms(self) -> list[str]:
        """(n_terms,) all terms in order."""
        letters, ends = self.letters.tobytes(), self.offsets.tolist()
        return [letters[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]

    def beginning_with(self, letter: str) -> npt.NDArray[np.bool_]:
        """(n_terms,) which terms, none of them empty, begin with an ASCII letter."""
        return _begins(self.letters, self.offsets[:-1], letter)

    def find(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Numbers of the terms with these hashes, -1 for unknown ones."""
        found: npt.NDArray[np.int64] = find_terms(self.keys, self.values, hashes)
        return found


class VocabularyBuilder:
    """Collects terms block by block, with the number of documents and of occurrences of each."""

    def __init__(self) -> None:
        self.keys, self.values = _empty_table(0)
        self.hashes = np.empty(0, np.uint64)
        self.n_docs = np.zeros(0, np.int64)
        self.n_occurrences = np.zeros(0, np.int64)
        self._letters: list[npt.NDArray[np.uint8]] = []
        self._sizes: list[npt.NDArray[np.int64]] = []
        self.n_terms = 0

    def number(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Number distinct terms; new terms get the next numbers, and `store_letters` must follow for them."""
        if 2 * (self.n_terms + len(hashes)) > len(self.keys):
            self.keys, self.values = _empty_table(2 * (self.n_terms + len(hashes)))
            add_terms(self.hashes[: self.n_terms], 0, self.keys, self.values)
        numbers: npt.NDArray[np.int64] = add_terms(hashes, self.n_terms, self.keys, self.values)
        new = hashes[numbers >= self.n_terms]
        n_terms = self.n_terms + len(new)
        if n_terms > len(self.hashes):
            more = max(2 * n_terms, _SMALLEST_TABLE) - len(self.hashes)
            self.hashes = np.concatenate((self.hashes, np.zeros(more, np.uint64)))
            self.n_docs = np.concatenate((self.n_docs, np.zeros(more, np.int64)))
            self.n_occurrences = np.concatenate((self.n_occurrences, np.zeros(more, np.int64)))
        self.hashes[self.n_terms : n_terms] = new
        self.n_terms = n_terms
        return numbers

    def store_letters(self, letters: npt.NDArray[np.uint8], sizes: npt.NDArray[np.int64]) -> None:
        """Store the letters of the new terms of the last `number`."""
        self._letters.append(letters)
        self._sizes.append(sizes)

    def in_order(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """These terms in alphabetical order, by code points."""
        starts, ends = self._spans()
        return numbers[alphabetical_order(self._all_letters(), starts[numbers], ends[numbers])]

    def beginning_with(self, letter: str) -> npt.NDArray[np.bool_]:
        """(n_terms,) which terms, none of them empty, begin with an ASCII letter."""
        return _begins(self._all_letters(), self._spans()[0], letter)

    def finish(self, numbers: npt.NDArray[np.int64]) -> Vocabulary:
        """The vocabulary of these terms, in this order."""
        starts, ends = self._spans()
        starts, ends = starts[numbers], ends[numbers]
        return Vocabulary.build(gather_letters(self._all_letters(), starts, ends), ends - starts, self.hashes[numbers])

    def _all_letters(self) -> npt.NDArray[np.uint8]:
        if len(self._letters) != 1:
            self._letters = [np.concatenate([np.empty(0, np.uint8), *self._letters])]
        return self._letters[0]

    def _spans(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        if len(self._sizes) != 1:
            self._sizes = [np.concatenate([np.empty(0, np.int64), *self._sizes])]
        ends = np.cumsum(self._sizes[0])
        return ends - self._sizes[0], ends


def _are_texts(letters: npt.NDArray[np.uint8], offsets: Ints) -> bool:
    """Whether every term is UTF-8, halves of surrogate pairs included."""
    if letters.max(initial=0) < 0x80:
        return True
    starts = offsets[offsets < len(letters)]
    try:
        bytes(letters).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return not bool(((letters[starts] & 0xC0) == 0x80).any())  # none begins within a character


def _begins(letters: npt.NDArray[np.uint8], starts: Ints, letter: str) -> npt.NDArray[np.bool_]:
    return np.asarray(letters[starts] == ord(letter))


def alphabetical_order(letters: npt.NDArray[np.uint8], starts: Ints, ends: Ints) -> npt.NDArray[np.int64]:
    """The order that sorts terms by their bytes, which for UTF-8 is the order of code points.

    Terms are sorted by eight bytes at a time; only terms that are still tied are sorted further.
    """
    order = np.arange(len(starts))
    tied = order.copy()  # places in `order` that are not decided yet
    group = np.zeros(len(starts), np.int64)  # the group of equal terms that each of these places belongs to
    skip = 0
    while len(tied):
        terms = order[tied]
        sizes = ends[terms] - starts[terms]
        keys = eight_letters(letters, starts[terms], ends[terms], skip)
        by = np.lexsort((sizes, keys, group))
        order[tied] = terms[by]
        keys, group, sizes = keys[by], group[by], sizes[by]
        differs = (keys[1:] != keys[:-1]) | (group[1:] != group[:-1])
        group = np.cumsum(np.concatenate((np.zeros(1, np.bool_), differs)))
        skip += 8
        still = (np.bincount(group)[group] > 1) & (sizes.max() > skip)
        tied, group = tied[still], group[still]
    return order


def join_letters(terms: Sequence[str]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The UTF-8 bytes of all terms and the size of each."""
    encoded = [term.encode("utf-8", "surrogatepass") for term in terms]
    return np.frombuffer(b"".join(encoded), np.uint8), np.array([len(term) for term in encoded], np.int64)


def _empty_table(n_terms: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
    capacity = _SMALLEST_TABLE
    while capacity < 2 * n_terms:
        capacity *= 2
    return np.zeros(capacity, np.uint64), np.full(capacity, -1, np.int32)
