"""The last stage of X-Transformer: a ranker, with what held-out documents chose for it and say of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from labelwise import storage
from labelwise.config import ScoreTransform, XTransformerConfig
from labelwise.index import Tree
from labelwise.match.heads import LabelHead
from labelwise.match.recall import recall_at
from labelwise.models.base import CALIBRATED_ON
from labelwise.models.calibrator import Calibrator
from labelwise.models.holdout import measure
from labelwise.models.training_report import TrainingReport, Tuning
from labelwise.predictions.ranking import keep_best
from labelwise.rank.negatives import teacher_forcing
from labelwise.rank.ranker import SCORE_TRANSFORMS, SHARES, WEIGHTS, Inputs, Ranker, choose_ranker
from labelwise.types import Csr, Floats, Ints, OnEvent

KIND = "ranked"
RECALL_AT = (1, 5, 10, 20)


@dataclass(frozen=True, eq=False)
class Ranked:
    """A ranker and what goes with it."""

    ranker: Ranker
    calibrator: Calibrator | None
    report: TrainingReport
    """What was chosen, and the held-out figures."""
    held: Csr | None
    """(n_held, n_labels) scores of the held-out documents' best labels, by a ranker that had not seen them."""

    def save(self, path: Path | str) -> None:
        """Write a folder that `load` reads."""
        with storage.atomic_folder(path, overwrite=True) as folder:
            self.ranker.save(folder / "ranker")
            if self.calibrator is not None:
                self.calibrator.save(folder / "calibration.json")
            matrices = {} if self.held is None else {"held": self.held}
            storage.save(folder / "report", kind=KIND, config=self.report.to_dict(), matrices=matrices)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read what `save` wrote."""
        path = Path(path)
        saved = storage.load(path / "report", kind=KIND)
        report = TrainingReport.from_dict(saved.config, path)
        calibration = path / "calibration.json"
        calibrator = Calibrator.load(calibration) if calibration.is_file() else None
        return cls(Ranker.load(path / "ranker"), calibrator, report, saved.matrices.get("held"))


def rank(
    everything: Inputs,
    Y: Csr,
    tree: Tree,
    config: XTransformerConfig,
    *,
    labels: LabelHead | None = None,
    held: Inputs | None = None,
    truth: Csr | None = None,
    aside: Ints | None = None,
    depth: int = CALIBRATED_ON,
    on_event: OnEvent | None = None,
) -> Ranked:
    """Train the ranker as held-out documents choose.

    Parameters
    ----------
    everything, Y : what the ranker reads of the training documents, and their labels
    labels : the network's own scores of labels, if it has learnt them: where the ranker reads tf-idf and embeddings,
        these are its weights of the latter
    held, truth : the same of the held-out documents; None where there are none
    aside : which of the training documents are the held-out ones; None where those are others
    depth : labels of each held-out document that are kept
    """
    M = teacher_forcing(Y, tree.clusters, tree.n_clusters)
    options: dict[str, Any] = {"seed": config.seed, "threads": config.threads, "on_event": on_event}
    own = None if labels is None or config.features != "both" else (labels.weight, labels.bias)
    weight = config.dense_weight if own is None else config.label_weight
    fixed = None not in (weight, config.score_transform, config.matcher_weight)
    if held is None or truth is None or (aside is not None and fixed and not config.holdout.calibrate):
        ranker, chosen = _fit_as_configured(everything, own, Y, M, tree, config, options)
        return Ranked(ranker, None, TrainingReport(chosen=chosen), None)
    known = Csr(truth[:, : Y.shape[1]])
    # All is chosen by documents that the judged ranker has not seen; the one to use learns from them too.
    ranker, final, trials = choose_ranker(
        (everything, Y, M),
        (held, known),
        tree.clusters,
        config.ranker,
        weights=WEIGHTS if config.dense_weight is None else [config.dense_weight],
        score_transforms=_transforms_left(config),
        labels=own,
        shares=SHARES if config.label_weight is None else [config.label_weight],
        later=aside,
        **options,
    )
    best = max(trials, key=lambda trial: sum(trial["precisions"]))
    found = ranker.top(held, max(depth, CALIBRATED_ON), threads=config.threads)
    measured = measure(keep_best(found, CALIBRATED_ON), truth)
    clusters = teacher_forcing(known, tree.clusters, tree.n_clusters)
    report = TrainingReport(
        recall=recall_at(held.found, clusters, [top for top in RECALL_AT if top <= config.beam]),
        chosen={name: value for name, value in best.items() if name != "precisions"},
        trials=trials,
        tuning=Tuning(trials=len(trials), metric="the mean of P@1, P@3 and P@5"),
        validation=measured.result(),
    )
    return Ranked(final, measured.calibrator if config.holdout.calibrate else None, report, found)


def _fit_as_configured(
    everything: Inputs,
    own: tuple[Floats, Floats] | None,
    Y: Csr,
    M: Csr,
    tree: Tree,
    config: XTransformerConfig,
    options: dict[str, Any],
) -> tuple[Ranker, dict[str, Any]]:
    """The ranker where there is nothing to choose by, and what its settings are."""
    settings: dict[str, Any] = {
        "dense_weight": config.dense_weight or 1.0,
        "score_transform": config.score_transform or "l3-hinge",
        "matcher_weight": 1.0 if config.matcher_weight is None else config.matcher_weight,
    }
    inputs = everything if own is None else replace(everything, E=None)
    ranker = Ranker.fit(inputs, Y, M, tree.clusters, config.ranker, **settings, **options)
    if own is None:
        return ranker, settings
    settings["label_weight"] = SHARES[0] if config.label_weight is None else config.label_weight
    return ranker.with_labels(*own, settings["label_weight"]), settings


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
