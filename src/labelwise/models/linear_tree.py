"""LinearTree: a model of linear stages only. It composes them and holds no algorithm."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from labelwise import storage
from labelwise.config import LinearTreeConfig
from labelwise.config.score_transform import TRANSFORMS
from labelwise.data import Dataset
from labelwise.errors import DataError
from labelwise.features.tfidf import Tfidf
from labelwise.index import Tree
from labelwise.models.base import Model, check_fitted, saved_entries
from labelwise.models.calibrator import CALIBRATED_ON
from labelwise.models.card import render_card
from labelwise.models.fitted_tree import labels_per_tree
from labelwise.models.growth import LinearTreeGrowth
from labelwise.models.pipeline import Pipeline
from labelwise.models.prediction_cache import PredictionCache
from labelwise.models.scored_trees import ScoredTree, scored_linear_trees
from labelwise.models.stages import StageCache
from labelwise.models.training_data import TrainingData
from labelwise.models.training_report import TrainingReport
from labelwise.predictions.ranking import mean_best
from labelwise.rank.features import Features
from labelwise.rank.nearest import NeighbourSearch
from labelwise.rank.search import BeamSearch
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.rank.tree import TrainedTree
from labelwise.storage.checks import LARGEST_FACTOR, FeatureCount, damaged
from labelwise.storage.run_directory import RunDirectory, open_run
from labelwise.storage.shared_parts import SharedParts
from labelwise.types import Csr, OnEvent


class LinearTree(Model):
    """Labels for texts, or for rows of features, by a tree of linear models: Parabel, XR-Linear and others.

    Examples
    --------
    >>> from labelwise import LinearTree
    >>> texts = ["red running shoe", "blue running shoe", "red coffee mug", "blue coffee mug"]
    >>> labels = [["shoe", "red"], ["shoe", "blue"], ["mug", "red"], ["mug", "blue"]]
    >>> model = LinearTree().fit(texts, labels)
    >>> model.predict(["a red shoe"], top_k=2)[0]
    [('red', 0.9...), ('shoe', 0.6...)]
    """

    tfidf_: Tfidf | None
    """None if the model was fitted on features."""
    trees_: tuple[TrainedTree, ...]
    n_features_: int
    kind = "linear-tree"
    config_class = LinearTreeConfig
    config: LinearTreeConfig
    reads_label_texts = False

    # ------------------------------------------------------------------ fitting

    def fit(
        self,
        texts_or_X: Sequence[str] | Csr,
        labels_or_Y: Sequence[Sequence[str]] | Csr,
        *,
        label_names: Sequence[str] | None = None,
        validation: Dataset | None = None,
        run_dir: Path | str | RunDirectory | None = None,
        on_event: OnEvent | None = None,
    ) -> Self:
        """Train on texts, or on features, with lists of label names, or with a label matrix.

        Parameters
        ----------
        texts_or_X
            (n_docs,) texts or (n_docs, n_features) sparse features.
        labels_or_Y
            (n_docs,) lists of label names or (n_docs, n_labels) 0/1 matrix.
        label_names
            (n_labels,) what the columns of a label matrix are called; their numbers if not given.
        validation
            Documents that calibrate, so that predictions are probabilities. If not given, a share of the training
            documents does, and the models then learn from these too: see `labelwise.config.HoldoutConfig`.
        run_dir
            Keep the stages' results there, and find them again: a folder, or a run that is open.
        """
        config = self.config.validated()
        data = TrainingData.of(
            texts_or_X,
            labels_or_Y,
            config.holdout,
            seed=config.seed,
            label_names=label_names,
            validation=validation,
        ).for_calibration_only(config.holdout)
        with open_run(run_dir, on_event) as run:
            cache = StageCache(data, run, on_event)
            cache.say(*data.remark(config.holdout))
            cache.say(data.script_remark([config.tfidf]))
            self.fit_stages(Pipeline(config, cache))
            self._take_data(data)
        return self

    def fit_stages(self, pipeline: Pipeline, depth: int = CALIBRATED_ON) -> None:
        """Train on data that other models may share: tf-idf, and for each tree its clusters and its linear models.

        Parameters
        ----------
        depth
            Labels of each held-out document whose scores are kept in `held_out_scores_`.
        """
        config, data, n_trees = self.config, pipeline.data, self.config.n_trees
        X, tfidf = pipeline.features(), pipeline.tfidf()  # in this order the texts are read once
        seeds = [config.seed + number for number in range(n_trees)]
        wanted = labels_per_tree(depth, max(n_trees, 2))  # the first tree is the same, however many follow
        fitted = [pipeline.with_seed(seed).levels(wanted) for seed in seeds]
        scores = [tree.held_out_scores for tree in fitted if tree.held_out_scores is not None]
        held_out = mean_best(scores, depth) if scores else None
        evaluation = pipeline.calibration(held_out)
        # Nothing of an earlier fit is touched before all is trained.
        self.tfidf_, self.labels_, self.n_features_ = tfidf, data.labels, X.shape[1]
        self.trees_ = tuple(tree.tree for tree in fitted)
        self.exemplars_, self.held_out_scores_ = None, held_out
        self.report_ = TrainingReport(documents=len(data.documents), pairs=int(data.Y.nnz))
        self._take_evaluation(data, evaluation, pipeline.config.holdout)
        self._searches = self._make_searches()

    # ------------------------------------------------------------------ using

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The label trees, whose scores are averaged."""
        return tuple(trained.tree for trained in self.trees_)

    @property
    def label_levels(self) -> tuple[LevelWeights, ...]:
        """The weights of the labels' own models, for each tree."""
        return tuple(trained.levels[-1] for trained in self.trees_)

    @property
    def bounded_scores(self) -> bool:
        """Whether scores lie between 0 and 1: all do but those of the labels' models alone."""
        return TRANSFORMS[self.config.score_transform].bounded

    def scored_trees(self, reading: PredictionCache, top_k: int) -> tuple[ScoredTree, ...]:
        """The label trees with the scores of one text, for explanations."""
        return scored_linear_trees(self, reading, top_k)

    def growth(self) -> LinearTreeGrowth:
        """What `labelwise.incremental` needs to add and remove labels."""
        check_fitted(self, "trees_")
        return LinearTreeGrowth(self)

    def inputs(self, dataset: Dataset) -> list[str] | Csr:
        """What the model reads of a data set: the texts, or the features if it was fitted on those."""
        found = dataset.texts if self.tfidf_ is not None else dataset.features
        if found is None:
            kinds = ("texts", "features") if self.tfidf_ is not None else ("features", "texts")
            raise DataError("the model was fitted on {}, but the data have only {}".format(*kinds))
        return found

    def scores(self, reading: PredictionCache, top_k: int) -> Csr:
        """(n_docs, n_labels) the best labels of each document with the model's own scores."""
        config, searches = self.config, self._fitted()
        X = reading.features(self.tfidf_)
        if X.shape[1] != self.n_features_:
            raise DataError(f"X has {X.shape[1]} columns but the model was fitted on {self.n_features_} features")
        documents = Features.of(X, bias=config.ranker.bias)
        wanted = labels_per_tree(top_k, len(searches))
        options: dict[str, Any] = {"beam": config.beam, "threads": reading.threads, "on_event": reading.on_event}
        parts = [search.top(documents, top_k=wanted, **options) for search in searches]
        if len(parts) == 1:
            return parts[0]
        return mean_best(parts, top_k)

    def title(self) -> str:
        """What it is, in a few words."""
        return "A tree of linear models"

    def facts(self) -> Iterator[tuple[str, str]]:
        """What it is made of."""
        yield "labels", f"{len(self.labels_):,} in {self.trees_[0].tree.n_clusters:,} clusters"
        yield "features", f"{self.n_features_:,}" + ("" if self.tfidf_ is None else f", {self.tfidf_.description}")
        if len(self.trees_) > 1:
            yield "trees", f"{len(self.trees_)}, averaged"

    def _make_searches(self) -> list[BeamSearch | NeighbourSearch]:
        return [tree.search(self.n_features_, self.config) for tree in self.trees_]

    def _fitted(self) -> list[BeamSearch | NeighbourSearch]:
        check_fitted(self, "trees_")
        return self._searches

    # ------------------------------------------------------------------ keeping

    def write(self, folder: Path, shelf: SharedParts) -> None:
        """Write into a folder that is there."""
        self._fitted()
        if self.tfidf_ is not None:
            shelf.save(self.tfidf_, folder / "tfidf")
        for number, tree in enumerate(self.trees_):
            tree.save(folder / f"tree-{number}")
        self._save_common(folder, render_card(self), n_features=self.n_features_)

    @classmethod
    def _read_folder(cls, path: Path | str, *, verify: bool = True, shelf: SharedParts | None = None) -> Self:
        path = Path(path)
        shelf, about = shelf or SharedParts.of_folder(path), saved_entries(path, cls.kind)
        self = cls(storage.restore(cls.config_class, about.get("config", dict[str, Any]), path))
        self.n_features_ = n_features = about.get("n_features", FeatureCount)
        self._load_common(path, about)
        self.tfidf_ = shelf.load(path / "tfidf", Tfidf.load) if shelf.has(path / "tfidf") else None
        if self.tfidf_ is not None and self.tfidf_.n_features != n_features:
            raise damaged(path, f"its tf-idf has {self.tfidf_.n_features} features, its weights {n_features}")
        if self.config.ranker.bias > LARGEST_FACTOR:
            raise damaged(path, f"the bias is above {LARGEST_FACTOR:g}")
        if os.path.lexists(path / f"tree-{self.config.n_trees}"):
            raise damaged(path, f"it has more trees than the {self.config.n_trees} of its config.json")
        places = (path / f"tree-{number}" for number in range(self.config.n_trees))
        self.trees_ = tuple(TrainedTree.load(place, n_features=n_features, verify=verify) for place in places)
        if any(tree.n_labels != len(self.labels_) for tree in self.trees):
            raise damaged(path, f"a label tree is not of its {len(self.labels_)} labels")
        self._load_exemplars(path, n_features, verify=verify)
        self._searches = self._make_searches()
        return self
