"""The rules of combination against slow dense twins and by hand; weights and pruning on planted models."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.metrics import precision_at_k
from labelwise.models.ensemble import rules as module
from labelwise.models.ensemble.rules import RULES, combine
from labelwise.models.ensemble.selection import HoldoutScorer, choose_rule, learn_weights, prune


def made(rows, n_labels):
    """A matrix from {label: value} for each document; a value of 0 is stored."""
    entries = [(i, label, value) for i, row in enumerate(rows) for label, value in row.items()]
    at = np.array([entry[:2] for entry in entries], dtype=int).reshape(-1, 2)
    values = np.array([entry[2] for entry in entries], dtype=np.float32)
    return sp.csr_array((values, (at[:, 0], at[:, 1])), shape=(len(rows), n_labels))


def ranked(row):
    return sorted(row, key=lambda label: (-row[label], label))


def slow(lists, rule, weights, depth, over):
    """One document, label by label: {label: score}."""
    lists = [{label: float(row[label]) for label in ranked(row)[:depth]} for row in lists]
    union = sorted(set().union(*lists))
    if rule == "round_robin":
        order = sorted((m for m in range(len(lists)) if weights[m] > 0), key=lambda m: (-weights[m], m))
        seen = {}
        for place in range(depth * len(order)):
            names = ranked(lists[order[place % len(order)]])
            rank = place // len(order)
            if rank < len(names):
                seen.setdefault(names[rank], 1 - place / (depth * len(order)))
        return {label: seen.get(label, 0.0) for label in union}

    def worth(row, label):
        if rule == "average":
            if label in row:
                return row[label]
            return min(row.values(), default=0.0) if over == "scores" else 0.0
        if label not in row:
            return 0.0
        if rule == "rank_average":
            return 1 - ranked(row).index(label) / depth
        if rule == "sigmoid_average":
            return 1 / (1 + math.exp(-row[label]))
        return math.exp(row[label]) / sum(map(math.exp, row.values()))

    total = sum(weights)
    return {label: sum(w * worth(row, label) for w, row in zip(weights, lists, strict=True)) / total for label in union}


@pytest.fixture
def drawn():
    """Three models' scores of 40 documents and 12 labels, some rows empty, some values equal, some below 0."""
    rng = np.random.default_rng(3)
    rows = []
    for _ in range(3):
        sizes = rng.integers(0, 9, 40)
        rows.append(
            [
                dict(zip(rng.permutation(12)[:n].tolist(), np.round(rng.normal(size=n), 1).tolist(), strict=True))
                for n in sizes
            ]
        )
    return rows


@pytest.mark.parametrize("over", ["scores", "probabilities"])
@pytest.mark.parametrize("weights", [(1, 1, 1), (0.2, 0.5, 0.3), (2, 0, 1)])
@pytest.mark.parametrize("rule", RULES)
def test_rules_against_a_slow_twin(rule, weights, over, drawn, monkeypatch):
    monkeypatch.setattr(module, "DOCUMENTS_PER_BLOCK", 7)
    matrices = [made(rows, 12) for rows in drawn]
    options = {"weights": np.array(weights, float), "depth": 5, "over": over}
    found = combine(matrices, rule, **options, top_k=12)
    best = combine(matrices, rule, **options, top_k=3)
    for i in range(40):
        expected = slow([rows[i] for rows in drawn], rule, weights, 5, over)
        here = slice(found.indptr[i], found.indptr[i + 1])
        assert found.indices[here].tolist() == sorted(expected)
        np.testing.assert_allclose(found.data[here], [expected[label] for label in sorted(expected)], atol=1e-6)
        scores = dict(zip(found.indices[here].tolist(), found.data[here].tolist(), strict=True))
        kept = slice(best.indptr[i], best.indptr[i + 1])
        assert best.indices[kept].tolist() == sorted(ranked(scores)[:3])


