"""What a model is worth on documents it has not seen."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import generate_shop, precision_at_k, split_validation
from labelwise.config import LinearTreeConfig
from labelwise.errors import DataError, UsageError
from labelwise.metrics import calibration_error
from labelwise.models.calibrator import Calibrator
from labelwise.models.holdout import fit_calibrated, read_documents, validate
from labelwise.models.linear_tree import LinearTree


@pytest.fixture(scope="module")
def parts():
    return split_validation(generate_shop(1000, 500)["train"], 0.2)


@pytest.fixture(scope="module")
def model(parts):
    return LinearTree().fit(parts[0].texts, parts[0].Y, label_names=parts[0].labels)


def test_scores_and_the_calibration(model, parts):
    found = validate(model, parts[1])
    assert found.n_docs == len(parts[1])
    assert list(found.scores) == ["P@1", "P@3", "P@5", "nDCG@1", "nDCG@3", "nDCG@5"]
    assert found.scores["P@1"] == precision_at_k(parts[1].Y, model.predict(parts[1].texts), k=1)
    assert model.calibrator_ is None
    assert found.reason is None
    want = LinearTree.calibrate(LinearTree().fit(parts[0].texts, parts[0].Y, label_names=parts[0].labels), parts[1])
    assert found.calibrator.to_dict() == want.calibrator_.to_dict()


def test_a_model_of_all_documents_with_the_curve_of_one_that_lacked_some(parts):
    train = parts[0]
    rest, aside = split_validation(train, 0.2, seed=LinearTreeConfig().seed)
    want = validate(LinearTree().fit(rest.texts, rest.Y, label_names=rest.labels), aside)
    whole = LinearTree().fit(train.texts, train.Y, label_names=train.labels)
    whole.calibrator_ = want.calibrator
    found = fit_calibrated(LinearTreeConfig(), train, hold_out=0.2)
    assert list(found.predict(parts[1].texts)) == list(whole.predict(parts[1].texts))
    assert found.report_.validation == want.result(kind="part", share=0.2)


def test_nothing_is_held_out_where_that_would_teach_nothing(parts):
    n_docs = len(parts[0])
    own = {"Y": sp.csr_array(sp.eye_array(n_docs, dtype=np.float32)), "labels": [str(row) for row in range(n_docs)]}
    alone = replace(parts[0], **own, label_texts=None)
    for data, hold_out in ((parts[0], 0.0), (parts[0], 49 / n_docs), (alone, 0.2)):
        model = fit_calibrated(LinearTreeConfig(), data, hold_out=hold_out)
        assert model.calibrator_ is None
        assert model.report_.validation is None
    with pytest.raises(UsageError, match=r"hold_out is 1; it must be a share"):
        fit_calibrated(LinearTreeConfig(), parts[0], hold_out=1)


def test_no_document_is_judged_by_its_own_curve(model, parts):
    Y, matrix = parts[1].Y, model.predict(parts[1].texts, top_k=20).matrix
    judged = matrix.copy()
    for here, there in ((0, 1), (1, 0)):
        curve = Calibrator.fit(matrix[there::2], Y[there::2])
        for row in range(here, len(parts[1]), 2):
            own = slice(matrix.indptr[row], matrix.indptr[row + 1])
            judged.data[own] = curve.transform(matrix.data[own])
    assert validate(model, parts[1]).calibration_error == pytest.approx(calibration_error(Y, judged), abs=1e-4)


def test_labels_that_training_never_saw_count_as_missed(model, parts):
    first = parts[1].take(range(60))
    strange = replace(first, labels=[f"{name}?" for name in first.labels], label_texts=None)
    found = validate(model, strange)
    assert set(found.scores.values()) == {0.0}
    assert found.calibrator is None
    assert "only 0 of " in found.reason


def test_too_few_documents(model, parts):
    found = validate(model, parts[1].take(range(60)))
    assert found.calibrator is not None
    assert found.calibration_error is None
    found = validate(model, parts[1].take(range(20)))
    assert found.calibrator is None
    assert found.reason.startswith("only 20 documents have predictions")
    assert found.result().to_dict() == {"documents": 20, "scores": found.scores, "calibration_error": None}


def test_documents_are_texts_before_features(parts):
    texts = parts[0]
    assert read_documents(texts) is texts.texts
    features = replace(texts, texts=None, features=texts.Y)
    assert read_documents(features) is texts.Y


def test_the_wrong_kind_of_data(model, parts):
    with pytest.raises(DataError, match="fitted on texts, but the data have only features"):
        validate(model, replace(parts[1], texts=None, features=parts[1].Y))
