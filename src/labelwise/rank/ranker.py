"""The ranker of X-Transformer: one linear model per label on tf-idf and embeddings, below the matcher's clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelwise import storage
from labelwise.config import RankerConfig, RankerFeatures, ScoreTransform
from labelwise.config.score_transform import DEFAULT_TRANSFORM
from labelwise.errors import StorageError, UsageError
from labelwise.events import Task
from labelwise.features.normalize import unit_rows
from labelwise.metrics import precision_at_k
from labelwise.rank.features import Features
from labelwise.rank.negatives import teacher_forcing
from labelwise.rank.quantized import unpack
from labelwise.rank.search import BeamSearch, Shortlist
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.rank.tree import LevelData, train_level, train_level_twice
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
        """The features of documents that the ranker reads; embeddings may have any length."""
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


@dataclass(frozen=True, eq=False)
class RankerData:
    """The documents that a ranker is trained on."""

    inputs: Inputs
    Y: Csr
    """(n_docs, n_labels)"""
    clusters: npt.NDArray[np.int32]
    """(n_labels,) the cluster of each label."""

    @cached_property
    def teacher(self) -> Csr:
        """(n_docs, n_clusters) the clusters of each document's labels."""
        return teacher_forcing(self.Y, self.clusters, self.inputs.found.shape[1])

    def level_data(self, dense_weight: float, bias: float) -> LevelData:
        """The documents as the models of one level read them."""
        features = self.inputs.features(dense_weight, bias)
        return LevelData(features, self.Y, self.teacher, self.clusters, self.inputs.found)


@dataclass(frozen=True, eq=False)
class HeldOutInputs:
    """Held-out documents that settings of the ranker are chosen on."""

    inputs: Inputs
    Y: Csr
    """(n_docs, n_labels)"""
    rows: Ints | None = None
    """The rows of these documents among the training documents; None if they are not among them."""


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
        training: RankerData,
        config: RankerConfig,
        *,
        dense_weight: float = 1.0,
        seed: int = 0,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> Self:
        """Train the models of all labels, with the negatives of the configuration.

        The ranker combines scores by the default transform; `with_transform` gives one that combines them otherwise.
        """
        data = training.level_data(dense_weight, config.bias)
        level = train_level(data, config, seed=seed, threads=threads, on_event=on_event)
        return cls._of_level(level, data, dense_weight, config)

    @classmethod
    def fit_twice(
        cls,
        training: RankerData,
        config: RankerConfig,
        *,
        held_out: Ints,
        dense_weight: float = 1.0,
        seed: int = 0,
        threads: int | None = None,
        on_event: OnEvent | None = None,
    ) -> tuple[Self, Self]:
        """A ranker without the held-out documents, and one of all documents, at little more than the cost of one.

        Parameters
        ----------
        held_out : rows of the documents that only the second ranker has seen
        """
        data = training.level_data(dense_weight, config.bias)
        marked = np.zeros(data.Y.shape[0], np.bool_)
        marked[held_out] = True
        levels = train_level_twice(data, config, marked, seed=seed, threads=threads, on_event=on_event)
        before, after = (cls._of_level(level, data, dense_weight, config) for level in levels)
        return before, after

    @classmethod
    def _of_level(cls, level: LevelWeights, data: LevelData, dense_weight: float, config: RankerConfig) -> Self:
        return cls(
            level,
            n_features=data.features.n_features,
            dense_weight=dense_weight,
            score_transform=DEFAULT_TRANSFORM,
            bias=config.bias,
        )

    def with_transform(self, score_transform: ScoreTransform, matcher_weight: float) -> Ranker:
        """This ranker with another way to combine the scores of labels and clusters."""
        return self._changed(score_transform=score_transform, matcher_weight=matcher_weight)

    def with_labels(self, weight: Floats, bias: Floats, share: float) -> Ranker:
        """A ranker that scores by the weighted mean of this one, on tf-idf alone, and a linear model of embeddings.

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
            raise StorageError(f"{path} is not a complete ranker ({err}); copy or make it again") from err


@dataclass(frozen=True, kw_only=True)
class RankerSettings:
    """The settings of a ranker that held-out documents choose."""

    dense_weight: float = 1.0
    """Length of the embedding beside tf-idf's 1."""
    label_weight: float | None = None
    """Share of the label head in the score of a label; None where the matcher has none."""
    score_transform: ScoreTransform
    matcher_weight: float = 1.0
    """The power of the cluster's part in the score of a label."""

    def to_dict(self) -> dict[str, Any]:
        """The entries of config.json."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """What `to_dict` gave, and what format version 1 wrote; entries that are not known are left out."""
        known = {field.name for field in fields(cls)}
        present = {_RENAMED.get(name, name): value for name, value in values.items()}
        return cls(**{name: value for name, value in present.items() if name in known})


@dataclass(frozen=True, kw_only=True)
class RankerTrial(RankerSettings):
    """Settings that were tried."""

    precisions: Sequence[float]
    """P@1, P@3 and P@5 on the held-out documents."""


@dataclass(frozen=True)
class RankerSearchSpace:
    """The settings of a ranker that held-out documents choose from."""

    dense_weights: Sequence[float] = WEIGHTS
    """Lengths of the embedding beside tf-idf's 1."""
    score_transforms: Sequence[tuple[ScoreTransform, float]] = SCORE_TRANSFORMS
    """Score transforms, each with a weight of the matcher's part."""
    label_weights: Sequence[float] = SHARES
    """Shares of the label head in the score of a label. The first is used while the score transform is chosen."""


