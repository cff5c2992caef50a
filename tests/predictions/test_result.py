"""Predictions in memory: order, rows, the best labels, other columns."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.errors import DataError, UsageError
from labelwise.predictions import Predictions
from tests.predictions.examples import toy


def test_iterates_best_first_and_breaks_ties_by_column():
    assert list(toy()) == [
        [("corn", 0.93), ("apple", 0.25)],
        [],
        [("apple", 0.0), ("date", 0.0), ("bean", -1.5)],
    ]


def test_length_and_rows():
    predictions = toy()
    assert len(predictions) == 3
    assert predictions[0] == predictions[np.int64(-3)] == [("corn", 0.93), ("apple", 0.25)]
    assert predictions[1:].ids == ["y", "z"]
    assert list(predictions[1:]) == list(predictions)[1:]
    with pytest.raises(IndexError):
        predictions[3]


def test_top_k_keeps_the_best_and_the_input():
    predictions = toy()
    before = predictions.matrix.copy()
    assert list(predictions.top_k(1)) == [[("corn", 0.93)], [], [("apple", 0.0)]]
    assert list(predictions.top_k(100)) == list(predictions)
    assert predictions.matrix.has_sorted_indices == before.has_sorted_indices
    np.testing.assert_array_equal(predictions.matrix.indices, before.indices)
    with pytest.raises(UsageError, match="at least 1"):
        predictions.top_k(0)


def test_with_labels_moves_columns_and_keeps_the_unknown_at_the_end():
    moved = toy().with_labels(["date", "elder", "apple"])
    assert moved.labels == ["date", "elder", "apple", "bean", "corn"]
    assert moved.n_known == 3
    # The tie between apple and date is broken by the new columns.
    assert list(moved) == [
        [("corn", 0.93), ("apple", 0.25)],
        [],
        [("date", 0.0), ("apple", 0.0), ("bean", -1.5)],
    ]
    with pytest.raises(DataError, match="not distinct"):
        toy().with_labels(["date", "date"])


def test_names_must_fit():
    with pytest.raises(DataError, match="4 columns but there are 3 label names"):
        Predictions(toy().matrix, ["a", "b", "c"])
    with pytest.raises(DataError, match="1 ids but 3 rows"):
        Predictions(toy().matrix, toy().labels, ["x"])


def test_one_long_label_name_does_not_count_for_all():
    names = ["a" * 10_000_000, *map(str, range(1, 2000))]  # an array of such names would have 80 GB
    assert list(Predictions(sp.csr_array(([1.0], ([0], [7])), shape=(1, 2000)), names)) == [[("7", 1.0)]]


@pytest.mark.parametrize(
    ("part", "at", "value"),
    [("indices", 0, 10**6), ("indices", 0, -1), ("indptr", 1, 10**6), ("indptr", -1, 3), ("indptr", 0, -1)],
)
def test_a_matrix_with_indices_out_of_range(part, at, value):
    matrix = toy().matrix.copy()
    getattr(matrix, part)[at] = value
    with pytest.raises(DataError, match="the matrix of the predictions is damaged: an index lies outside its shape"):
        Predictions(matrix, toy().labels)
