"""Truths and predictions in every form that is accepted, and those that are refused."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import metrics
from labelwise.errors import DataError, UsageError
from labelwise.predictions import Predictions
from tests.metrics.examples import WEIGHTS, hand_worked


def test_predictions_objects_with_labels_unknown_to_the_truth():
    Y, Y_pred = hand_worked()
    predictions = Predictions(Y_pred, ["a", "b", "c", "d", "e"])
    assert metrics.precision_at_k(Y, predictions, k=3) == metrics.precision_at_k(Y, Y_pred, k=3)
    # The truth knows only d and e: document 1 has e at rank 2 of {d, e}; document 3 has none of {b, d} right.
    small = Y[:, [3, 4]]
    moved = predictions.with_labels(["d", "e"])
    assert metrics.precision_at_k(small, moved, k=3) == pytest.approx(100 * (1 / 3) / 4)
    assert metrics.recall_at_k(small, moved, k=3) == pytest.approx(100 * 1 / 4)
    assert metrics.psp_at_k(small, moved, [1.0, 2.0], k=3) == pytest.approx(100 * 2 / 3)


def test_other_formats_values_and_duplicates():
    Y, Y_pred = hand_worked()
    expected = metrics.ndcg_at_k(Y, Y_pred, k=3)
    weighted = Y.copy()
    weighted.data *= 7  # anything but 0 is a label
    with_zero = sp.csr_array(
        ([1, 1, 1, 0, 1, 1, 1], [0, 1, 2, 3, 4, 1, 3], [0, 4, 5, 5, 7]), shape=(4, 5), dtype=np.int8
    )
    twice = sp.csr_array((np.ones(8), [0, 1, 2, 1, 0, 4, 3, 1], [0, 5, 6, 6, 8]), shape=(4, 5))
    for truth in (weighted, with_zero, twice, Y.tocsc(), Y.tocoo(), sp.csr_matrix(Y), Y.astype(bool)):
        assert metrics.ndcg_at_k(truth, Y_pred, k=3) == pytest.approx(expected)
    assert twice.nnz == 8
    for scores in (sp.csr_matrix(Y_pred), Y_pred.tocoo(), Y_pred.astype(np.longdouble), (Y_pred * 10).astype(np.int16)):
        assert metrics.ndcg_at_k(Y, scores, k=3) == pytest.approx(expected)


def test_stale_flags_of_scipy_are_ignored():
    Y, Y_pred = hand_worked()
    expected = metrics.precision_at_k(Y, Y_pred, k=3)
    assert Y.has_sorted_indices
    assert Y.has_canonical_format
    Y.indices[:3] = [2, 0, 1]  # scipy still believes that the row is sorted
    assert metrics.precision_at_k(Y, Y_pred, k=3) == expected


def test_bad_input_is_named():
    Y, Y_pred = hand_worked()
    with pytest.raises(DataError, match=r"Y_pred has 4 columns but Y has 5; .*with_labels"):
        metrics.precision_at_k(Y, Y_pred[:, :4])
    with pytest.raises(DataError, match="Y_pred has 3 rows but Y has 4"):
        metrics.precision_at_k(Y, Y_pred[:3])
    with pytest.raises(UsageError, match="k is 0; it must be a whole number of at least 1"):
        metrics.precision_at_k(Y, Y_pred, k=0)
    with pytest.raises(DataError, match=r"Y is of class ndarray.*csr_array\(Y\)"):
        metrics.recall_at_k(Y.toarray(), Y_pred)
    with pytest.raises(DataError, match="Y has no rows"):
        metrics.recall_at_k(Y[:0], Y_pred[:0])
    bad = Y_pred.copy()
    bad.data[4] = np.inf
    with pytest.raises(DataError, match="Y_pred holds NaN or infinity in row 1, column 4; leave an entry out"):
        metrics.precision_at_k(Y, bad)
    with pytest.raises(DataError, match=r"shape \(4,\) but Y has 5 columns"):
        metrics.psp_at_k(Y, Y_pred, WEIGHTS[:4])
    with pytest.raises(DataError, match="above 0"):
        metrics.psndcg_at_k(Y, Y_pred, [1, 1, 1, 1, 0])
    bad = Y_pred.copy()
    bad.indices[0] = 99
    with pytest.raises(DataError, match="Y_pred is damaged"):
        metrics.precision_at_k(Y, bad)
