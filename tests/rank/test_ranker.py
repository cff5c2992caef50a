"""The ranker below a matcher: its scores by hand, its folder, and the choice that validation documents make."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.config import RankerConfig
from labelwise.errors import StorageError, UsageError
from labelwise.rank.ranker import (
    SCORE_TRANSFORMS,
    SHARES,
    HeldOutInputs,
    Inputs,
    Ranker,
    RankerData,
    RankerSearchSpace,
    choose_ranker,
)

CONFIG = RankerConfig(threshold=0.0, half_precision=False, negatives="tfn+man")
CLUSTERS = np.array([0, 1, 2, 0, 1, 2, 0, 1], np.int32)
N_LABELS, N_CLUSTERS = len(CLUSTERS), 3


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def data():
    """Labels that follow from both kinds of features, and a matcher that finds two of three clusters."""
    rng = np.random.default_rng(0)
    n = 120
    X = sp.csr_array(unit(rng.random((n, 20)) * (rng.random((n, 20)) < 0.4) + 1e-3))
    E = unit(rng.normal(size=(n, 6)))
    raw = X.toarray() @ rng.normal(size=(20, N_LABELS)) + E @ rng.normal(size=(6, N_LABELS))
    Y = sp.csr_array((raw > np.quantile(raw, 0.75, axis=1, keepdims=True)).astype(np.float32))
    C = np.eye(N_CLUSTERS, dtype=np.float32)[CLUSTERS]
    M = sp.csr_array((Y @ C > 0).astype(np.float32))
    scores = M.toarray() * 2 - 1 + 0.5 * rng.normal(size=(n, N_CLUSTERS))
    scores[scores == scores.min(1, keepdims=True)] = 0
    return Inputs(X, E, sp.csr_array(scores.astype(np.float32))), Y, M


def label_scores(ranker, inputs):
    """(n_docs, n_labels) h, from the arrays of each block."""
    level = ranker.level
    dense = np.zeros((len(inputs.found.indptr) - 1, 0)) if inputs.E is None else inputs.E * ranker.dense_weight
    dense = np.hstack((dense, np.full((len(dense), 1), ranker.bias)))
    scores = np.zeros((len(dense), level.n_children))
    scores[:, level.child_ids] = dense @ level.dense.T
    if inputs.X is None:
        return scores
    W = np.zeros((ranker.n_features, level.n_children))
    for parent in range(level.n_parents):
        children = level.child_ids[level.child_indptr[parent] : level.child_indptr[parent + 1]]
        begin = 0
        for row in range(level.row_indptr[parent], level.row_indptr[parent + 1]):
            for entry in range(begin, level.row_end[row]):
                at = level.entry_indptr[parent] + entry
                W[level.row_feature[row], children[level.entry_child[at]]] = level.entry_value[at]
            begin = level.row_end[row]
    return scores + inputs.X.toarray() @ W


def factor(scores, score_transform):
    if score_transform == "sigmoid":
        return 1 / (1 + np.exp(-scores))
    return np.exp(-(np.maximum(0, 1 - scores) ** int(score_transform[1])))


@pytest.mark.parametrize(("score_transform", "matcher_weight"), [*SCORE_TRANSFORMS, ("l1-hinge", 1.0)])
def test_scores_are_those_worked_by_hand(data, score_transform, matcher_weight):
    inputs, Y, _M = data
    ranker = Ranker.fit(RankerData(inputs, Y, CLUSTERS), CONFIG, dense_weight=2.0)
    ranker = ranker.with_transform(score_transform, matcher_weight)
    h, g = label_scores(ranker, inputs), inputs.found.toarray()[:, CLUSTERS]
    expected = (
        h
        if score_transform == "ranker-only"
        else factor(g, score_transform) ** matcher_weight * factor(h, score_transform)
    )
    found = ranker.top(inputs, N_LABELS)
    there = inputs.found.toarray()[:, CLUSTERS] != 0  # labels of clusters that were not found are not ranked
    assert (np.diff(found.indptr) == there.sum(1)).all()
    rows = np.repeat(np.arange(len(there)), np.diff(found.indptr))
    assert there[rows, found.indices].all()
    np.testing.assert_allclose(found.data, expected[rows, found.indices], atol=1e-4, rtol=1e-3)
    best = ranker.top(inputs, 2, threads=1)
    assert (np.diff(best.indptr) == 2).all()
    np.testing.assert_allclose(
        np.sort(best.data.reshape(-1, 2)),
        np.sort(np.where(there, expected, -np.inf))[:, -2:],
        atol=1e-4,
        rtol=1e-3,
    )


@pytest.mark.parametrize("kind", ["both", "tfidf", "neural"])
def test_fit_top_save_load_with_any_features(data, tmp_path, kind):
    inputs, Y, _M = data
    inputs = Inputs(None if kind == "neural" else inputs.X, None if kind == "tfidf" else inputs.E, inputs.found)
    ranker = Ranker.fit(RankerData(inputs, Y, CLUSTERS), CONFIG, dense_weight=0.5).with_transform("l2-hinge", 0.3)
    found = ranker.top(inputs, 3)
    right = Y.toarray()[np.repeat(np.arange(120), 3), found.indices].mean()
    assert right > 0.45  # a quarter by lot
    ranker.save(tmp_path / "ranker")
    loaded = Ranker.load(tmp_path / "ranker")
    again = loaded.top(inputs, 3)
    np.testing.assert_array_equal(again.indices, found.indices)
    np.testing.assert_array_equal(again.data, found.data)
    for name in ("n_features", "dense_weight", "score_transform", "matcher_weight", "bias"):
        assert getattr(loaded, name) == getattr(ranker, name)
    rows = np.array([7, 3, 100])
    np.testing.assert_allclose(ranker.top(inputs.take(rows), 3).toarray(), found.toarray()[rows], rtol=1e-5)
    with pytest.raises(StorageError, match="is not a complete ranker"):
        _without(tmp_path / "ranker", "score_transform")


def _without(folder, name):
    about = json.loads((folder / "config.json").read_text())
    del about["config"][name]
    (folder / "config.json").write_text(json.dumps(about))
    Ranker.load(folder, verify=False)


def test_threads_do_not_matter(data):
    inputs, Y, _M = data
    training = RankerData(inputs, Y, CLUSTERS)
    found = [Ranker.fit(training, CONFIG, threads=threads).top(inputs, 5) for threads in (1, 4)]
    np.testing.assert_array_equal(found[0].toarray(), found[1].toarray())


@pytest.mark.parametrize("negatives", ["tfn", "man", "tfn+man"])
def test_the_matchers_negatives_teach(data, negatives):
    """Documents that only the matcher sends to a cluster are its labels' negatives if they are asked for."""
    inputs, Y, M = data
    config = RankerConfig(threshold=0.0, half_precision=False, negatives=negatives)
    ranker = Ranker.fit(RankerData(inputs, Y, CLUSTERS), config)
    other = Inputs(inputs.X, inputs.E, M)  # the matcher finds the true clusters and nothing else
    same = np.allclose(Ranker.fit(RankerData(other, Y, CLUSTERS), config).level.dense, ranker.level.dense, atol=1e-6)
    assert same == (negatives == "tfn")


