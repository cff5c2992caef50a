"""What held-out documents say of a model: metrics, and the curve from its scores to probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelwise.data import Dataset
from labelwise.errors import DataError
from labelwise.metrics import calibration_error, ndcg_at_k, precision_at_k
from labelwise.models.calibrator import CALIBRATED_ON, Calibrator
from labelwise.types import Csr, OnEvent

KS = (1, 3, 5)


@dataclass(frozen=True, kw_only=True, eq=False)
class HoldoutEvaluation:
    """Metrics and calibration of a model on documents that it has not seen."""

    n_docs: int
    scores: dict[str, float]
    """P and nDCG at 1, 3, 5 in percent, by name."""
    calibrator: Calibrator | None
    """None if there were too few documents, or too few right predictions; `reason` then says so."""
    reason: str | None
    calibration_error: float | None
    """In percent, each half of the documents by the curve of the other half; None where a half is too small."""

    @property
    def figures(self) -> dict[str, Any]:
        """The figures for the training report."""
        return {"documents": self.n_docs, "scores": self.scores, "calibration_error": self.calibration_error}


def evaluate_model(model: Any, dataset: Dataset, *, on_event: OnEvent | None = None) -> HoldoutEvaluation:
    """Metrics of a model that is not calibrated yet, and the calibration. The model is left as it is."""
    known = dataset.with_labels(model.labels_)
    found = model.predict(model.inputs(known), top_k=CALIBRATED_ON, on_event=on_event)
    return evaluate_scores(found.matrix, known.Y)


def evaluate_scores(Y_pred: Csr, Y: Csr) -> HoldoutEvaluation:
    """Metrics of scores, and the calibration.

    Parameters
    ----------
    Y_pred : (n_docs, n_labels) scores of the best `CALIBRATED_ON` labels
    Y : (n_docs, n_labels or more) the truth; columns that the model does not have come last, and count as missed
    """
    parts: tuple[Any, ...] = (Y_pred.data, Y_pred.indices, Y_pred.indptr)
    widened = Csr(parts, shape=Y.shape)
    scores = {f"P@{k}": precision_at_k(Y, widened, k=k) for k in KS}
    scores |= {f"nDCG@{k}": ndcg_at_k(Y, widened, k=k) for k in KS}
    known, calibrator, reason = Csr(Y[:, : Y_pred.shape[1]]), None, None
    try:
        calibrator = Calibrator.fit(Y_pred, known)
    except DataError as error:
        reason = str(error)
    return HoldoutEvaluation(
        n_docs=int(Y.shape[0]),
        scores=scores,
        calibrator=calibrator,
        reason=reason,
        calibration_error=_cross_fitted_error(Y_pred, known),
    )


def _cross_fitted_error(Y_pred: Csr, Y: Csr) -> float | None:
    """The calibration error, where no document's probabilities come from a curve that was fitted on the document."""
    halves = np.arange(0, Y.shape[0], 2), np.arange(1, Y.shape[0], 2)
    probabilities = []
    try:
        for here, there in (halves, halves[::-1]):
            probabilities.append(Calibrator.fit(Y_pred[there], Y[there]).transform_matrix(Y_pred[here]))
    except DataError:
        return None
    truth: Any = sp.vstack([Y[half] for half in halves], format="csr")
    return calibration_error(truth, sp.csr_array(sp.vstack(probabilities, format="csr")))
