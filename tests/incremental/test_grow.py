"""Labels added to and removed from every kind of model."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from labelwise import (
    Dataset,
    LinearTree,
    NewLabel,
    add_labels,
    generate_shop,
    keep_documents,
    load_model,
    precision_at_k,
    remove_labels,
)
from labelwise.config import IncrementalConfig, IndexConfig, LinearTreeConfig, RankerConfig
from labelwise.errors import DataError, UsageError
from labelwise.incremental import AddedLabel, added_labels
from labelwise.metrics import calibration_error
from tests.incremental.conftest import KINDS, LINEAR
from tests.reference.weights import level_matrix


def predicted(model, texts):
    matrix = model.predict(texts, top_k=30).matrix
    return matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tobytes()


def weights(model):
    """All weights of the labels, for each tree of each member."""
    return [level_matrix(level, n_features(member)) for member in model.members for level in member.label_levels]


def n_features(member):
    return member.tfidf_.n_features


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("count", [0, 3])
def test_added_labels_change_no_other_label_and_can_be_removed(name, count, fitted, shop, tmp_path):
    model, texts = fitted(name), shop.test.texts
    before, first = predicted(model, texts), weights(model)
    grown = add_labels(model, shop.new(count), data=shop.train)
    assert grown.labels_ == [*shop.old, *shop.hidden]
    assert added_labels(grown) == [AddedLabel(label=one.label, examples=len(one.examples)) for one in shop.new(count)]
    for old, new in zip(first, weights(grown), strict=True):
        np.testing.assert_array_equal(new[:, : old.shape[1]], old)
        assert new[:, old.shape[1] :].any(axis=0).all()
    assert all(added_labels(member) == added_labels(grown) for member in grown.members)
    assert predicted(model, texts) == before  # the model that was given is as it was
    assert model.report_.added == []
    assert model.labels_ == shop.old
    assert all(len(member.labels_) == len(shop.old) for member in model.members)
    grown.save(tmp_path / "grown")
    loaded = load_model(tmp_path / "grown")
    assert predicted(loaded, texts) == predicted(grown, texts)
    assert added_labels(loaded) == added_labels(grown)
    some = remove_labels(loaded, shop.hidden[1::2])
    assert some.labels_ == [*shop.old, *shop.hidden[::2]]
    assert [one.label for one in added_labels(some)] == shop.hidden[::2]
    back = remove_labels(some, shop.hidden[::2])
    assert predicted(back, texts) == before
    assert back.labels_ == shop.old
    assert back.report_.added == []
    for old, new in zip(first, weights(back), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("name", ["one-tree", "three-trees", "flat", "neighbours", "hybrid", "ensemble"])
def test_new_labels_are_found(name, fitted, shop):
    grown = add_labels(fitted(name), shop.new(10), data=shop.train)
    truth = sp.csr_array(shop.test.Y[:, len(shop.old) : len(shop.old) + len(shop.hidden)])
    having = np.flatnonzero(np.diff(truth.indptr))
    found = grown.predict([shop.test.texts[row] for row in having], top_k=20).matrix[:, len(shop.old) :]
    by_chance = 100 * truth[having].sum() / truth[having].shape[0] / truth.shape[1]
    assert precision_at_k(truth[having], sp.csr_array(found), k=1) > 4 * by_chance


def test_a_model_that_keeps_documents_needs_no_data(fitted, shop, tmp_path):
    model = fitted("one-tree")
    kept = keep_documents(model, shop.train)
    assert model.exemplars_ is None
    kept.save(tmp_path / "first")
    kept = load_model(tmp_path / "first")
    kept.save(tmp_path / "kept")
    grown = add_labels(kept, shop.new(4))
    beside = add_labels(model, shop.new(4), data=shop.train)
    agree = [
        mine[0][0] == its[0][0]
        for mine, its in zip(grown.predict(shop.test.texts), beside.predict(shop.test.texts), strict=True)
    ]
    assert np.mean(agree) > 0.9  # other documents were drawn
    assert len(grown.exemplars_) > len(kept.exemplars_)
    assert grown.exemplars_.Y.shape[1] == len(grown.labels_)
    back = remove_labels(grown, shop.hidden)
    back.save(tmp_path / "back")
    for file in (tmp_path / "kept").rglob("*"):
        if file.is_file():
            assert (tmp_path / "back" / file.relative_to(tmp_path / "kept")).read_bytes() == file.read_bytes(), file


def test_examples_of_an_added_label_are_kept_for_later_labels(fitted, shop):
    kept = keep_documents(fitted("one-tree"), shop.train)
    first, second = shop.hidden[:2]
    texts = shop.new(6, [first])[0].examples
    grown = add_labels(add_labels(kept, shop.new(6, [first])), [NewLabel(second, None, texts[:1])])
    rows = np.flatnonzero(grown.exemplars_.Y.toarray()[:, -2])
    assert len(rows) == len(texts)
    assert grown.exemplars_.Y.shape[1] == len(shop.old) + 2


@pytest.mark.parametrize("name", ["one-tree", "hybrid"])
def test_documents_of_the_data_that_have_a_new_label_are_examples(name, fitted, shop):
    """The negatives of documents with the label are all other documents; those of texts are a sample, here all."""
    model, new = fitted(name), shop.new(3, shop.hidden[:1])
    given = add_labels(model, new, data=shop.train, config=IncrementalConfig(per_cluster=10_000))
    more = Dataset(
        Y=sp.csr_array(sp.vstack([shop.train.Y, sp.csr_array((len(new[0].examples), len(shop.old)))]).tocsr()),
        labels=shop.old,
        texts=[*shop.train.texts, *new[0].examples],
    )
    column = np.zeros((len(more), 1), np.float32)
    column[len(shop.train) :] = 1
    more = Dataset(
        Y=sp.csr_array(sp.hstack([more.Y, sp.csr_array(column)]).tocsr()),
        labels=[*shop.old, new[0].label],
        texts=more.texts,
    )
    found = add_labels(model, [new[0].label], data=more)
    for mine, its in zip(weights(given), weights(found), strict=True):
        np.testing.assert_array_equal(mine, its)
    assert added_labels(found) == [AddedLabel(label=new[0].label, examples=len(new[0].examples))]


def test_weights_of_examples_are_liblinears(shop):
    """The problem of training, on the cluster's documents, the examples and the text; solved by scikit-learn."""
    ranker = RankerConfig(tolerance=1e-4, max_sweeps=20_000, threshold=0.0, half_precision=False)
    config = LinearTreeConfig(index=IndexConfig(n_clusters=4), ranker=ranker, threads=1)
    model = LinearTree(config).fit(shop.train.texts, shop.train.Y, label_names=shop.old)
    kept = keep_documents(model, shop.train)
    (new,) = shop.new(5, shop.hidden[:1])
    grown = add_labels(kept, [new])
    cluster = grown.trees_[0].tree.clusters[-1]
    exemplars = kept.exemplars_
    rows = np.flatnonzero(exemplars.near[0].toarray()[:, cluster])
    Y = exemplars.Y.toarray()
    true = {row for row in range(len(exemplars)) if set(Y[row].nonzero()[0]) & in_cluster(model, cluster)}
    assert set(rows) == true
    X = np.vstack([exemplars.features().toarray()[rows], model.tfidf_.transform([*new.examples, new.label]).toarray()])
    y = np.array([-1] * len(rows) + [1] * 6)
    ones = np.ones((len(X), 1))
    svm = LinearSVC(C=1.0, fit_intercept=False, tol=1e-8, max_iter=1_000_000).fit(np.hstack((X, ones)), y)
    found = level_matrix(grown.trees_[0].levels[-1], model.n_features_)[:, -1]
    np.testing.assert_allclose(found, svm.coef_[0], atol=2e-3)


