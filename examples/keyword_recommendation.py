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

from labelwise import Dataset, LinearTree, LinearTreeConfig, generate_shop, split_validation

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
        self.model, self.labels = model, model.labels_
        self.products = train.texts or []
        assert model.tfidf_ is not None
        self.tfidf = model.tfidf_
        self.X = self.tfidf.transform(self.products)
        self.Y = train.Y.tocsc()
        self.names = self.tfidf.feature_names()
        tree = model.trees_[0]
        self.clusters, self.weights = tree.tree.clusters, tree.levels[-1]
        self.column = {label: number for number, label in enumerate(self.labels)}
        # Where a query lies among the children of its cluster.
        self.place = {int(label): at for at, label in enumerate(self.weights.child_ids)}

    @classmethod
    def learn(cls, train: Dataset, config: LinearTreeConfig | None = None) -> KeywordRecommender:
        """Train on products with their queries; a tenth of them shows what scores mean."""
        rest, aside = split_validation(train, 0.1, seed=0)
        model = LinearTree(config).fit(rest.texts or [], rest.Y, label_names=rest.labels, validation=aside)
        return cls(model, rest)

    def suggest(self, title: str, top_k: int = 5) -> list[Suggestion]:
        """The best queries for a product's title."""
        x = self.tfidf.transform([title])
        likeness = np.asarray((self.X @ x.T).toarray()).ravel()  # rows have length one: cosines
        return [
            self._explained(query, probability, x, likeness)
            for query, probability in self.model.predict([title], top_k)[0]
        ]

    def _explained(self, query: str, probability: float, x: object, likeness: np.ndarray) -> Suggestion:
        label = self.column[query]
        words, bias = self.contributions(label, x)
        found_by = self.Y.indices[self.Y.indptr[label] : self.Y.indptr[label + 1]]
        best = found_by[np.argsort(-likeness[found_by], kind="stable")[:ALIKE]]
        return Suggestion(
            query=query,
            probability=probability,
            words=words,
            bias=bias,
            cluster=self._cluster(label),
            similar=[(self.products[row], float(likeness[row])) for row in best],
        )

    def contributions(self, label: int, x: object) -> tuple[list[tuple[str, float]], float]:
        """What each word of a text adds to a query's own score, and what that begins with; the sum is the score."""
        level, child = self.weights, self.place[label]
        block = int(np.searchsorted(level.child_indptr, child, side="right")) - 1
        own = child - level.child_indptr[block]
        rows = slice(level.row_indptr[block], level.row_indptr[block + 1])
        entries = slice(level.entry_indptr[block], level.entry_indptr[block + 1])
        features = np.repeat(level.row_feature[rows], np.diff(level.row_end[rows], prepend=np.uint32(0)))
        mine = level.entry_child[entries] == own
        weight = dict(zip(features[mine].tolist(), level.entry_value[entries][mine].tolist(), strict=True))
        added = [
            (self.names[j], v * weight[j])
            for j, v in zip(x.indices.tolist(), x.data.tolist(), strict=True)
            if j in weight
        ]
        bias = float(level.dense[child, -1]) * self.model.config.ranker.bias
        return sorted(added, key=lambda pair: -pair[1]), bias

    def _cluster(self, label: int) -> list[str]:
        others = np.flatnonzero(self.clusters == self.clusters[label])
        often = np.diff(self.Y.indptr)[others]
        ordered = others[np.argsort(-often, kind="stable")]
        return [self.labels[other] for other in ordered if other != label][:NEIGHBOURS]


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
