"""Label embeddings: Z, one row of features for each label, which the label tree is built on.

`LABEL_EMBEDDINGS` is the table of all kinds. Each kind names its source and the function that computes Z from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.config import LabelEmbedding
from labelwise.engines import current_engine
from labelwise.errors import DataError
from labelwise.features.normalize import unit_length, unit_rows
from labelwise.kernels.embed import sum_rows
from labelwise.types import Csr, Floats

Features: TypeAlias = Csr | npt.NDArray[np.float32]
"""Rows of features, sparse or dense."""
EmbeddingSource: TypeAlias = Literal["features", "embeddings", "label-texts"]
"""The source of a label embedding: tf-idf of the documents, pretrained embeddings of the documents, or pretrained
embeddings of the labels' own texts."""

# (label, document) pairs in one piece of work. The size changes no value; it bounds the memory of a piece.
PAIRS_PER_BLOCK = 1 << 14


@dataclass(frozen=True)
class LabelEmbedder:
    """One kind of label embedding."""

    source: EmbeddingSource
    embed: Callable[..., Features]
    """Called as ``embed(Y, rows, normalize_documents=…, threads=…)`` with the rows of the source; gives Z."""


def embed_labels(Y: Any, X: Any, *, normalize_documents: bool = False, threads: int | None = None) -> Features:
    """Positive instance feature aggregation: a label is the sum of the features of its documents, scaled to length one.

    This is section 3.1 of the paper: pifa-tfidf with tf-idf features, pifa-neural with the embeddings of an encoder.

    Parameters
    ----------
    Y
        (n_docs, n_labels) true labels, sparse.
    X
        (n_docs, n_features) features of the documents: sparse tf-idf, or a dense array such as an encoder's.
    normalize_documents
        Scale the rows of Y to length one first, as the paper's own code does: a document with many labels then
        counts less for each of them.
    threads
        Threads to use; all cores if not given. The result does not depend on their number.

    Returns
    -------
    Z
        (n_labels, n_features) float32, sparse or dense as X is. The row of a label without documents is zero.

    Examples
    --------
    >>> Y = sp.csr_array(np.array([[1, 1], [1, 0]]))
    >>> X = sp.csr_array(np.array([[3.0, 0.0], [0.0, 4.0]]))
    >>> embed_labels(Y, X).toarray()
    array([[0.6, 0.8],
           [1. , 0. ]], dtype=float32)
    """
    votes, features = Csr(Y, dtype=np.float32), _features(X)
    if votes.shape[0] != features.shape[0]:
        raise DataError(
            f"Y has {votes.shape[0]} rows but X has {features.shape[0]}; both must describe the same documents"
        )
    if not np.isfinite(votes.data).all():
        raise DataError("Y holds NaN or infinity; its values are 1 where a document has a label")
    if normalize_documents:
        votes = unit_length(votes)
    labels: Csr = votes.T.tocsr()  # (n_labels, n_docs)
    if isinstance(features, np.ndarray):
        return unit_length(np.asarray(labels @ features, np.float32))  # type: ignore[no-any-return]  # as features are
    return _sum_sparse(labels, features, threads)


def _of_unit_rows(Y: Any, E: Floats, **options: Any) -> Features:
    """Aggregated embeddings of the documents, each document's embedding scaled to length one first."""
    return embed_labels(Y, unit_rows(E), **options)


def _of_label_texts(Y: Any, E: Floats, *, normalize_documents: bool, threads: int | None) -> Features:
    """Embeddings of the labels' own texts, scaled to length one; the documents do not matter."""
    return unit_rows(E)


LABEL_EMBEDDINGS: dict[LabelEmbedding, LabelEmbedder] = {
    "pifa-tfidf": LabelEmbedder("features", embed_labels),
    "pifa-neural": LabelEmbedder("embeddings", _of_unit_rows),
    "text-emb": LabelEmbedder("label-texts", _of_label_texts),
}
"""All kinds of label embeddings, by the names that `labelwise.config.LabelEmbedding` lists."""


def _sum_sparse(labels: Csr, features: Csr, threads: int | None) -> Csr:
    """The scaled sums of sparse rows, a block of labels at a time."""
    n_labels, n_features = labels.shape[0], features.shape[1]
    n_blocks = labels.nnz // PAIRS_PER_BLOCK + 1
    borders = np.searchsorted(labels.indptr, np.linspace(0, labels.nnz, n_blocks + 1)[1:-1])
    borders = np.unique(np.concatenate(([0], borders, [n_labels])))
    work = _Sums(labels, features)
    blocks = list(pairwise(borders.tolist()))

    # Blocks are appended as soon as they are done: all blocks and the whole matrix would take twice the memory.
    columns: npt.NDArray[Any] = np.empty(0, np.int32)
    values: npt.NDArray[Any] = np.empty(0, np.float32)
    ends = [np.zeros(1, np.int64)]
    for block_ends, block_columns, block_values in current_engine().map(work, blocks, threads=threads):
        n_before = len(values)
        columns.resize(n_before + len(block_columns), refcheck=False)
        values.resize(n_before + len(block_values), refcheck=False)
        columns[n_before:], values[n_before:] = block_columns, block_values
        ends.append(block_ends[1:] + n_before)
    kind = np.int32 if len(values) <= np.iinfo(np.int32).max else np.int64  # scipy wants one type for both
    indptr: npt.NDArray[Any] = np.concatenate(ends).astype(kind)
    Z = Csr((values, columns.astype(kind, copy=False), indptr), shape=(n_labels, n_features))
    Z.has_canonical_format = True
    return Z


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums the rows of a block of labels."""

    labels: Csr
    features: Csr

    def __call__(self, block: tuple[int, int]) -> tuple[npt.NDArray[Any], ...]:
        labels, features = self.labels, self.features
        indptr = labels.indptr[block[0] : block[1] + 1]
        own = slice(indptr[0], indptr[-1])
        indices = features.indices.astype(np.int32, copy=False).view(np.uint32)
        docs = labels.indices[own].astype(np.int32, copy=False).view(np.uint32)
        rows: tuple[npt.NDArray[Any], ...] = sum_rows(
            indptr - indptr[0], docs, labels.data[own], features.indptr, indices, features.data, features.shape[1]
        )
        return rows


def _features(given: Any) -> Features:
    """Rows as float32, sparse or dense, without NaN or infinity."""
    rows: Features
    if sp.issparse(given):
        rows = Csr(given, dtype=np.float32)  # type: ignore[call-overload]  # any sparse format will do
        finite = np.isfinite(rows.data).all()
    else:
        rows = np.ascontiguousarray(given, np.float32)
        if rows.ndim != 2:
            raise DataError(f"X must be a matrix, not an array of shape {rows.shape}")
        finite = np.isfinite(rows).all()
    if not finite:
        raise DataError("X holds NaN or infinity; compute the features again, or replace these values by 0")
    return rows
