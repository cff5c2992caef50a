"""Each kernel against plain loops over lists, on hypothesis-made rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwise.kernels import metrics as kernels
from tests.metrics.examples import problems
from tests.reference import metrics as reference


def flat(rows, dtype):
    indptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return indptr, np.array([value for row in rows for value in row], dtype=dtype)


def read_only(*arrays):
    for array in arrays:
        array.flags.writeable = False
    return arrays


@given(problems(min_docs=0), st.integers(1, 9), st.booleans())
def test_rank_rows(problem, k, locked):
    _, scores, _, _, _ = problem
    indptr, labels = flat(scores, np.int32)
    data = np.array([score for row in scores for score in row.values()], dtype=np.float64)
    best_indptr, _ = flat([list(row)[:k] for row in scores], np.int32)
    best = np.full(best_indptr[-1], -1)
    if locked:
        read_only(indptr, labels, data, best_indptr)
    kernels.rank_rows(indptr, labels, data, best_indptr, best)
    expected = [label for row in scores for label in reference.ranking(row, k)]
    assert labels[best].tolist() == expected


@given(problems(min_docs=0), st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True), st.data())
def test_hits_and_gains(problem, ks, data):
    truth, scores, n_labels, _, _ = problem
    ks = sorted(ks)
    indptr, labels = flat([sorted(true) for true in truth], np.uint32)
    tops = [reference.ranking(row) for row in scores]
    best_indptr, best = flat(tops, np.uint32)
    hits = np.zeros(best.size, dtype=np.uint8)
    kernels.mark_hits(indptr, labels, best_indptr, best, hits)
    marks = [[label in true for label in top] for true, top in zip(truth, tops, strict=True)]
    assert hits.tolist() == [mark for row in marks for mark in row]

    scope = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n_labels, max_size=n_labels)), dtype=np.uint8)
    weights = 1.0 + np.arange(n_labels) % 3
    gains = np.zeros((2, 5, len(ks), len(truth)))
    kernels.gather_gains(best_indptr, best, hits, scope, weights, np.array(ks), gains)
    best_out = np.zeros((2, len(ks), len(truth)))
    kernels.gather_best(indptr, labels, weights, np.array(ks), best_out)
    sizes = np.zeros((2, len(truth)), dtype=np.int64)
    kernels.count_truth(indptr, labels, scope, sizes)
    for i, (true, top) in enumerate(zip(truth, tops, strict=True)):
        for cut, k in enumerate(ks):
            for part in (0, 1):
                mine = [int(scope[label] == part) for label in top[:k]]
                right = [m * (label in true) for m, label in zip(mine, top[:k], strict=True)]
                heavy = [weights[label] for label in top[:k]]
                expected = [
                    sum(mine),
                    sum(right),
                    reference.gain(right),
                    float(np.dot(right, heavy)),
                    reference.gain(right, heavy),
                ]
                assert gains[part, :, cut, i].tolist() == pytest.approx(expected)
            perfect = sorted((weights[label] for label in true), reverse=True)[:k]
            expected = [sum(perfect), reference.gain([1] * len(perfect), perfect)]
            assert best_out[:, cut, i].tolist() == pytest.approx(expected)
        assert sizes[:, i].tolist() == [sum(scope[label] == part for label in true) for part in (0, 1)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(3, 1, 2), (2, 0, 2), (5, 7, 1), (4, 519, 3)])
def test_add_weighted(shape, dtype):
    rng = np.random.default_rng(0)
    n_draws, n_docs, n_columns = shape
    times = rng.integers(0, 4, size=(n_draws, n_docs)).astype(dtype)
    rows = rng.random((n_docs, n_columns)).astype(dtype)
    sums = np.ones((n_draws, n_columns))
    kernels.add_weighted(times, rows, sums)
    np.testing.assert_allclose(sums, 1 + times.astype(float) @ rows.astype(float), rtol=1e-6)