def test_labels_of_the_network_join_models_of_tfidf(data, tmp_path):
    inputs, Y, _M = data
    rng = np.random.default_rng(3)
    weight, bias = rng.normal(size=(N_LABELS, 6)).astype(np.float32), rng.normal(size=N_LABELS).astype(np.float32)
    plain = Inputs(inputs.X, None, inputs.found)
    config = RankerConfig(threshold=0.0, half_precision=False, negatives="tfn+man", bias=2.0)
    ranker = Ranker.fit(RankerData(plain, Y, CLUSTERS), config, threads=1).with_transform("ranker-only", 1.0)
    expected = 0.7 * label_scores(ranker, plain) + 0.3 * (inputs.E @ weight.T + bias)
    joined = ranker.with_labels(weight, bias, 0.3)
    np.testing.assert_allclose(label_scores(joined, inputs), expected, atol=1e-5)
    found = joined.top(inputs, N_LABELS, threads=1)
    rows = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
    np.testing.assert_allclose(found.data, expected[rows, found.indices], atol=1e-5)
    joined.save(tmp_path / "ranker")
    np.testing.assert_array_equal(
        Ranker.load(tmp_path / "ranker").top(inputs, 3).toarray(), joined.top(inputs, 3).toarray()
    )
    with pytest.raises(UsageError, match="train it on tf-idf alone"):
        joined.with_labels(weight, bias, 0.3)


