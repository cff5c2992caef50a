import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from labelwise.errors import DataError, StorageError
from labelwise.metrics import calibration_error
from labelwise.models.calibrator import MAX_STEPS, Calibrator, fit_curve
from labelwise.predictions import Predictions
from labelwise.predictions.ranking import rank_all

# What scores may mean: margins with a logistic truth, saturated ones with ties at 1, and a jump.
TRUTHS = {
    "margin": (lambda rng, n: rng.normal(-0.8, 0.6, n), lambda s: 1 / (1 + np.exp(-3 * s))),
    "saturated": (lambda rng, n: np.exp(-(np.maximum(0, rng.normal(1.2, 0.8, n)) ** 3)), lambda s: 0.02 + 0.9 * s**0.7),
    "jump": (lambda rng, n: rng.beta(0.5, 1.5, n), lambda s: 0.02 + 0.93 * (s > 0.5)),
    "useless": (lambda rng, n: rng.normal(size=n), lambda s: 0.1 + 0 * s),
}


def problem(kind="margin", n_docs=2_000, top_k=5, n_labels=30, seed=0):
    """Top-k scores of one kind, and a truth in which they are right as often as it says."""
    rng = np.random.default_rng(seed)
    draw, chance = TRUTHS[kind]
    scores = draw(rng, n_docs * top_k)
    columns = np.argsort(rng.random((n_docs, n_labels)), axis=1)[:, :top_k].ravel()
    indptr = np.arange(0, n_docs * top_k + 1, top_k)
    right = (rng.random(scores.size) < chance(scores)).astype(np.float32)
    Y_pred = sp.csr_array((scores.astype(np.float32), columns, indptr), shape=(n_docs, n_labels))
    return Y_pred, sp.csr_array((right, columns, indptr), shape=(n_docs, n_labels))


@pytest.mark.parametrize("kind", TRUTHS)
def test_probabilities_come_true(kind):
    Y_pred, Y = problem(kind, n_docs=8_000)
    calibrator = Calibrator.fit(Y_pred[:4_000], Y[:4_000])
    probabilities = calibrator.transform_matrix(Y_pred[4_000:])
    assert calibration_error(Y[4_000:], probabilities) < 2
    truth = TRUTHS[kind][1](Y_pred[4_000:].data.astype(float))
    assert np.abs(probabilities.data - truth).mean() < 0.015
    assert (calibrator.n_docs, calibrator.n_pairs) == (4_000, 20_000)
    assert calibrator.n_hits == Y[:4_000].count_nonzero()


@pytest.mark.parametrize("kind", TRUTHS)
@pytest.mark.parametrize("n_docs", [60, 2_000, 40_000])
def test_the_curve_ascends_between_0_and_1(kind, n_docs):
    calibrator = Calibrator.fit(*problem(kind, n_docs=n_docs))
    assert 1 < calibrator.scores.size <= 3 * MAX_STEPS
    assert (np.diff(calibrator.scores) > 0).all()
    assert (np.diff(calibrator.probabilities) > 0).all()
    found = calibrator.transform([-1e9, -np.inf, -1, 0, 0.3, 1, 2, np.inf, 1e9])
    assert found.dtype == np.float32
    assert (found > 0).all()
    assert (found < 1).all()
    assert found[0] == found[1] == np.float32(calibrator.probabilities[0])
    assert found[-1] == found[-2] == np.float32(calibrator.probabilities[-1])


@given(
    st.lists(
        st.tuples(st.sampled_from([-2.0, -1.5, 0.0, 0.25, 0.5, 1.0]) | st.floats(-9, 9), st.booleans()), min_size=1
    )
)
def test_any_pairs_give_a_curve(pairs):
    scores, hits = np.array([score for score, _ in pairs]), np.array([hit for _, hit in pairs], dtype=np.uint8)
    x, y = fit_curve(scores, hits)
    assert x.size == y.size >= 1
    assert (np.diff(x) > 0).all()
    assert (np.diff(y) > 0).all()
    assert 0 < y[0] <= y[-1] < 1
    assert scores.min() <= x[0]
    assert x[-1] <= scores.max()
    backwards = fit_curve(scores[::-1], hits[::-1])
    assert np.array_equal(backwards[0], x)
    assert np.array_equal(backwards[1], y)


