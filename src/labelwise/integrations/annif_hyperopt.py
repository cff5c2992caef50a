"""`annif hyperopt` for projects with `backend=labelwise`: a search for cost, cluster size and threshold.

Each trial trains on the documents of the project's last training, and suggests subjects for the corpus that Annif is
given. Nothing of the project changes: the best settings are printed, as lines for its section.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import annif.eval
import optuna
from annif.backend import hyperopt
from annif.exception import NotSupportedException, OperationFailedException
from annif.suggestion import SuggestionBatch

from labelwise.config.presets import Config, changed
from labelwise.integrations import subjects
from labelwise.models.registry import new_model

WITHIN = 4.0
"""A setting is tried from a quarter of its present value to four times as much."""
SMALLEST = 1e-3
"""A threshold of 0 is tried as if it were this."""


def searched(config: Config) -> dict[str, float]:
    """The settings that are searched, with the values that the search starts from."""
    found = {"cost": config.ranker.cost, "weight_threshold": max(config.ranker.threshold, SMALLEST)}
    index = config.index
    if index.method != "none" and index.n_clusters is None:
        found["max_leaf"] = float(index.max_leaf)
    return found


class Objective(hyperopt.HPObjective):  # type: ignore[misc]  # Annif carries no types
    """A trial."""

    @classmethod
    def objective(cls, trial: Any, args: Any) -> float:
        """The metric of a model that is trained with other settings."""
        values: dict[str, Any] = {}
        for name, start in args["start"].items():
            if name == "max_leaf":
                low, high = max(2, round(start / WITHIN)), max(3, round(start * WITHIN))
                values[name] = trial.suggest_int(name, low, high, log=True)
            else:
                values[name] = trial.suggest_float(name, start / WITHIN, start * WITHIN, log=True)
        config = changed(args["config"], values, "the trial")
        model = new_model(config).fit_dataset(args["train"])
        scores = subjects.suggestion_scores(model, args["texts"], args["limit"], threads=config.threads)
        numbers = subjects.subject_numbers(model.labels_, args["subjects"])
        batch = annif.eval.EvaluationBatch(args["subjects"])
        found = SuggestionBatch(subjects.over_subjects(scores, numbers, len(args["subjects"])))
        batch.evaluate_many(found, args["true"])
        return float(batch.results(metrics=[args["metric"]])[args["metric"]])


class Optimizer(hyperopt.HyperparameterOptimizer):  # type: ignore[misc]
    """The search of Annif over the settings of a project."""

    def __init__(self, backend: Any, corpus: Any, metric: str) -> None:
        super().__init__(backend, corpus, metric, Objective)

    def _prepare(self, n_jobs: int = 1) -> dict[str, Any]:
        train, config, params = self._backend.search_data()
        documents = list(self._corpus.documents)
        if not documents:
            raise NotSupportedException("cannot search for settings with no documents", project_id=self._project_id)
        # The order of suggestions decides, and calibration does not change it; a trial learns from all documents.
        config = replace(config, holdout=replace(config.holdout, share=0.0, calibrate=False))
        if n_jobs != 1:
            config = replace(config, threads=1)
        return {
            "train": train,
            "config": config,
            "start": searched(config),
            "texts": self._backend.read_texts([document.text for document in documents], config),
            "true": [document.subject_set for document in documents],
            "subjects": self._backend.project.subjects,
            "limit": subjects.limit(params),
            "metric": self._metric,
        }

    @property
    def _project_id(self) -> str:
        return str(self._backend.project.project_id)

    def _normalize(self, hps: dict[str, float]) -> dict[str, float]:
        return {name: _rounded(value) for name, value in hps.items()}

    def _postprocess(self, study: Any) -> Any:
        if not study.get_trials(states=[optuna.trial.TrialState.COMPLETE]):
            raise OperationFailedException("no trial has ended well; see the log", project_id=self._project_id)
        lines = [f"{name}={_rounded(value)}" for name, value in study.best_params.items()]
        return hyperopt.HPRecommendation(lines=lines, score=study.best_value)


def _rounded(value: float) -> float:
    """Three digits that count."""
    if isinstance(value, int):
        return value
    return round(value, 2 - math.floor(math.log10(value)))
