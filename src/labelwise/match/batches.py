"""Batches of documents of like length: little is padded, and every step has one of a few shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Bucket:
    """Documents that are padded to one width."""

    width: int
    full: bool
    """Every document fills the width, so that nothing is padded and no mask is needed."""
    rows: Rows


@dataclass(frozen=True, eq=False)
class Batch:
    """Documents of one step."""

    width: int
    full: bool
    rows: Rows


def round_up(length: int, most: int) -> int:
    """The width that texts of this length are padded to: few widths, never much wider, multiples of eight."""
    step = 8 if length <= 64 else 16 if length <= 128 else 32 if length <= 256 else 64
    return min(-(-length // step) * step, most)


def make_buckets(lengths: npt.NDArray[Any], batch_size: int) -> list[Bucket]:
    """Documents by width, ascending; those of the greatest length by themselves, at the end.

    A width with fewer documents than a batch holds joins the next one.

    >>> [(bucket.width, bucket.full) for bucket in make_buckets(np.array([5, 6, 30, 32, 32]), 2)]
    [(8, False), (32, False), (32, True)]
    """
    most = int(lengths.max(initial=1))
    longest = np.flatnonzero(lengths == most)
    rest = np.flatnonzero(lengths < most)
    if len(longest) < batch_size:  # too few to be worth a shape of their own
        rest, longest = np.arange(len(lengths)), longest[:0]
    widths = np.array([round_up(int(length), most) for length in range(most + 1)])[lengths[rest]]
    buckets, waiting = [], rest[:0]
    for width in np.unique(widths).tolist():
        waiting = np.concatenate((waiting, rest[widths == width]))
        if len(waiting) >= batch_size or width == widths.max():
            buckets.append(Bucket(width, False, waiting))
            waiting = rest[:0]
    if len(longest):
        buckets.append(Bucket(most, True, longest))
    return buckets


def shuffled(buckets: list[Bucket], lengths: npt.NDArray[Any], batch_size: int, seed: list[int]) -> list[Batch]:
    """One epoch: every document once, in batches of equal size and in random order.

    What is left over from a width moves on to the next; the last batch is filled up with documents drawn anew.
    """
    rng = np.random.default_rng(seed)
    batches: list[Batch] = []
    left: Rows = np.empty(0, np.int64)
    for bucket in buckets:
        rows = rng.permutation(bucket.rows)
        if not bucket.full:
            rows = np.concatenate((left, rows))
        whole = len(rows) // batch_size * batch_size
        batches += [Batch(bucket.width, bucket.full, part) for part in rows[:whole].reshape(-1, batch_size)]
        left = np.concatenate((left, rows[whole:])) if bucket.full else rows[whole:]
    if len(left):
        longest = int(lengths[left].max())
        width = min(bucket.width for bucket in buckets if bucket.width >= longest)  # no shape that is not there already
        fitting = np.flatnonzero(lengths <= width)
        left = np.concatenate((left, rng.choice(fitting, -len(left) % batch_size)))
        batches += [Batch(width, False, part) for part in left.reshape(-1, batch_size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def in_order(lengths: npt.NDArray[Any], most_tokens: int) -> Iterator[Batch]:
    """All documents by descending length, in batches of about so many tokens: for inference.

    The longest come first, so that memory that suffices at the start suffices to the end.
    """
    order = np.argsort(-lengths, kind="stable")
    most = int(lengths.max(initial=1))
    begin = 0
    while begin < len(order):
        width = round_up(int(lengths[order[begin]]), most)
        end = min(begin + max(1, most_tokens // width), len(order))
        rows = order[begin:end]
        yield Batch(width, bool((lengths[rows] == width).all()), rows)
        begin = end
