"""The documents that represent new labels: their examples, from a file or a data set, and their texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.data import Dataset
from labelwise.errors import UsageError
from labelwise.incremental.new_labels import NewLabel
from labelwise.models.base import Model
from labelwise.models.exemplars import below, no_entries
from labelwise.rank.negatives import teacher_forcing
from labelwise.types import Csr, Ints


@dataclass(frozen=True, eq=False)
class LabelExamples:
    """Documents that represent new labels: examples first, then the text of each label."""

    labels: list[NewLabel]
    documents: Any
    """Texts, or rows of features for a model that reads features; labels then have no texts."""
    n_examples: int
    Y: Csr
    """(n_docs, n_new) the new label of each example and text."""
    Y_old: Csr
    """(n_docs, n_labels) labels of the model that the documents are known to have."""
    owners: Csr
    """(n_docs, n_new) the documents that decide a label's cluster: its examples, or its text if there are none."""
    counts: Ints
    """(n_new,) number of examples of each label."""
    texts: Ints
    """(n_new,) the row of each label's text; empty for a model that reads features."""
    in_data: npt.NDArray[np.bool_]
    """(n_data,) documents of the data set that are examples."""
    annotated: npt.NDArray[np.bool_]
    """(n_new,) whether a document of the data set has the label: the other documents then do not have it."""

    def clusters(self, old: npt.NDArray[np.int32], new: npt.NDArray[np.int32], n_clusters: int) -> Csr:
        """(n_docs, n_clusters) the clusters of the documents' labels, given the clusters of old and new labels."""
        Y = Csr(sp.hstack((self.Y_old, self.Y), format="csr"))
        return teacher_forcing(Y, np.concatenate((old, new)), n_clusters)

    @classmethod
    def of(cls, model: Model, labels: list[NewLabel], data: Dataset | None) -> Self:
        """The documents that represent new labels.

        Parameters
        ----------
        data : documents over the model's labels, the new labels and possibly others
        """
        n_old, n_new = len(model.labels_), len(labels)
        reads_texts = model.reads_texts
        given = [text for one in labels for text in one.examples]
        if given and not reads_texts:
            raise UsageError(
                "the model reads features, so texts cannot be examples; give documents with the new labels as data"
            )
        owner = np.repeat(np.arange(n_new), [len(one.examples) for one in labels])
        Y = _ones(owner, n_new)
        documents: Any = given
        Y_old, in_data, annotated = no_entries(len(given), n_old), np.zeros(0, np.bool_), np.zeros(n_new, np.bool_)
        if data is not None:
            new = Csr(data.Y[:, n_old : n_old + n_new])
            in_data = np.diff(new.indptr) > 0
            annotated[new.indices] = True
            rows = np.flatnonzero(in_data)
            more: Any = model.inputs(data.take(rows))
            documents = [*given, *more] if reads_texts else more
            Y, Y_old = below(Y, new[rows]), below(Y_old, data.Y[rows][:, :n_old])
        n_examples = Y.shape[0]
        counts = np.bincount(Y.indices, minlength=n_new)
        if not reads_texts:
            if data is None or not counts.all():
                missing = labels[int(np.flatnonzero(counts == 0)[0])].label
                raise UsageError(
                    f"the model reads features, and no document of the data has the label {missing!r}; give data that "
                    "have the new labels"
                )
            return cls(labels, documents, n_examples, Y, Y_old, Y, counts, np.empty(0, np.int64), in_data, annotated)
        documents = [*documents, *(one.text or one.label for one in labels)]
        every = np.arange(n_new)
        alone = Csr(sp.diags_array((counts == 0).astype(np.float32), format="csr"))
        alone.eliminate_zeros()
        return cls(
            labels,
            documents,
            n_examples,
            below(Y, _ones(every, n_new)),
            below(Y_old, no_entries(n_new, n_old)),
            below(Y, alone),
            counts,
            n_examples + every,
            in_data,
            annotated,
        )


def _ones(columns: Ints, n_columns: int) -> Csr:
    """A single 1 in each row."""
    parts: tuple[Any, ...] = (
        np.ones(len(columns), np.float32),
        columns.astype(np.int32),
        np.arange(len(columns) + 1, dtype=np.int32),
    )
    return Csr(parts, shape=(len(columns), n_columns))
