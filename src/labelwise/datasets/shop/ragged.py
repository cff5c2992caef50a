"""Weighted choices of different lengths, drawn for many rows at once."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from labelwise.types import Floats, Ints

NOTHING = -1
"""Stands for "no choice": an absent attribute, a row without items."""


class Ragged:
    """Row r offers `items[offsets[r]:offsets[r + 1]]` with probabilities that sum to one."""

    def __init__(self, offsets: Ints, items: Ints, probabilities: Floats) -> None:
        self.offsets, self.items, self.probabilities = offsets, items, probabilities
        running = np.concatenate([[0.0], np.cumsum(probabilities)])
        sizes = np.diff(offsets)
        rows = np.repeat(np.arange(sizes.size), sizes)
        within = running[1:] - running[offsets[:-1]][rows]
        # Row r ends at r + 1, so that one search over all rows finds the item of one row.
        self._ends = rows + np.minimum(within, 1.0)

    @classmethod
    def of(cls, rows: Sequence[Sequence[tuple[int, float]]]) -> Self:
        """From lists of (item, weight); the weights of a row are scaled to sum to one."""
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int64)
        items = np.array([item for row in rows for item, _ in row], dtype=np.int32)
        totals = [sum(weight for _, weight in row) for row in rows]
        shares = [weight / total for row, total in zip(rows, totals, strict=True) for _, weight in row]
        return cls(offsets, items, np.array(shares, dtype=np.float64))

    def row(self, r: int) -> tuple[Ints, Floats]:
        """Items and probabilities of one row."""
        inside = slice(self.offsets[r], self.offsets[r + 1])
        return self.items[inside], self.probabilities[inside]

    def spread(self, rows: Ints, shares: Floats) -> tuple[Ints, Floats]:
        """All items of several rows, and their probabilities if row i has the probability `shares[i]`."""
        sizes = self.offsets[rows + 1] - self.offsets[rows]
        starts = np.repeat(self.offsets[rows] - (np.cumsum(sizes) - sizes), sizes)
        at = starts + np.arange(starts.size)
        return self.items[at], self.probabilities[at] * np.repeat(shares, sizes)

    def draw(self, rows: Ints, u: Floats) -> Ints:
        """One item for each row, by uniform numbers `u`; NOTHING where the row is empty or itself NOTHING."""
        if self.items.size == 0:
            return np.full(rows.size, NOTHING, dtype=np.int32)
        safe = np.maximum(rows, 0)
        first, last = self.offsets[safe], self.offsets[safe + 1] - 1
        at = np.clip(np.searchsorted(self._ends, safe + u, side="right"), first, np.maximum(last, 0))
        return np.where((rows < 0) | (last < first), NOTHING, self.items[np.minimum(at, self.items.size - 1)])
