from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.data import Dataset
from labelwise.errors import DataError
from tests.data.examples import LABELS, Y_TRAIN, dense

TEXTS = ["red apple", "red rose", "green apple"]


def matrix(rows):
    return sp.csr_array(np.array(rows, np.float32))


def make(**changes):
    Y = sp.csr_array(np.array(Y_TRAIN, dtype=np.float32))
    return Dataset(**({"Y": Y, "labels": LABELS, "texts": TEXTS} | changes))


def test_rows_are_taken_in_order():
    dataset = make(ids=["a", "b", "c"], features=sp.csr_array(np.eye(3, dtype=np.float32)))
    part = dataset.take([2, 0])
    assert (part.texts, part.ids) == (["green apple", "red apple"], ["c", "a"])
    assert dense(part.Y) == [Y_TRAIN[2], Y_TRAIN[0]]
    assert dense(part.features) == [[0, 0, 1], [1, 0, 0]]
    assert (len(part), part.n_labels, part.labels) == (2, 3, LABELS)


def test_documents_that_follow_others():
    first = Dataset(Y=matrix([[1, 0], [0, 1]]), labels=["a", "b"], texts=["x", "y"], ids=["1", "2"])
    second = Dataset(Y=matrix([[1, 1, 0]]), labels=["b", "new", "a"], texts=["z"])
    both = first.followed_by(second)
    assert both.Y.toarray().tolist() == [[1, 0], [0, 1], [0, 1]]
    assert (both.texts, both.labels, both.ids) == (["x", "y", "z"], ["a", "b"], None)
    rows = [replace(part, texts=None, features=matrix([[1, 0]] * len(part))) for part in (first, second)]
    assert rows[0].followed_by(rows[1]).features.shape == (3, 2)
    with pytest.raises(DataError, match="both of one kind"):
        first.followed_by(rows[1])
    with pytest.raises(DataError, match="2 features and those that follow 3"):
        rows[0].followed_by(replace(rows[1], features=matrix([[1, 0, 1]])))


def test_columns_are_laid_over_other_labels():
    moved = make(label_texts=["F", "R", "W"]).with_labels(["red", "blue"])
    assert moved.labels == ["red", "blue", "fruit", "flower"]
    assert dense(moved.Y) == [[1, 0, 1, 0], [1, 0, 0, 1], [0, 0, 1, 0]]
    assert moved.Y.has_sorted_indices
    assert moved.label_texts == ["R", "blue", "F", "W"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": ["a"]}, "Y has 3 columns but there are 1 label names"),
        ({"texts": ["a"]}, "there are 1 texts but Y has 3 rows"),
        ({"ids": ["a"]}, "there are 1 ids but Y has 3 rows"),
        ({"features": sp.csr_array((2, 2))}, "there are 2 feature rows but Y has 3"),
        ({"label_texts": ["a"]}, "there are 1 label texts but Y has 3 columns"),
        ({"texts": None}, "needs texts or features; both are missing"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(DataError, match=message):
        make(**changes)


def test_rows_far_out_of_range():
    assert make().take([-1]).texts == ["green apple"]
    assert len(make().take([])) == 0
    for rows in ([3], [-4], np.array([2**64 - 1], np.uint64)):
        with pytest.raises(DataError, match="but there are 3 documents"):
            make().take(rows)


def test_rows_are_taken_by_a_mask():
    data = Dataset(Y=sp.csr_array(np.eye(3)), labels=list("abc"), texts=list("xyz"))
    assert data.take([True, False, True]).texts == ["x", "z"]
    assert data.take(np.array([-1, 0], np.int8)).texts == ["z", "x"]
    assert data.take([]).texts == []


@pytest.mark.parametrize(
    "rows", [[0.7], ["1"], None, 1, [[0, 1]], [2**70], "01", {0}, [None], [1j], slice(2), [True], [[0], [0, 1]],
             np.ma.masked_array([0, 1], [True, False]), np.array([2**63], np.uint64)],
    ids=str,
)  # fmt: skip
def test_rows_that_are_no_whole_numbers_are_refused(rows):
    data = Dataset(Y=sp.csr_array(np.eye(3)), labels=list("abc"), texts=list("xyz"))
    with pytest.raises(DataError, match=r"the rows are|the mask of rows has 1|the row 9223372036854775808"):
        data.take(rows)
