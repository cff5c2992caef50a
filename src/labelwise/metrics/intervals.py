"""Uncertainty of figures: the bootstrap over documents, and the paired test of two systems.

A metric is a ratio of two sums over documents, so a resample does not need the predictions: the number of times that
each document is drawn is multiplied with the contributions of the documents, for all metrics at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from labelwise.kernels.metrics import add_weighted
from labelwise.metrics.tally import Ratio, percent
from labelwise.types import Floats

Key: TypeAlias = tuple[str, str]
"""A bucket ("" for all labels) and the name of a metric: ("tail", "P@5")."""

DOCS_AT_ONCE = 1 << 15
"""Documents drawn at once: their counters fit the cache, so that random access is cheap with millions of documents."""
RESAMPLES_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Contributions:
    """The contribution of each document to each metric. Denominators that metrics share are stored once."""

    columns: Floats
    """(n_columns, n_docs) float32."""
    place: Mapping[Key, tuple[int, int]]
    """Columns of the numerator and of the denominator of each metric."""

    def rows(self, keys: list[Key]) -> list[int]:
        """Columns of the numerators of the metrics, then those of their denominators."""
        return [self.place[key][part] for part in (0, 1) for key in keys]


def collect(ratios: Mapping[Key, Ratio]) -> tuple[Contributions, dict[Key, float]]:
    """The contributions, and the value of each metric in percent, computed from the unrounded sums."""
    arrays: list[Floats] = []
    number: dict[int, int] = {}  # address of an array -> its column; `ratios` keeps the arrays alive
    place = {}
    for key, parts in ratios.items():
        at = [part.__array_interface__["data"][0] for part in parts]
        for address, part in zip(at, parts, strict=True):
            if address not in number:
                number[address] = len(arrays)
                arrays.append(part)
        place[key] = (number[at[0]], number[at[1]])
    columns = np.empty((len(arrays), arrays[0].size), dtype=np.float32)
    for row, array in zip(columns, arrays, strict=True):
        row[:] = array
    sums = [float(array.sum()) for array in arrays]
    return Contributions(columns, place), {key: percent(sums[n], sums[d]) for key, (n, d) in place.items()}


def bootstrap_intervals(contributions: Contributions, resamples: int, seed: int) -> dict[Key, tuple[float, float]]:
    """95 % percentile interval of each metric, over `resamples` draws of n_docs documents with replacement."""
    keys = list(contributions.place)
    sums = _resampled_sums(contributions.columns, resamples, np.random.default_rng(seed))
    values = _ratio(sums[:, contributions.rows(keys)])
    return {key: interval(column) for key, column in zip(keys, values.T, strict=True)}


def interval(values: Floats) -> tuple[float, float]:
    """The 2.5 % and 97.5 % percentiles of the values that are not nan."""
    values = values[~np.isnan(values)]
    if values.size == 0:
        return float("nan"), float("nan")
    low, high = np.percentile(values, (2.5, 97.5))
    return float(low), float(high)


@dataclass(frozen=True)
class Difference:
    """The difference of two systems in one metric, with its interval and p-value."""

    first: float
    second: float
    difference: float
    """First minus second, in percent points."""
    low: float
    high: float
    """The 95 % interval of the difference, from the paired bootstrap."""
    p_value: float
    """Probability of a difference at least as large if the systems were exchangeable; two-sided sign-flip test."""


def paired_test(
    first: Contributions, second: Contributions, keys: list[Key], resamples: int, seed: int
) -> dict[Key, Difference]:
    """Compare two systems on the same documents: paired bootstrap for the interval, sign flips for the p-value.

    A sign flip exchanges the two systems' predictions for a random half of the documents. p counts the
    observed exchange too, (1 + as extreme) / (1 + resamples), so it is never 0, and 1 for equal systems.
    """
    rng = np.random.default_rng(seed)
    columns = [system.columns[system.rows(keys)].astype(np.float64) for system in (first, second)]
    totals = [part.sum(axis=1) for part in columns]
    observed = [_ratio(total) for total in totals]
    both = np.concatenate(columns).astype(np.float32)
    halves = np.split(_resampled_sums(both, resamples, rng), 2, axis=1)
    resampled = _ratio(halves[0]) - _ratio(halves[1])

    moved = _flipped_sums(columns[0] - columns[1], resamples, rng)
    flipped = _ratio(totals[0] - moved) - _ratio(totals[1] + moved)
    difference = observed[0] - observed[1]
    # Sums of the same terms in another order differ in the last digits, which must not count as a smaller difference.
    # A metric that cannot be measured (nan) does not differ.
    extreme = (~(np.abs(flipped) < np.abs(difference) - 1e-9)).sum(axis=0)
    result = {}
    for i, key in enumerate(keys):
        low, high = interval(resampled[:, i])
        p_value = (1 + int(extreme[i])) / (1 + resamples)
        result[key] = Difference(float(observed[0][i]), float(observed[1][i]), float(difference[i]), low, high, p_value)
    return result


def _ratio(sums: Floats) -> Floats:
    """(…, n_metrics) percents from (…, 2 * n_metrics) numerators and denominators."""
    top, bottom = np.split(sums, 2, axis=-1)
    return 100 * np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom != 0)


def _resampled_sums(columns: Floats, resamples: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """(resamples, n_columns) sums of the columns over n_docs documents drawn with replacement."""
    n_docs = columns.shape[1]
    chunks = _chunks(n_docs)
    sums = np.zeros((resamples, columns.shape[0]))
    # The number of draws in each chunk, then documents within the chunk: equivalent to drawing from all documents.
    shares = rng.multinomial(n_docs, [len(chunk) / n_docs for chunk in chunks], size=resamples)
    for chunk, drawn_here in zip(chunks, shares.T, strict=True):
        rows = np.ascontiguousarray(columns[:, chunk.start : chunk.stop].T)  # (n_chunk, n_columns)
        for block in _blocks(resamples):
            times = np.empty((len(block), len(chunk)), dtype=columns.dtype)
            for row, n_drawn in zip(times, drawn_here[block.start : block.stop], strict=True):
                row[:] = np.bincount(rng.integers(len(chunk), size=n_drawn), minlength=len(chunk))
            add_weighted(times, rows, sums[block.start : block.stop])
    return sums


def _flipped_sums(columns: Floats, resamples: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """(resamples, n_columns) sums of the columns over a random half of the documents: one coin per document."""
    sums = np.zeros((resamples, columns.shape[0]))
    for chunk in _chunks(columns.shape[1]):
        rows = np.ascontiguousarray(columns[:, chunk.start : chunk.stop].T)  # (n_chunk, n_columns)
        for block in _blocks(resamples):
            coins = rng.integers(256, size=(len(block), -(-len(chunk) // 8)), dtype=np.uint8)
            flips = np.unpackbits(coins, axis=1, count=len(chunk))
            add_weighted(flips.astype(columns.dtype), rows, sums[block.start : block.stop])
    return sums


def _chunks(n_docs: int) -> list[range]:
    return [range(n_docs)[start : start + DOCS_AT_ONCE] for start in range(0, n_docs, DOCS_AT_ONCE)]


def _blocks(resamples: int) -> list[range]:
    return [range(resamples)[start : start + RESAMPLES_AT_ONCE] for start in range(0, resamples, RESAMPLES_AT_ONCE)]