def test_many_examples_count_as_twenty_against_a_sample(shop):
    """The problem of training with the cost of each example scaled down, solved by scikit-learn."""
    ranker = RankerConfig(tolerance=1e-4, max_sweeps=20_000, threshold=0.0, half_precision=False)
    model = LinearTree(LinearTreeConfig(index=IndexConfig(method="none"), ranker=ranker, threads=1))
    model.fit(shop.train.texts, shop.train.Y, label_names=shop.old)
    kept = keep_documents(model, shop.train, config=IncrementalConfig(per_cluster=150))
    (new,) = shop.new(60, shop.hidden[:1])
    n_examples = len(new.examples) + 1  # and the text
    assert n_examples > 30
    texts = model.tfidf_.transform([*new.examples, new.label]).toarray()
    X = np.vstack([kept.exemplars_.features().toarray(), texts])
    y = np.array([-1] * 150 + [1] * n_examples)
    costs = np.where(y > 0, 20 / n_examples, 1.0)
    svm = LinearSVC(C=1.0, fit_intercept=False, tol=1e-8, max_iter=1_000_000)
    svm.fit(np.hstack((X, np.ones((len(X), 1)))), y, sample_weight=costs)
    found = level_matrix(add_labels(kept, [new]).trees_[0].levels[-1], model.n_features_)[:, -1]
    np.testing.assert_allclose(found, svm.coef_[0], atol=2e-3)


