"""The training data of one fit: documents with their labels, and which of them are held out.

`TrainingData.of` applies the hold-out policy (`labelwise.config.HoldoutConfig`) for every model. Held-out documents are
the documents of a validation split or, without one, a share of the training documents.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from labelwise.config import HoldoutConfig, TfidfConfig
from labelwise.config.settings import checked_value
from labelwise.data import Dataset
from labelwise.data.frames import plain_documents
from labelwise.data.split import split_rows
from labelwise.data.targets import targets
from labelwise.errors import DataError, UsageError
from labelwise.features.matrices import feature_matrix
from labelwise.features.scripts import MOST, SOME, unspaced_share
from labelwise.features.texts import text_list
from labelwise.models.calibrator import MIN_DOCUMENTS
from labelwise.models.training_report import HoldoutResult
from labelwise.storage.fingerprint import fingerprint
from labelwise.types import Csr, Ints

LARGEST_ADVISED_SHARE = 0.5
"""A sentence advises the user to hold out at most this share."""
FINGERPRINT_DIGITS = 16
"""Hexadecimal digits of the fingerprint of the data: the chance that two data sets share them is nil."""
LARGEST_RAISED_SHARE = 0.1
"""Of a small data set more than `HoldoutConfig.share` is held out, up to this share, where a calibration needs it."""


@dataclass(frozen=True, eq=False)
class DocumentSource:
    """Documents as they were given: texts, or rows of features."""

    texts: list[str] | None = None
    X: Csr | None = None
    """(n_docs, n_features)"""

    def __len__(self) -> int:
        return int(self.X.shape[0]) if self.X is not None else len(self.texts or ())

    def followed_by(self, other: DocumentSource) -> DocumentSource:
        """These documents and then the others."""
        if self.X is not None and other.X is not None:
            return DocumentSource(X=_stacked(self.X, other.X))
        return DocumentSource(texts=[*(self.texts or ()), *(other.texts or ())])


@dataclass(frozen=True, eq=False)
class Holdout:
    """The held-out documents. The models that choose and calibrate have not seen them."""

    Y: Csr
    """(n_held, n_labels or more) true labels; labels that the training data lack come last."""
    rows: Ints | None
    """Rows of the training documents that are held out: linear models learn from them once all is chosen. None where
    the held-out documents are not training documents."""
    documents: DocumentSource | None
    """The documents of a validation split that is not learnt from; None where `rows` says which they are."""
    kind: str
    """Where the documents come from: one of `labelwise.models.training_report.HOLDOUT_KINDS`."""
    share: float | None = None
    """Share of the training documents that was asked for, where it is one."""

    def __len__(self) -> int:
        return int(self.Y.shape[0])


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Documents, labels, and the held-out documents."""

    documents: DocumentSource
    """All training documents, held-out rows included."""
    Y: Csr
    """(n_docs, n_labels)"""
    labels: list[str]
    label_texts: list[str]
    """(n_labels,) what the labels mean; their names where nothing else is known."""
    holdout: Holdout | None = None
    """None where no documents are held out."""

    @classmethod
    def of(
        cls,
        texts_or_X: Any,
        labels_or_Y: Any,
        policy: HoldoutConfig,
        *,
        seed: int,
        label_names: Sequence[str] | None = None,
        label_texts: Sequence[str] | None = None,
        validation: Dataset | None = None,
        texts_only: bool = False,
    ) -> Self:
        """Check what was given, and hold documents out as the policy says.

        Parameters
        ----------
        policy
            Which documents are held out. Documents of `validation`, where it is given; else a share of the training
            documents.
        seed
            Random seed of the choice of held-out rows.
        texts_only
            Whether rows of features are refused.
        """
        Y, labels = targets(labels_or_Y, label_names)
        given = plain_documents(texts_or_X)
        if sp.issparse(given) and not texts_only:
            documents = DocumentSource(X=feature_matrix(given))
        else:
            documents = DocumentSource(texts=check_texts(given))
        if len(documents) != Y.shape[0]:
            raise DataError(f"there are {len(documents)} documents but {Y.shape[0]} rows of labels; they must match")
        data = cls(documents, Y, labels, _described_labels(label_texts, labels))
        if validation is not None:
            data = data._with_validation(validation, learn=policy.learn_validation)
            if label_names is None:
                _check_names(validation.labels, labels)
            return data
        if policy.learn_validation:
            raise UsageError(
                "learn_validation is True, but there are no validation documents; give some, or leave it out: the "
                "model learns from all training documents anyway"
            )
        return data._with_share(policy, seed)

    def _with_validation(self, validation: Dataset, *, learn: bool) -> Self:
        """The documents of a validation split are held out; linear models learn from them afterwards if asked to."""
        checked_value(Dataset, validation, "validation")
        known = validation.with_labels(self.labels)
        if self.documents.X is None:
            if known.texts is None:
                raise DataError("the model learns from texts, but the validation data have only features")
            documents = DocumentSource(texts=check_texts(known.texts))
        elif known.features is None:
            raise DataError("the model learns from features, but the validation data have only texts")
        else:
            documents = DocumentSource(X=feature_matrix(known.features))
            n_given, n_known = self.documents.X.shape[1], known.features.shape[1]
            if n_given != n_known:
                raise DataError(f"the validation data have {n_known} features but the training data {n_given}")
        if not learn:
            return replace(self, holdout=Holdout(known.Y, None, documents, "split"))
        rows = np.arange(len(self.documents), len(self.documents) + len(known))
        return replace(
            self,
            documents=self.documents.followed_by(documents),
            Y=_stacked(self.Y, known.Y[:, : len(self.labels)]),
            holdout=Holdout(known.Y, rows, None, "learnt split"),
        )

    def _with_share(self, policy: HoldoutConfig, seed: int) -> Self:
        """A share of the training documents is held out."""
        n_docs, share = len(self.documents), policy.share
        if 0 < share < LARGEST_RAISED_SHARE and policy.calibrate and n_docs * share < MIN_DOCUMENTS:
            share = min(LARGEST_RAISED_SHARE, MIN_DOCUMENTS / n_docs)
        if not share or n_docs * share < 1:
            return self
        try:
            _, rows = split_rows(self.Y, share, seed=seed)
        except DataError:  # every document is the only one with some label
            return self
        return replace(self, holdout=Holdout(Csr(self.Y[rows]), rows, None, "share", share))

    def for_calibration_only(self, policy: HoldoutConfig) -> Self:
        """The data for a model that has nothing to choose: rows are held out only where a calibration can use them."""
        holdout = self.holdout
        if holdout is None or holdout.kind != "share" or (policy.calibrate and len(holdout) >= MIN_DOCUMENTS):
            return self
        return replace(self, holdout=None)

    @property
    def remaining_rows(self) -> Ints | None:
        """Rows of the training documents that are not held out; None where these are all."""
        if self.holdout is None or self.holdout.rows is None:
            return None
        return np.setdiff1d(np.arange(len(self.documents)), self.holdout.rows)

    def remark(self, policy: HoldoutConfig) -> tuple[str, int]:
        """A sentence for the user, and its level in `logging`: which documents are held out, and what for.

        It also names settings that changed nothing, and is empty where no documents are wanted. It is a warning where
        documents are wanted for a calibration, and there are too few.
        """
        holdout, n_docs, asked = self.holdout, len(self.documents), policy.share not in (0, HoldoutConfig().share)
        if holdout is None:
            if not policy.calibrate:
                unused = "no documents are held out: without a calibration nothing needs them"
                return (f"hold_out is {policy.share:g}, but {unused}" if asked else ""), logging.INFO
            if not policy.share:
                nothing = "hold_out is 0, so nothing is calibrated: predictions are scores, not probabilities"
                return nothing, logging.INFO
            return (
                f"predictions are scores, not probabilities: a calibration needs {MIN_DOCUMENTS} held-out documents, "
                f"and too few of the {n_docs:,} documents can be held out; {self._way_to_calibrate(policy.share)}"
            ), logging.WARNING
        purpose = "choose and calibrate" if policy.calibrate else "choose"
        if holdout.kind != "share":
            learnt = "; the linear models then learn from them too" if holdout.kind == "learnt split" else ""
            unused = f"; hold_out is {policy.share:g}, but no training documents are held out beside them"
            return f"{len(holdout):,} validation documents {purpose}{learnt}{unused if asked else ''}", logging.INFO
        return (
            f"{len(holdout):,} of {n_docs:,} documents are held out to {purpose}; "
            "the linear models then learn from them too"
        ), logging.INFO

    def _way_to_calibrate(self, share: float) -> str:
        """What to do so that a calibration has enough documents, where `share` of them is not enough."""
        n_docs, counts = len(self.documents), np.bincount(self.Y.indices, minlength=self.Y.shape[1])
        only_ones = np.repeat(np.arange(n_docs), np.diff(self.Y.indptr))[counts[self.Y.indices] == 1]
        n_free = n_docs - np.unique(only_ones).size  # the others are the only documents with some label
        needed = math.ceil(100 * MIN_DOCUMENTS / n_docs) / 100
        if not share < needed <= LARGEST_ADVISED_SHARE or n_free < MIN_DOCUMENTS:
            return "give more documents, or a validation set"
        return f"hold more out (hold_out={needed:g} in Python, --hold-out {needed:g}), or give a validation set"

    def script_remark(self, settings: Iterable[TfidfConfig]) -> str:
        """A sentence for the user where texts have no spaces between words; empty where they have.

        Parameters
        ----------
        settings
            Those of the tf-idf of all models that are trained; nothing is said where the analyzer is chosen already.
        """
        texts = self.documents.texts
        if texts is None or all(one.analyzer != "auto" for one in settings):
            return ""
        share = unspaced_share(texts)
        if share >= MOST:
            return (
                "the texts have no spaces between words: tf-idf counts characters, one to three in a row "
                '(analyzer "char"); for words give analyzer="word" in Python, --analyzer word'
            )
        if share >= SOME:
            return (
                f"{100 * share:.0f} % of the letters belong to scripts without spaces between words, and tf-idf counts "
                'words; try characters: analyzer="char" in Python, --analyzer char'
            )
        return ""

    def fingerprint(self) -> str:
        """A hash of documents and labels, the same for the same data in the same order."""
        documents = self.documents.texts if self.documents.X is None else self.documents.X
        return fingerprint({"documents": documents, "labels": self.labels, "Y": self.Y})[:FINGERPRINT_DIGITS]

    def result(self, **figures: Any) -> HoldoutResult:
        """Figures of the held-out documents, with where the documents come from, for the training report."""
        assert self.holdout is not None
        return HoldoutResult(kind=self.holdout.kind, share=self.holdout.share, **figures)

    def part(self, name: str) -> Any:
        """What a stage reads of the data, by the name that the stage declares (see `labelwise.models.stages`)."""
        holdout, documents = self.holdout, None if self.holdout is None else self.holdout.documents
        match name:
            case "training documents":
                return self.documents.texts if self.documents.X is None else self.documents.X
            case "labels":
                return self.Y
            case "label texts":
                return self.label_texts
            case "held-out rows":
                return None if holdout is None else holdout.rows
            case "held-out labels":
                return None if holdout is None else holdout.Y
            case "validation documents":
                return None if documents is None else documents.texts if documents.X is None else documents.X
        raise KeyError(name)


def _check_names(validation: Sequence[str], labels: Sequence[str]) -> None:
    """Refuse validation data without any label of the training data, whose columns probably had no names."""
    if validation and not set(validation) & set(labels):
        raise DataError(
            f"validation has other label names ({validation[0]!r}, …) than the training data ({labels[0]!r}, …); pass "
            "label_names=train.labels"
        )


def check_texts(texts: Any) -> list[str]:
    """Texts as a list; anything else is refused."""
    texts = plain_documents(texts)
    if sp.issparse(texts):
        raise DataError("X-Transformer reads texts: give a list of strings, not features")
    return text_list(texts)


def _described_labels(given: Sequence[str] | None, labels: list[str]) -> list[str]:
    """What the labels mean: the texts given, or the labels' names."""
    if given is None:
        return list(labels)
    texts = text_list(given)
    if len(texts) != len(labels):
        raise DataError(f"there are {len(texts)} label texts but {len(labels)} are needed, one for each label")
    return texts


def _stacked(first: Csr, second: Csr) -> Csr:
    """Rows of one matrix, then those of another."""
    return Csr(sp.vstack([first, second], format="csr"))
