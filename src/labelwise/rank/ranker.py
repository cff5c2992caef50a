"""The ranker of X-Transformer: one linear model per label on tf-idf and embeddings, below the matcher's clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelwise import storage
from labelwise.config import RankerConfig, RankerFeatures, ScoreTransform
from labelwise.errors import StorageError, UsageError
from labelwise.events import Task
from labelwise.features.normalize import unit_rows
from labelwise.metrics import precision_at_k
from labelwise.rank.features import Features
from labelwise.rank.quantized import unpack
from labelwise.rank.search import BeamSearch, Shortlist
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.rank.tree import train_level, train_level_twice
from labelwise.types import Csr, Floats, Ints, OnEvent

KIND = "ranker"
_RENAMED = {"combine": "score_transform"}
"""Settings of format version 1."""
WEIGHTS = (0.5, 1.0, 2.0)
"""Lengths of the embedding beside tf-idf's 1 that validation documents choose from."""
SCORE_TRANSFORMS: tuple[tuple[ScoreTransform, float], ...] = (
    ("l3-hinge", 1.0),
    ("l3-hinge", 0.6),
    ("l3-hinge", 0.3),
    ("l3-hinge", 0.1),
    ("l2-hinge", 1.0),
    ("l2-hinge", 0.3),
    ("sigmoid", 1.0),
    ("sigmoid", 0.3),
    ("ranker-only", 1.0),
)
"""Ways to combine the scores of cluster and label that they choose from, with the weight of the cluster's."""
SHARES = (0.4, 0.3, 0.5, 0.2, 0.6, 0.1, 0.0)
"""Shares of the network's own scores of labels that they choose from; the first is the default."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the ranker reads of some documents."""

    X: Csr | None
    """(n_docs, n_features) tf-idf with rows of length one; None if the ranker sees the embeddings alone."""
    E: npt.NDArray[np.float32] | None
    """(n_docs, hidden) embeddings of length one; None if it sees tf-idf alone."""
    found: Csr
    """(n_docs, n_clusters) the matcher's clusters with their scores."""

    @classmethod
    def of(cls, kinds: RankerFeatures, X: Csr, E: Floats, found: Csr) -> Inputs:
        """Those features of documents that the ranker is to see, embeddings of any length."""
        return cls(None if kinds == "neural" else X, None if kinds == "tfidf" else unit_rows(E), found)

    def take(self, rows: Any) -> Inputs:
        """Some documents, in this order."""
        return Inputs(
            None if self.X is None else self.X[rows], None if self.E is None else self.E[rows], self.found[rows]
        )

    def features(self, dense_weight: float, bias: float) -> Features:
        """Both kinds of features in one."""
        X = self.found[:, :0] if self.X is None else self.X
        return Features.of(X, None if self.E is None else self.E * np.float32(dense_weight), bias=bias)


