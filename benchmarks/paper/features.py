"""Parabel on other features than tf-idf: the lower part of the paper's Table 3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from common import TOP_K, Experiment, Row
from encoders import EncoderChoice

from labelwise.comparison.measure import Costs, TrainingTimer
from labelwise.comparison.system import System
from labelwise.config import EncoderConfig
from labelwise.config.presets import load_linear_preset
from labelwise.config.settings import with_changes
from labelwise.features.normalize import unit_rows
from labelwise.features.tfidf import Tfidf
from labelwise.index import build_tree, embed_labels
from labelwise.predictions import Predictions
from labelwise.predictions.ranking import mean_best
from labelwise.rank.features import Features
from labelwise.rank.tree import train_tree
from labelwise.types import Csr

if TYPE_CHECKING:
    from labelwise.features.encoder import Encoder


@dataclass(frozen=True, eq=False)
class Joined:
    """Embeddings and tf-idf of documents, joined to rows of length one; tf-idf may have no columns."""

    X: Csr
    E: npt.NDArray[np.float32]

    @classmethod
    def of(cls, E: Any, X: Csr | None = None) -> Joined:
        """Both parts scaled to length one, then joined and scaled again, as in the paper's code."""
        E = unit_rows(np.asarray(E, np.float32))
        if X is None:
            return cls(Csr((len(E), 0), dtype=np.float32), E)
        return cls(Csr(X * np.float32(0.5**0.5)), E * np.float32(0.5**0.5))

    def features(self, bias: float) -> Features:
        """The features in the form that models read."""
        return Features.of(self.X, self.E, bias=bias)

    def matrix(self) -> Csr | npt.NDArray[np.float32]:
        """The features as one matrix, for label embeddings."""
        return self.E if self.X.shape[1] == 0 else Csr(sp.hstack([self.X, sp.csr_array(self.E)], format="csr"))


def pretrained_row(experiment: Experiment, encoder: EncoderChoice, length: int) -> Row:
    """Parabel on the pretrained embeddings of an encoder alone."""
    name = f"pretrained {encoder.name} + Parabel"
    if encoder.missing is not None:
        return Row(name, note=f"not run: {encoder.missing}")
    settings = {**encoder.settings, "max_length": length}
    config = with_changes(EncoderConfig(), settings, encoder.name).validated(encoder.name)

    def compute() -> tuple[Predictions, Costs]:
        from labelwise.features.encoder import Encoder

        clock = TrainingTimer()
        loaded = Encoder.load(config)
        parts = [
            Joined.of(embed(loaded, part.texts or [])) for part in (experiment.splits.train, experiment.splits.test)
        ]
        return parabel(experiment, parts, clock)

    return experiment.special(name, {"encoder": config, **identity(experiment)}, compute)


def tuned_row(
    experiment: Experiment, encoder: EncoderChoice, tuned: Callable[[], Encoder] | None, system: System | None
) -> Row:
    """Parabel on tf-idf and the embeddings of a fine-tuned encoder; `tuned` returns the encoder of a system."""
    name = f"fine-tuned {encoder.name} ⊕ tf-idf + Parabel"
    if tuned is None or system is None:
        return Row(name, note=f"not run: {encoder.missing or 'X-Transformer, whose encoder it takes, failed'}")

    def compute() -> tuple[Predictions, Costs]:
        clock, reader = TrainingTimer(), tuned()
        train, test = experiment.splits.train.texts or [], experiment.splits.test.texts or []
        tfidf = Tfidf()
        both = ((tfidf.fit_transform(train), train), (tfidf.transform(test), test))
        return parabel(experiment, [Joined.of(embed(reader, texts), X) for X, texts in both], clock)

    return experiment.special(name, {**system.identity(experiment.splits), **identity(experiment)}, compute)


def identity(experiment: Experiment) -> dict[str, Any]:
    """The settings of Parabel that the result depends on."""
    return {"parabel": load_linear_preset("parabel", seed=experiment.options.seed)}


def parabel(experiment: Experiment, parts: list[Joined], clock: TrainingTimer) -> tuple[Predictions, Costs]:
    """Predictions for the second part by a Parabel that is trained on the first part.

    The trees and averages are those of the preset. Features are partly dense, which `LinearTree` does not take.
    """
    train, test = experiment.splits.train, experiment.splits.test
    config = load_linear_preset("parabel", seed=experiment.options.seed, threads=experiment.options.threads)
    learnt, asked = (part.features(config.ranker.bias) for part in parts)
    Z = embed_labels(train.Y, parts[0].matrix(), threads=config.threads)
    trees = []
    for seed in range(config.seed, config.seed + config.n_trees):
        tree = build_tree(Z, config.index, seed=seed, threads=config.threads, on_event=experiment.run.on_event)
        trees.append(train_tree(learnt, train.Y, tree, config, seed=seed, on_event=experiment.run.on_event))
    costs = clock.costs()
    found = [
        tree.search(learnt.n_features, config).top(asked, beam=config.beam, top_k=2 * TOP_K, threads=config.threads)
        for tree in trees
    ]
    return Predictions(mean_best(found, TOP_K), train.labels, test.ids), costs


def embed(encoder: Any, texts: list[str]) -> Any:
    """(n_docs, hidden) embeddings."""
    import torch

    return encoder.embed(texts, device="cuda" if torch.cuda.is_available() else None)
