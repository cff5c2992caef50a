"""Cross-validation over texts with sparse labels, lists of labels, and features."""

from itertools import pairwise

import numpy as np
import pytest

from labelwise import DataError, Dataset, LinearTree, UsageError, cross_validate, evaluate, generate_shop


@pytest.fixture(scope="module")
def train():
    return generate_shop(500, 100)["train"]


def test_every_document_is_predicted_by_a_model_that_has_not_seen_it(train):
    found = cross_validate(train.texts, train.Y, folds=3, threads=1)
    assert len(found.folds) == 3
    assert sum(fold.n_docs for fold in found.folds) == len(found.predictions) == len(train)
    whole = LinearTree(threads=1).fit(train.texts, train.Y).predict(train.texts, top_k=5)
    assert found["P@1"] < evaluate(train.Y, whole, bootstrap=0)["P@1"] - 3
    weights = [fold.n_docs for fold in found.folds]
    assert np.average(found.values("P@1"), weights=weights) == pytest.approx(found["P@1"])
    assert found.spread("P@1") == pytest.approx(np.std(found.values("P@1"), ddof=1))
    assert repr(found).startswith("CrossValidation(3 folds, Evaluation(450 documents")
    assert found.predictions.calibrated is False  # 300 documents are too few to calibrate
    # The rows are in the order of the documents.
    again = evaluate(train.Y, found.predictions, bootstrap=0)
    assert again["nDCG@5"] == found["nDCG@5"]


def test_lists_of_labels_and_data_sets_give_the_same_as_a_matrix(train):
    named = [[train.labels[at] for at in train.Y.indices[a:b]] for a, b in pairwise(train.Y.indptr)]
    data = Dataset.from_frame({"text": train.texts, "labels": named, "id": [f"d{i}" for i in range(len(train))]})
    by_lists = cross_validate(train.texts, named, folds=2, preset="parabel", n_trees=1, threads=1)
    by_data = cross_validate(data, folds=2, preset="parabel", n_trees=1, threads=1)
    assert by_lists["P@1"] == by_data["P@1"]
    other = cross_validate(data, folds=2, preset="parabel", n_trees=1, threads=1, seed=1)
    assert by_lists.values("nDCG@5") == by_data.values("nDCG@5") != other.values("nDCG@5")


def test_what_cannot_be_cut_is_refused(train):
    with pytest.raises(DataError, match="2 documents cannot be cut into 5 folds"):
        cross_validate(["a shoe", "a mug"], [["shoe"], ["mug"]])
    with pytest.raises(UsageError, match="folds is 1; it must be a whole number of at least 2"):
        cross_validate(train, folds=1)
    with pytest.raises(UsageError, match="auto may choose other settings for each fold"):
        cross_validate(train, preset="auto")
    with pytest.raises(UsageError, match="no preset 'parable'; did you mean 'parabel'"):
        cross_validate(train, preset="parable")
