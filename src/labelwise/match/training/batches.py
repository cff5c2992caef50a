"""The documents of every step.

If the encoder can be packed, a batch is a fixed number of tokens, with its texts one after the other: one shape for all
of training. Otherwise a batch has texts of similar lengths, so there is little padding and the shapes are few.
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
    """The layout of a batch."""

    kind: Literal["padded", "full", "packed"]
    """Texts padded to one width; texts that all have this width, which need no mask; or texts one after the other."""
    width: int
    """Tokens of each text, or of all texts together if packed."""
    most_rows: int = 0
    """If packed: the largest number of texts."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Documents of one step."""

    shape: Shape
    rows: Rows


class Plan(Protocol):
    """The batches of every epoch."""

    batch_size: int
    """Mean number of documents of a batch."""

    def epoch(self, number: int) -> list[Batch]:
        """The batches of one epoch: every document once, in a random order that depends only on seed and epoch."""


class Packed:
    """Batches with about equal numbers of tokens and any number of texts."""

    def __init__(self, lengths: npt.NDArray[Any], batch_size: int, seed: int) -> None:
        self.lengths, self.batch_size, self.seed = lengths, batch_size, seed
        tokens = max(batch_size * float(lengths.mean()), float(lengths.max(initial=1)))
        self.shape = Shape("packed", int(-(-tokens // 64) * 64), 2 * batch_size)

    def epoch(self, number: int) -> list[Batch]:
        """All documents in random order, split where the next document does not fit."""
        order = np.random.default_rng([self.seed, number]).permutation(len(self.lengths))
        return [Batch(self.shape, rows) for rows in cut(order, self.lengths, self.shape.width, self.shape.most_rows)]


def cut(order: Rows, lengths: npt.NDArray[Any], most_tokens: int, most_rows: int) -> list[Rows]:
    """Documents in this order, split into runs of at most `most_tokens` and `most_rows`; a run is never empty."""
    ends = np.concatenate(([0], np.cumsum(lengths[order])))
    runs, begin = [], 0
    while begin < len(order):
        end = int(np.searchsorted(ends, ends[begin] + most_tokens, side="right")) - 1
        end = min(max(end, begin + 1), begin + most_rows)
        runs.append(order[begin:end])
        begin = end
    return runs


class Padded:
    """Batches with equal numbers of texts of similar lengths."""

    def __init__(self, lengths: npt.NDArray[Any], batch_size: int, seed: int) -> None:
        self.lengths, self.batch_size, self.seed = lengths, batch_size, seed
        self.buckets = make_buckets(lengths, batch_size)

    def epoch(self, number: int) -> list[Batch]:
        """Documents that do not fill a batch of their width go to the next; random documents fill the last batch."""
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
    """Documents by the width that they are padded to, ascending; the longest, which need no padding, at the end.

    A width with fewer documents than one batch is merged into the next width.

    >>> [(bucket.shape.width, bucket.shape.kind) for bucket in make_buckets(np.array([5, 6, 30, 32, 32]), 2)]
    [(8, 'padded'), (32, 'padded'), (32, 'full')]
    """
    most = int(lengths.max(initial=1))
    longest, rest = np.flatnonzero(lengths == most), np.flatnonzero(lengths < most)
    if len(longest) < batch_size:  # too few for a shape of their own
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
    """The width that texts of this length are padded to. Widths are few, multiples of eight and close to the length."""
    length = max(length, 1)
    step = 8 if length <= 64 else 16 if length <= 128 else 32 if length <= 256 else 64
    return min(-(-length // step) * step, most)


def in_order(lengths: npt.NDArray[Any], most_tokens: int) -> Iterator[Batch]:
    """All documents by descending length, in batches of about `most_tokens`: for inference.

    The longest come first: if memory is enough for them, it is enough for all.
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
    """The batch of every step, over any number of epochs; epochs may differ in their number of steps."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self._first = plan, [0]
        self._batches: list[Batch] = plan.epoch(0)
        self._epoch = 0
        self.steps_per_epoch = len(self._batches)

    def batch(self, step: int) -> Batch:
        """The batch of a step, counted from 0."""
        if step < self._first[self._epoch]:  # after a restart
            self._epoch, self._batches = 0, self.plan.epoch(0)
        while step >= self._first[self._epoch] + len(self._batches):
            end = self._first[self._epoch] + len(self._batches)
            self._epoch += 1
            if self._epoch == len(self._first):
                self._first.append(end)
            self._batches = self.plan.epoch(self._epoch)
        return self._batches[step - self._first[self._epoch]]