@pytest.mark.parametrize("network_knows", [True, False])
def test_the_better_share_of_the_networks_labels_is_chosen(data, network_knows):
    inputs, Y, _M = data
    rng = np.random.default_rng(4)
    weight, bias = np.zeros((N_LABELS, N_LABELS), np.float32), np.zeros(N_LABELS, np.float32)
    np.fill_diagonal(weight, 1.0)
    hints = Y.toarray() - 0.5 if network_knows else rng.normal(size=Y.shape)
    noise = sp.csr_array(unit(rng.random(inputs.X.shape)))
    seen = Inputs(noise if network_knows else inputs.X, unit(hints), inputs.found)
    candidates = RankerSearchSpace(score_transforms=[("ranker-only", 1.0), ("l3-hinge", 1.0)])
    training, held_out = RankerData(seen, Y, CLUSTERS), HeldOutInputs(seen, Y)
    choice = choose_ranker(training, held_out, CONFIG, candidates, label_head=(weight, bias), threads=1)
    best = max(choice.trials, key=lambda trial: np.mean(trial.precisions))
    assert (best.label_weight > 0.3) == network_knows
    assert len(choice.trials) == 2 + len(SHARES) - 1, "one ranker is trained, and the share is chosen last"
    assert choice.evaluated.level.dense.shape[1] == N_LABELS + 1
    np.testing.assert_array_equal(choice.evaluated.top(seen, 3).toarray(), choice.final.top(seen, 3).toarray())


def planted_choice(*, matcher_knows):
    """Labels in pairs that look the same to the ranker; which of a pair is right only the matcher may know."""
    rng = np.random.default_rng(1)
    n = 160
    topic, side = rng.integers(0, 4, n), rng.integers(0, 2, n)
    E = unit(np.eye(4)[topic] + 0.05 * rng.normal(size=(n, 4)))
    label = 2 * topic + side
    Y = sp.csr_array((np.ones(n, np.float32), label, np.arange(n + 1)), shape=(n, 8))
    clusters = np.tile(np.array([0, 1], np.int32), 4)
    said = side if matcher_knows else 1 - side
    found = sp.csr_array((2 * np.eye(2)[said] - 1).astype(np.float32))
    X = sp.csr_array(unit(rng.random((n, 12)) + 0.01))  # says nothing
    return RankerData(Inputs(X, E, found), Y, clusters)


def split(data, n=100):
    """Training documents, and held-out documents that are not among them."""
    learn, rest = np.arange(n), np.arange(n, data.Y.shape[0])
    held_out = HeldOutInputs(data.inputs.take(rest), data.Y[rest])
    return RankerData(data.inputs.take(learn), data.Y[learn], data.clusters), held_out


