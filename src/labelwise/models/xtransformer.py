"""X-Transformer: the three stages in a row. It composes them and holds no algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from labelwise import storage
from labelwise.config import XTransformerConfig
from labelwise.config.score_transform import TRANSFORMS
from labelwise.data import Dataset
from labelwise.errors import DataError
from labelwise.features.normalize import unit_rows
from labelwise.features.pretrained import check_named
from labelwise.features.tfidf import Tfidf
from labelwise.index import Tree
from labelwise.match.base import Matcher, load_matcher
from labelwise.models.base import Model, check_fitted, saved_entries
from labelwise.models.calibrator import CALIBRATED_ON
from labelwise.models.card import render_card
from labelwise.models.growth import XTransformerGrowth
from labelwise.models.pipeline import Pipeline, assist_negatives
from labelwise.models.prediction_cache import PredictionCache
from labelwise.models.scored_trees import ScoredTree, scored_ranker_tree
from labelwise.models.stages import LABEL_TEXT_EMBEDDINGS, StageCache
from labelwise.models.training_data import TrainingData, check_texts
from labelwise.rank.level_checks import check_parents
from labelwise.rank.ranker import Inputs, Ranker
from labelwise.storage.checks import damaged
from labelwise.storage.run_directory import open_run
from labelwise.storage.shared_parts import SharedParts
from labelwise.types import Csr, Floats, OnEvent

if TYPE_CHECKING:  # an exported model needs no torch
    from labelwise.features.encoder_folder import TextEncoder
    from labelwise.match.heads import History
    from labelwise.rank.sparse_weights import LevelWeights


class XTransformer(Model):
    """Labels for texts: an encoder finds clusters of labels, linear models on tf-idf and embeddings rank the labels.

    The preset `hybrid` needs no GPU. Without a preset the encoder is fine-tuned.

    Examples
    --------
    >>> from labelwise import XTransformer
    >>> texts = ["red running shoe", "blue running shoe", "red coffee mug", "blue coffee mug"]
    >>> labels = [["shoe", "red"], ["shoe", "blue"], ["mug", "red"], ["mug", "blue"]]
    >>> model = XTransformer("hybrid", encoder="minilm").fit(texts, labels)
    >>> for suggestions in model.predict(["sneakers", "a cup"], top_k=1):  # words that no training text has
    ...     print(suggestions)
    [('shoe', 0.5...)]
    [('mug', 0.5...)]
    """

    kind = "x-transformer"
    config_class = XTransformerConfig
    config: XTransformerConfig
    tfidf_: Tfidf
    tree_: Tree
    matcher_: Matcher
    ranker_: Ranker

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

        Of several processes that a launcher started the main process gets a fitted model; the others help to fine-tune
        (see `role_`).

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
            Documents that stop the fine-tuning, choose how scores are weighted and combined, and calibrate. If not
            given, a share of the training documents does, and the ranker then learns from these too: see
            `labelwise.config.HoldoutConfig`.
        run_dir
            Keep the stages' results there, and find them again.
        """
        config = self.config.validated()
        check_named(config.encoder.name)
        data = TrainingData.of(
            texts,
            labels_or_Y,
            config.holdout,
            seed=config.seed,
            label_names=label_names,
            label_texts=label_texts,
            validation=validation,
            texts_only=True,
        )
        with open_run(run_dir, on_event) as run:
            cache = StageCache(data, run, on_event)
            pipeline = Pipeline(config, cache)
            pipeline.device()  # a missing GPU is reported before the work
            cache.say(*data.remark(config.holdout))
            cache.say(data.script_remark([config.tfidf]))
            self.role_ = pipeline.role
            pipeline.documents()  # as tf-idf, tokens and pretrained embeddings
            pipeline.clusters()  # of the label tree over the label embedding
            cache.forget(LABEL_TEXT_EMBEDDINGS)
            if self.role_ == "helper":
                pipeline.assist()
                assist_negatives([pipeline])
                return self
            pipeline.matcher()  # fine-tuned on the clusters
            self.fit_stages(pipeline)
            self._take_data(data)
        return self

    def fit_stages(self, pipeline: Pipeline, depth: int = CALIBRATED_ON) -> None:
        """Train what comes after the matcher: the ranker below its clusters, and the calibration.

        Parameters
        ----------
        depth
            Labels of each held-out document whose scores are kept in `held_out_scores_`.
        """
        data = pipeline.data
        fitted = pipeline.ranker(depth)
        evaluation = pipeline.calibration(fitted.held_out_scores)
        # Nothing of an earlier fit is touched before all is trained.
        self.tfidf_, self.labels_ = cast(Tfidf, pipeline.tfidf()), data.labels
        self.matcher_, self.tree_, self.ranker_ = pipeline.matcher(), pipeline.clusters(), fitted.ranker
        self.exemplars_, self.held_out_scores_ = None, fitted.held_out_scores
        self.report_ = replace(fitted.report, documents=len(data.documents), pairs=int(data.Y.nnz))
        self._take_evaluation(data, evaluation, pipeline.config.holdout)

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
    def matcher(self) -> Matcher:
        """The matcher that finds clusters."""
        return self.matcher_

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

    def scored_trees(self, reading: PredictionCache, top_k: int) -> tuple[ScoredTree, ...]:
        """The label tree with the scores of one text, for explanations."""
        return scored_ranker_tree(self, reading)

    def document_vectors(self, reading: PredictionCache) -> Floats:
        """(n_docs, hidden) embeddings of length one."""
        return unit_rows(reading.match(self.matcher_, self.tfidf_, 1)[0])

    def growth(self) -> XTransformerGrowth:
        """What `labelwise.incremental` needs to add and remove labels."""
        check_fitted(self, "ranker_")
        return XTransformerGrowth(self)

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
            own = chosen.label_weight
            parts = f"embedding {chosen.dense_weight:g}" if own is None else f"network {own:g}"
            weights = f"weights: {parts}, cluster {chosen.matcher_weight:g}"
            yield "scores combined by", f"{chosen.score_transform}; {weights}"

    # ------------------------------------------------------------------ keeping

    def write(self, folder: Path, shelf: SharedParts) -> None:
        """Write into a folder that is there."""
        check_fitted(self, "ranker_")
        shelf.save(self.tfidf_, folder / "tfidf")
        self.tree_.save(folder / "index")
        more = self.matcher_.write(folder / "matcher", shelf)
        self.ranker_.save(folder / "ranker")
        self._save_common(folder, render_card(self), **more)

    @classmethod
    def _read_folder(cls, path: Path | str, *, verify: bool = True, shelf: SharedParts | None = None) -> Self:
        path = Path(path)
        shelf, about = shelf or SharedParts.of_folder(path), saved_entries(path, cls.kind)
        config = storage.restore(cls.config_class, about.get("config", dict[str, Any]), path)
        # Where it was trained says nothing of where it is used.
        self = cls(replace(config, matcher=replace(config.matcher, device=None)))
        self._load_common(path, about)
        self.tfidf_ = shelf.load(path / "tfidf", Tfidf.load)
        self.tree_ = Tree.load(path / "index", verify=verify)
        self.matcher_ = load_matcher(path / "matcher", about.values, shelf, fine_tuned=config.fine_tune, verify=verify)
        self.ranker_ = Ranker.load(path / "ranker", verify=verify)
        self._check_parts(path)
        self._load_exemplars(path, self.tfidf_.n_features, verify=verify)
        return self

    def _check_parts(self, path: Path) -> None:
        """Refuse parts that do not belong together."""
        tree, matcher, ranker, reads = self.tree_, self.matcher_, self.ranker_, self.config.features
        n_features, n_dense = self.tfidf_.n_features, matcher.encoder_.hidden_size
        check_parents(ranker.level, tree.clusters, tree.n_clusters, path)
        if (
            tree.n_labels != len(self.labels_)
            or matcher.n_clusters != tree.n_clusters
            or matcher.n_features not in (None, n_features)
            or ranker.n_features != (0 if reads == "neural" else n_features)
            or ranker.level.dense.shape[1] != (0 if reads == "tfidf" else n_dense) + 1
        ):
            raise damaged(path, "tf-idf, label tree, matcher and ranker do not belong together")
