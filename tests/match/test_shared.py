"""One encoder for two trees: the clusters of both side by side, each asked for its own best."""

import numpy as np
import pytest

from labelwise.config import RankerConfig
from labelwise.match.finetuned import RECALL_AT, FineTunedMatcher
from labelwise.match.recall import mean_recall, recall_at
from labelwise.match.shared import SharedMatcherView, side_by_side
from labelwise.storage.shared_parts import SharedParts
from tests.match.planted import N_CLUSTERS, documents_of, encoder_of, paired, planted, settings


def two_trees(M):
    """The second tree's three clusters hold two of the first's each."""
    return [M, paired(M)]


@pytest.fixture(scope="module")
def trained(bert):
    texts, M = planted(64)
    encoder = encoder_of(bert)
    documents = documents_of(encoder, texts)
    more, truth = planted(32, seed=1)
    judge = (documents_of(encoder, more), side_by_side(two_trees(truth)))
    matcher = FineTunedMatcher(settings(epochs=8.0, init="linear", linear_term=True), RankerConfig(threshold=0.0))
    trees = two_trees(M)
    groups = [tree.shape[1] for tree in trees]
    matcher.fit(encoder, documents, side_by_side(trees), groups=groups, validation=judge, threads=1)
    return matcher, documents, trees, judge


def test_the_best_of_each_tree(trained):
    matcher, documents, trees, _ = trained
    E, everything = matcher.match(documents, top_b=99)
    dense = everything.toarray()
    assert everything.nnz == dense.size == 64 * (N_CLUSTERS + 3)
    _, found = matcher.match(documents, top_b=2)
    for group, columns in enumerate((slice(0, N_CLUSTERS), slice(N_CLUSTERS, N_CLUSTERS + 3))):
        view = SharedMatcherView(matcher, group)
        own = view.own(found)
        assert own.shape == trees[group].shape
        for row in range(64):
            scores = dense[row, columns]
            best = np.sort(np.argsort(-scores)[:2])
            here = slice(own.indptr[row], own.indptr[row + 1])
            np.testing.assert_array_equal(own.indices[here], best)
            np.testing.assert_allclose(own.data[here], scores[best], atol=1e-6)
        E_again, again = view.match(documents, top_b=2)
        np.testing.assert_array_equal(again.toarray(), own.toarray())
        np.testing.assert_array_equal(E_again, E)
        assert recall_at(own, trees[group], [2])[2] > 85
        assert view.encoder_ is matcher.encoder_
        assert view.history_ is matcher.history_


def test_training_is_judged_by_the_mean_over_trees(trained):
    matcher, _, _, (documents, truth) = trained
    _, found = matcher.match(documents, top_b=max(RECALL_AT))
    tops = RECALL_AT
    first = recall_at(found[:, :N_CLUSTERS], truth[:, :N_CLUSTERS], tops).values()
    second = recall_at(found[:, N_CLUSTERS:], truth[:, N_CLUSTERS:], tops).values()
    expected = (sum(first) + sum(second)) / (2 * len(tops))
    assert mean_recall(found, truth, tops, [N_CLUSTERS, 3]) == pytest.approx(expected)
    assert matcher.history_.best_recall == pytest.approx(expected)


def test_kept_and_loaded(trained, tmp_path):
    matcher, documents, _, _ = trained
    assert SharedMatcherView(matcher, 1).write(tmp_path / "matcher", SharedParts()) == {"group": 1}
    loaded = FineTunedMatcher.load(tmp_path / "matcher", device="cpu")
    assert loaded.groups_ == [N_CLUSTERS, 3]
    found, again = (SharedMatcherView(one, 1).match(documents, top_b=2)[1] for one in (matcher, loaded))
    np.testing.assert_array_equal(again.indices, found.indices)
    np.testing.assert_allclose(again.data, found.data, atol=1e-5)


def test_one_tree_is_as_before():
    _, M = planted(8)
    assert side_by_side([M]) is M