class Ranker:
    """h(x, l) of the paper, and its combination with g."""

    def __init__(
        self,
        level: LevelWeights,
        *,
        n_features: int,
        dense_weight: float,
        score_transform: ScoreTransform,
        matcher_weight: float = 1.0,
        bias: float = 1.0,
    ) -> None:
        self.level, self.n_features, self.dense_weight = level, n_features, dense_weight
        self.score_transform, self.matcher_weight, self.bias = score_transform, matcher_weight, bias
        self._search = BeamSearch([level], n_features=n_features, score_transform=score_transform)

    @classmethod
    def fit(
        cls,
        inputs: Inputs,
        Y: Csr,
        M: Csr,
        clusters: npt.NDArray[np.int32],
        config: RankerConfig,
        *,
        dense_weight: float = 1.0,
        score_transform: ScoreTransform = "l3-hinge",
        matcher_weight: float = 1.0,
        seed: int = 0,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> Self:
        """Train the models of all labels, with the negatives that the configuration asks for.

        Parameters
        ----------
        Y : (n_docs, n_labels)
        M : (n_docs, n_clusters) the clusters of those, for the teacher-forcing negatives
        clusters : (n_labels,) the cluster of each label
        """
        features = inputs.features(dense_weight, config.bias)
        options: dict[str, Any] = {"found": inputs.found, "seed": seed, "threads": threads, "on_event": on_event}
        level = train_level(features, Y, M, clusters, config, **options)
        about: dict[str, Any] = {"n_features": features.n_features, "dense_weight": dense_weight, "bias": config.bias}
        return cls(level, score_transform=score_transform, matcher_weight=matcher_weight, **about)

    @classmethod
    def fit_twice(
        cls,
        inputs: Inputs,
        Y: Csr,
        M: Csr,
        clusters: npt.NDArray[np.int32],
        config: RankerConfig,
        *,
        later: Ints,
        dense_weight: float = 1.0,
        seed: int = 0,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> tuple[Self, Self]:
        """A ranker of all documents but some, and one that has gone on with these, at little more than one's cost.

        Parameters
        ----------
        later : rows of the documents that the first has not seen
        """
        features = inputs.features(dense_weight, config.bias)
        options: dict[str, Any] = {"found": inputs.found, "seed": seed, "threads": threads, "on_event": on_event}
        marked = np.zeros(Y.shape[0], np.bool_)
        marked[later] = True
        before, after = train_level_twice(features, Y, M, clusters, config, marked, **options)
        about: dict[str, Any] = {"n_features": features.n_features, "dense_weight": dense_weight, "bias": config.bias}
        return cls(before, score_transform="l3-hinge", **about), cls(after, score_transform="l3-hinge", **about)

    def with_transform(self, score_transform: ScoreTransform, matcher_weight: float) -> Ranker:
        """The same models, their scores combined otherwise with the clusters'."""
        return self._changed(score_transform=score_transform, matcher_weight=matcher_weight)

    def with_labels(self, weight: Floats, bias: Floats, share: float) -> Ranker:
        """Models on tf-idf alone, joined to others on the embeddings: the weighted mean of both scores.

        Parameters
        ----------
        weight : (n_labels, hidden) of embeddings of length one
        bias : (n_labels,)
        share : of the other models' score
        """
        level, ours = self.level, np.float32(1 - share)
        if level.dense.shape[1] != 1:
            raise UsageError("the ranker has weights of embeddings already; train it on tf-idf alone")
        dense = np.empty((level.n_children, weight.shape[1] + 1), np.float32)
        dense[:, :-1] = np.float32(share) * weight[level.child_ids]
        dense[:, -1:] = ours * level.dense
        if self.bias:  # the constant feature that carries it
            dense[:, -1] += np.float32(share / self.bias) * bias[level.child_ids]
        values: npt.NDArray[Any] = (level.entry_value * ours).astype(level.entry_value.dtype)
        return self._changed(level=replace(level, entry_value=values, dense=dense), dense_weight=1.0)

    def _changed(self, *, level: LevelWeights | None = None, **others: Any) -> Ranker:
        return Ranker(self.level if level is None else level, **self._settings | others)

    @property
    def _settings(self) -> dict[str, Any]:
        """All that `__init__` takes beside the models."""
        return {
            "n_features": self.n_features,
            "dense_weight": self.dense_weight,
            "score_transform": self.score_transform,
            "matcher_weight": self.matcher_weight,
            "bias": self.bias,
        }

    def top(self, inputs: Inputs, top_k: int, *, threads: int | None = None, on_event: OnEvent | None = None) -> Csr:
        """(n_docs, n_labels) the best labels of the matcher's clusters with their scores."""
        start = Shortlist.of(inputs.found, self.score_transform, self.matcher_weight)
        features = inputs.features(self.dense_weight, self.bias)
        return self._search.top(features, beam=1, top_k=top_k, start=start, threads=threads, on_event=on_event)

    def save(self, path: Path | str) -> None:
        """Write a folder that `load` reads."""
        storage.save(path, kind=KIND, config=self._settings, arrays=self.level.to_arrays(""))

    @classmethod
    def load(cls, path: Path | str, *, verify: bool = True) -> Self:
        """Read what `save` wrote; weights are mapped, not copied."""
        saved = storage.load(path, kind=KIND, verify=verify)
        try:
            settings = {_RENAMED.get(name, name): value for name, value in saved.config.items()}
            return cls(unpack(saved.arrays, ""), **settings)
        except (KeyError, TypeError) as err:
            raise StorageError(f"{path} holds no ranker ({err}); copy or make it again") from err


def choose_ranker(
    train: tuple[Inputs, Csr, Csr],
    held_out: tuple[Inputs, Csr],
    clusters: npt.NDArray[np.int32],
    config: RankerConfig,
    *,
    weights: Sequence[float],
    score_transforms: Sequence[tuple[ScoreTransform, float]],
    labels: tuple[Floats, Floats] | None = None,
    shares: Sequence[float] = SHARES,
    later: Ints | None = None,
    seed: int = 0,
    threads: int | None = None,
    on_event: OnEvent | None = None,
) -> tuple[Ranker, Ranker, list[dict[str, Any]]]:
    """The best of several weights of the embedding and of several combinations, by the mean of P@1, P@3 and P@5.

    Gives the ranker that was judged, the one to use, and what was tried, with these three figures.

    Parameters
    ----------
    train : inputs, labels and clusters (see `Ranker.fit`) of the documents to train on
    held_out : inputs and labels of those to judge by
    labels : weights and biases of labels on the embeddings, which the ranker is then not trained on (`with_labels`)
    shares : of these in a label's score; the combination is chosen with the first of them, then the share
    later : rows of the documents to train on that are held out: the ranker that is judged has not seen them, the one
        to use has. Without them both are the same.
    """
    inputs, Y, M = train
    if labels is not None:
        inputs = replace(inputs, E=None)
    best: tuple[float, dict[str, Any], Ranker, Ranker] | None = None
    trials: list[dict[str, Any]] = []

    def joined(ranker: Ranker, setting: dict[str, Any]) -> Ranker:
        if labels is not None:
            ranker = ranker.with_labels(*labels, setting["label_weight"])
        return ranker.with_transform(setting["score_transform"], setting["matcher_weight"])

    def judge(judged: Ranker, final: Ranker, setting: dict[str, Any]) -> None:
        nonlocal best
        ranker = joined(judged, setting)
        found = ranker.top(held_out[0], 5, threads=threads)
        precisions = [precision_at_k(held_out[1], found, k=k) for k in (1, 3, 5)]
        trials.append({**setting, "precisions": precisions})
        if best is None or np.mean(precisions) > best[0]:
            best = float(np.mean(precisions)), setting, ranker, final

    if inputs.E is None or inputs.X is None:  # nothing to weigh against
        weights = [1.0]
    with Task(on_event, "choosing the ranker", total=len(weights), unit="trials") as task:
        for weight in weights:
            options: dict[str, Any] = {"dense_weight": weight, "seed": seed, "threads": threads, "on_event": on_event}
            if later is None:
                judged = final = Ranker.fit(inputs, Y, M, clusters, config, **options)
            else:
                judged, final = Ranker.fit_twice(inputs, Y, M, clusters, config, later=later, **options)
            setting: dict[str, Any] = {"dense_weight": weight}
            if labels is not None:
                setting["label_weight"] = shares[0]
            for score_transform, matcher_weight in score_transforms:
                judge(judged, final, {**setting, "score_transform": score_transform, "matcher_weight": matcher_weight})
            if labels is not None:
                assert best is not None
                chosen = best[1]
                for share in shares[1:]:
                    judge(judged, final, {**chosen, "label_weight": share})
            task.advance()
    assert best is not None
    _, setting, ranker, final = best
    return ranker, joined(final, setting), trials
