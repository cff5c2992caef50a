"""What a model is fitted on: training documents, and those that choose, stop and calibrate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import scipy.sparse as sp

from labelwise.data import Dataset
from labelwise.data.frames import plain_documents
from labelwise.data.split import split_rows
from labelwise.errors import DataError
from labelwise.targets import canonical, targets
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
    """Rows of the training documents that stand in for a validation split."""
    truth: Csr | None
    """(n_held, n_labels or more) labels of the held-out documents; None where there are none."""
    X: Csr | None = None
    """(n_docs, n_features) documents that are rows of features."""
    judged_features: Csr | None = None
    """The same of a validation split."""
    share: float = 0.0
    """Of the training documents that were to be set aside."""

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
        features: bool = False,
    ) -> Self:
        """Check what was given, and set documents aside where there is no validation split.

        Parameters
        ----------
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
        if validation is not None:
            known = validation.with_labels(labels)
            truth = known.Y
            if X is None:
                judged = check_texts(known.texts)
            elif known.features is None:
                raise DataError("the models learn from features, but the validation data have only texts")
            else:
                judged_features = canonical(known.features)
        elif hold_out > 0 and n_docs * hold_out >= 1:
            _, aside = split_rows(Y, hold_out, seed=seed)
            truth = Csr(Y[aside])
        return cls(texts, Y, labels, list(label_texts or labels), judged, aside, truth, X, judged_features, hold_out)

    @property
    def held_out(self) -> dict[str, Any]:
        """Who the held-out documents are, for the model card."""
        return {"kind": "split"} if self.aside is None else {"kind": "share", "share": self.share}


def check_texts(texts: Any) -> list[str]:
    """Texts as a list; anything else is refused."""
    texts = plain_documents(texts)
    if texts is None or not hasattr(texts, "__iter__") or isinstance(texts, str) or hasattr(texts, "tocsr"):
        raise DataError("X-Transformer reads texts: give a list of strings, not features")
    return list(texts)
