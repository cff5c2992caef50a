"""Label embeddings: an example by hand, sparse and dense alike, labels without documents, bad input."""

from typing import get_args

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelwise.config import LabelEmbedding
from labelwise.errors import DataError
from labelwise.index import embed_labels
from labelwise.index import label_embedding as embed
from labelwise.index.label_embedding import LABEL_EMBEDDINGS

# Three documents, three labels; the third label has no document.
Y = sp.csr_array(np.array([[1, 1, 0], [1, 0, 0], [0, 1, 0]]))
X = sp.csr_array(np.array([[0.6, 0.8, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.6, 0.8]], np.float32))


def dense(Z):
    return Z.toarray() if sp.issparse(Z) else Z


@pytest.mark.parametrize("features", [X, X.toarray(), X.tocoo(), X.astype(np.float64)])
def test_by_hand(features):
    Z = embed_labels(Y, features)
    assert sp.issparse(Z) == sp.issparse(features)
    assert Z.dtype == np.float32
    first = np.array([1.6, 0.8, 0.0, 0.0]) / np.sqrt(3.2)
    second = np.array([0.6, 0.8, 0.6, 0.8]) / np.sqrt(2.0)
    np.testing.assert_allclose(dense(Z), [first, second, [0, 0, 0, 0]], atol=1e-6)


@pytest.mark.parametrize("features", [X, X.toarray()])
def test_documents_with_many_labels_count_less_for_each(features):
    Z = embed_labels(Y, features, normalize_documents=True)
    half = np.sqrt(0.5)
    first = np.array([0.6 * half + 1, 0.8 * half, 0, 0])
    np.testing.assert_allclose(dense(Z)[0], first / np.linalg.norm(first), atol=1e-6)


def test_the_table_has_all_kinds():
    assert tuple(LABEL_EMBEDDINGS) == get_args(LabelEmbedding)


def test_kinds_by_hand():
    options = {"normalize_documents": False, "threads": 1}
    E = np.array([[3.0, 4.0], [2.0, 0.0], [0.0, 5.0]], np.float32)
    neural = LABEL_EMBEDDINGS["pifa-neural"].embed(Y, E, **options)
    first, second = np.array([1.6, 0.8]), np.array([0.6, 1.8])  # sums of documents of length one
    expected = [first / np.linalg.norm(first), second / np.linalg.norm(second), [0, 0]]
    np.testing.assert_allclose(neural, expected, atol=1e-6)
    own = LABEL_EMBEDDINGS["text-emb"].embed(Y, E, **options)
    np.testing.assert_allclose(own, [[0.6, 0.8], [1, 0], [0, 1]], atol=1e-6)
    np.testing.assert_array_equal(
        dense(LABEL_EMBEDDINGS["pifa-tfidf"].embed(Y, X, **options)), dense(embed_labels(Y, X))
    )


@given(st.integers(0, 9999))
def test_sparse_dense_and_threads_agree(seed):
    rng = np.random.default_rng(seed)
    n_docs, n_labels, n_features = rng.integers(1, 30, 3)
    features = sp.random_array((n_docs, n_features), density=0.3, rng=rng, dtype=np.float32, format="csr")
    truth = sp.csr_array((rng.random((n_docs, n_labels)) < 0.2).astype(np.float32))
    Z = embed_labels(truth, features, threads=1)
    np.testing.assert_allclose(Z.toarray(), embed_labels(truth, features.toarray()), atol=1e-6)
    before, embed.PAIRS_PER_BLOCK = embed.PAIRS_PER_BLOCK, 3
    try:
        again = embed_labels(truth, features, threads=3)
    finally:
        embed.PAIRS_PER_BLOCK = before
    np.testing.assert_array_equal(Z.toarray(), again.toarray())
    lengths = np.linalg.norm(Z.toarray(), axis=1)
    np.testing.assert_allclose(lengths[np.diff(Z.indptr) > 0], 1, rtol=1e-5)


def test_inputs_are_not_changed():
    features, truth = X.copy(), Y.astype(np.float32)
    for array in (features.data, features.indices, truth.data, truth.indices):
        array.flags.writeable = False
    embed_labels(truth, features, normalize_documents=True)
    assert (truth.data == 1).all()


def test_bad_input():
    with pytest.raises(DataError, match="Y has 3 rows but X has 2"):
        embed_labels(Y, X[:2])
    with pytest.raises(DataError, match="X holds NaN or infinity"):
        embed_labels(Y, X * np.inf)
    with pytest.raises(DataError, match="Y holds NaN"):
        embed_labels(Y * np.nan, X)
    with pytest.raises(DataError, match="X must be a matrix"):
        embed_labels(Y, np.ones(3))
