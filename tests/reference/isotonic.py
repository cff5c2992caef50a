"""Plain twins of the isotonic kernels: lists, fractions, and one join after the other."""

from fractions import Fraction

import numpy as np


def pool(hits: list[int], counts: list[int]) -> list[int]:
    """Where the blocks begin: join any two neighbours that do not ascend, until all do."""
    blocks = [(i, hit, count) for i, (hit, count) in enumerate(zip(hits, counts, strict=True))]
    while True:
        shares = [Fraction(int(hit), int(count)) for _, hit, count in blocks]
        wrong = [b for b in range(1, len(blocks)) if shares[b - 1] >= shares[b]]
        if not wrong:
            return [start for start, _, _ in blocks]
        b = wrong[0]
        (start, hit, count), (_, more_hits, more_count) = blocks[b - 1 : b + 1]
        blocks[b - 1 : b + 1] = [(start, hit + more_hits, count + more_count)]


def keep_order(rows: list[list[tuple[float, np.float32]]]) -> list[list[np.float32]]:
    """Values of each row, given as (score, value) by descending score, made to rank as the scores do."""
    result = []
    for row in rows:
        kept: list[np.float32] = []
        for j, (score, value) in enumerate(row):
            if j and score == row[j - 1][0]:
                value = kept[-1]
            elif j:
                value = min(value, np.nextafter(kept[-1], np.float32(0)))
            kept.append(value)
        result.append(kept)
    return result
