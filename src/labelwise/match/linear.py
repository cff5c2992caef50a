"""Linear models of the clusters: where the matcher begins, and the linear term beside the neural one in g.

A linear model on tf-idf and embeddings together is split: the tf-idf part becomes the linear term, the part on the
embeddings the head's start, so that g begins as the linear matcher and training can only add to it. On its own training
documents the linear term would be right nearly always and leave the encoder nothing to learn; their scores therefore
come from models that did not see them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.config import RankerConfig
from labelwise.engines import current_engine
from labelwise.engines.threads import available_cores
from labelwise.events import Task
from labelwise.rank.features import Features
from labelwise.rank.search import BeamSearch
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.rank.tree import LevelData, train_level
from labelwise.types import Csr, Floats, OnEvent

# Scores that are made at once, in all clusters together.
SCORES_PER_BLOCK = 1 << 24


@dataclass(frozen=True, eq=False)
class LinearMatcher:
    """A linear model for every cluster, on sparse features with dense ones beside them."""

    level: LevelWeights
    n_features: int
    n_dense: int
    bias: float

    @classmethod
    def fit(
        cls,
        X: Csr,
        E: Floats | None,
        M: Csr,
        config: RankerConfig,
        *,
        seed: int = 0,
        threads: int | None = None,
        name: str = "training the clusters",
        on_event: OnEvent | None = None,
    ) -> LinearMatcher:
        """Solve all clusters against all documents."""
        root = sp.csr_array(np.ones((X.shape[0], 1), np.float32))
        data = LevelData(Features.of(X, E, bias=config.bias), M, root, np.zeros(M.shape[1], np.int32))
        level = train_level(data, config, seed=seed, threads=threads, name=name, on_event=on_event)
        return cls(level, X.shape[1], 0 if E is None else E.shape[1], config.bias)

    def sparse_part(self) -> LinearMatcher:
        """The models of the sparse features alone, without the dense ones and the bias."""
        nothing = np.zeros((self.level.n_children, 1), np.float32)
        return LinearMatcher(replace(self.level, dense=nothing), self.n_features, 0, self.bias)

    def head(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """The weights of the dense features and the bias: (n_clusters, n_dense) weights and (n_clusters,) biases."""
        dense = self.level.dense.astype(np.float32, copy=False)
        return dense[:, : self.n_dense], dense[:, self.n_dense] * np.float32(self.bias)

    def scores(self, X: Csr, E: Floats | None = None, *, threads: int | None = None) -> npt.NDArray[np.float16]:
        """(n_docs, n_clusters) the score of every cluster."""
        n_clusters = self.level.n_children
        scores = np.empty((X.shape[0], n_clusters), np.float16)
        block = max(1, SCORES_PER_BLOCK // n_clusters)
        for begin in range(0, X.shape[0], block):
            part = slice(begin, begin + block)
            found = self.best(X[part], None if E is None else E[part], top_b=n_clusters, threads=threads)
            scores[part] = found.data.reshape(-1, n_clusters)
        return scores

    @cached_property
    def _search(self) -> BeamSearch:
        return BeamSearch([self.level], n_features=self.n_features, score_transform="ranker-only")

    def best(self, X: Csr, E: Floats | None = None, *, top_b: int, threads: int | None = None) -> Csr:
        """(n_docs, n_clusters) the scores of the `top_b` best clusters of each document."""
        return self._search.top(Features.of(X, E, bias=self.bias), beam=1, top_k=top_b, threads=threads)


def fold_of(n_docs: int, folds: int, seed: int) -> npt.NDArray[np.int64]:
    """(n_docs,) the part of each document, drawn at random, all of about one size."""
    return np.random.default_rng([seed, folds]).permutation(n_docs) % folds


def unseen_scores(
    X: Csr,
    E: Floats | None,
    M: Csr,
    config: RankerConfig,
    *,
    folds: int,
    seed: int = 0,
    threads: int | None = None,
    on_event: OnEvent | None = None,
) -> npt.NDArray[np.float16]:
    """(n_docs, n_clusters) out-of-fold scores of the sparse features, by models not trained on the document."""
    fold = fold_of(X.shape[0], folds, seed)
    scores = np.empty((X.shape[0], M.shape[1]), np.float16)
    # Few clusters are few pieces of work: the parts go side by side, and share the threads.
    threads = threads or available_cores()
    inner = max(1, threads // folds)

    work = _Fold(X, E, M, config, fold, seed, inner)
    with Task(on_event, "training the linear term", total=folds, unit="parts") as task:
        results = current_engine().map(
            work, range(folds), threads=threads, costs=[1.0] * folds, done=lambda _: task.advance()
        )
        for number, found in enumerate(results):
            scores[fold == number] = found
    return scores


@dataclass(frozen=True, eq=False)
class _Fold:
    """Scores the documents of a fold by models that were trained on the other folds."""

    X: Csr
    E: Floats | None
    M: Csr
    config: RankerConfig
    fold: npt.NDArray[np.int64]
    """(n_docs,) the fold of each document."""
    seed: int
    threads: int

    def __call__(self, number: int) -> npt.NDArray[np.float16]:
        inside, outside = np.flatnonzero(self.fold != number), np.flatnonzero(self.fold == number)
        dense = None if self.E is None else self.E[inside]
        X, M = self.X[inside], self.M[inside]
        model = LinearMatcher.fit(X, dense, M, self.config, seed=self.seed, threads=self.threads)
        return model.sparse_part().scores(self.X[outside], threads=self.threads)
