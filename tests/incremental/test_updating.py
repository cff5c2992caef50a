"""Further documents: labels of their clusters learn from their present weights, all others keep their weights."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from labelwise import Dataset, LinearTree, add_labels, generate_shop, keep_documents, load_model, precision_at_k, update
from labelwise.config import IndexConfig, LinearTreeConfig, RankerConfig
from labelwise.errors import DataError, UsageError
from labelwise.models.training_report import RecordedUpdate
from tests.incremental.conftest import KINDS
from tests.incremental.test_grow import n_features, predicted, weights
from tests.reference.weights import level_matrix


def few(shop, labels, count=4):
    """Some products that have one of these queries, with all their queries."""
    columns = [shop.train.labels.index(name) for name in labels]
    rows = np.flatnonzero(np.asarray(shop.train.Y[:, columns].sum(axis=1)).ravel())[:count]
    # The documents are new to the model in their wording.
    data = shop.train.take(rows)
    return Dataset(Y=data.Y, labels=data.labels, texts=[f"{text} entirely rapid" for text in data.texts])


@pytest.mark.parametrize("name", KINDS)
def test_labels_of_other_clusters_keep_their_weights(name, fitted, shop, tmp_path):
    model, data = fitted(name), few(shop, shop.old[:1], 2)
    before, first = predicted(model, shop.test.texts), weights(model)
    updated = update(model, data)
    assert predicted(model, shop.test.texts) == before
    for old, new, tree in zip(first, weights(updated), model.trees, strict=True):
        touched = np.isin(tree.clusters, tree.clusters[data.Y.indices])
        np.testing.assert_array_equal(new[:, ~touched], old[:, ~touched])
        assert touched.all() == (tree.n_clusters == 1)
        assert (new[:, touched] != old[:, touched]).any()
    n_labels = len(np.unique(data.Y.indices))
    assert updated.report_.updates == [RecordedUpdate(documents=len(data), pairs=data.Y.nnz, labels=n_labels)]
    updated.save(tmp_path / "updated")
    assert predicted(load_model(tmp_path / "updated"), shop.test.texts) == predicted(updated, shop.test.texts)


def test_weights_are_the_nearest_that_fit_the_documents(shop):
    """min 1/2 |w - present|² + squared hinges, by a general-purpose optimizer."""
    ranker = RankerConfig(tolerance=1e-4, max_sweeps=20_000, threshold=0.0, half_precision=False)
    config = LinearTreeConfig(index=IndexConfig(n_clusters=4), ranker=ranker, threads=1)
    model = LinearTree(config).fit(shop.train.texts, shop.train.Y, label_names=shop.old)
    data = few(shop, shop.old[:2], 6)
    updated = update(model, data)
    (tree, level), (_, new) = model.growth().label_trees[0], updated.growth().label_trees[0]
    present, found = level_matrix(level, n_features(model)), level_matrix(new, n_features(model))
    X = np.hstack((model.tfidf_.transform(data.texts).toarray(), np.ones((len(data), 1)))).astype(np.float64)
    truth = data.Y.toarray()
    for label in (0, 1, *np.flatnonzero(tree.clusters == tree.clusters[0])[:4]):
        mine = truth[:, tree.clusters == tree.clusters[label]].any(axis=1)
        A, y = X[mine], np.where(truth[mine, label] > 0, 1.0, -1.0)
        K, margin = (A * y[:, None]) @ (A * y[:, None]).T, 1 - y * (A @ present[:, label])
        dual = minimize(
            lambda a, K=K, m=margin: (0.5 * a @ K @ a + 0.25 * a @ a - m @ a, K @ a + 0.5 * a - m),
            np.zeros(len(y)),
            jac=True,
            bounds=[(0, None)] * len(y),
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000},
        )
        np.testing.assert_allclose(found[:, label], present[:, label] + A.T @ (y * dual.x), atol=1e-3)


def test_an_added_label_learns_from_further_documents(fitted, shop):
    model = keep_documents(fitted("one-tree"), shop.train)
    name = shop.hidden[0]
    (one,) = shop.new(8, [name])
    grown = add_labels(model, shop.new(1, [name]))
    Y = sp.csr_array(np.ones((7, 1), np.float32))
    updated = update(grown, Dataset(Y=Y, labels=[name], texts=list(one.examples[1:])))
    asked = list(one.examples[1:])
    place = len(shop.old)
    scores = [found.predict(asked, top_k=50).matrix.toarray()[:, place].mean() for found in (grown, updated)]
    assert scores[1] > scores[0]


def test_an_update_has_most_of_the_accuracy_of_a_new_training():
    train, test = generate_shop(4000, 300).values()
    config = LinearTreeConfig(index=IndexConfig(n_clusters=16))
    some, rest = train.take(np.arange(1000)), train.take(np.arange(1000, len(train)))
    model = LinearTree(config).fit(some.texts, some.Y, label_names=some.labels)
    retrained = LinearTree(config).fit(train.texts, train.Y, label_names=train.labels)
    before, after, best = (
        precision_at_k(test.Y, one.predict(test.texts, top_k=5), k=5) for one in (model, update(model, rest), retrained)
    )
    assert best > before + 2
    assert after > before + 0.5 * (best - before)


def test_wrong_documents_are_refused(fitted, shop):
    strange = Dataset(Y=sp.csr_array(np.ones((1, 1), np.float32)), labels=["strange"], texts=["a text"])
    with pytest.raises(DataError, match="none of the documents has a label of the model"):
        update(fitted("one-tree"), strange)
    with pytest.raises(UsageError, match="not fitted"):
        update(LinearTree(), strange)
    features = Dataset(Y=shop.train.Y, labels=shop.old, features=sp.csr_array((len(shop.train), 3), dtype=np.float32))
    with pytest.raises(DataError, match="fitted on texts, but the data have only features"):
        update(fitted("one-tree"), features)
