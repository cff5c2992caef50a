import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from labelwise.errors import DataError, UsageError
from labelwise.metrics import calibration_error, reliability_curve
from labelwise.predictions import Predictions
from tests.metrics.examples import hand_worked, problems


def test_by_hand():
    Y, Y_pred = hand_worked()
    # By probability: 0.5 right | 0.7 right | 0.8 wrong | 0.9 right, 0.9 wrong | 1.0 wrong
    probability, right, count = reliability_curve(Y, Y_pred, 4, equal_mass=False)
    np.testing.assert_allclose(probability, [0.5, 0.7, (0.8 + 0.9 + 0.9 + 1.0) / 4], rtol=1e-6)
    np.testing.assert_allclose(right, [1, 1, 1 / 4])
    assert count.tolist() == [1, 1, 4]
    expected = 100 * (1 * 0.5 + 1 * 0.3 + 4 * (0.9 - 0.25)) / 6
    assert calibration_error(Y, Y_pred, bins=4, equal_mass=False) == pytest.approx(expected, rel=1e-6)
    # Halves: 0.5 0.7 0.8 | 0.9 0.9 1.0
    expected = 100 * (3 * 0 + 3 * (2.8 / 3 - 1 / 3)) / 6
    assert calibration_error(Y, Y_pred, bins=2) == pytest.approx(expected, abs=1e-5)
    assert calibration_error(Y, Y_pred, bins=1) == pytest.approx(100 * (4.8 / 6 - 3 / 6), rel=1e-6)


def test_the_example_of_the_docstring():
    Y = sp.csr_array([[1, 0], [0, 0]])
    assert calibration_error(Y, sp.csr_array([[0.8, 0], [0, 0.8]])) == pytest.approx(30)


def flat_problem(n=5_000):
    rng = np.random.default_rng(3)
    probability = rng.beta(0.4, 1.5, size=n)
    right = rng.random(n) < probability**1.5
    shape = (n // 5, 20)
    columns = np.argsort(rng.random(shape), axis=1)[:, :5]
    indptr = np.arange(0, n + 1, 5)
    Y_pred = sp.csr_array((probability, columns.ravel(), indptr), shape=shape)
    Y = sp.csr_array((right.astype(float), columns.ravel(), indptr), shape=shape)
    return Y, Y_pred, right, probability


@pytest.mark.rivals
@pytest.mark.parametrize(("equal_mass", "strategy"), [(True, "quantile"), (False, "uniform")])
@pytest.mark.parametrize("bins", [1, 7, 15, 100])
def test_equals_scikit_learn(bins, equal_mass, strategy):
    Y, Y_pred, right, probability = flat_problem()
    ours = reliability_curve(Y, Y_pred, bins, equal_mass=equal_mass)
    share, mean = calibration_curve(right, probability, n_bins=bins, strategy=strategy)
    np.testing.assert_allclose(ours[0], mean)
    np.testing.assert_allclose(ours[1], share)
    assert ours[2].sum() == probability.size
    if equal_mass:
        assert np.ptp(ours[2]) <= 1


@given(problems(), st.integers(1, 20), st.booleans())
def test_any_shape(problem, bins, equal_mass):
    truth, scores, _, Y, Y_pred = problem
    kept = [{label: score for label, score in row.items() if 0 <= score <= 1} for row in scores]
    pairs = [(score, label in true) for true, row in zip(truth, kept, strict=True) for label, score in row.items()]
    if sum(map(len, kept)) < Y_pred.nnz:
        with pytest.raises(DataError, match="not a probability"):
            calibration_error(Y, Y_pred, bins=bins, equal_mass=equal_mass)
        return
    probability, right, count = reliability_curve(Y, Y_pred, bins, equal_mass=equal_mass)
    assert count.sum() == len(pairs)
    assert (np.diff(probability) > 0).all()
    assert (probability * count).sum() == pytest.approx(sum(score for score, _ in pairs))
    assert (right * count).sum() == pytest.approx(sum(hit for _, hit in pairs))
    error = calibration_error(Y, Y_pred, bins=bins, equal_mass=equal_mass)
    assert 0 <= error <= 100 if pairs else np.isnan(error)


def test_order_of_documents_does_not_matter():
    Y, Y_pred, _, _ = flat_problem()
    Y_pred.data = np.round(Y_pred.data, 2)  # many equal ones
    order = np.random.default_rng(0).permutation(Y.shape[0])
    assert calibration_error(Y[order], Y_pred[order]) == pytest.approx(calibration_error(Y, Y_pred), rel=1e-12)


def test_predictions_objects():
    Y, Y_pred = hand_worked()
    named = Predictions(Y_pred, ["a", "b", "c", "d", "e"])
    assert calibration_error(Y, named) == calibration_error(Y, Y_pred)


def test_nothing_to_measure():
    empty = sp.csr_array((2, 3))
    assert np.isnan(calibration_error(empty, empty))
    assert [part.size for part in reliability_curve(empty, empty)] == [0, 0, 0]


def test_bad_input_is_named():
    Y, Y_pred = hand_worked()
    with pytest.raises(UsageError, match="bins is 0"):
        calibration_error(Y, Y_pred, bins=0)
    with pytest.raises(DataError, match=r"the score 2, which is not a probability; .*Calibrator\.fit"):
        calibration_error(Y, Y_pred * 2)
    with pytest.raises(DataError, match=r"the score -0\.5"):
        calibration_error(Y, Y_pred * -0.5)
    with pytest.raises(DataError, match="Y_pred has 3 rows but Y has 4"):
        reliability_curve(Y, Y_pred[:3])