@pytest.mark.rivals
def test_close_to_scikit_learn_where_steps_are_large():
    Y_pred, Y = problem("jump", n_docs=20_000)
    calibrator = Calibrator.fit(Y_pred, Y)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(Y_pred.data, Y.data)
    assert np.abs(calibrator.transform(Y_pred.data) - theirs.predict(Y_pred.data)).mean() < 0.005


def test_the_ends_by_hand():
    # 0 of 4 right at 0, and 3 of 3 at 1: one imagined hit below, one imagined miss above.
    x, y = fit_curve(np.array([0.0] * 4 + [1.0] * 3), np.array([0] * 4 + [1] * 3))
    assert x.tolist() == [0, 1]
    assert y.tolist() == pytest.approx([1 / 5, 3 / 4])
    # 9 of 10 right below them: the three are not worth less, nor more than together 12 of 14.
    x, y = fit_curve(np.repeat([0.0, 1.0, 2.0], [4, 10, 3]), np.repeat([0, 1, 0, 1], [4, 9, 1, 3]))
    assert np.interp([0, 2], x, y) == pytest.approx([1 / 5, 12 / 14], rel=0.01)
    # A single score has a single probability.
    assert [part.tolist() for part in fit_curve(np.ones(8), np.repeat([0, 1], [6, 2]))] == [[1.0], [3 / 10]]


def ranking(matrix):
    return rank_all(matrix).tolist()


@pytest.mark.parametrize("kind", TRUTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_ranking_stays(kind, dtype):
    calibrator = Calibrator.fit(*problem(kind))
    rng = np.random.default_rng(1)
    # Far outside, equal, and closer together than float32 probabilities can be.
    values = np.concatenate([rng.normal(size=300), [-50, -40, 40, 50, 60], 0.5 + 1e-7 * np.arange(40)])
    dense = rng.choice(values, size=(500, 80)).astype(dtype)
    for width in (80, 9):
        Y_pred = sp.csr_array(dense[:, :width])
        probabilities = calibrator.transform_matrix(Y_pred)
        assert ranking(probabilities) == ranking(Y_pred)
        assert probabilities.data.min() > 0
        assert probabilities.data.max() < 1
        np.testing.assert_allclose(probabilities.data, calibrator.transform(Y_pred.data), rtol=2e-5)


def test_transforming_changes_nothing_else():
    Y_pred, Y = problem()
    calibrator = Calibrator.fit(Y_pred, Y)
    before = [array.copy() for array in (Y_pred.data, Y_pred.indices, Y_pred.indptr)]
    Y_pred.data.flags.writeable = Y_pred.indices.flags.writeable = Y_pred.indptr.flags.writeable = False
    probabilities = calibrator.transform_matrix(Y_pred)
    for old, new in zip(before, (Y_pred.data, Y_pred.indices, Y_pred.indptr), strict=True):
        assert np.array_equal(old, new)
    assert probabilities.shape == Y_pred.shape
    assert np.array_equal(probabilities.indices, Y_pred.indices)
    assert not np.shares_memory(probabilities.indices, Y_pred.indices)
    empty = calibrator.transform_matrix(sp.csr_array((3, 30)))
    assert (empty.shape, empty.nnz, empty.dtype) == ((3, 30), 0, np.float32)
    whole = sp.csr_array(np.array([[3, 1, 2]]))
    assert ranking(calibrator.transform_matrix(whole)) == [0, 2, 1]
    assert calibrator.transform(0.3).shape == ()
    assert calibrator.transform(np.zeros((2, 3))).shape == (2, 3)


def test_fitting_does_not_depend_on_the_order():
    Y_pred, Y = problem("saturated")
    order = np.random.default_rng(2).permutation(Y.shape[0])
    one, other = Calibrator.fit(Y_pred, Y), Calibrator.fit(Y_pred[order], Y[order])
    assert one.to_dict() == other.to_dict()


def test_predictions_objects_will_do():
    Y_pred, Y = problem()
    named = Predictions(Y_pred, [f"label {i}" for i in range(Y.shape[1])])
    assert Calibrator.fit(named, Y).to_dict() == Calibrator.fit(Y_pred, Y).to_dict()


def test_round_trip(tmp_path):
    Y_pred, Y = problem("saturated")
    calibrator = Calibrator.fit(Y_pred, Y)
    path = tmp_path / "model" / "calibration.json"
    calibrator.save(path)
    again = Calibrator.load(path)
    assert again.to_dict() == calibrator.to_dict()
    assert again.transform_matrix(Y_pred).data.tobytes() == calibrator.transform_matrix(Y_pred).data.tobytes()
    assert Calibrator.from_dict(calibrator.to_dict()).to_dict() == calibrator.to_dict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "tree"}, "is not a calibration"),
        ({"version": 99, "labelwise": "9.0"}, "format version 99, written by labelwise 9.0"),
        ({"scores": None}, "is damaged"),
        ({"scores": "abc"}, "is damaged"),
        ({"scores": []}, "not an ascending curve"),
        ({"scores": [0.0, 1.0]}, "not an ascending curve"),
        ({"scores": [1.0, 0.0], "probabilities": [0.1, 0.2]}, "not an ascending curve"),
        ({"scores": [0.0, 1.0], "probabilities": [0.0, 0.2]}, "not an ascending curve"),
        ({"scores": [0.0, 1.0], "probabilities": [0.1, 1.0]}, "not an ascending curve"),
        ({"scores": [0.0, 1.0], "probabilities": [0.2, 0.1]}, "not an ascending curve"),
        ({"scores": [0.0, float("nan")], "probabilities": [0.1, 0.2]}, "not an ascending curve"),
        ({"scores": [0.0, 1.0], "probabilities": [0.1, float("nan")]}, "not an ascending curve"),
        ({"n_docs": "many"}, "is damaged"),
        ({"n_pairs": float("inf")}, "is damaged"),
    ],
)
def test_damaged_files_are_refused(tmp_path, change, message):
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(Calibrator.fit(*problem()).to_dict() | change))
    with pytest.raises(StorageError, match=message) as caught:
        Calibrator.load(path)
    assert str(path) in str(caught.value)


