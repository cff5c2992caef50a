"""What a model is fitted on: training documents, and those that choose, stop and calibrate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from labelwise.data import Dataset
from labelwise.data.frames import plain_documents
from labelwise.data.split import split_rows
from labelwise.data.targets import canonical, targets
from labelwise.errors import DataError
from labelwise.types import Csr, Ints


@dataclass(frozen=True, eq=False)
class Source:
    """Training documents with their labels, and held-out ones: a validation split, or some of the former."""

    texts: list[str]
    """Empty where the documents are rows of features."""
    Y: Csr
    """(n_docs, n_labels)"""
    labels: list[str]
    label_texts: list[str]
    """(n_labels,) what the labels mean; their names where nothing else is known."""
    judged: list[str] | None
    """Texts of a validation split."""
    aside: Ints | None
    """Rows of the training documents that are held out: those that stand in for a validation split, or that split
    itself where the ranker is to learn from it afterwards."""
    truth: Csr | None
    """(n_held, n_labels or more) labels of the held-out documents; None where there are none."""
    X: Csr | None = None
    """(n_docs, n_features) documents that are rows of features."""
    judged_features: Csr | None = None
    """The same of a validation split."""
    held_out: dict[str, Any] = field(default_factory=dict)
    """Who the held-out documents are, for the model card."""

    @classmethod
    def of(
        cls,
        texts: Any,
        labels_or_Y: Any,
        *,
        label_names: Sequence[str] | None,
        label_texts: Sequence[str] | None,
        validation: Dataset | None,
        hold_out: float,
        seed: int,
        learn_validation: bool = False,
        features: bool = False,
    ) -> Self:
        """Check what was given, and set documents aside where there is no validation split.

        Parameters
        ----------
        learn_validation
            Whether the documents of a validation split are training documents too, set aside.
        features
            Whether rows of features will do in place of texts.
        """
        Y, labels = targets(labels_or_Y, label_names)
        texts = plain_documents(texts)
        X = canonical(texts) if features and sp.issparse(texts) else None
        texts = check_texts(texts) if X is None else []
        n_docs, name = (len(texts), "texts") if X is None else (X.shape[0], "rows of features")
        given = None if label_texts is None else len(label_texts)
        for count, what, wanted in ((n_docs, name, Y.shape[0]), (given, "label texts", len(labels))):
            if count not in (None, wanted):
                raise DataError(f"there are {count} {what} but {wanted} are needed, one for each")
        judged = judged_features = aside = truth = None
        held_out: dict[str, Any] = {"kind": "share", "share": hold_out}
        if validation is not None:
            known, held_out = validation.with_labels(labels), {"kind": "split"}
            truth = known.Y
            if X is None:
                judged = check_texts(known.texts)
            elif known.features is None:
                raise DataError("the models learn from features, but the validation data have only texts")
            else:
                judged_features = canonical(known.features)
            if learn_validation:
                held_out, aside = {"kind": "learnt split"}, np.arange(n_docs, n_docs + len(known))
                Y = _below(Y, truth[:, : len(labels)])
                texts, judged = [*texts, *(judged or [])], None
                if X is not None and judged_features is not None:
                    X, judged_features = _below(X, judged_features), None
        elif hold_out > 0 and n_docs * hold_out >= 1:
            _, aside = split_rows(Y, hold_out, seed=seed)
            truth = Csr(Y[aside])
        return cls(texts, Y, labels, list(label_texts or labels), judged, aside, truth, X, judged_features, held_out)


def _below(first: Csr, second: Csr) -> Csr:
    """Rows of one matrix, then those of another."""
    return Csr(sp.vstack([first, second], format="csr"))


def check_texts(texts: Any) -> list[str]:
    """Texts as a list; anything else is refused."""
    texts = plain_documents(texts)
    if texts is None or not hasattr(texts, "__iter__") or isinstance(texts, str) or hasattr(texts, "tocsr"):
        raise DataError("X-Transformer reads texts: give a list of strings, not features")
    return list(texts)