def test_by_hand():
    """Two lists of two: (a 0.8, b 0.4) and (c 0.6, a 0.2), of which the first has three quarters of the weight."""
    first, second = made([{0: 0.8, 1: 0.4, 2: 0.1}], 3), made([{2: 0.6, 0: 0.2}], 3)
    expected = {
        ("average", "probabilities"): [0.6 + 0.05, 0.3, 0.15],
        ("average", "scores"): [0.6 + 0.05, 0.3 + 0.05, 0.3 + 0.15],
        ("rank_average", "scores"): [0.75 + 0.125, 0.375, 0.25],
        ("round_robin", "scores"): [1, 0.5, 0.75],
    }
    e = math.exp(0.4)
    sigmoid = [1 / (1 + math.exp(-value)) for value in (0.8, 0.4, 0.6, 0.2)]
    expected["sigmoid_average", "scores"] = [
        0.75 * sigmoid[0] + 0.25 * sigmoid[3],
        0.75 * sigmoid[1],
        0.25 * sigmoid[2],
    ]
    expected["softmax_average", "scores"] = [(0.75 * e + 0.25) / (e + 1), 0.75 / (e + 1), 0.25 * e / (e + 1)]
    for (rule, over), scores in expected.items():
        found = combine([first, second], rule, weights=np.array([3.0, 1.0]), depth=2, over=over, top_k=3)
        np.testing.assert_allclose(found.toarray()[0], scores, atol=1e-6, err_msg=f"{rule} {over}")


def test_large_values_and_nothing_at_all():
    wild = made([{0: 900.0, 1: -900.0}, {}], 2)
    for rule in RULES:
        found = combine([wild, wild], rule, weights=np.ones(2), depth=4, top_k=2)
        assert np.isfinite(found.data).all()
        assert np.diff(found.indptr).tolist() == [2, 0]
    empty = sp.csr_array((0, 5), dtype=np.float32)
    assert combine([empty, empty], "average", weights=np.ones(2), depth=4, top_k=2).shape == (0, 5)


@pytest.fixture
def planted():
    """A truth of two labels in thirty, a model that knows it fairly, one that knows it poorly, and two of noise."""
    rng = np.random.default_rng(0)
    Y = np.zeros((400, 30), np.float32)
    for row in Y:
        row[rng.permutation(30)[:2]] = 1
    strengths = (2.0, 1.0, 0.0, 0.0)
    models = [sp.csr_array((s * Y + rng.normal(size=Y.shape)).astype(np.float32)) for s in strengths]
    return models, sp.csr_array(Y)


def test_the_jury_counts_as_the_metrics_do(planted):
    models, Y = planted
    jury = HoldoutScorer(models, Y, depth=30, over="scores")
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    found = combine(models, "average", weights=weights, depth=30, top_k=5)
    expected = np.mean([precision_at_k(Y, found, k=k) for k in (1, 3, 5)])
    assert jury.scores("average", weights).mean() == pytest.approx(expected)
    wider = sp.csr_array(sp.hstack([Y, sp.csr_array(np.ones((400, 3), np.float32))]))
    assert HoldoutScorer(models, wider, depth=30, over="scores").scores("average", weights).mean() == pytest.approx(
        expected
    )


def test_weights_are_learnt(planted):
    models, Y = planted
    jury = HoldoutScorer(models, Y, depth=30, over="scores")
    weights = learn_weights(jury, "average", np.ones(4))
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    assert weights[0] > weights[1] > weights[2:].max()
    for rule in RULES:
        learnt = learn_weights(jury, rule, np.ones(4))
        assert jury.scores(rule, learnt).mean() >= jury.scores(rule, np.full(4, 0.25)).mean()


def test_models_without_gain_are_dropped(planted):
    models, Y = planted
    jury = HoldoutScorer(models, Y, depth=30, over="scores")
    assert prune(jury, "average", np.ones(4), 0.3).tolist() == [0, 1]
    assert len(prune(jury, "average", np.ones(4), 100.0)) == 1
    assert prune(jury, "average", np.ones(4), -100.0).tolist() == [0, 1, 2, 3]


def test_a_rule_is_chosen_only_where_it_is_clearly_better(planted):
    models, Y = planted
    assert choose_rule(HoldoutScorer([models[0]] * 2, Y, depth=30, over="scores"), 2) == "average"
    loud = sp.csr_array(models[2] * np.float32(1e6))  # noise that shouts everyone down, unless ranks count
    assert choose_rule(HoldoutScorer([models[0], models[1], loud], Y, depth=30, over="scores"), 3) != "average"
