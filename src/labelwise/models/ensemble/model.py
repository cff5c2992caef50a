"""Ensembles: several models over the same labels, trained together or separately, that answer as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from labelwise import storage
from labelwise.config import EnsembleConfig, HoldoutConfig, Rule, ScoreSpace
from labelwise.config.settings import NonNegative
from labelwise.data import Dataset
from labelwise.errors import UsageError
from labelwise.features.pretrained import check_named
from labelwise.models.base import Model, check_fitted, load_model, saved_entries
from labelwise.models.calibrator import CALIBRATED_ON
from labelwise.models.card import render_card
from labelwise.models.ensemble.members import fit_members
from labelwise.models.ensemble.rules import Combination, combine, member_values
from labelwise.models.ensemble.selection import HoldoutScorer, choose_rule, learn_weights, prune
from labelwise.models.holdout import evaluate_scores
from labelwise.models.prediction_cache import PredictionCache
from labelwise.models.seen import SeenDocuments
from labelwise.models.sharing import share_parts
from labelwise.models.stages import StageCache
from labelwise.models.training_data import DocumentSource, Holdout, TrainingData, check_texts
from labelwise.models.training_report import MemberResult, TrainingReport, Tuning
from labelwise.storage.checks import LARGEST_FACTOR, damaged
from labelwise.storage.run_directory import open_run
from labelwise.storage.shared_parts import SharedParts
from labelwise.types import Csr, Floats, Ints, OnEvent

if TYPE_CHECKING:
    from labelwise.features.encoder_folder import TextEncoder
    from labelwise.index import Tree
    from labelwise.match.heads import History
    from labelwise.rank.sparse_weights import LevelWeights


class Ensemble(Model):
    """Labels by several models: each lists its best, a rule makes one list of theirs.

    Examples
    --------
    >>> from labelwise import Ensemble
    >>> texts = ["red running shoe", "blue running shoe", "red coffee mug", "blue coffee mug"]
    >>> labels = [["shoe", "red"], ["shoe", "blue"], ["mug", "red"], ["mug", "blue"]]
    >>> model = Ensemble(["parabel", "bonsai"]).fit(texts, labels)
    >>> model.predict(["a red shoe"], top_k=2)[0]
    [('red', 0.9...), ('shoe', 0.7...)]
    """

    kind = "ensemble"
    config_class = EnsembleConfig
    config: EnsembleConfig
    members_: list[Model]
    weights_: Floats
    """(n_members,) with the sum 1."""
    rule_: Rule
    over_: ScoreSpace
    holdout_: HoldoutConfig
    """The hold-out policy that counted for all members."""

    # ------------------------------------------------------------------ fitting

    def fit(
        self,
        texts_or_X: Sequence[str] | Csr,
        labels_or_Y: Sequence[Sequence[str]] | Csr,
        *,
        label_names: Sequence[str] | None = None,
        label_texts: Sequence[str] | None = None,
        validation: Dataset | None = None,
        run_dir: Path | str | None = None,
        on_event: OnEvent | None = None,
    ) -> Self:
        """Train all members, then learn on held-out documents how to combine them.

        Parameters
        ----------
        texts_or_X
            (n_docs,) texts; (n_docs, n_features) features where all members are linear trees.
        labels_or_Y, label_names, label_texts
            As in `XTransformer.fit`.
        validation
            Documents that choose, weight and calibrate the members and their combination. If not given, a share of the
            training documents does, and the linear models then learn from these too: see
            `labelwise.config.HoldoutConfig`.
        run_dir
            Keep the stages' results there, and find them again: a run that was killed goes on.
        """
        config = self.config.for_training()
        if not config.members:
            raise UsageError("an ensemble needs members to train; give configurations, or use Ensemble.of(models)")
        for encoder in {one.name for member in config.members for one in member.encoders()}:
            check_named(encoder)
        data = TrainingData.of(
            texts_or_X,
            labels_or_Y,
            config.holdout,
            seed=config.seed,
            label_names=label_names,
            label_texts=label_texts,
            validation=validation,
        )
        with open_run(run_dir, on_event) as run:
            cache = StageCache(data, run, on_event)
            cache.say(*data.remark(config.holdout))
            cache.say(data.script_remark([member.tfidf for member in config.members]))
            members = fit_members(config, cache)
            if members is None:
                self.role_ = "helper"
                return self
            share_parts(members)
            report = TrainingReport(documents=len(data.documents), pairs=int(data.Y.nnz))
            held_out = [member.held_out_scores_ for member in members]
            self._assemble(members, held_out, data, report, config.holdout)
            self._take_data(data)
        return self

    @classmethod
    def of(
        cls,
        models: Sequence[Model],
        config: EnsembleConfig | None = None,
        *,
        validation: Dataset | None = None,
        on_event: OnEvent | None = None,
    ) -> Self:
        """An ensemble of fitted models over the same labels.

        Parameters
        ----------
        config
            How they are combined; its `members` do not matter.
        validation
            Documents that choose, weigh and calibrate; none of the models may have learnt from them. Without them the
            models have equal weights.
        """
        _check_alike(models)
        self = cls(replace(config or EnsembleConfig(), members=tuple(model.config for model in models)).validated())
        share_parts(models)
        labels, holdout = models[0].labels_, None
        held_out: list[Csr | None] = [None] * len(models)
        if validation is not None:
            known = validation.with_labels(labels)
            holdout = Holdout(known.Y, None, None, "split")
            reading = PredictionCache(models[0].inputs(known), threads=self.config.threads, on_event=on_event)
            depth = max(self.config.candidates_per_model, CALIBRATED_ON)
            held_out = [model.scores(reading, depth) for model in models]
        sizes = TrainingReport(documents=models[0].report_.documents, pairs=models[0].report_.pairs)
        nothing = Csr(np.zeros((0, len(labels)), np.float32))
        data = TrainingData(DocumentSource(), nothing, labels, labels, holdout)
        self._assemble(models, held_out, data, sizes, self.config.holdout)
        seen = [model.seen_ for model in models if model.seen_ is not None]
        self.seen_ = reduce(SeenDocuments.joined, seen) if seen else None
        return self

    def _assemble(
        self,
        models: Sequence[Model],
        held_out_scores: Sequence[Csr | None],
        data: TrainingData,
        report: TrainingReport,
        policy: HoldoutConfig,
    ) -> None:
        """Choose rule and weights where held-out documents can, and calibrate.

        Parameters
        ----------
        held_out_scores
            Each model's scores of the held-out documents, by models that have not seen these.
        data
            The labels, and the held-out documents.
        """
        config, evaluation, tuning = self.config, None, None
        over = self._choose_over(models)
        rule, weights = config.rule or "average", np.full(len(models), 1 / len(models))
        scores = [found for found in held_out_scores if found is not None]
        stay: Ints = np.arange(len(models))
        if data.holdout is not None and len(scores) == len(models):
            truth = data.holdout.Y
            values = [member_values(model, found, over) for model, found in zip(models, scores, strict=True)]
            scorer = HoldoutScorer(values, truth, depth=config.candidates_per_model, over=over)
            rule = config.rule or choose_rule(scorer, len(models))
            if config.prune is not None:
                stay = prune(scorer, rule, weights, config.prune)
                values, weights = [values[at] for at in stay], weights[stay] / weights[stay].sum()
                scorer = HoldoutScorer(values, truth, depth=config.candidates_per_model, over=over)
            if config.weights == "learned":
                weights = learn_weights(scorer, rule, weights)
            options: dict[str, Any] = {"weights": weights, "depth": config.candidates_per_model, "over": over}
            evaluation = evaluate_scores(combine(values, rule, **options, top_k=CALIBRATED_ON), truth)
            tuning = Tuning(trials=scorer.trials, metric="the mean of P@1, P@3 and P@5")
        shares = dict(zip(stay.tolist(), weights.tolist(), strict=True))
        members = [
            MemberResult(name=model.describe(), weight=shares.get(at), scores=model.report_.held_out_scores)
            for at, model in enumerate(models)
        ]
        # Nothing of an earlier fit is touched before all is trained.
        self.members_, self.weights_ = [models[at] for at in stay], np.asarray(weights, np.float64)
        self.rule_, self.over_, self.labels_, self.tfidf_ = rule, over, data.labels, models[0].tfidf_
        self.report_, self.holdout_ = report, policy
        self._take_evaluation(data, evaluation, policy)
        report.tuning, report.members = tuning, members

    def _choose_over(self, models: Sequence[Model]) -> ScoreSpace:
        calibrated = all(model.calibrator_ is not None for model in models)
        if self.config.combine_on == "probabilities" and not calibrated:
            raise UsageError(
                "not every member is calibrated, so there are no probabilities to combine; give validation documents, "
                "hold more documents out, or combine scores"
            )
        return self.config.combine_on or ("probabilities" if calibrated else "scores")

    # ------------------------------------------------------------------ using

    @property
    def members(self) -> tuple[Model, ...]:
        """The models whose lists are combined."""
        check_fitted(self, "members_")
        return tuple(self.members_)

    def map_members(self, change: Callable[[Model], Model]) -> Ensemble:
        """An ensemble of changed members, which may have other labels; rule, weights and calibration stay."""
        changed = copy(self)
        changed.members_ = [member.map_members(change) for member in self.members]
        changed.labels_ = changed.members_[0].labels_
        return changed

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The label trees of all members."""
        return tuple(tree for member in self.members for tree in member.trees)

    @property
    def label_levels(self) -> tuple[LevelWeights, ...]:
        """The weights of the labels' own models, for each of `trees`."""
        return tuple(level for member in self.members for level in member.label_levels)

    @property
    def encoder(self) -> TextEncoder | None:
        """The encoder of the first member that has one."""
        return next((member.encoder for member in self.members if member.encoder is not None), None)

    @property
    def history(self) -> History | None:
        """What the fine-tuning of the first member that was fine-tuned looked like."""
        return next((member.history for member in self.members if member.history is not None), None)

    @property
    def bounded_scores(self) -> bool:
        """Whether scores lie between 0 and 1: a plain average of scores does where those of all members do."""
        if self.over_ == "scores" and self.rule_ == "average":
            return all(member.bounded_scores for member in self.members)
        return True

    @property
    def combination(self) -> Combination:
        """How the lists of the members become one list."""
        return Combination(self.rule_, self.over_, self.weights_, self.config.candidates_per_model)

    def document_vectors(self, reading: PredictionCache) -> Csr | Floats:
        """(n_docs, n_features) the vectors of the first member with an encoder, of the first member without any."""
        reader = next((member for member in self.members if member.config.texts_only), self.members[0])
        return reader.document_vectors(reading)

    def inputs(self, dataset: Dataset) -> list[str] | Csr:
        """What the members read of a data set."""
        return self.members_[0].inputs(dataset)

    def _readable(self, texts_or_X: Any) -> Any:
        check_fitted(self, "members_")
        return check_texts(texts_or_X) if self.config.texts_only else super()._readable(texts_or_X)

    def scores(self, reading: PredictionCache, top_k: int) -> Csr:
        """(n_docs, n_labels) the best labels of each document with combined scores."""
        depth = max(self.config.candidates_per_model, top_k)
        values = [member_values(model, model.scores(reading, depth), self.over_) for model in self.members_]
        options: dict[str, Any] = {"weights": self.weights_, "depth": depth, "over": self.over_, "top_k": top_k}
        return combine(values, self.rule_, **options, on_event=reading.on_event)

    def title(self) -> str:
        """What it is, in a few words."""
        return f"An ensemble of {len(self.members_)} models"

    def facts(self) -> Iterator[tuple[str, str]]:
        """What it is made of."""
        yield "labels", f"{len(self.labels_):,}"
        weights = "equal weights" if np.ptp(self.weights_) < 1e-9 else "learnt weights"
        yield "scores combined by", f"{self.rule_} of {self.over_}, {weights}"
        for number, member in enumerate(self.report_.members or (), start=1):
            scores = member.scores
            figures = "  ".join(f"{name} {scores[name]:.2f}" for name in ("P@1", "P@3", "P@5")) if scores else ""
            share = "dropped" if member.weight is None else f"weight {member.weight:.3f}"
            yield f"member {number}", "; ".join(filter(None, (member.name, figures, share)))

    # ------------------------------------------------------------------ keeping

    def write(self, folder: Path, shelf: SharedParts) -> None:
        """Write into a folder that is there; what several members use lies there once."""
        check_fitted(self, "members_")
        shelf = SharedParts(folder)
        for number, model in enumerate(self.members_, start=1):
            place = folder / "members" / f"{number:02}"
            place.mkdir(parents=True)
            model.write(place, shelf)
        chosen = {"rule": self.rule_, "over": self.over_, "weights": self.weights_.tolist()}
        members = tuple(model.config for model in self.members_)
        config = replace(self.config, members=members, holdout=self.holdout_)
        self._save_common(folder, render_card(self), config=config, chosen=chosen)

    @classmethod
    def _read_folder(cls, path: Path | str, *, verify: bool = True, shelf: SharedParts | None = None) -> Self:
        path = Path(path)
        shelf, about = shelf or SharedParts.of_folder(path), saved_entries(path, cls.kind)
        settings, chosen = about.table("config"), about.table("chosen")
        n_members, weights = len(settings.get("members", list[Any])), chosen.get("weights", list[NonNegative])
        if not n_members or len(weights) != n_members or not 0 < sum(weights) <= LARGEST_FACTOR:
            raise damaged(path, f"its {len(weights)} weights are not those of {n_members} members")
        places = [path / "members" / f"{number:02}" for number in range(1, n_members + 1)]
        members = [load_model(place, verify=verify, shelf=shelf) for place in places]
        if any(model.combination is not None for model in members):
            raise damaged(path, "a member is an ensemble itself")
        others = {name: value for name, value in settings.values.items() if name != "members"}
        config = storage.restore(EnsembleConfig, others, path)
        self = cls(replace(config, members=tuple(model.config for model in members)))
        self._load_common(path, about)
        self.members_, self.weights_ = members, np.array(weights, np.float64)
        self.rule_, self.over_ = chosen.get("rule", Rule), chosen.get("over", ScoreSpace)
        self.holdout_ = config.holdout
        if any(model.labels_ != self.labels_ or model.reads_texts != members[0].reads_texts for model in members) or (
            self.over_ == "probabilities" and any(model.calibrator_ is None for model in members)
        ):
            raise damaged(path, "it holds members that do not belong together")
        self.tfidf_ = members[0].tfidf_
        share_parts(members)
        return self


def _check_alike(models: Sequence[Model]) -> None:
    if not models:
        raise UsageError("an ensemble needs models; give at least one")
    first = models[0]
    for number, model in enumerate(models, start=1):
        check_fitted(model, "labels_")
        if model.combination is not None:
            raise UsageError(f"model {number} is an ensemble itself; give its members")
        if model.labels_ != first.labels_:
            raise UsageError(
                f"model {number} has {len(model.labels_)} labels and not the {len(first.labels_)} of the first model "
                "in the same order; train all of them with the same label names"
            )
        if model.reads_texts != first.reads_texts:
            raise UsageError(f"of model 1 and model {number} one reads texts and the other features; give models alike")