def in_cluster(model, cluster):
    return set(np.flatnonzero(model.trees_[0].tree.clusters == cluster).tolist())


@pytest.mark.parametrize("name", ["one-tree", "hybrid"])
def test_weights_of_a_label_without_examples_are_its_text_with_half_the_median_length(name, fitted, shop):
    model = fitted(name)
    text = " ".join(shop.train.texts[0].split()[:3])
    grown = add_labels(model, [NewLabel("new", text)])
    (tree, level), (grown_tree, grown_level) = model.growth().label_trees[0], grown.growth().label_trees[0]
    cluster = grown_tree.clusters[-1]
    others = level_matrix(level, n_features(model))[:, np.flatnonzero(tree.clusters == cluster)]
    found = level_matrix(grown_level, n_features(model))[:, -1]
    document = model.tfidf_.transform([text]).toarray()[0]
    if name == "hybrid":
        E = model.matcher_.encoder_.embed([text])[0]
        document = np.concatenate((document, model.ranker_.dense_weight * E / np.linalg.norm(E)))
    lengths = np.linalg.norm(others[:-1], axis=0)
    length = np.median(lengths[lengths > 0])
    np.testing.assert_allclose(found[:-1], 0.5 * length * document / np.linalg.norm(document), atol=2e-3 * length)
    np.testing.assert_allclose(found[-1], np.median(others[-1]), atol=1e-6)


def test_a_label_joins_the_cluster_that_the_tree_finds_for_its_pifa_embedding(fitted, shop):
    model = fitted("one-tree")
    (trained,) = model.trees_
    upper = [level_matrix(level, model.n_features_) for level in trained.levels[:-1]]
    grown = add_labels(model, shop.new(3), data=shop.train)
    for at, new in enumerate(shop.new(3)):
        z = model.tfidf_.transform(new.examples).toarray().sum(axis=0)
        z = np.append(z / np.linalg.norm(z), 1)
        first, second = (np.exp(-(np.maximum(1 - z @ W, 0) ** 3)) for W in upper)
        best = int(np.argmax(first[trained.tree.parents[1]] * second))
        assert grown.trees_[0].tree.clusters[len(shop.old) + at] == best