@pytest.mark.parametrize("matcher_knows", [True, False])
def test_the_better_combination_is_chosen(matcher_knows):
    score_transforms = [("ranker-only", 1.0), ("l3-hinge", 1.0)]
    score_transforms = score_transforms if matcher_knows else score_transforms[::-1]
    candidates = RankerSearchSpace(dense_weights=[1.0], score_transforms=score_transforms)
    choice = choose_ranker(*split(planted_choice(matcher_knows=matcher_knows)), CONFIG, candidates)
    ranker, final = choice.evaluated, choice.final
    assert ranker.score_transform == ("l3-hinge" if matcher_knows else "ranker-only")
    assert [trial.score_transform for trial in choice.trials] == [name for name, _ in score_transforms]
    means = {trial.score_transform: np.mean(trial.precisions) for trial in choice.trials}
    assert means[ranker.score_transform] == max(means.values()) > min(means.values())
    np.testing.assert_array_equal(final.level.dense, ranker.level.dense)  # nothing comes later: the same ranker
    assert final.score_transform == ranker.score_transform


def test_the_better_weight_of_the_embedding_is_chosen():
    training, held_out = split(planted_choice(matcher_knows=True))
    for weights, expected in (((1e-3, 2.0), 2.0), ((2.0, 1e-3), 2.0)):
        events = []
        candidates = RankerSearchSpace(dense_weights=weights, score_transforms=[("l3-hinge", 1.0), ("l3-hinge", 0.3)])
        keep = lambda *event, events=events: events.append(event)  # noqa: E731
        choice = choose_ranker(training, held_out, CONFIG, candidates, on_event=keep)
        assert choice.evaluated.dense_weight == choice.final.dense_weight == expected
        assert len(choice.trials) == 4
        last = [values for name, values in events if values.get("task") == "choosing the ranker"][-1]
        assert (last["done"], last["total"], last["finished"]) == (2, 2, True)
        found = choice.evaluated.top(held_out.inputs, 1)
        assert held_out.Y.toarray()[np.arange(60), found.indices].mean() > 0.85  # an eighth by lot


def test_where_there_is_one_kind_of_features_no_weight_is_chosen(data):
    inputs, Y, _M = data
    alone = Inputs(inputs.X, None, inputs.found)
    candidates = RankerSearchSpace(score_transforms=SCORE_TRANSFORMS[:2])
    choice = choose_ranker(RankerData(alone, Y, CLUSTERS), HeldOutInputs(alone, Y), CONFIG, candidates)
    assert choice.evaluated.dense_weight == choice.final.dense_weight == 1
    assert len(choice.trials) == 2


@pytest.mark.parametrize("negatives", ["tfn", "man", "tfn+man"])
def test_held_out_documents_are_learnt_from_in_the_end(data, negatives):
    """The evaluated ranker is one without them, the final ranker one of all documents, both as if trained alone."""
    inputs, Y, M = data
    settings = {"threshold": 0.0, "half_precision": False, "tolerance": 1e-4, "max_sweeps": 3000}
    config = RankerConfig(**settings, matcher_sweeps=3000, negatives=negatives)
    held = np.array([3, 40, 41, 77, 118])
    rest = np.setdiff1d(np.arange(len(M.indptr) - 1), held)
    candidates = RankerSearchSpace(dense_weights=[2.0], score_transforms=SCORE_TRANSFORMS[1:3])
    held_out = HeldOutInputs(inputs.take(held), Y[held], held)
    choice = choose_ranker(RankerData(inputs, Y, CLUSTERS), held_out, config, candidates)
    for found, rows in ((choice.evaluated, rest), (choice.final, np.arange(len(held) + len(rest)))):
        alone = Ranker.fit(RankerData(inputs.take(rows), Y[rows], CLUSTERS), config, dense_weight=2.0)
        alone = alone.with_transform(choice.final.score_transform, choice.final.matcher_weight)
        np.testing.assert_allclose(label_scores(found, inputs), label_scores(alone, inputs), atol=2e-3)
        assert (found.score_transform, found.matcher_weight) == (alone.score_transform, alone.matcher_weight)
    difference = label_scores(choice.evaluated, inputs) - label_scores(choice.final, inputs)
    assert np.abs(difference).max() > 0.05
