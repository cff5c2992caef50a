"""Estimators for scikit-learn: pipelines, grid searches and cross-validation with labelwise's models.

>>> from labelwise.sklearn import LinearTreeClassifier
>>> classifier = LinearTreeClassifier(preset="parabel", cost=2.0, top_k=5).fit(texts, Y)
>>> classifier.predict(texts)                    # (n_docs, n_labels) 0/1
>>> classifier.model_.save("my-model")           # a model like any other

Parameters that are None are as the preset says. What all estimators have:

preset
    A name (`labelwise.config.presets.preset_names`), a TOML file, or a configuration.
top_k, threshold
    `predict` gives the best `top_k` labels of a document that reach the probability `threshold`; None for no limit.
candidates
    Labels of a document that get scores and probabilities; all others have 0.
sparse_output
    Sparse or dense answers; "auto": sparse where y was sparse or lists of names.
hold_out
    Share of the documents that is held out: these documents choose settings that are left open, and calibrate.
calibrate
    Fit probabilities on the held-out documents; False: `predict_proba` gives scores between 0 and 1.
run_dir
    Keep the stages' results there and find them again: a grid search computes tf-idf of a fold once.
on_event
    Hears of progress.
random_state
    A seed; None for the preset's.
n_jobs
    Threads; None or -1 for all cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelwise.config import (
    Analyzer,
    EnsembleConfig,
    LabelEmbedding,
    LinearTreeConfig,
    Matching,
    MemberWeights,
    Negatives,
    RankerFeatures,
    RankerLoss,
    Rule,
    ScoreSpace,
    ScoreTransform,
    XTransformerConfig,
)
from labelwise.config.presets import load_preset
from labelwise.config.settings import shown
from labelwise.errors import UsageError, need
from labelwise.types import OnEvent

need("sklearn", extra="sklearn", purpose="the estimators of labelwise.sklearn")

from labelwise.sklearn.estimator import LabelwiseClassifier, SparseOutput  # noqa: E402

__all__ = ["EnsembleClassifier", "LinearTreeClassifier", "XTransformerClassifier"]


class LinearTreeClassifier(LabelwiseClassifier):
    """`labelwise.LinearTree`: Parabel, XR-Linear, Bonsai, DiSMEC and others like these, on texts or on features."""

    _config_class = LinearTreeConfig

    def __init__(
        self,
        preset: str | Path | LinearTreeConfig = "default",
        *,
        n_trees: int | None = None,
        matching: Matching | None = None,
        beam: int | None = None,
        score_transform: ScoreTransform | None = None,
        loss: RankerLoss | None = None,
        cost: float | None = None,
        positive_weight: float | None = None,
        negatives: Negatives | None = None,
        weight_threshold: float | None = None,
        n_clusters: int | None = None,
        branching: int | None = None,
        max_leaf: int | None = None,
        analyzer: Analyzer | None = None,
        ngram_range: tuple[int, int] | None = None,
        min_df: int | float | None = None,
        max_df: int | float | None = None,
        max_features: int | None = None,
        opening: int | None = None,
        hold_out: float | None = None,
        calibrate: bool | None = None,
        top_k: int | None = None,
        threshold: float | None = 0.5,
        candidates: int = 100,
        sparse_output: SparseOutput = "auto",
        run_dir: Path | str | None = None,
        on_event: OnEvent | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.preset, self.n_trees, self.matching, self.beam, self.score_transform = (
            preset,
            n_trees,
            matching,
            beam,
            score_transform,
        )
        self.loss, self.cost, self.positive_weight, self.negatives = loss, cost, positive_weight, negatives
        self.weight_threshold, self.n_clusters, self.branching = weight_threshold, n_clusters, branching
        self.max_leaf, self.analyzer, self.ngram_range, self.min_df = max_leaf, analyzer, ngram_range, min_df
        self.max_df, self.max_features, self.opening = max_df, max_features, opening
        self.hold_out, self.calibrate, self.top_k = hold_out, calibrate, top_k
        self.threshold, self.candidates, self.sparse_output = threshold, candidates, sparse_output
        self.run_dir, self.on_event, self.random_state, self.n_jobs = run_dir, on_event, random_state, n_jobs


class XTransformerClassifier(LabelwiseClassifier):
    """`labelwise.XTransformer` on texts; needs the extra `neural`. preset="hybrid" does not fine-tune, for CPUs."""

    _texts_only = True
    _config_class = XTransformerConfig

    def __init__(
        self,
        preset: str | Path | XTransformerConfig = "x-transformer",
        *,
        encoder: str | None = None,
        max_length: int | None = None,
        label_embedding: LabelEmbedding | None = None,
        fine_tune: bool | None = None,
        features: RankerFeatures | None = None,
        beam: int | None = None,
        score_transform: ScoreTransform | None = None,
        epochs: float | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        head_learning_rate: float | None = None,
        device: str | None = None,
        cost: float | None = None,
        negatives: Negatives | None = None,
        weight_threshold: float | None = None,
        n_clusters: int | None = None,
        max_leaf: int | None = None,
        ngram_range: tuple[int, int] | None = None,
        min_df: int | float | None = None,
        max_features: int | None = None,
        opening: int | None = None,
        hold_out: float | None = None,
        calibrate: bool | None = None,
        top_k: int | None = None,
        threshold: float | None = 0.5,
        candidates: int = 100,
        sparse_output: SparseOutput = "auto",
        run_dir: Path | str | None = None,
        on_event: OnEvent | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.preset, self.encoder, self.max_length, self.label_embedding = preset, encoder, max_length, label_embedding
        self.fine_tune, self.features, self.beam, self.score_transform = fine_tune, features, beam, score_transform
        self.epochs, self.steps, self.batch_size, self.learning_rate = epochs, steps, batch_size, learning_rate
        self.head_learning_rate, self.device, self.cost, self.negatives = head_learning_rate, device, cost, negatives
        self.weight_threshold, self.n_clusters, self.max_leaf = weight_threshold, n_clusters, max_leaf
        self.ngram_range, self.min_df, self.max_features, self.opening = ngram_range, min_df, max_features, opening
        self.hold_out, self.calibrate = hold_out, calibrate
        self.top_k, self.threshold, self.candidates = top_k, threshold, candidates
        self.sparse_output, self.run_dir, self.on_event = sparse_output, run_dir, on_event
        self.random_state, self.n_jobs = random_state, n_jobs


class EnsembleClassifier(LabelwiseClassifier):
    """`labelwise.Ensemble` of models by their presets, on texts, or on features where all of them are linear.

    Parameters
    ----------
    members
        Presets or configurations, one for each model.
    rule, combine_on, weights, prune, candidates_per_model
        As in `labelwise.EnsembleConfig`.
    """

    _config_class = EnsembleConfig
    _not_settings = ("members",)

    def __init__(
        self,
        members: Sequence[str | Path | LinearTreeConfig | XTransformerConfig] = ("default", "bonsai"),
        *,
        rule: Rule | None = None,
        combine_on: ScoreSpace | None = None,
        weights: MemberWeights | None = None,
        share_encoder: bool | None = None,
        prune: float | None = None,
        candidates_per_model: int | None = None,
        hold_out: float | None = None,
        calibrate: bool | None = None,
        top_k: int | None = None,
        threshold: float | None = 0.5,
        candidates: int = 100,
        sparse_output: SparseOutput = "auto",
        run_dir: Path | str | None = None,
        on_event: OnEvent | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.members, self.rule, self.combine_on, self.weights = members, rule, combine_on, weights
        self.share_encoder, self.prune, self.hold_out = share_encoder, prune, hold_out
        self.calibrate = calibrate
        self.candidates_per_model = candidates_per_model
        self.top_k, self.threshold, self.candidates = top_k, threshold, candidates
        self.sparse_output, self.run_dir, self.on_event = sparse_output, run_dir, on_event
        self.random_state, self.n_jobs = random_state, n_jobs

    @property
    def preset(self) -> EnsembleConfig:
        """The members' settings, each with the seed and the threads of all."""
        if isinstance(self.members, str) or not isinstance(self.members, Sequence):
            raise UsageError(f"members is {shown(self.members)}; give a list of presets")
        loaded = [load_preset(member) if isinstance(member, str | Path) else member for member in self.members]
        return EnsembleConfig(members=tuple(loaded))

    def _config(self) -> EnsembleConfig:
        """The settings, with the seed and the threads of the ensemble for each member."""
        config: EnsembleConfig = super()._config()
        seeds: dict[str, Any] = {} if self.random_state is None else {"seed": config.seed}
        members = tuple(replace(member, threads=config.threads, **seeds) for member in config.members)
        return replace(config, members=members)