def test_files_that_are_none(tmp_path):
    path = tmp_path / "calibration.json"
    with pytest.raises(StorageError, match="does not exist"):
        Calibrator.load(path)
    Calibrator.fit(*problem()).save(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(StorageError, match="cannot be read"):
        Calibrator.load(path)
    for text in ("[1, 2]", "{}", "3"):
        path.write_text(text)
        with pytest.raises(StorageError, match="is not a calibration"):
            Calibrator.load(path)


def test_bad_input_is_named():
    Y_pred, Y = problem()
    with pytest.raises(DataError, match=r"only 49 documents have predictions.* fit on more validation data"):
        Calibrator.fit(Y_pred[:49], Y[:49])
    with pytest.raises(DataError, match=r"only 0 of 10000 predictions are right.*same labels and documents"):
        Calibrator.fit(Y_pred, sp.csr_array(Y.shape))
    with pytest.raises(DataError, match="Y_pred has 1999 rows but Y has 2000"):
        Calibrator.fit(Y_pred[:1999], Y)
    calibrator = Calibrator.fit(Y_pred, Y)
    with pytest.raises(DataError, match="1 of 3 scores are nan"):
        calibrator.transform([0.1, np.nan, 0.2])
    with pytest.raises(DataError, match=r"Y_pred is of class ndarray.*call transform"):
        calibrator.transform_matrix(Y_pred.toarray())
    bad = Y_pred.copy()
    bad.data[7] = np.nan
    with pytest.raises(DataError, match="Y_pred holds NaN or infinity in row 1"):
        Calibrator.fit(bad, Y)
    with pytest.raises(DataError, match="1 of 10000 scores are nan"):
        calibrator.transform_matrix(bad)
