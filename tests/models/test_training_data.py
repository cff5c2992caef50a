"""The hold-out policy: which documents are held out, for every model in one way."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import generate_shop
from labelwise.config import HoldoutConfig
from labelwise.data import split_validation
from labelwise.data.split import split_rows
from labelwise.errors import DataError, UsageError
from labelwise.models.training_data import TrainingData


@pytest.fixture(scope="module")
def shop():
    splits = generate_shop(1400, 200)
    return {"train": splits["train"].take(range(1200)), "test": splits["test"]}


def of(dataset, policy=None, **options):
    names = {"label_names": dataset.labels, "label_texts": dataset.label_texts}
    return TrainingData.of(dataset.documents, dataset.Y, policy or HoldoutConfig(), seed=3, **{**names, **options})


def test_a_share_of_the_training_documents(shop):
    data = of(shop["train"], HoldoutConfig(share=0.2))
    rest, rows = split_rows(shop["train"].Y, 0.2, seed=3)
    np.testing.assert_array_equal(data.holdout.rows, rows)
    np.testing.assert_array_equal(data.remaining_rows, rest)
    np.testing.assert_array_equal(data.holdout.Y.toarray(), shop["train"].Y[rows].toarray())
    assert (data.holdout.kind, data.holdout.share, data.holdout.documents) == ("share", 0.2, None)
    assert len(data.documents) == len(shop["train"])


@pytest.mark.parametrize(("n_docs", "share"), [(1200, 0.05), (800, 50 / 800), (300, 0.1)])
def test_small_data_hold_out_up_to_a_tenth_for_a_calibration(shop, n_docs, share):
    few = shop["train"].take(range(n_docs))
    assert of(few).holdout.share == pytest.approx(share)
    assert of(few, HoldoutConfig(calibrate=False)).holdout.share == 0.05


def test_what_only_calibrates_holds_out_nothing_in_vain(shop):
    policy, few = HoldoutConfig(), shop["train"].take(range(300))
    assert of(few).for_calibration_only(policy).holdout is None  # 30 documents are too few
    assert of(shop["train"]).for_calibration_only(policy).holdout is not None
    off = HoldoutConfig(calibrate=False)
    assert of(shop["train"], off).for_calibration_only(off).holdout is None
    given = of(shop["train"], off, validation=shop["test"]).for_calibration_only(off)
    assert given.holdout.kind == "split"  # costs no training documents, and gives figures


def test_nothing_is_held_out_where_every_document_has_a_label_of_its_own():
    n_docs = 100
    Y = sp.csr_array(sp.eye_array(n_docs, dtype=np.float32))
    data = TrainingData.of([f"text {row}" for row in range(n_docs)], Y, HoldoutConfig(), seed=0)
    assert data.holdout is None
    sentence, level = data.remark(HoldoutConfig())
    assert sentence.endswith("too few of the 100 documents can be held out; give more documents, or a validation set")
    assert level == logging.WARNING


def test_too_few_documents_come_with_a_way_out(shop):
    few = shop["train"].take(range(300))
    sentence, level = of(few).for_calibration_only(HoldoutConfig()).remark(HoldoutConfig())
    assert sentence.endswith("hold more out (hold_out=0.17 in Python, --hold-out 0.17), or give a validation set")
    assert level == logging.WARNING
    assert len(of(few, HoldoutConfig(share=0.17)).for_calibration_only(HoldoutConfig()).holdout) >= 50


def test_validation_data_with_other_label_names_are_refused(shop):
    with pytest.raises(DataError, match=r"validation has other label names .* label_names=train.labels"):
        of(shop["train"], label_names=None, validation=shop["test"])


def test_a_validation_split(shop):
    data = of(shop["train"], validation=shop["test"])
    assert (data.holdout.kind, data.holdout.rows, data.remaining_rows) == ("split", None, None)
    assert data.holdout.documents.texts == shop["test"].texts
    assert len(data.documents) == len(shop["train"])


def test_a_validation_split_that_is_learnt_from(shop):
    data = of(shop["train"], HoldoutConfig(learn_validation=True), validation=shop["test"])
    n_docs = len(shop["train"])
    assert data.documents.texts == [*shop["train"].texts, *shop["test"].texts]
    np.testing.assert_array_equal(data.holdout.rows, np.arange(n_docs, n_docs + len(shop["test"])))
    np.testing.assert_array_equal(data.remaining_rows, np.arange(n_docs))
    np.testing.assert_array_equal(data.Y[n_docs:].toarray(), shop["test"].Y.toarray())
    assert data.holdout.kind == "learnt split"


def test_labels_that_only_the_validation_split_has_come_last(shop):
    strange = replace(shop["test"], labels=[f"{name}?" for name in shop["test"].labels], label_texts=None)
    data = of(shop["train"], validation=strange)
    n_labels = len(data.labels)
    assert data.holdout.Y.shape == (len(strange), 2 * n_labels)
    assert not data.holdout.Y[:, :n_labels].nnz


def test_rows_of_features(shop):
    X = shop["train"].Y
    data = TrainingData.of(X, shop["train"].Y, HoldoutConfig(), seed=0)
    assert data.documents.texts is None
    assert data.documents.X.shape == X.shape
    with pytest.raises(DataError, match="reads texts: give a list of strings, not features"):
        TrainingData.of(X, shop["train"].Y, HoldoutConfig(), seed=0, texts_only=True)
    with pytest.raises(DataError, match="learns from features, but the validation data have only texts"):
        TrainingData.of(X, shop["train"].Y, HoldoutConfig(), seed=0, validation=shop["test"])
    narrow = replace(shop["test"], features=sp.csr_array(np.ones((len(shop["test"]), 2), np.float32)), texts=None)
    with pytest.raises(DataError, match="have 2 features but the training data"):
        TrainingData.of(X, shop["train"].Y, HoldoutConfig(), seed=0, validation=narrow)


@pytest.mark.parametrize(
    ("policy", "validation", "remark"),
    [
        (HoldoutConfig(), False, "60 of 1,200 documents are held out to choose and calibrate; the linear models then"),
        (HoldoutConfig(calibrate=False), False, "60 of 1,200 documents are held out to choose; the linear models then"),
        (HoldoutConfig(), True, "140 validation documents choose and calibrate"),
        (
            HoldoutConfig(learn_validation=True),
            True,
            "140 validation documents choose and calibrate; the linear",
        ),
        (HoldoutConfig(share=0), False, "hold_out is 0, so nothing is calibrated"),
        (HoldoutConfig(share=0, calibrate=False), False, ""),
    ],
)
def test_the_user_is_told(shop, policy, validation, remark):
    data = of(shop["train"], policy, validation=shop["test"] if validation else None)
    found, level = data.remark(policy)
    assert level == logging.INFO
    assert found.startswith(remark)
    assert bool(found) == bool(remark)


def test_documents_and_labels_that_do_not_match(shop):
    train = shop["train"]
    with pytest.raises(DataError, match="1199 documents but 1200 rows of labels"):
        TrainingData.of(train.texts[1:], train.Y, HoldoutConfig(), seed=0)
    with pytest.raises(DataError, match="2 label texts but 200 are needed"):
        of(train, label_texts=["a", "b"])


def test_parts_that_stages_read(shop):
    rest, validation = split_validation(shop["train"], 0.1)
    data = of(rest, validation=validation)
    assert data.part("training documents") is data.documents.texts
    assert data.part("validation documents") is data.holdout.documents.texts
    assert data.part("labels") is data.Y
    assert data.part("label texts") is data.label_texts
    assert data.part("held-out rows") is None
    assert data.part("held-out labels") is data.holdout.Y
    with pytest.raises(KeyError):
        data.part("weather")


def test_settings_that_change_nothing_are_told(shop):
    train, few = shop["train"], shop["train"].take(range(100))

    def remark(policy, **options):
        return of(train, policy, **options).for_calibration_only(policy).remark(policy)[0]

    assert remark(HoldoutConfig(share=0.1, calibrate=False)).startswith("hold_out is 0.1, but no documents are held")
    assert remark(HoldoutConfig(calibrate=False)) == ""
    told = remark(HoldoutConfig(share=0.3), validation=few)
    assert told.endswith("; hold_out is 0.3, but no training documents are held out beside them")
    assert "hold_out" not in remark(HoldoutConfig(), validation=few)
    with pytest.raises(UsageError, match="learn_validation is True, but there are no validation documents; give some"):
        of(train, HoldoutConfig(learn_validation=True))
