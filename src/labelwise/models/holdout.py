"""What a model is worth on documents that it has not been trained on: metrics, and the curve to probabilities."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp

from labelwise.config import LinearTreeConfig
from labelwise.data import Dataset, split_validation
from labelwise.errors import DataError, UsageError
from labelwise.metrics import calibration_error, ndcg_at_k, precision_at_k
from labelwise.models.base import CALIBRATED_ON, Model
from labelwise.models.calibrator import MIN_DOCUMENTS, Calibrator
from labelwise.models.training_report import HoldoutResult
from labelwise.types import Csr, OnEvent

if TYPE_CHECKING:
    from labelwise.models.linear_tree import LinearTree

KS = (1, 3, 5)


@dataclass(frozen=True, kw_only=True, eq=False)
class Validation:
    """What `validate` found."""

    n_docs: int
    scores: dict[str, float]
    """P and nDCG at 1, 3, 5 in percent, by name."""
    calibrator: Calibrator | None
    """None if there were too few documents, or too few right predictions; `reason` then says so."""
    reason: str | None
    calibration_error: float | None
    """In percent, each half of the documents judged by the curve of the other half; None where a half is too small."""

    def result(self, **origin: Any) -> HoldoutResult:
        """The figures for the training report; `origin` is its `kind`, and its `share` where there is one."""
        return HoldoutResult(
            documents=self.n_docs, scores=self.scores, calibration_error=self.calibration_error, **origin
        )


def read_documents(dataset: Dataset) -> list[str] | Csr:
    """What a new model is to be trained on: the texts, or the features where there are no texts."""
    return dataset.texts if dataset.texts is not None else cast(Csr, dataset.features)  # it has one of them


def validate(model: Model, dataset: Dataset, *, on_event: OnEvent | None = None) -> Validation:
    """Measure a model that is not calibrated yet, and learn its calibration. The model is left as it is."""
    known = dataset.with_labels(model.labels_)
    found = model.predict(model.inputs(known), top_k=CALIBRATED_ON, on_event=on_event)
    return measure(found.matrix, known.Y)


def fit_calibrated(
    config: LinearTreeConfig,
    train: Dataset,
    *,
    hold_out: float,
    run_dir: Path | str | None = None,
    on_event: OnEvent | None = None,
) -> LinearTree:
    """A linear model of all documents, calibrated by one that was trained without some; not with too few or none."""
    from labelwise.models.linear_tree import LinearTree

    if not 0 <= hold_out < 1:
        raise UsageError(f"hold_out is {hold_out}; it must be a share between 0 and 1")

    def fitted(documents: Dataset) -> LinearTree:
        options: dict[str, Any] = {"run_dir": run_dir, "on_event": on_event}
        return LinearTree(config).fit(read_documents(documents), documents.Y, label_names=documents.labels, **options)

    measured, parts = None, None
    if hold_out > 0 and len(train) * hold_out >= MIN_DOCUMENTS:
        with contextlib.suppress(DataError):  # every document may be the only one with some label
            parts = split_validation(train, hold_out, seed=config.seed)
    if parts is not None and len(parts[1]) >= MIN_DOCUMENTS:  # rare labels may have kept most of them
        measured = validate(fitted(parts[0]), parts[1], on_event=on_event)
    model = fitted(train)
    if measured is not None:
        model.calibrator_ = measured.calibrator
        model.report_.validation = measured.result(kind="part", share=hold_out)
    return model


def measure(Y_pred: Csr, Y: Csr) -> Validation:
    """The same for scores that are there already.

    Parameters
    ----------
    Y_pred : (n_docs, n_labels) scores of the best `CALIBRATED_ON` labels
    Y : (n_docs, n_labels or more) the truth; columns that the model does not have come last, and count as missed
    """
    parts: tuple[Any, ...] = (Y_pred.data, Y_pred.indices, Y_pred.indptr)
    laid_over = Csr(parts, shape=Y.shape)
    scores = {f"P@{k}": precision_at_k(Y, laid_over, k=k) for k in KS}
    scores |= {f"nDCG@{k}": ndcg_at_k(Y, laid_over, k=k) for k in KS}
    known, calibrator, reason = Csr(Y[:, : Y_pred.shape[1]]), None, None
    try:
        calibrator = Calibrator.fit(Y_pred, known)
    except DataError as error:
        reason = str(error)
    return Validation(
        n_docs=int(Y.shape[0]),
        scores=scores,
        calibrator=calibrator,
        reason=reason,
        calibration_error=_crossed_error(Y_pred, known),
    )


def _crossed_error(Y_pred: Csr, Y: Csr) -> float | None:
    """Calibration error without flattery: no document is judged by a curve that was fitted on it."""
    halves = np.arange(0, Y.shape[0], 2), np.arange(1, Y.shape[0], 2)
    judged = []
    try:
        for here, there in (halves, halves[::-1]):
            judged.append(Calibrator.fit(Y_pred[there], Y[there]).transform_matrix(Y_pred[here]))
    except DataError:
        return None
    truth: Any = sp.vstack([Y[half] for half in halves], format="csr")
    return calibration_error(truth, sp.csr_array(sp.vstack(judged, format="csr")))
