"""The generated shop in memory, and the stream of blocks that it and the files are made of."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.data.dataset import Dataset
from labelwise.datasets.shop.clicks import Clicks
from labelwise.datasets.shop.grammar import build_grammar
from labelwise.datasets.shop.products import BLOCK, Listings, draw_products
from labelwise.datasets.shop.queries import choose_queries
from labelwise.errors import UsageError
from labelwise.events import Task
from labelwise.types import Ints, OnEvent

FEWEST_PRODUCTS = 100
FEWEST_QUERIES = 100
MOST_QUERIES = 5_000_000
"""The grammar makes ten times as many, but rarer ones are less and less like what people type."""
_PILOT_BLOCK, _PILOT_PRODUCTS = (1 << 64) - 1, 2048


@dataclass(frozen=True, kw_only=True)
class ListingBlock:
    """Some consecutive products."""

    first: int
    """Number of the first product."""
    texts: list[str]
    indptr: Ints
    indices: Ints
    """CSR rows of the products' labels."""
    wrong_clicks: int
    is_test: npt.NDArray[np.bool_]


class Shop:
    """All that is needed to draw the products of one shop; checks its parameters."""

    def __init__(self, n_products: int, n_queries: int, *, seed: int, test_fraction: float) -> None:
        _check(n_products, n_queries, seed, test_fraction)
        self.n_products, self.seed = n_products, seed
        self.n_test = min(max(round(n_products * test_fraction), 1), n_products - 1)
        self._grammar = grammar = build_grammar()
        self._queries = choose_queries(grammar, n_queries, seed)
        self._listings = Listings(grammar)
        self._clicks = Clicks(grammar, self._queries)
        pilot = draw_products(grammar, self._queries, seed, _PILOT_BLOCK)[:_PILOT_PRODUCTS]
        self._clicks.tune(pilot, seed, _PILOT_BLOCK)

    @property
    def queries(self) -> list[str]:
        """The label names, distinct and in alphabetical order."""
        return self._queries.names

    def blocks(self) -> Iterator[ListingBlock]:
        """The products in order. A block is always drawn whole, so that a larger shop starts with the same products."""
        for block, first in enumerate(range(0, self.n_products, BLOCK)):
            cells = draw_products(self._grammar, self._queries, self.seed, block)
            texts = self._listings.write(cells, self.seed, block)
            indptr, indices, astray = self._clicks.draw(cells, self.seed, block)
            size = min(BLOCK, self.n_products - first)
            numbers = np.arange(first, first + size)
            # n_test of the n_products, evenly spread; products are drawn independently of each other.
            is_test = (numbers + 1) * self.n_test // self.n_products > numbers * self.n_test // self.n_products
            yield ListingBlock(
                first=first,
                texts=texts[:size],
                indptr=indptr[: size + 1],
                indices=indices[: indptr[size]],
                wrong_clicks=int((astray < size).sum()),
                is_test=is_test,
            )


def product_id(number: int) -> str:
    """The id of a product: "P0000123"."""
    return f"P{number:07d}"


def generate_shop(
    n_products: int = 20_000,
    n_queries: int = 5_000,
    *,
    seed: int = 0,
    test_fraction: float = 0.1,
    on_event: OnEvent | None = None,
) -> dict[str, Dataset]:
    """Generated products with the search queries that led to them as labels, split into "train" and "test".

    Everything is made up by labelwise: no real product, brand, person or click is in it. The same arguments give the
    same data, byte for byte.

    Parameters
    ----------
    n_products
        Documents of both splits together.
    n_queries
        Labels. Rare ones may have no training document, as in real data.
    seed
        Decides what the shop sells, which queries are popular, and every product.
    test_fraction
        Share of the products in "test".
    on_event
        Is told the progress.

    Returns
    -------
    dict of Dataset
        "train" and "test" over the same labels; `label_texts` are the queries, as are the label names.

    Examples
    --------
    >>> from labelwise import generate_shop
    >>> train, test = generate_shop(500, 100).values()
    >>> train.Y.shape, test.Y.shape
    ((450, 100), (50, 100))
    >>> train.labels[:3]
    ['alpine hut tour', 'aroma candle', 'artificial plant']
    """
    shop = Shop(n_products, n_queries, seed=seed, test_fraction=test_fraction)
    texts: dict[bool, list[str]] = {False: [], True: []}
    ids: dict[bool, list[str]] = {False: [], True: []}
    rows: dict[bool, list[sp.csr_array]] = {False: [], True: []}
    with Task(on_event, "generating the shop", total=n_products, unit="products") as task:
        for block in shop.blocks():
            Y = sp.csr_array(
                (np.ones(block.indices.size, dtype=np.float32), block.indices, block.indptr.astype(np.int32)),
                shape=(len(block.texts), n_queries),
            )
            for split in (False, True):
                chosen = np.flatnonzero(block.is_test == split)
                texts[split] += [block.texts[i] for i in chosen]
                ids[split] += [product_id(block.first + int(i)) for i in chosen]
                rows[split].append(Y[chosen])
            task.advance(len(block.texts))
    return {
        name: Dataset(
            Y=sp.vstack(rows[split], format="csr"),
            labels=list(shop.queries),
            texts=texts[split],
            ids=ids[split],
            label_texts=list(shop.queries),
        )
        for name, split in (("train", False), ("test", True))
    }


def _check(n_products: int, n_queries: int, seed: int, test_fraction: float) -> None:
    if n_products < FEWEST_PRODUCTS:
        raise UsageError(f"{n_products} products are too few; ask for at least {FEWEST_PRODUCTS}")
    if n_queries < FEWEST_QUERIES:
        raise UsageError(f"{n_queries} queries are too few; ask for at least {FEWEST_QUERIES}")
    if n_queries > MOST_QUERIES:
        raise UsageError(f"{n_queries:,} queries are too many; the shop's grammar makes at most {MOST_QUERIES:,}")
    if n_queries > n_products:
        raise UsageError(
            f"{n_queries} queries for {n_products} products would leave most queries without a product; "
            "ask for at most as many queries as products"
        )
    if not 0 <= seed < 1 << 64:
        raise UsageError(f"seed is {seed}; pass an integer from 0 to 2**64 - 1")
    if not 0 < test_fraction < 1:
        raise UsageError(f"test_fraction is {test_fraction}; pass a share between 0 and 1, such as 0.1")
