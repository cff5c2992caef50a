"""X-Transformer: the three stages in a row. It composes them and holds no algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from labelwise import storage
from labelwise.config import XTransformerConfig
from labelwise.config.score_transform import TRANSFORMS
from labelwise.data import Dataset
from labelwise.errors import DataError
from labelwise.features.encoder_folder import is_exported, load_encoder
from labelwise.features.tfidf import Tfidf
from labelwise.index import Tree
from labelwise.match.exported import ExportedMatcher
from labelwise.match.frozen import FrozenMatcher
from labelwise.match.shared import SharedMatcherView
from labelwise.models.base import CALIBRATED_ON, Model, check_fitted
from labelwise.models.card import render_card
from labelwise.models.fitting.source import Source, check_texts
from labelwise.models.fitting.workbench import Workbench
from labelwise.models.prediction_cache import PredictionCache
from labelwise.models.shared_parts import SharedParts
from labelwise.rank.ranker import Inputs, Ranker
from labelwise.storage.run_directory import fitting
from labelwise.types import Csr, OnEvent

if TYPE_CHECKING:  # what trains needs torch, an exported model does not
    from labelwise.features.encoder_folder import TextEncoder
    from labelwise.match.finetuned import FineTunedMatcher
    from labelwise.match.heads import History
    from labelwise.models.fitting.stages import Stages
    from labelwise.models.prediction_cache import AnyMatcher
    from labelwise.rank.sparse_weights import LevelWeights


class XTransformer(Model):
    """Labels for texts: an encoder finds clusters of labels, linear models on tf-idf and embeddings rank the labels.

    >>> model = XTransformer().fit(train.texts, train.Y, label_names=train.labels, validation=validation)
    >>> model.predict(["council regulation on fishing quotas"], top_k=3)[0]
    [('fishery management', 0.93), ...]
    """

    kind = "x-transformer"
    config_class = XTransformerConfig
    config: XTransformerConfig
    tfidf_: Tfidf
    tree_: Tree
    matcher_: AnyMatcher
    ranker_: Ranker
    held_: Csr | None
    """Scores of the held-out documents' best labels, by a ranker that had not seen them; there after `fit` only."""

    # ------------------------------------------------------------------ fitting

    def fit(
        self,
        texts: Sequence[str],
        labels_or_Y: Sequence[Sequence[str]] | Csr,
        *,
        label_names: Sequence[str] | None = None,
        label_texts: Sequence[str] | None = None,
        validation: Dataset | None = None,
        run_dir: Path | str | None = None,
        on_event: OnEvent | None = None,
    ) -> Self:
        """Train on texts with lists of label names, or with a label matrix.

        Of several processes that a launcher started the first gets a fitted model; the others help to fine-tune.

        Parameters
        ----------
        texts
            (n_docs,) texts.
        labels_or_Y
            (n_docs,) lists of label names or (n_docs, n_labels) 0/1 matrix.
        label_names
            (n_labels,) what the columns of a label matrix are called; their numbers if not given.
        label_texts
            (n_labels,) what the labels mean, for the label embedding text-emb; their names if not given.
        validation
            Documents that say when to stop fine-tuning, how to weigh and combine scores, and what scores mean; the
            ranker learns from them afterwards with `learn_validation`. If not given, a share of the training documents
            does (`hold_out`), and the ranker then learns from all of them.
        run_dir
            Keep the stages' results there, and find them again.
        """
        from labelwise.match.training.distributed import joined
        from labelwise.models.fitting.ground import Ground
        from labelwise.models.fitting.stages import Stages

        config = self.config.validated()
        source = Source.of(
            texts,
            labels_or_Y,
            label_names=label_names,
            label_texts=label_texts,
            validation=validation,
            hold_out=config.holdout.share,
            seed=config.seed,
            learn_validation=config.holdout.learn_validation,
        )
        with fitting(run_dir, on_event) as run:
            ground = Ground(config, Workbench(source, run, on_event))
            ground.device()  # say before the work that there is none
            trees = [ground.index()]
            stages = Stages(ground)
            if not joined().first:
                stages.take_part(trees)
                stages.take_part_unseen(trees)
                return self
            self.fit_ranker(stages, stages.matcher(trees), trees)
        return self

    def fit_ranker(
        self, stages: Stages, matcher: AnyMatcher, trees: Sequence[Tree], depth: int = CALIBRATED_ON
    ) -> None:
        """Train what comes after the matcher, which may be one tree's share of a matcher of several trees.

        Parameters
        ----------
        trees
            All trees of the matcher.
        depth
            Labels of each held-out document that are kept in `held_`.
        """
        ranked, source = stages.ranked(matcher, trees, depth), stages.ground.source
        # Nothing of an earlier fit is touched before all is trained.
        self.tfidf_, self.labels_, self.matcher_ = stages.ground.tfidf(), source.labels, matcher
        self.tree_ = trees[matcher.group if isinstance(matcher, SharedMatcherView) else 0]
        self.ranker_, self.calibrator_, self.held_ = ranked.ranker, ranked.calibrator, ranked.held
        self.exemplars_ = None
        self.report_ = replace(ranked.report, documents=int(source.Y.shape[0]), pairs=int(source.Y.nnz))
        if ranked.report.validation is not None:
            self.report_.validation = replace(ranked.report.validation, **source.held_out)

    # ------------------------------------------------------------------ using

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The label tree."""
        return (self.tree_,)

    @property
    def label_levels(self) -> tuple[LevelWeights, ...]:
        """The weights of the labels' own models."""
        return (self.ranker_.level,)

    @property
    def encoder(self) -> TextEncoder:
        """The encoder of the matcher."""
        return self.matcher_.encoder_

    @property
    def history(self) -> History | None:
        """What the fine-tuning looked like; None where the encoder is as it was pretrained."""
        return self.matcher_.history_

    @property
    def bounded_scores(self) -> bool:
        """Whether scores lie between 0 and 1: all do but those of the labels' models alone."""
        return TRANSFORMS[self.ranker_.score_transform].bounded

    def inputs(self, dataset: Dataset) -> list[str]:
        """What the model reads of a data set: its texts."""
        if dataset.texts is None:
            raise DataError("the model reads texts, but the data have only features")
        return dataset.texts

    def _readable(self, texts_or_X: Any) -> list[str]:
        check_fitted(self, "ranker_")
        return check_texts(texts_or_X)

    def scores(self, reading: PredictionCache, top_k: int) -> Csr:
        """(n_docs, n_labels) the best labels of each text with the model's own scores."""
        config, X = self.config, reading.features(self.tfidf_)
        E, found = reading.match(self.matcher_, self.tfidf_, config.beam)
        inputs = Inputs.of(config.features, X, E, found)
        return self.ranker_.top(inputs, top_k, threads=reading.threads, on_event=reading.on_event)

    def title(self) -> str:
        """What it is, in a few words."""
        kind = "X-Transformer" if self.config.fine_tune else "A frozen encoder beside tf-idf"
        return f"{kind} ({Path(self.config.encoder.name).name})"

    def facts(self) -> Iterator[tuple[str, str]]:
        """What it is made of."""
        config, report = self.config, self.report_
        yield "labels", f"{len(self.labels_):,} in {self.tree_.n_clusters:,} clusters by {config.label_embedding}"
        on = "labels and clusters" if config.matcher.learn_labels else "the clusters"
        tuned = f"fine-tuned on {on}" if config.fine_tune else "as it was pretrained"
        yield "encoder", f"{Path(config.encoder.name).name}, {config.encoder.max_length} tokens of a text, {tuned}"
        if self.matcher_.encoder_.form:
            yield "form of the encoder", self.matcher_.encoder_.form
        if report.recall is not None:
            found = ", ".join(f"{value:.1f} % among {top}" for top, value in report.recall.items())
            yield "true clusters found", f"{found} (held-out documents)"
        if report.chosen is not None:
            chosen = report.chosen
            own = "label_weight" in chosen
            parts = f"network {chosen['label_weight']:g}" if own else f"embedding {chosen['dense_weight']:g}"
            weights = f"weights: {parts}, cluster {chosen['matcher_weight']:g}"
            transform = chosen.get("score_transform") or chosen["combine"]  # as format version 1 calls it
            yield "scores combined by", f"{transform}; {weights}"

    # ------------------------------------------------------------------ keeping

    def write(self, folder: Path, shelf: SharedParts) -> None:
        """Write into a folder that is there."""
        check_fitted(self, "ranker_")
        matcher, more = self.matcher_, {}
        shelf.save(self.tfidf_, folder / "tfidf")
        self.tree_.save(folder / "index")
        if isinstance(matcher, SharedMatcherView):
            shelf.save(matcher.joint, folder / "matcher")
            more = {"group": matcher.group}
        elif isinstance(matcher, FrozenMatcher):
            matcher.save(folder / "matcher", encoder=False)
            shelf.save(matcher.encoder_, folder / "matcher" / "encoder")
        else:
            matcher.save(folder / "matcher")
        self.ranker_.save(folder / "ranker")
        self._save_common(folder, render_card(self), **more)

    @classmethod
    def load(cls, path: Path | str, *, verify: bool = True, shelf: SharedParts | None = None) -> Self:
        """Read what `save` wrote; weights are mapped into memory, nothing in the folder is executed."""
        path, shelf = Path(path), shelf or SharedParts()
        about = storage.read_description(path, kind=cls.kind)["config"]
        config = storage.restore(XTransformerConfig, about["config"], path)
        # Where it was trained says nothing of where it is used.
        self = cls(replace(config, matcher=replace(config.matcher, device=None)))
        self._load_common(path, about)
        self.tfidf_ = shelf.load(path / "tfidf", Tfidf.load)
        self.tree_ = Tree.load(path / "index", verify=verify)
        if config.fine_tune:
            matcher = shelf.load(path / "matcher", partial(_load_matcher, verify=verify))
            self.matcher_ = SharedMatcherView(matcher, about["group"]) if "group" in about else matcher
        else:
            encoder = shelf.load(path / "matcher" / "encoder", load_encoder)
            device = _device() if encoder.trainable else None
            self.matcher_ = FrozenMatcher.load(path / "matcher", encoder=encoder, device=device, verify=verify)
        self.ranker_ = Ranker.load(path / "ranker", verify=verify)
        return self


def _load_matcher(path: Path, *, verify: bool) -> FineTunedMatcher | ExportedMatcher:
    """The fine-tuned matcher of a folder; torch is imported where it computes."""
    if is_exported(path / "encoder"):
        return ExportedMatcher.load(path, verify=verify)
    from labelwise.match.finetuned import FineTunedMatcher

    return FineTunedMatcher.load(path, device=_device(), verify=verify)


def _device() -> str | None:
    from labelwise.models.fitting.ground import choose_device

    return choose_device(None)
