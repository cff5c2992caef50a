"""What a model is worth on documents that it has not been trained on: metrics, and the curve to probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from labelwise.base import CALIBRATED_ON, Model
from labelwise.calibrate import Calibrator
from labelwise.data import Dataset
from labelwise.errors import DataError
from labelwise.metrics import calibration_error, ndcg_at_k, precision_at_k
from labelwise.types import Csr, OnEvent

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

    def to_dict(self) -> dict[str, Any]:
        """The figures, for the model card."""
        return {"documents": self.n_docs, "scores": self.scores, "calibration_error": self.calibration_error}


def read_documents(dataset: Dataset) -> list[str] | Csr:
    """What a new model is to be trained on: the texts, or the features where there are no texts."""
    return dataset.texts if dataset.texts is not None else cast(Csr, dataset.features)  # it has one of them


def validate(model: Model, dataset: Dataset, *, on_event: OnEvent | None = None) -> Validation:
    """Measure a model that is not calibrated yet, and learn its calibration. The model is left as it is."""
    known = dataset.with_labels(model.labels_)
    found = model.predict(model.inputs(known), top_k=CALIBRATED_ON, on_event=on_event)
    return measure(found.matrix, known.Y)


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
