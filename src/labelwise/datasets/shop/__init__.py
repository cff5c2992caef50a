"""The shop: a *generated* data set of products and the search queries that led to them, of any size.

It stands in for the Prod2Query data of the X-Transformer paper, which is not public. Nothing in it is real: words,
brands, products and clicks are made by labelwise from a hand-written grammar and a seed.

``catalog/*.txt`` and `words` hold the vocabulary, `grammar` numbers it, `queries` chooses the labels, `products` draws
products and writes their listings, `clicks` draws their labels, `generate` and `write` put it together.
"""

from labelwise.datasets.shop.generate import generate_shop
from labelwise.datasets.shop.write import ShopSummary, write_shop

__all__ = ["ShopSummary", "generate_shop", "write_shop"]