def test_probabilities_of_new_labels_are_calibrated():
    """The calibration that was fitted on old labels, tested on labels that were hidden at random."""
    train, held = generate_shop(6000, 600).values()
    random = np.random.default_rng(0)
    hidden = [train.labels[at] for at in np.sort(random.choice(train.n_labels, train.n_labels // 10, replace=False))]
    labels = [*(name for name in train.labels if name not in set(hidden)), *hidden]
    n_old = len(labels) - len(hidden)
    train, validation, test = (
        data.with_labels(labels) for data in (train, *(held.take(np.arange(at, len(held), 2)) for at in (0, 1)))
    )
    old = labelled(train, n_old)
    model = LinearTree(LinearTreeConfig(index=IndexConfig(n_clusters=16)))
    model.fit(old.texts, old.Y, label_names=old.labels, validation=labelled(validation, n_old))
    truth = sp.csr_array(test.Y[:, : len(labels)])
    before = calibration_error(sp.csr_array(truth[:, :n_old]), model.predict(test.texts, top_k=20))
    columns = train.Y.tocsc()
    for count in (0, 1, 5, 20):
        rows = [
            columns.indices[columns.indptr[at] : columns.indptr[at + 1]][:count] for at in range(n_old, len(labels))
        ]
        new = [NewLabel(labels[n_old + at], None, [train.texts[row] for row in own]) for at, own in enumerate(rows)]
        new = [one for one in new if one.examples or model.tfidf_.transform([one.label]).nnz]
        grown = add_labels(model, new, data=old)
        found = grown.predict(test.texts, top_k=20).with_labels(labels).matrix
        shown, right = sp.csr_array(found[:, n_old:]), sp.csr_array(truth[:, n_old:])
        assert shown.nnz > 300
        share = (shown != 0).multiply(right).sum() / shown.nnz
        assert abs(shown.data.mean() - share) < 0.08, count
        assert calibration_error(right, shown) < 8, count  # some hundred pairs: chance alone makes 3 to 4
        assert calibration_error(truth, found) < before + 0.5, count


def labelled(data, n_labels):
    """The documents that have some of the first labels, over these labels."""
    Y = sp.csr_array(data.Y[:, :n_labels])
    return Dataset(Y=Y, labels=data.labels[:n_labels], texts=data.texts).take(np.flatnonzero(np.diff(Y.indptr)))


def test_models_that_read_features(shop):
    """Examples are documents of the data; there are no texts."""
    from labelwise import Tfidf

    X = Tfidf().fit(shop.train.texts).transform(shop.all.texts)
    known = np.flatnonzero(np.diff(shop.all.Y[:, : len(shop.old)].indptr))
    Y = sp.csr_array(shop.all.Y[known][:, : len(shop.old)])
    model = LinearTree(LINEAR["one-tree"]).fit(X[known], Y, label_names=shop.old)
    data = Dataset(Y=shop.all.Y, labels=shop.all.labels, features=X)
    grown = add_labels(model, shop.hidden[:2], data=data)
    assert grown.predict(X[:5]).matrix.shape[1] == len(shop.old) + 2
    assert predicted(remove_labels(grown, shop.hidden[:2]), X[:50]) == predicted(model, X[:50])
    with pytest.raises(UsageError, match="reads features, so texts cannot be examples"):
        add_labels(model, shop.new(1), data=data)
    with pytest.raises(UsageError, match="no document of the data has the label 'unheard of'"):
        add_labels(model, ["unheard of"], data=data)
    with pytest.raises(UsageError, match="no document of the data has the label 'unheard of'"):
        add_labels(model, ["unheard of"])


def test_wrong_requests_are_refused(fitted, shop):
    model = fitted("one-tree")
    with pytest.raises(UsageError, match=r"has examples, but there are no documents without the label; .*--growing"):
        add_labels(model, shop.new(1))
    with pytest.raises(UsageError, match=f"the model has the label '{shop.old[3]}' already"):
        add_labels(model, [shop.old[3]])
    with pytest.raises(DataError, match="the label name 'a' is given twice"):
        add_labels(model, ["a", "a"])
    with pytest.raises(UsageError, match="there is no label to add"):
        add_labels(model, [])
    with pytest.raises(UsageError, match="give a list of labels"):
        add_labels(model, "cycling")
    with pytest.raises(DataError, match=r"knows no word of the text of 'xyzzy' \(and of 1 more labels\)"):
        add_labels(model, ["xyzzy", "qwerty"])
    strange = Dataset(Y=sp.csr_array(np.ones((1, 1), np.float32)), labels=["strange"], texts=["a text"])
    with pytest.raises(DataError, match="none of these documents has a label of the model"):
        add_labels(model, shop.new(1), data=strange)
    with pytest.raises(DataError, match="knows no word of the examples of 'red mirror'"):
        add_labels(model, [NewLabel("red mirror", None, ["xyzzy"])], data=shop.train)
    with pytest.raises(UsageError, match="per_cluster is 0"):
        keep_documents(model, shop.train, config=IncrementalConfig(per_cluster=0))
    with pytest.raises(UsageError, match="has no label 'nobody'"):
        remove_labels(model, [shop.old[0], "nobody"])
    with pytest.raises(UsageError, match="keeps all its labels if none is named"):
        remove_labels(model, [])
    with pytest.raises(UsageError, match="would have no label;"):
        remove_labels(model, [shop.old[at] for at in np.flatnonzero(model.trees_[0].tree.clusters == 2)])
    with pytest.raises(UsageError, match="not fitted"):
        add_labels(LinearTree(), ["cycling"])


def test_labels_of_training_can_be_removed_too(fitted, shop):
    model = fitted("one-tree")
    fewer = remove_labels(model, shop.old[:5])
    assert fewer.labels_ == shop.old[5:]
    np.testing.assert_array_equal(weights(fewer)[0], weights(model)[0][:, 5:])
    assert fewer.report_.added == []
