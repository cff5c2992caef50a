"""Which queries of the generated shop led to which products: typed patterns, interest, and wrong clicks."""

import numpy as np

from labelwise.datasets.shop.grammar import Column, Grammar
from labelwise.datasets.shop.queries import PATTERNS, SLOTS, TEMPLATES, Queries, pack
from labelwise.datasets.shop.ragged import NOTHING
from labelwise.datasets.shop.streams import CLICKS, stream
from labelwise.types import Floats, Ints

LABELS_PER_PRODUCT = 4.5
"""What the number of searches is tuned to; the mean over the products comes close to it."""
WRONG_CLICKS = 0.04
"""Share of the (product, query) pairs whose query belongs to another product."""
RELATED = 0.75
"""Share of the wrong clicks that stay in the product's department."""

_MOST_SEARCHES = 400.0


class Clicks:
    """Draws the queries of products."""

    def __init__(self, grammar: Grammar, queries: Queries) -> None:
        self.grammar, self.queries = grammar, queries
        weights = np.array([weight for weight, _, _ in PATTERNS])
        self._ends = np.cumsum(weights / weights.sum())[:-1]
        self._templates = np.array([TEMPLATES.index(template) for _, template, _ in PATTERNS])
        self._columns = np.full((len(PATTERNS), SLOTS), NOTHING)
        for i, (_, _, columns) in enumerate(PATTERNS):
            self._columns[i, : len(columns)] = columns
        self.searches = 1.0

    def tune(self, cells: Ints, seed: int, block: int) -> None:
        """Find the mean number of searches per product that gives LABELS_PER_PRODUCT, on a block not sold."""
        low, high = 1.0, _MOST_SEARCHES
        for _ in range(9):
            self.searches = (low * high) ** 0.5
            indptr, _, _ = self.draw(cells, seed, block)
            if indptr[-1] < LABELS_PER_PRODUCT * len(cells):
                low = self.searches
            else:
                high = self.searches

    def draw(self, cells: Ints, seed: int, block: int) -> tuple[Ints, Ints, Ints]:
        """CSR rows of the products' labels, sorted, at least one each; and the row of every wrong click."""
        rng = stream(seed, block, CLICKS)
        n_docs, n_labels = len(cells), len(self.queries.names)
        popularity = rng.gamma(8.0, 0.125, size=n_docs)
        searched = np.repeat(np.arange(n_docs), rng.poisson(self.searches * popularity))
        rows, labels = self._search(cells, searched, rng)
        lonely = np.setdiff1d(np.arange(n_docs), rows)
        rows = np.concatenate([rows, lonely])
        labels = np.concatenate([labels, self.queries.plain[cells[lonely, Column.TYPE]]])
        pairs = np.unique(rows * n_labels + labels)
        rows, labels = np.divmod(pairs, n_labels)
        wrong, strays = self._stray(cells, rows, labels, rng)
        labels[wrong], astray = strays, rows[wrong]
        pairs = np.unique(rows * n_labels + labels)
        rows, labels = np.divmod(pairs, n_labels)
        indptr = np.searchsorted(rows, np.arange(n_docs + 1))
        return indptr, labels.astype(np.int32), astray

    def _search(self, cells: Ints, rows: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Type one query for each of `rows`; those that are a label and of interest are clicks."""
        pattern = np.searchsorted(self._ends, rng.random(rows.size), side="right")
        forms: list[Ints] = []
        possible = np.ones(rows.size, dtype=bool)
        for slot in range(SLOTS):
            column = self._columns[pattern, slot]
            value = np.where(column < 0, NOTHING, cells[rows, column])
            possible &= (column < 0) | (value >= 0)
            forms.append(self.grammar.forms_of.draw(value, rng.random(rows.size)))
        keys = pack(self._templates[pattern], forms)
        found = np.minimum(np.searchsorted(self.queries.keys, keys), self.queries.keys.size - 1)
        interested: Floats = rng.random(rows.size)
        hit = possible & (self.queries.keys[found] == keys) & (interested < self.queries.interest[found])
        return rows[hit], self.queries.labels[found[hit]].astype(np.int64)

    def _stray(self, cells: Ints, rows: Ints, labels: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Pairs that become wrong clicks, and their new labels: taken from other pairs of the block."""
        department = self.grammar.departments[cells[rows, Column.TYPE]]
        by_department = np.argsort(department, kind="stable")
        first = np.searchsorted(department[by_department], department)
        size = np.searchsorted(department[by_department], department, side="right") - first
        wrong = np.flatnonzero(rng.random(rows.size) < WRONG_CLICKS)
        related = rng.random(wrong.size) < RELATED
        u = rng.random(wrong.size)
        neighbour = by_department[first[wrong] + (u * size[wrong]).astype(np.int64)]
        anybody = (u * rows.size).astype(np.int64)
        return wrong, labels[np.where(related, neighbour, anybody)]
