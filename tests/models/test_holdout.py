"""What held-out documents say of a model."""

from dataclasses import replace

import numpy as np
import pytest

from labelwise import generate_shop, precision_at_k
from labelwise.data import split_validation
from labelwise.errors import DataError
from labelwise.metrics import calibration_error
from labelwise.models.calibrator import Calibrator
from labelwise.models.holdout import evaluate_model
from labelwise.models.linear_tree import LinearTree


@pytest.fixture(scope="module")
def parts():
    return split_validation(generate_shop(1000, 500)["train"], 0.2)


@pytest.fixture(scope="module")
def model(parts):
    return LinearTree(calibrate=False).fit_dataset(parts[0])


def test_scores_and_the_calibration(model, parts):
    found = evaluate_model(model, parts[1])
    assert found.n_docs == len(parts[1])
    assert list(found.scores) == ["P@1", "P@3", "P@5", "nDCG@1", "nDCG@3", "nDCG@5"]
    assert found.scores["P@1"] == precision_at_k(parts[1].Y, model.predict(parts[1].texts), k=1)
    assert model.calibrator_ is None
    assert found.reason is None
    want = LinearTree(calibrate=False).fit_dataset(parts[0]).calibrate(parts[1])
    assert found.calibrator.to_dict() == want.calibrator_.to_dict()


def test_a_validation_split_gives_the_figures_and_the_calibration_of_fit(model, parts):
    found = evaluate_model(model, parts[1])
    fitted = LinearTree().fit_dataset(*parts)
    assert fitted.calibrator_.to_dict() == found.calibrator.to_dict()
    assert fitted.report_.validation.to_dict() == {"kind": "split", **found.figures}
    assert list(fitted.trees_[0].levels[-1].entry_value) == list(model.trees_[0].levels[-1].entry_value)


def test_no_document_has_probabilities_of_a_curve_that_was_fitted_on_it(model, parts):
    Y, matrix = parts[1].Y, model.predict(parts[1].texts, top_k=20).matrix
    probabilities = matrix.copy()
    for here, there in ((0, 1), (1, 0)):
        curve = Calibrator.fit(matrix[there::2], Y[there::2])
        for row in range(here, len(parts[1]), 2):
            own = slice(matrix.indptr[row], matrix.indptr[row + 1])
            probabilities.data[own] = curve.transform(matrix.data[own])
    error = calibration_error(Y, probabilities)
    assert evaluate_model(model, parts[1]).calibration_error == pytest.approx(error, abs=1e-4)


def test_labels_that_training_never_saw_count_as_missed(model, parts):
    first = parts[1].take(range(60))
    strange = replace(first, labels=[f"{name}?" for name in first.labels], label_texts=None)
    found = evaluate_model(model, strange)
    assert set(found.scores.values()) == {0.0}
    assert found.calibrator is None
    assert "only 0 of " in found.reason


def test_too_few_documents(model, parts):
    found = evaluate_model(model, parts[1].take(range(60)))
    assert found.calibrator is not None
    assert found.calibration_error is None
    found = evaluate_model(model, parts[1].take(range(20)))
    assert found.calibrator is None
    assert found.reason.startswith("only 20 documents have predictions")
    assert found.figures == {"documents": 20, "scores": found.scores, "calibration_error": None}


def test_the_wrong_kind_of_data(model, parts):
    with pytest.raises(DataError, match="fitted on texts, but the data have only features"):
        evaluate_model(model, replace(parts[1], texts=None, features=parts[1].Y))


def test_scores_of_held_out_documents_are_those_of_a_model_without_them(parts):
    """The documents that calibrate are scored by models that have not seen them, the final models have."""
    train = parts[0]
    model = LinearTree(n_trees=2).fit_dataset(train)
    n_held = model.report_.validation.documents
    assert model.held_out_scores_.shape == (n_held, train.n_labels)
    answers = model.predict(train.texts, top_k=20).matrix
    assert answers.shape[0] == len(train)
    scored = model.held_out_scores_
    assert 50 <= n_held == model.calibrator_.n_docs < 0.1 * len(train) + 1
    assert np.diff(scored.indptr).max() == 20
