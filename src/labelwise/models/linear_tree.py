"""The models: they compose the stages and hold no algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import scipy.sparse as sp

from labelwise import storage
from labelwise.config import LinearTreeConfig
from labelwise.config.score_transform import TRANSFORMS
from labelwise.data import Dataset
from labelwise.data.frames import plain_documents
from labelwise.data.targets import canonical, targets
from labelwise.errors import DataError
from labelwise.features.tfidf import Tfidf
from labelwise.index import Tree, build_tree, embed_labels
from labelwise.models.base import CALIBRATED_ON, Model, check_fitted, fit_tfidf
from labelwise.models.card import render_card
from labelwise.models.prediction_cache import PredictionCache
from labelwise.models.shared_parts import SharedParts
from labelwise.models.training_report import TrainingReport
from labelwise.predictions.ranking import mean_best
from labelwise.rank.features import Features
from labelwise.rank.nearest import NeighbourSearch
from labelwise.rank.search import BeamSearch
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.rank.tree import TrainedTree, train_tree
from labelwise.storage.run_directory import RunDirectory, fitting, kept
from labelwise.types import Csr, OnEvent


class LinearTree(Model):
    """Labels for texts, or for rows of features, by a tree of linear models: Parabel, XR-Linear and their kin.

    >>> model = LinearTree().fit(train.texts, train.Y, label_names=train.labels)
    >>> model.predict(["council regulation on fishing quotas"], top_k=3)[0]
    [('fishery management', 0.91), ...]
    """

    tfidf_: Tfidf | None
    """None if the model was fitted on features."""
    trees_: tuple[TrainedTree, ...]
    n_features_: int
    kind = "linear-tree"
    config_class = LinearTreeConfig
    config: LinearTreeConfig

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
            Documents that scores are calibrated on, so that predictions are probabilities.
        run_dir
            Keep the stages' results there, and find them again: a folder, or a run that is open.
        """
        config = self.config.validated()
        Y, labels = targets(labels_or_Y, label_names)
        with fitting(run_dir, on_event) as run:
            hook = run.on_event if run else on_event
            tfidf, X = self._fit_features(texts_or_X, run, hook)
            if X.shape[0] != Y.shape[0]:
                raise DataError(f"there are {X.shape[0]} documents but {Y.shape[0]} rows of labels; they must match")
            features = Features.of(X, bias=config.ranker.bias)

            def train(seed: int) -> TrainedTree:
                index = config.index
                embedded = partial(
                    embed_labels, Y, X, normalize_documents=index.normalize_documents, threads=config.threads
                )
                tree = build_tree(
                    embedded(), index, seed=seed, threads=config.threads, on_event=hook
                )  # let go of before the models are trained
                return train_tree(features, Y, tree, config, seed=seed, on_event=hook)

            def found(seed: int) -> TrainedTree:
                inputs = {"config": replace(config, n_trees=1, seed=seed), "X": X, "Y": Y}
                return kept(run, "tree", inputs, partial(train, seed), TrainedTree.save, TrainedTree.load)

            trees = tuple(found(config.seed + number) for number in range(config.n_trees))
            # Nothing of an earlier fit is touched before all is trained.
            self.tfidf_, self.labels_, self.trees_, self.n_features_ = tfidf, labels, trees, X.shape[1]
            self.calibrator_ = self.exemplars_ = None
            self.report_ = TrainingReport(documents=int(Y.shape[0]), pairs=int(Y.nnz))
            self._searches = self._make_searches()
            if validation is not None:
                self.calibrate(validation, on_event=hook)
        return self

    def _fit_features(
        self, texts_or_X: Any, run: RunDirectory | None, on_event: OnEvent | None
    ) -> tuple[Tfidf | None, Csr]:
        texts_or_X = plain_documents(texts_or_X)
        if sp.issparse(texts_or_X):
            return None, canonical(texts_or_X)
        config, threads = self.config.tfidf, self.config.threads
        if run is None:
            tfidf = Tfidf(config, threads=threads)
            return tfidf, tfidf.fit_transform(texts_or_X, on_event=on_event)
        texts = list(texts_or_X)
        tfidf = fit_tfidf(config, texts, run, threads=threads, on_event=on_event)
        return tfidf, tfidf.transform(texts, threads=threads, on_event=on_event)

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
        # Of several trees more than asked for, as many for any small top_k: the first five do not depend on it.
        wanted = top_k if len(searches) == 1 else 2 * max(top_k, CALIBRATED_ON)
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
        yield "features", f"{self.n_features_:,}" + ("" if self.tfidf_ is None else ", tf-idf of the texts")
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
    def load(cls, path: Path | str, *, verify: bool = True, shelf: SharedParts | None = None) -> Self:
        """Read what `save` wrote; weights are mapped into memory, nothing in the folder is executed."""
        path, shelf = Path(path), shelf or SharedParts()
        about = storage.read_description(path, kind=cls.kind)["config"]
        self = cls(storage.restore(LinearTreeConfig, about["config"], path))
        self.n_features_ = about["n_features"]
        self._load_common(path, about)
        self.tfidf_ = shelf.load(path / "tfidf", Tfidf.load) if shelf.has(path / "tfidf") else None
        self.trees_ = tuple(TrainedTree.load(path / f"tree-{i}", verify=verify) for i in range(self.config.n_trees))
        self._searches = self._make_searches()
        return self
