"""Linear models of the clusters: their scores by hand, and scores by models that did not see the document."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.config import RankerConfig
from labelwise.match import linear as start
from labelwise.match.linear import LinearMatcher, unseen_scores

CONFIG = RankerConfig(threshold=0.0, half_precision=False)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 30), density=0.3, format="csr", dtype=np.float32, rng=rng)
    E = rng.normal(size=(60, 5)).astype(np.float32)
    M = sp.csr_array((rng.random((60, 7)) < 0.3).astype(np.float32))
    return X, E, M


def sparse_weights(model, n_features):
    """(n_features, n_clusters) one weight after the other, from the arrays of the only block."""
    level, W = model.level, np.zeros((n_features, model.level.n_children), np.float32)
    begin = 0
    for feature, end in zip(level.row_feature, level.row_end, strict=True):
        for entry in range(begin, end):
            W[feature, level.child_ids[level.entry_child[entry]]] = level.entry_value[entry]
        begin = end
    return W


@pytest.mark.parametrize("bias", [1.0, 0.0, 2.0])
def test_scores_are_those_worked_by_hand(data, bias):
    X, E, M = data
    model = LinearMatcher.fit(X, E, M, RankerConfig(threshold=0.0, half_precision=False, bias=bias))
    W, (V, b) = sparse_weights(model, 30), model.head()
    assert (np.abs(W).max(), np.abs(V).max()) > (0.1, 0.1)
    expected = X.toarray() @ W + E @ V.T + b
    scores = model.scores(X, E)
    assert scores.dtype == np.float16
    np.testing.assert_allclose(scores, expected, atol=5e-3, rtol=2e-3)
    np.testing.assert_allclose(model.sparse_part().scores(X), X.toarray() @ W, atol=5e-3, rtol=2e-3)
    assert (model.head()[1] == 0).all() == (bias == 0)


def test_scores_do_not_depend_on_blocks(data, monkeypatch):
    X, E, M = data
    model = LinearMatcher.fit(X, E, M, CONFIG)
    whole = model.scores(X, E)
    monkeypatch.setattr(start, "SCORES_PER_BLOCK", 50)
    np.testing.assert_array_equal(model.scores(X, E), whole)
    assert model.scores(X[:0], E[:0]).shape == (0, 7)


def test_the_best_are_those_of_all_scores(data):
    X, E, M = data
    model = LinearMatcher.fit(X, E, M, CONFIG)
    scores = model.scores(X, E).astype(np.float32)
    for top_b in (1, 3, 7, 20):
        found = model.best(X, E, top_b=top_b, threads=1)
        assert found.shape == (60, 7)
        assert (np.diff(found.indptr) == min(top_b, 7)).all()
        for row in range(60):
            got = found.data[found.indptr[row] : found.indptr[row + 1]]
            columns = found.indices[found.indptr[row] : found.indptr[row + 1]]
            np.testing.assert_allclose(got, scores[row, columns], atol=5e-3, rtol=2e-3)
            np.testing.assert_allclose(np.sort(got), np.sort(scores[row])[-top_b:], atol=5e-3, rtol=2e-3)


@pytest.mark.parametrize("dense", [True, False])
def test_a_documents_own_clusters_do_not_change_its_scores(data, dense):
    X, E, M = data
    E = E if dense else None
    before = unseen_scores(X, E, M, CONFIG, folds=3)
    fitted = LinearMatcher.fit(X, E, M, CONFIG).sparse_part().scores(X)
    assert np.abs(before - fitted).max() > 0.05
    for row in (0, 17, 59):
        flipped = M.toarray()
        flipped[row] = 1 - flipped[row]
        after = unseen_scores(X, E, sp.csr_array(flipped), CONFIG, folds=3)
        np.testing.assert_array_equal(after[row], before[row])
        assert not np.array_equal(after, before)  # others learn from it


def test_unseen_scores_do_not_depend_on_threads_and_tell_how_far_they_are(data):
    X, E, M = data
    events = []
    expected = unseen_scores(X, E, M, CONFIG, folds=4, threads=1, on_event=lambda *event: events.append(event))
    assert events[-1][1] == {
        "task": "training the linear term",
        "done": 4,
        "total": 4,
        "unit": "parts",
        "finished": True,
    }
    for threads in (2, 3, 16, None):
        np.testing.assert_array_equal(unseen_scores(X, E, M, CONFIG, folds=4, threads=threads), expected)
    assert not np.array_equal(unseen_scores(X, E, M, CONFIG, folds=4, seed=1), expected)
