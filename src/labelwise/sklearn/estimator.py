"""What the estimators share: parameters to settings, documents in any form, answers in scikit-learn's forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from labelwise.config.flat import flat_names
from labelwise.config.presets import changed, load_preset
from labelwise.config.score_transform import bounded
from labelwise.config.settings import Count, checked_value, shown
from labelwise.data.frames import plain_documents
from labelwise.errors import DataError, UsageError
from labelwise.features.matrices import feature_matrix
from labelwise.features.texts import text_list
from labelwise.models.base import Model, checked_top_k
from labelwise.models.registry import new_model
from labelwise.sklearn.answers import chosen_labels, filled, formed, shares
from labelwise.sklearn.classes import Targets, encoded, holds_lists, targets_of
from labelwise.types import Csr


class LabelwiseClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A labelwise model behind scikit-learn's interface."""

    model_: Model
    """The fitted model, which can be saved, and answers with names."""
    _config_class: ClassVar[type[Any]]
    """The configuration whose settings the parameters are."""
    _not_settings: ClassVar[tuple[str, ...]] = ()
    """Parameters that have the name of a setting and another meaning."""
    _texts_only: ClassVar[bool] = False

    # ------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any, *, label_names: Sequence[str] | None = None) -> Self:
        """Train.

        Parameters
        ----------
        X
            (n_docs,) texts, or (n_docs, n_features) features, sparse or dense.
        y
            (n_docs, n_labels) matrix of 0 and 1, sparse, dense or a frame; (n_docs,) lists of label names; or
            (n_docs,) one class for each document.
        label_names
            (n_labels,) what the columns of a matrix are called.
        """
        self._check_use()
        documents = self._documents(X, reset=True)
        targets = targets_of(y, label_names)
        n_docs = len(documents) if isinstance(documents, list) else documents.shape[0]
        if n_docs != targets.Y.shape[0]:
            raise DataError(f"X and y have inconsistent numbers of samples: [{n_docs}, {targets.Y.shape[0]}]")
        self.model_ = self._fit_model(documents, targets)
        self.classes_, self._kind, self._y_sparse = targets.classes, targets.kind, targets.sparse
        return self

    def _fit_model(self, documents: Any, targets: Targets) -> Model:
        """A model trained with this estimator's settings."""
        options: dict[str, Any] = {"run_dir": self.run_dir, "on_event": self.on_event}
        model: Any = new_model(self._config())
        fitted: Model = model.fit(documents, targets.Y, label_names=targets.names, **options)
        return fitted

    def _settings(self) -> dict[str, Any]:
        """The parameters that are settings of the model, under the flat names of `labelwise.config.flat`."""
        given = {
            name: getattr(self, name) for name in self._get_param_names() if name in flat_names(self._config_class)
        }
        values = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in given.items()
            if value is not None and name not in self._not_settings
        }
        if self.random_state is not None:
            whole = isinstance(self.random_state, int | np.integer)
            values["seed"] = int(self.random_state) if whole else _drawn_seed(self.random_state)
        if self._threads is not None:
            values["threads"] = self._threads
        return values

    @property
    def _threads(self) -> int | None:
        """The number of threads that `n_jobs` asks for; None for all cores, or as the preset says."""
        return int(self.n_jobs) if self.n_jobs is not None and self.n_jobs >= 0 else None  # 0 is refused

    def _config(self) -> Any:
        """The preset's settings with the parameters on top."""
        config = self.preset if is_dataclass(self.preset) else load_preset(self.preset)
        if type(config) is not self._config_class:
            raise UsageError(f"the preset {self.preset!r} is not one of {type(self).__name__}; choose another")
        return changed(config, self._settings(), type(self).__name__, _parameter)

    def _check_use(self) -> None:
        if self.top_k is None and self.threshold is None:
            raise UsageError("top_k and threshold are both None, so every label would be predicted; give one of them")
        for name, kind in _PARAMETERS.items():
            checked_value(kind, getattr(self, name), name)
        if not isinstance(self.sparse_output, bool | str) or self.sparse_output not in (True, False, "auto"):
            raise UsageError(f"sparse_output is {shown(self.sparse_output)}; it must be True, False or 'auto'")

    def _documents(self, X: Any, *, reset: bool) -> Any:
        """Texts as a list, features as a sparse matrix."""
        if _holds_texts(X):
            if not reset and not self.model_.reads_texts:
                raise UsageError(f"this {type(self).__name__} was fitted on features; give those, not texts")
            return text_list(plain_documents(X))
        if self._texts_only:
            raise UsageError(f"{type(self).__name__} reads texts: give a list of strings, not features")
        if not reset and self.model_.reads_texts:
            raise UsageError(f"this {type(self).__name__} was fitted on texts; give those, not features")
        if sp.issparse(X):
            X = sp.csr_matrix(feature_matrix(X))  # scikit-learn does not check the indices
        try:
            return sp.csr_array(validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=reset))
        except (ValueError, TypeError) as err:
            raise DataError(str(err)) from err

    # ------------------------------------------------------------------ using

    def predict(self, X: Any) -> Any:
        """The labels of each document.

        Returns
        -------
        Y : (n_docs, n_labels) 1 for each label that reaches `threshold` and is among the best `top_k`; where one class
            was given for each document, (n_docs,) classes.
        """
        scores = self._scores(X)
        if self._kind == "classes":
            return self.classes_[filled(scores).argmax(axis=1)]
        chosen = chosen_labels(self._probabilities(scores), threshold=self.threshold, top_k=self.top_k)
        return formed(chosen, sparse=self._sparse())

    def decision_function(self, X: Any) -> Any:
        """The model's own scores of the best `candidates` labels of each document, 0 for the others.

        Returns
        -------
        scores : (n_docs, n_labels); for two classes (n_docs,) the second one's share of both less the first one's
        """
        scores = self._scores(X)
        if self._kind == "classes" and len(self.classes_) == 2:
            both = shares(filled(self._bounded(scores)))
            return both[:, 1] - both[:, 0]
        return formed(scores, sparse=True) if self._sparse() else filled(scores)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the best `candidates` labels of each document, 0 for the others.

        They are calibrated where documents were held out for that, and else the model's scores, between 0 and 1. Where
        one class was given for each document they sum to 1.

        Returns
        -------
        probabilities : (n_docs, n_labels)
        """
        found = self._probabilities(self._scores(X))
        if self._kind == "classes":
            return shares(filled(found))
        return formed(found, sparse=self._sparse())

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of documents with exactly the right labels, as for all classifiers of scikit-learn."""
        found = self.predict(X)
        truth = encoded(y, self.classes_) if self._kind != "classes" and holds_lists(y) else y
        return float(accuracy_score(truth, found, sample_weight=sample_weight))

    def _scores(self, X: Any) -> Csr:
        check_is_fitted(self, "model_")
        self._check_use()
        documents = self._documents(X, reset=False)
        reading = self.model_.reading(documents, threads=self._threads, on_event=self.on_event)
        return self.model_.scores(reading, checked_top_k(max(self.candidates, self.top_k or 1)))

    def _probabilities(self, scores: Csr) -> Csr:
        if self.model_.calibrator_ is not None:
            return self.model_.calibrator_.transform_matrix(scores)
        return self._bounded(scores)

    def _bounded(self, scores: Csr) -> Csr:
        return bounded(scores, logistic=not self.model_.bounded_scores)

    def _sparse(self) -> bool:
        return self._y_sparse if self.sparse_output == "auto" else bool(self.sparse_output)

    # ------------------------------------------------------------------ keeping

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.sparse = True, not self._texts_only
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = self._texts_only, not self._texts_only
        tags.classifier_tags.multi_label = True
        return tags


def _parameter(setting: str) -> str:
    """A setting as scikit-learn calls it."""
    return {"seed": "random_state", "threads": "n_jobs"}.get(setting, setting)


FEW = 100
"""Of so many documents one is a string where documents are texts."""
SparseOutput = bool | Literal["auto"]


def _drawn_seed(random_state: Any) -> int:
    """A seed from what scikit-learn takes as a random state."""
    try:
        return int(check_random_state(random_state).randint(1 << 31))
    except ValueError as err:
        raise UsageError(f"random_state is {random_state!r}; give a whole number, a RandomState, or None") from err


_PARAMETERS: dict[str, Any] = {
    "top_k": Count | None,
    "threshold": float | None,
    "candidates": Count,
    "n_jobs": int | None,
}
"""The parameters that are no settings of a model, with their types."""


def _holds_texts(X: Any) -> bool:
    """Whether X is a column of strings; an empty one is left to scikit-learn's checks."""
    if isinstance(X, str):
        raise UsageError("expected a list of texts, got one string; write [text] for a single one")
    if sp.issparse(X) or hasattr(X, "columns") or getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__") or not len(X):
        return False
    first = plain_documents(X)
    return isinstance(first, list | tuple) and any(isinstance(text, str) for text in first[:FEW])
