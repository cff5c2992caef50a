"""Every metric: by hand, against plain Python, against scikit-learn."""

from functools import partial
from math import log2

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, ndcg_score, precision_score, recall_score

from labelwise import metrics
from tests.metrics.examples import SCORES, WEIGHTS, hand_worked, problems
from tests.reference import metrics as reference

D2, D3 = 1 / log2(3), 1 / log2(4)  # discounts of ranks 2 and 3


@pytest.mark.parametrize(
    ("function", "k", "expected"),
    [
        (metrics.precision_at_k, 1, 1 / 4),  # only document 0 starts with a right label
        (metrics.precision_at_k, 3, (2 / 3 + 1 / 3 + 0 + 0) / 4),
        (metrics.precision_at_k, 10, (2 / 10 + 1 / 10) / 4),  # what is missing is wrong
        (metrics.recall_at_k, 1, (1 / 3) / 4),
        (metrics.recall_at_k, 3, (2 / 3 + 1 / 1 + 0 + 0) / 4),
        (metrics.r_precision_at_k, 1, (1 / 1 + 0 + 0 + 0) / 4),
        (metrics.r_precision_at_k, 2, (1 / 2 + 1 / 1 + 0 + 0) / 4),  # min(2, 3) and min(2, 1) true labels
        (metrics.ndcg_at_k, 1, 1 / 4),
        (metrics.ndcg_at_k, 3, ((1 + D3) / (1 + D2 + D3) + D2 / 1 + 0 + 0) / 4),
        (metrics.coverage_at_k, 1, 1 / 5),  # label 0; all five occur
        (metrics.coverage_at_k, 3, 3 / 5),  # and 1 and 4
        # weights of what is found / of the heaviest true ones: documents 0, 1, 3
        (partial(metrics.psp_at_k, inverse_propensity=WEIGHTS), 1, 1 / (4 + 5 + 3)),
        (partial(metrics.psp_at_k, inverse_propensity=WEIGHTS), 3, (1 + 2 + 5) / ((4 + 2 + 1) + 5 + (3 + 2))),
        (
            partial(metrics.psndcg_at_k, inverse_propensity=WEIGHTS),
            3,
            ((1 + 2 * D3) / (1 + D2 + D3) + 5 * D2)
            / ((4 + 2 * D2 + 1 * D3) / (1 + D2 + D3) + 5 + (3 + 2 * D2) / (1 + D2)),
        ),
        (metrics.micro_f1, 3, 2 * 3 / (6 + 6)),  # 3 right; 6 predicted, 6 true
        # F1 of labels 0 to 4: one right of 2 predicted and 1 true; of 1 and 2; none; none; of 1 and 1
        (metrics.macro_f1, 3, (2 / 3 + 2 / 3 + 0 + 0 + 1) / 5),
    ],
)
def test_worked_by_hand(function, k, expected):
    Y, Y_pred = hand_worked()
    assert function(Y, Y_pred, k=k) == pytest.approx(100 * expected, rel=1e-12)


def test_f1_at_a_threshold_by_hand():
    Y, Y_pred = hand_worked()
    Y_pred = Y_pred.astype(np.float64)
    # At least 0.8: 0 and 3 for document 0, 3 for 1, 0 for 2. One right; 4 predicted, 6 true.
    assert metrics.micro_f1(Y, Y_pred, threshold=0.75) == pytest.approx(100 * 2 / 10)
    assert metrics.macro_f1(Y, Y_pred, threshold=0.75) == pytest.approx(100 * (2 / 3) / 5)
    # And only the best of each: 0; 3; 0.
    assert metrics.micro_f1(Y, Y_pred, k=1, threshold=0.75) == pytest.approx(100 * 2 / 9)
    assert metrics.micro_f1(Y, Y_pred) == metrics.micro_f1(Y, Y_pred, k=3)


AT_K = {
    metrics.precision_at_k: reference.precision,
    metrics.recall_at_k: reference.recall,
    metrics.r_precision_at_k: reference.r_precision,
    metrics.ndcg_at_k: reference.ndcg,
    metrics.coverage_at_k: reference.coverage,
    metrics.micro_f1: reference.micro_f1,
    metrics.macro_f1: reference.macro_f1,
}