@dataclass(frozen=True, eq=False)
class RankerChoice:
    """What held-out documents have chosen."""

    evaluated: Ranker
    """The best ranker, trained without the held-out documents."""
    final: Ranker
    """The ranker to use, with the same settings: it has seen the held-out documents, if they are training documents."""
    settings: RankerSettings
    """Those of both."""
    trials: list[RankerTrial]
    """All settings that were tried."""


def choose_ranker(
    training: RankerData,
    held_out: HeldOutInputs,
    config: RankerConfig,
    candidates: RankerSearchSpace,
    *,
    label_head: tuple[Floats, Floats] | None = None,
    seed: int = 0,
    threads: int | None = None,
    on_event: OnEvent | None = None,
) -> RankerChoice:
    """Train rankers with several weights of the embedding, and choose the settings with the best mean of P@1, P@3, P@5.

    Parameters
    ----------
    label_head : weights and biases of a label head on the embeddings. The ranker is then trained on tf-idf alone, and
        the label head is added to it (`Ranker.with_labels`).
    """
    if label_head is not None:
        training = replace(training, inputs=replace(training.inputs, E=None))
    one_kind = training.inputs.E is None or training.inputs.X is None
    weights = [1.0] if one_kind else candidates.dense_weights
    search = _Search(held_out, candidates, label_head, threads)
    with Task(on_event, "choosing the ranker", total=len(weights), unit="trials") as task:
        for weight in weights:
            options: dict[str, Any] = {"dense_weight": weight, "seed": seed, "threads": threads, "on_event": on_event}
            if held_out.rows is None:
                evaluated = final = Ranker.fit(training, config, **options)
            else:
                evaluated, final = Ranker.fit_twice(training, config, held_out=held_out.rows, **options)
            search.add(evaluated, final)
            task.advance()
    return search.choice()


class _Search:
    """Evaluates rankers with all candidate settings, and remembers the best."""

    def __init__(
        self,
        held_out: HeldOutInputs,
        candidates: RankerSearchSpace,
        label_head: tuple[Floats, Floats] | None,
        threads: int | None,
    ) -> None:
        self.held_out, self.candidates, self.label_head, self.threads = held_out, candidates, label_head, threads
        self.trials: list[RankerTrial] = []
        self.best_precision = -1.0
        self.best: tuple[RankerSettings, Ranker, Ranker] | None = None
        """Settings, the ranker that was evaluated with them, and the final one before it gets them."""

    def add(self, evaluated: Ranker, final: Ranker) -> None:
        """Try the settings that need no other training: score transforms, then the share of the label head."""
        label_weight = None if self.label_head is None else self.candidates.label_weights[0]
        for score_transform, matcher_weight in self.candidates.score_transforms:
            settings = RankerSettings(
                dense_weight=evaluated.dense_weight,
                label_weight=label_weight,
                score_transform=score_transform,
                matcher_weight=matcher_weight,
            )
            self._try(evaluated, final, settings)
        if self.label_head is not None:
            assert self.best is not None
            chosen = self.best[0]
            for share in self.candidates.label_weights[1:]:
                self._try(evaluated, final, replace(chosen, label_weight=share))

    def _try(self, evaluated: Ranker, final: Ranker, settings: RankerSettings) -> None:
        ranker = self._with_settings(evaluated, settings)
        found = ranker.top(self.held_out.inputs, 5, threads=self.threads)
        precisions = [precision_at_k(self.held_out.Y, found, k=k) for k in (1, 3, 5)]
        self.trials.append(RankerTrial(**vars(settings), precisions=precisions))
        if np.mean(precisions) > self.best_precision:
            self.best_precision, self.best = float(np.mean(precisions)), (settings, ranker, final)

    def _with_settings(self, ranker: Ranker, settings: RankerSettings) -> Ranker:
        if self.label_head is not None and settings.label_weight is not None:
            ranker = ranker.with_labels(*self.label_head, settings.label_weight)
        return ranker.with_transform(settings.score_transform, settings.matcher_weight)

    def choice(self) -> RankerChoice:
        """The best settings of all trials."""
        assert self.best is not None
        settings, evaluated, final = self.best
        return RankerChoice(evaluated, self._with_settings(final, settings), settings, self.trials)
