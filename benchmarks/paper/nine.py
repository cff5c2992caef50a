"""The nine models of the paper's ensemble: three label embeddings with each of three encoders.

They are trained separately, as in the paper (`nine_rows`), or as the `Ensemble` of labelwise, which fine-tunes an
encoder once for its three label trees and chooses weights on held-out documents (`Nine`). The predictions of the
Ensemble and of each member for the test documents are one stage of the run directory: all tables share this stage, and
can be made again without a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Self

from common import TOP_K, Experiment, Row
from encoders import EncoderChoice
from output import print_event, say

from labelwise import storage
from labelwise.comparison.measure import Costs, TrainingTimer
from labelwise.comparison.splits import Splits
from labelwise.comparison.system import System, fit_model
from labelwise.config import XTransformerConfig
from labelwise.models.ensemble import Ensemble
from labelwise.models.prediction_cache import PredictionCache
from labelwise.predictions import Predictions
from labelwise.types import Csr

LABEL_EMBEDDINGS = ("pifa-tfidf", "pifa-neural", "text-emb")
_KIND = "nine"
_ENSEMBLE = "ensemble"


# ---------------------------------------------------------------------- trained separately


def member_row(experiment: Experiment, label_embedding: str, encoder: EncoderChoice) -> Row:
    """One of the nine, with tf-idf and neural features in the ranker, TFN and MAN."""
    system = member_system(experiment, label_embedding, encoder)
    if encoder.missing is not None:
        return Row(system.name, note=f"not run: {encoder.missing}")
    return experiment.row(system)[0]


def member_system(experiment: Experiment, label_embedding: str, encoder: EncoderChoice) -> System:
    """One of the nine as a system."""
    settings = {"label_embedding": label_embedding, "features": "both", "ranker": {"negatives": "tfn+man"}}
    return experiment.neural(f"{label_embedding}, {encoder.name}", encoder, **settings)


def nine_rows(
    experiment: Experiment, encoders: Sequence[EncoderChoice], kinds: Sequence[str] = LABEL_EMBEDDINGS
) -> dict[tuple[str, str], Row]:
    """All rows of the nine, or some, by label embedding and name of the encoder."""
    pairs = product(encoders, kinds)  # one encoder after the other, since its models share tokens and embeddings
    return {(kind, encoder.name): member_row(experiment, kind, encoder) for encoder, kind in pairs}


# ---------------------------------------------------------------------- as one Ensemble


def nine_system(experiment: Experiment, encoders: Sequence[EncoderChoice], **settings: Any) -> System:
    """All nine as one Ensemble."""
    members = [member_system(experiment, kind, encoder) for encoder in encoders for kind in LABEL_EMBEDDINGS]
    return experiment.ensemble(f"X-Transformer, ensemble of {len(members)}", members, **settings)


def fit_nine(experiment: Experiment, system: System) -> tuple[Ensemble, Costs]:
    """The trained Ensemble, and its costs, with those of stages that are reused."""
    clock = TrainingTimer(print_event)
    model = fit_model(system.config, experiment.splits, run_dir=experiment.run.path, on_event=clock.on_event)
    assert isinstance(model, Ensemble)
    costs = clock.costs()
    say(f"fitted in {costs.train_s:.1f} s ({costs.train_cpu_s:.1f} CPU s), reused stages: {costs.found_s:.1f} s")
    return model, costs


@dataclass(frozen=True, eq=False)
class Nine:
    """Predictions of an Ensemble and of each of its members for the test documents."""

    members: dict[tuple[str, str], Csr]
    """By label embedding and encoder's name: (n_test, n_labels) probabilities of the best labels."""
    held: dict[tuple[str, str], Csr]
    """(n_held_out, n_labels) scores for the held-out documents, from rankers that were not trained on them."""
    answer: Csr
    """(n_test, n_labels) predictions of the Ensemble."""
    report: dict[str, Any]
    """Rule, weights, scores on held-out documents, costs."""

    @classmethod
    def find(cls, experiment: Experiment, encoders: Sequence[EncoderChoice], **settings: Any) -> Self:
        """Train the Ensemble and predict, or reuse the predictions of an earlier run."""
        system = nine_system(experiment, encoders, **settings)
        inputs = {**system.identity(experiment.splits), "names": [encoder.name for encoder in encoders], "top_k": TOP_K}
        say(f"{system.name} …")
        return experiment.run.stage(
            _KIND,
            inputs=inputs,
            compute=lambda: cls._make(experiment, system, encoders),
            save=cls.save,
            load=cls.load,
        )

    @classmethod
    def _make(cls, experiment: Experiment, system: System, encoders: Sequence[EncoderChoice]) -> Self:
        model, costs = fit_nine(experiment, system)
        begun, test = time.perf_counter(), experiment.splits.test
        reading = PredictionCache(test.texts, threads=experiment.options.threads, on_event=print_event)
        names, members, held = {encoder.folder: encoder.name for encoder in encoders}, {}, {}
        for member in model.members_:
            assert isinstance(member.config, XTransformerConfig)
            pair = member.config.label_embedding, names[member.config.encoder.name]
            scores = member.scores(reading, TOP_K)
            if member.calibrator_ is not None:
                scores = member.calibrator_.transform_matrix(scores)
            members[pair] = scores
            if member.held_out_scores_ is not None:
                held[pair] = member.held_out_scores_
        answer = model.scores(reading, TOP_K)
        seconds = time.perf_counter() - begun
        say(f"{len(test):,} test documents in {seconds:.1f} s")
        report = {
            "rule": model.rule_,
            "over": model.over_,
            "members": model.report_.to_dict()["members"],
            "validation": model.report_.held_out_scores,
            "fit_s": costs.train_s,
            "fit_cpu_s": costs.train_cpu_s,
            "predict_s": seconds,
        }
        return cls(members, held, answer, report)

    def save(self, path: Path) -> None:
        """Write a folder that `load` reads."""
        parts = {f"test/{'/'.join(pair)}": found for pair, found in self.members.items()}
        parts |= {f"held/{'/'.join(pair)}": found for pair, found in self.held.items()}
        storage.save(path, kind=_KIND, config=self.report, matrices={**parts, _ENSEMBLE: self.answer})

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a folder that `save` wrote."""
        saved = storage.load(path, kind=_KIND)
        parts: dict[str, dict[tuple[str, str], Csr]] = {"test": {}, "held": {}}
        for name, matrix in saved.matrices.items():
            if name != _ENSEMBLE:
                what, kind, encoder = name.split("/", 2)
                parts[what][kind, encoder] = matrix
        return cls(parts["test"], parts["held"], saved.matrices[_ENSEMBLE], saved.config)

    def rows(self, experiment: Experiment) -> dict[tuple[str, str], Row]:
        """The evaluated members."""
        return {
            pair: experiment.evaluated(", ".join(pair), _over_test_labels(experiment.splits, found))
            for pair, found in self.members.items()
        }

    def row(self, experiment: Experiment, name: str, **columns: str) -> Row:
        """The evaluated Ensemble."""
        return experiment.evaluated(name, _over_test_labels(experiment.splits, self.answer), self.costs, **columns)

    @property
    def costs(self) -> Costs:
        """The costs of training."""
        return Costs(train_s=self.report["fit_s"], train_cpu_s=self.report["fit_cpu_s"])


def _over_test_labels(splits: Splits, found: Csr) -> Predictions:
    """Predictions over the labels of the test split."""
    return Predictions(found, splits.train.labels, splits.test.ids).with_labels(splits.test.labels)