@given(problems(), st.integers(1, 9), st.sampled_from([None, -1.0, 0.0, 0.5]), st.randoms(use_true_random=False))
def test_equals_the_reference(problem, k, threshold, random):
    truth, scores, n_labels, Y, Y_pred = problem
    before = [array.copy() for m in (Y, Y_pred) for array in (m.data, m.indices, m.indptr)]
    for function, twin in AT_K.items():
        assert function(Y, Y_pred, k=k) == pytest.approx(twin(truth, scores, k), nan_ok=True), function.__name__
    weights = [random.uniform(1, 9) for _ in range(n_labels)]
    for function, twin in ((metrics.psp_at_k, reference.psp), (metrics.psndcg_at_k, reference.psndcg)):
        assert function(Y, Y_pred, weights, k) == pytest.approx(twin(truth, scores, k, weights), nan_ok=True)
    for function in (metrics.micro_f1, metrics.macro_f1):
        twin = AT_K[function]
        for cut in (None, k):
            expected = twin(truth, scores, cut, threshold)
            assert function(Y, Y_pred, k=cut, threshold=threshold) == pytest.approx(expected, nan_ok=True)
    after = [array for m in (Y, Y_pred) for array in (m.data, m.indices, m.indptr)]
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)


@given(problems(), st.integers(1, 9))
def test_perfect_predictions_reach_the_top(problem, k):
    truth, _, n_labels, Y, Y_pred = problem
    weights = 1.0 + np.arange(n_labels)
    for function in (metrics.precision_at_k, metrics.recall_at_k, metrics.ndcg_at_k, metrics.r_precision_at_k):
        assert 0 <= function(Y, Y_pred, k=k) <= 100
    if not all(truth):
        return
    perfect = Y.multiply(weights).tocsr()  # heaviest first, as the best possible ranking has it
    for function in (metrics.ndcg_at_k, metrics.r_precision_at_k):
        assert function(Y, perfect, k=k) == pytest.approx(100)
    for function in (metrics.psp_at_k, metrics.psndcg_at_k):
        assert function(Y, perfect, weights, k=k) == pytest.approx(100)
    for function in (metrics.recall_at_k, metrics.coverage_at_k, metrics.micro_f1, metrics.macro_f1):
        assert function(Y, perfect, k=n_labels) == pytest.approx(100)
    if min(map(len, truth)) >= k:
        assert metrics.precision_at_k(Y, perfect, k=k) == pytest.approx(100)


def random_problem(n_docs=60, n_labels=15):
    rng = np.random.default_rng(5)
    truth = (rng.random((n_docs, n_labels)) < 0.2).astype(np.int64)
    truth[np.arange(n_docs), rng.integers(n_labels, size=n_docs)] = 1  # scikit-learn wants a label per document
    scores = rng.permuted(np.tile(np.linspace(0.01, 1, n_labels), (n_docs, 1)), axis=1)
    return truth, scores


@pytest.mark.rivals
@pytest.mark.parametrize("k", [1, 3, 5, 15])
def test_equals_scikit_learn(k):
    truth, scores = random_problem()
    Y, Y_pred = sp.csr_array(truth), sp.csr_array(scores)
    assert metrics.ndcg_at_k(Y, Y_pred, k) == pytest.approx(100 * ndcg_score(truth, scores, k=k))
    picked = (scores >= np.sort(scores, axis=1)[:, [-k]]).astype(np.int64)
    options = {"average": "samples", "zero_division": 0}
    assert metrics.precision_at_k(Y, Y_pred, k) == pytest.approx(100 * precision_score(truth, picked, **options))
    assert metrics.recall_at_k(Y, Y_pred, k) == pytest.approx(100 * recall_score(truth, picked, **options))
    assert metrics.micro_f1(Y, Y_pred, k=k) == pytest.approx(100 * f1_score(truth, picked, average="micro"))
    assert metrics.macro_f1(Y, Y_pred, k=k) == pytest.approx(
        100 * f1_score(truth, picked, average="macro", zero_division=0)
    )
    above = (scores >= 0.6).astype(np.int64)
    assert metrics.micro_f1(Y, Y_pred, threshold=0.6) == pytest.approx(100 * f1_score(truth, above, average="micro"))


def test_nothing_to_measure_is_nan():
    empty = sp.csr_array((2, 3))
    assert metrics.precision_at_k(empty, empty) == metrics.recall_at_k(empty, empty) == 0
    assert metrics.ndcg_at_k(empty, empty) == metrics.r_precision_at_k(empty, empty) == 0
    for value in (
        metrics.psp_at_k(empty, empty, [1, 1, 1]),
        metrics.micro_f1(empty, empty),
        metrics.macro_f1(empty, empty),
        metrics.coverage_at_k(empty, empty),
    ):
        assert np.isnan(value)


def test_rankings_of_the_hand_worked_example():
    assert [reference.ranking(row) for row in SCORES] == [[0, 3, 1], [3, 4], [0], []]
