"""The ranker of X-Transformer as a stage of training: trained, with what held-out documents have chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from labelwise import storage
from labelwise.config import ScoreTransform, XTransformerConfig
from labelwise.config.score_transform import DEFAULT_TRANSFORM
from labelwise.index import Tree
from labelwise.match.heads import LabelHead
from labelwise.match.recall import recall_at
from labelwise.models.calibrator import CALIBRATED_ON
from labelwise.models.training_data import TrainingData
from labelwise.models.training_report import TrainingReport, Tuning
from labelwise.rank.negatives import teacher_forcing
from labelwise.rank.ranker import (
    SCORE_TRANSFORMS,
    SHARES,
    WEIGHTS,
    HeldOutInputs,
    Inputs,
    Ranker,
    RankerData,
    RankerSearchSpace,
    RankerSettings,
    choose_ranker,
)
from labelwise.types import Csr, Floats, OnEvent

KIND = "fitted ranker"
RECALL_AT = (1, 5, 10, 20)


@dataclass(frozen=True, eq=False)
class FittedRanker:
    """A ranker, and what was found on held-out documents."""

    ranker: Ranker
    report: TrainingReport
    """The settings that were chosen, all that were tried, and the recall of the true clusters."""
    held_out_scores: Csr | None
    """(n_held, n_labels) scores of the held-out documents' best labels, by a ranker that has not seen them."""

    def save(self, path: Path | str) -> None:
        """Write a folder that `load` reads."""
        with storage.atomic_folder(path, overwrite=True) as folder:
            self.ranker.save(folder / "ranker")
            matrices = {} if self.held_out_scores is None else {"held-out": self.held_out_scores}
            storage.save(folder / "report", kind=KIND, config=self.report.to_dict(), matrices=matrices)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read what `save` wrote."""
        path = Path(path)
        saved = storage.load(path / "report", kind=KIND)
        report = TrainingReport.from_dict(saved.config, path)
        return cls(Ranker.load(path / "ranker"), report, saved.matrices.get("held-out"))


def fit_ranker(
    training: Inputs,
    data: TrainingData,
    tree: Tree,
    config: XTransformerConfig,
    *,
    held_out: Inputs | None = None,
    label_head: LabelHead | None = None,
    depth: int = CALIBRATED_ON,
    on_event: OnEvent | None = None,
) -> FittedRanker:
    """Train the ranker with the settings that held-out documents choose.

    Parameters
    ----------
    training : what the ranker reads of the training documents
    held_out : what it reads of the held-out documents; None where there are none
    label_head : the matcher's one-vs-all head, if it has one: where the ranker reads tf-idf and embeddings, the head's
        weights are those of the embeddings
    depth : labels of each held-out document whose scores are kept
    """
    Y, holdout = data.Y, data.holdout
    documents = RankerData(training, Y, tree.clusters)
    options: dict[str, Any] = {"seed": config.seed, "threads": config.threads, "on_event": on_event}
    head = None if label_head is None or config.features != "both" else (label_head.weight, label_head.bias)
    weight = config.dense_weight if head is None else config.label_weight
    fixed = None not in (weight, config.score_transform, config.matcher_weight)
    rows = None if holdout is None else holdout.rows
    if held_out is None or holdout is None or (rows is not None and fixed and not config.holdout.calibrate):
        ranker, chosen = _fit_as_configured(documents, head, config, options)
        return FittedRanker(ranker, TrainingReport(chosen=chosen), None)
    known = Csr(holdout.Y[:, : Y.shape[1]])
    # All is chosen by documents that the evaluated ranker has not seen; the final ranker learns from them too.
    candidates = RankerSearchSpace(
        dense_weights=WEIGHTS if config.dense_weight is None else [config.dense_weight],
        score_transforms=_transforms_left(config),
        label_weights=SHARES if config.label_weight is None else [config.label_weight],
    )
    evaluation = HeldOutInputs(held_out, known, rows)
    choice = choose_ranker(documents, evaluation, config.ranker, candidates, label_head=head, **options)
    clusters = teacher_forcing(known, tree.clusters, tree.n_clusters)
    report = TrainingReport(
        recall=recall_at(held_out.found, clusters, [top for top in RECALL_AT if top <= config.beam]),
        chosen=choice.settings,
        trials=choice.trials,
        tuning=Tuning(trials=len(choice.trials), metric="the mean of P@1, P@3 and P@5"),
    )
    scores = choice.evaluated.top(held_out, max(depth, CALIBRATED_ON), threads=config.threads)
    return FittedRanker(choice.final, report, scores)


def _fit_as_configured(
    documents: RankerData,
    head: tuple[Floats, Floats] | None,
    config: XTransformerConfig,
    options: dict[str, Any],
) -> tuple[Ranker, RankerSettings]:
    """The ranker where there is nothing to choose by, and what its settings are."""
    own_share = SHARES[0] if config.label_weight is None else config.label_weight
    settings = RankerSettings(
        dense_weight=config.dense_weight or 1.0,
        label_weight=None if head is None else own_share,
        score_transform=config.score_transform or DEFAULT_TRANSFORM,
        matcher_weight=1.0 if config.matcher_weight is None else config.matcher_weight,
    )
    if head is not None:
        documents = replace(documents, inputs=replace(documents.inputs, E=None))
    ranker = Ranker.fit(documents, config.ranker, dense_weight=settings.dense_weight, **options)
    ranker = ranker.with_transform(settings.score_transform, settings.matcher_weight)
    return ranker if head is None else ranker.with_labels(*head, own_share), settings


def _transforms_left(config: XTransformerConfig) -> list[tuple[ScoreTransform, float]]:
    """The ways to combine scores that are left to choose from."""
    if config.score_transform is not None and config.matcher_weight is not None:
        return [(config.score_transform, config.matcher_weight)]
    if config.score_transform is not None:
        return [pair for pair in SCORE_TRANSFORMS if pair[0] == config.score_transform] or [
            (config.score_transform, 1.0)
        ]
    if config.matcher_weight is not None:
        return [
            (score_transform, config.matcher_weight)
            for score_transform in dict.fromkeys(pair[0] for pair in SCORE_TRANSFORMS)
        ]
    return list(SCORE_TRANSFORMS)
