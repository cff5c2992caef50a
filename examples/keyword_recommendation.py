"""A keyword recommender: which search queries suit a new product, and why (section 2.3 of the X-Transformer paper).

    python examples/keyword_recommendation.py ["Title of a product" ...] [--products 4000] [--queries 1000]

Learns from the generated shop which queries led to which products, then suggests queries for products that it has never
seen. Every suggestion comes with its reasons: the words of the title that speak for it, with their share of the score;
the cluster of queries it was found in; and the most similar products that people found by it. No product, brand or
query is real. About a minute on two cores the first time, when numba compiles its kernels; seconds after that.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from labelwise import Dataset, LinearTree, LinearTreeConfig, Neighbours, explain, generate_shop, split_validation

WORDS, ALIKE, NEIGHBOURS = 4, 2, 3
"""Reasons of each kind that are shown."""


@dataclass(frozen=True)
class Suggestion:
    """A query with reasons."""

    query: str
    probability: float
    words: list[tuple[str, float]]
    """Words of the title and what each adds to the query's own score, the strongest first."""
    bias: float
    """What the query's score begins with, before any word is read."""
    cluster: list[str]
    """Other frequent queries of the same cluster."""
    similar: list[tuple[str, float]]
    """Products that were found by this query, with their likeness to the title between 0 and 1."""


class KeywordRecommender:
    """Suggests queries for products.

    >>> recommender = KeywordRecommender.learn(train)
    >>> recommender.suggest("Red Running Shoe, Size 42", top_k=3)[0].query
    """

    def __init__(self, model: LinearTree, train: Dataset) -> None:
        self.model = model
        self.products = Neighbours.of(model, train)
        self.column = {label: number for number, label in enumerate(model.labels_)}
        self.clusters, self.often = (
            model.trees_[0].tree.clusters,
            np.bincount(train.Y.indices, minlength=len(self.column)),
        )

    @classmethod
    def learn(cls, train: Dataset, config: LinearTreeConfig | None = None) -> KeywordRecommender:
        """Train on products with their queries; a tenth of them shows what scores mean."""
        rest, aside = split_validation(train, 0.1, seed=0)
        model = LinearTree(config).fit(rest.texts or [], rest.Y, label_names=rest.labels, validation=aside)
        return cls(model, rest)

    def suggest(self, title: str, top_k: int = 5) -> list[Suggestion]:
        """The best queries for a product's title."""
        return [
            Suggestion(
                query=reason.label,
                probability=reason.score if reason.probability is None else reason.probability,
                words=[(word.term, word.contribution) for word in reason.words],
                bias=reason.bias,
                cluster=self._cluster(self.column[reason.label]),
                similar=[(product.text, product.similarity) for product in reason.neighbours[:ALIKE]],
            )
            for reason in explain(self.model, title, top_k=top_k, words=len(title) + 1, neighbours=self.products)
        ]

    def _cluster(self, label: int) -> list[str]:
        """Other queries of the same cluster, the frequent ones first."""
        others = np.flatnonzero(self.clusters == self.clusters[label])
        ordered = others[np.argsort(-self.often[others], kind="stable")]
        return [self.model.labels_[other] for other in ordered if other != label][:NEIGHBOURS]


def show(title: str, suggestions: list[Suggestion]) -> None:
    """Print suggestions with their reasons."""
    print(f"\n{title}")
    for suggestion in suggestions:
        words = ", ".join(f"{word} {value:+.2f}" for word, value in suggestion.words[:WORDS] if value > 0)
        print(f"  {suggestion.probability:4.0%}  {suggestion.query}")
        print(f"        words: {words or 'none of its own; its cluster fits'}")
        print(f"        found among: {', '.join(suggestion.cluster)}, …")
        for product, likeness in suggestion.similar:
            print(f"        led to: {product} ({likeness:.0%} alike)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("titles", nargs="*", help="products to find queries for; two of the test split if none")
    parser.add_argument("--products", type=int, default=4000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--top-k", type=int, default=5)
    options = parser.parse_args()
    print(
        f"generating {options.products:,} products with {options.queries:,} queries, all made up; learning …",
        flush=True,
    )
    train, test = generate_shop(options.products, options.queries).values()
    recommender = KeywordRecommender.learn(train)
    for title in options.titles or (test.texts or [])[:2]:
        show(title, recommender.suggest(title, options.top_k))


if __name__ == "__main__":
    main()
