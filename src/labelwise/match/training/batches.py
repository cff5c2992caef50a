"""Which documents make a step.

Where the encoder can be packed, texts lie one after the other and a batch is a fixed number of tokens: one shape for
all of training. Otherwise texts of like length come together, so that little is padded and there are few shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """What the documents of a batch are laid out as."""

    kind: Literal["padded", "full", "packed"]
    """Padded to one width; all of that width already, so that no mask is needed; or one after the other."""
    width: int
    """Tokens of each text, or, packed, of all of them together."""
    most_rows: int = 0
    """Packed: texts that there is room for."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Documents of one step."""

    shape: Shape
    rows: Rows


class Plan(Protocol):
    """The batches of every epoch."""

    def epoch(self, number: int) -> list[Batch]:
        """Those of one epoch: every document once, in random order that depends on seed and epoch alone."""


class Packed:
    """Batches of about equal numbers of tokens, whatever the number of texts."""

    def __init__(self, lengths: npt.NDArray[Any], batch_size: int, seed: int) -> None:
        self.lengths, self.seed = lengths, seed
        tokens = max(batch_size * float(lengths.mean()), float(lengths.max(initial=1)))
        self.shape = Shape("packed", int(-(-tokens // 64) * 64), 2 * batch_size)

    def epoch(self, number: int) -> list[Batch]:
        """All documents in random order, cut wherever the next would not fit."""
        order = np.random.default_rng([self.seed, number]).permutation(len(self.lengths))
        return [Batch(self.shape, rows) for rows in cut(order, self.lengths, self.shape.width, self.shape.most_rows)]


def cut(order: Rows, lengths: npt.NDArray[Any], most_tokens: int, most_rows: int) -> list[Rows]:
    """Documents in this order, in runs of at most so many tokens and documents; one too long has a run of its own."""
    ends = np.concatenate(([0], np.cumsum(lengths[order])))
    runs, begin = [], 0
    while begin < len(order):
        end = int(np.searchsorted(ends, ends[begin] + most_tokens, side="right")) - 1
        end = min(max(end, begin + 1), begin + most_rows)
        runs.append(order[begin:end])
        begin = end
    return runs


class Padded:
    """Batches of equally many texts of like length."""

    def __init__(self, lengths: npt.NDArray[Any], batch_size: int, seed: int) -> None:
        self.lengths, self.batch_size, self.seed = lengths, batch_size, seed
        self.buckets = make_buckets(lengths, batch_size)

    def epoch(self, number: int) -> list[Batch]:
        """What is left over from a width moves on to the next; the last batch is filled with documents drawn anew."""
        rng, size = np.random.default_rng([self.seed, number]), self.batch_size
        batches: list[Batch] = []
        left: Rows = np.empty(0, np.int64)
        for bucket in self.buckets:
            full = bucket.shape.kind == "full"
            rows = rng.permutation(bucket.rows)
            if not full:
                rows = np.concatenate((left, rows))
            whole = len(rows) // size * size
            batches += [Batch(bucket.shape, part) for part in rows[:whole].reshape(-1, size)]
            left = np.concatenate((left, rows[whole:])) if full else rows[whole:]
        if len(left):
            longest = int(self.lengths[left].max())
            width = min(bucket.shape.width for bucket in self.buckets if bucket.shape.width >= longest)
            fitting = np.flatnonzero(self.lengths <= width)
            left = np.concatenate((left, rng.choice(fitting, -len(left) % size)))
            batches += [Batch(Shape("padded", width), part) for part in left.reshape(-1, size)]
        return [batches[i] for i in rng.permutation(len(batches))]


def make_buckets(lengths: npt.NDArray[Any], batch_size: int) -> list[Batch]:
    """Documents by the width they are padded to, ascending; those of the greatest length by themselves, at the end.

    A width with fewer documents than a batch holds joins the next one.

    >>> [(bucket.shape.width, bucket.shape.kind) for bucket in make_buckets(np.array([5, 6, 30, 32, 32]), 2)]
    [(8, 'padded'), (32, 'padded'), (32, 'full')]
    """
    most = int(lengths.max(initial=1))
    longest, rest = np.flatnonzero(lengths == most), np.flatnonzero(lengths < most)
    if len(longest) < batch_size:  # too few to be worth a shape of their own
        rest, longest = np.arange(len(lengths)), longest[:0]
    widths = np.array([round_up(length, most) for length in range(most + 1)])[lengths[rest]]
    buckets, waiting = [], rest[:0]
    for width in np.unique(widths).tolist():
        waiting = np.concatenate((waiting, rest[widths == width]))
        if len(waiting) >= batch_size or width == widths.max():
            buckets.append(Batch(Shape("padded", width), waiting))
            waiting = rest[:0]
    if len(longest):
        buckets.append(Batch(Shape("full", most), longest))
    return buckets


def round_up(length: int, most: int) -> int:
    """The width that texts of this length are padded to: few widths, never much wider, multiples of eight."""
    length = max(length, 1)
    step = 8 if length <= 64 else 16 if length <= 128 else 32 if length <= 256 else 64
    return min(-(-length // step) * step, most)


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
        yield Batch(Shape("full" if (lengths[rows] == width).all() else "padded", width), rows)
        begin = end


class Schedule:
    """The batch of every step, over any number of epochs; epochs need not have equally many steps."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self._first = plan, [0]
        self._batches: list[Batch] = plan.epoch(0)
        self._epoch = 0
        self.steps_per_epoch = len(self._batches)

    def batch(self, step: int) -> Batch:
        """The batch of a step, counted from 0."""
        if step < self._first[self._epoch]:  # going back
            self._epoch, self._batches = 0, self.plan.epoch(0)
        while step >= self._first[self._epoch] + len(self._batches):
            end = self._first[self._epoch] + len(self._batches)
            self._epoch += 1
            if self._epoch == len(self._first):
                self._first.append(end)
            self._batches = self.plan.epoch(self._epoch)
        return self._batches[step - self._first[self._epoch]]
