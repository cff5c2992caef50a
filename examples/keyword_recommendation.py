"""A keyword recommender: which search queries suit a new product, and why (section 2.3 of the X-Transformer paper).

    python examples/keyword_recommendation.py ["Title of a product" ...] [--products 4000] [--queries 1000]

A linear model is trained on the generated shop: products and the queries that led to them. The model then suggests
queries for new products. Every suggestion has an explanation: the words of the title with their contributions to the
score; other queries of its cluster; and the most similar products that people found with this query. No product, brand
or query is real. The script takes about a minute on two cores the first time, when numba compiles its kernels, and
seconds after that.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from labelwise import Dataset, LinearTree, LinearTreeConfig, explain, generate_shop
from labelwise.explanations import Neighbours

N_WORDS, N_PRODUCTS, N_QUERIES = 4, 2, 3
"""Numbers of words, similar products and related queries that are shown."""


@dataclass(frozen=True)
class Suggestion:
    """A query with its explanation."""

    query: str
    probability: float
    words: list[tuple[str, float]]
    """Words of the title and the contribution of each to the query's own score, the largest first."""
    bias: float
    """The constant term of the query's score."""
    cluster: list[str]
    """Other frequent queries of the same cluster."""
    similar: list[tuple[str, float]]
    """Products that were found with this query, with their similarity to the title between 0 and 1."""


class KeywordRecommender:
    """Suggests queries for products.

    >>> recommender = KeywordRecommender.learn(train)
    >>> recommender.suggest("Red Running Shoe, Size 42", top_k=3)[0].query
    """

    def __init__(self, model: LinearTree, train: Dataset) -> None:
        self.model = model
        self.products = Neighbours.of(model, train)
        self.column = {label: number for number, label in enumerate(model.labels_)}
        self.clusters = model.trees_[0].tree.clusters  # (n_labels,)
        self.counts = np.bincount(train.Y.indices, minlength=len(self.column))  # (n_labels,) training products

    @classmethod
    def learn(cls, train: Dataset, config: LinearTreeConfig | None = None) -> KeywordRecommender:
        """Train on products with their queries."""
        model = LinearTree(config).fit(train.texts or [], train.Y, label_names=train.labels)
        return cls(model, train)

    def suggest(self, title: str, top_k: int = 5) -> list[Suggestion]:
        """The best queries for a product's title."""
        return [
            Suggestion(
                query=reason.label,
                probability=reason.score if reason.probability is None else reason.probability,
                words=[(word.term, word.contribution) for word in reason.words],
                bias=reason.bias,
                cluster=self._cluster(self.column[reason.label]),
                similar=[(product.text, product.similarity) for product in reason.neighbours[:N_PRODUCTS]],
            )
            for reason in explain(self.model, title, top_k=top_k, words=len(title) + 1, neighbours=self.products)
        ]

    def _cluster(self, label: int) -> list[str]:
        """Other queries of a query's cluster, the frequent ones first."""
        others = np.flatnonzero(self.clusters == self.clusters[label])
        ordered = others[np.argsort(-self.counts[others], kind="stable")]
        return [self.model.labels_[other] for other in ordered if other != label][:N_QUERIES]


def show(title: str, suggestions: list[Suggestion]) -> None:
    """Print suggestions with their explanations."""
    print(f"\n{title}")
    for suggestion in suggestions:
        words = ", ".join(f"{word} {value:+.2f}" for word, value in suggestion.words[:N_WORDS] if value > 0)
        print(f"  {suggestion.probability:4.0%}  {suggestion.query}")
        print(f"        words: {words or 'none; the query was found by its cluster'}")
        print(f"        same cluster: {', '.join(suggestion.cluster)}, …")
        for product, similarity in suggestion.similar:
            print(f"        led to: {product} (similarity {similarity:.0%})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("titles", nargs="*", help="products to find queries for; two of the test split if none")
    parser.add_argument("--products", type=int, default=4000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--top-k", type=int, default=5)
    options = parser.parse_args()
    print(f"generating {options.products:,} products with {options.queries:,} queries; training …", flush=True)
    train, test = generate_shop(options.products, options.queries).values()
    recommender = KeywordRecommender.learn(train)
    for title in options.titles or (test.texts or [])[:2]:
        show(title, recommender.suggest(title, options.top_k))


if __name__ == "__main__":
    main()
