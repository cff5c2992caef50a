"""The paper's Figure 3: six documents, twenty labels, four clusters."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.rank.negatives import both, matcher_aware, teacher_forcing

CLUSTERS = np.repeat(np.arange(4, dtype=np.int32), 5)  # cluster 1 of the figure, our 0, has the first five labels
LABELS = [
    [0, 3, 7],  # x1
    [2, 16],  # x2
    [5, 9, 8],  # x3
    [12],  # x4
    [10, 19],  # x5
    [4, 1, 14],  # x6
]
M = [
    [1, 1, 0, 0],
    [1, 0, 0, 1],
    [0, 1, 0, 0],
    [0, 0, 1, 0],
    [0, 0, 1, 1],
    [1, 0, 1, 0],
]
# What a matcher might say; its best two are underlined by hand in M_HAT.
SCORES = [
    [0.9, 0.2, 0.5, 0.1],
    [0.3, 0.1, 0.4, 0.8],
    [0.6, 0.7, 0.0, 0.0],
    [0.2, 0.2, 0.2, 0.2],
    [0.0, 0.0, 0.9, 0.0],
    [0.1, 0.8, 0.7, 0.3],
]
M_HAT = [
    [1, 0, 1, 0],
    [0, 0, 1, 1],
    [1, 1, 0, 0],
    [1, 1, 0, 0],  # equal: the lower numbers
    [0, 0, 1, 0],  # there is no second
    [0, 1, 1, 0],
]


@pytest.fixture
def Y():
    rows = np.repeat(np.arange(6), [len(labels) for labels in LABELS])
    return sp.csr_array((np.ones(len(rows), np.float32), (rows, np.concatenate(LABELS))), shape=(6, 20))


def copy_of(matrix):
    return [array.copy() for array in (matrix.indptr, matrix.indices, matrix.data)]


def assert_same(matrix, before):
    for array, old in zip((matrix.indptr, matrix.indices, matrix.data), before, strict=True):
        np.testing.assert_array_equal(array, old)


def test_teacher_forcing(Y):
    before = copy_of(Y)
    teacher = teacher_forcing(Y, CLUSTERS, 4)
    assert teacher.toarray().tolist() == M
    assert np.flatnonzero(teacher.toarray()[:, 0]).tolist() == [0, 1, 5]  # the figure's x1, x2, x6
    assert teacher.has_canonical_format
    assert_same(Y, before)
    np.testing.assert_array_equal(teacher.toarray(), (Y @ np.eye(4)[CLUSTERS]) > 0)


def test_matcher_aware(Y):
    scores = sp.csr_array(np.array(SCORES, np.float32))
    before = copy_of(scores)
    found = matcher_aware(scores, 2)
    assert found.toarray().tolist() == M_HAT
    assert found.indices.tolist() == [0, 2, 2, 3, 0, 1, 0, 1, 2, 1, 2]  # ascending in each row, not the best first
    assert_same(scores, before)
    np.testing.assert_array_equal(matcher_aware(scores, 9).toarray(), scores.toarray() > 0)
    np.testing.assert_array_equal(matcher_aware(scores).toarray(), scores.toarray() > 0)


def test_scores_below_zero_are_scores():
    found = matcher_aware(sp.csr_array(np.array([[-3, -1, -2]], np.float32)), 2)
    assert found.toarray().tolist() == [[0, 1, 1]]


def test_their_sum(Y):
    teacher, matcher = teacher_forcing(Y, CLUSTERS, 4), sp.csr_array(np.array(M_HAT, np.float32))
    before = copy_of(teacher), copy_of(matcher)
    union = both(teacher, matcher)
    assert union.toarray().tolist() == np.maximum(M, M_HAT).tolist()
    assert_same(teacher, before[0])
    assert_same(matcher, before[1])


def test_their_sum_is_sorted_whatever_they_are():
    teacher = sp.csr_array(np.array([[0, 1, 0, 0]], np.float32))
    matcher = sp.csr_array((np.ones(3, np.float32), np.array([3, 0, 2]), np.array([0, 3])), shape=(1, 4))
    assert both(teacher, matcher).indices.tolist() == [0, 1, 2, 3]


def test_a_document_without_labels_and_a_cluster_without_documents():
    Y = sp.csr_array(np.array([[0, 0, 0], [1, 1, 0]], np.float32))
    assert teacher_forcing(Y, np.array([0, 0, 1], np.int32), 2).toarray().tolist() == [[0, 0], [1, 0]]
    nothing = matcher_aware(sp.csr_array((2, 3), dtype=np.float32), 2)
    assert nothing.shape == (2, 3)
    assert nothing.nnz == 0
