"""A model knows which documents it was trained on, and an evaluation on them is noticed."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import Dataset, Ensemble, LinearTree, evaluate, generate_shop, load_model, update
from labelwise.errors import StorageError
from labelwise.models import seen as module
from labelwise.models.card import render_card
from labelwise.models.seen import SeenDocuments
from labelwise.types import Csr


@pytest.fixture(scope="module")
def shop():
    return generate_shop(500, 100)


@pytest.fixture(scope="module")
def model(shop):
    train = shop["train"]
    return LinearTree(threads=1).fit(train.texts, train.Y, label_names=train.labels)


def warnings_of(caplog):
    return [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]


def test_an_evaluation_on_training_documents_is_noticed(model, shop, caplog):
    train, test = shop["train"], shop["test"]
    found = model.predict(train.texts)
    assert found.trained_share == 1
    evaluate(train.Y, found, bootstrap=0)
    assert warnings_of(caplog)[0].startswith("100 % of these documents were trained on: the figures say little of new")
    caplog.clear()
    found = model.predict(test.texts)
    assert found.trained_share < 0.2
    evaluate(test.Y, found, bootstrap=0)
    evaluate(test.Y, found.matrix, bootstrap=0)
    assert not warnings_of(caplog)


def test_a_saved_model_knows_it_too_and_one_without_hashes_loads(model, shop, tmp_path):
    model.save(tmp_path / "model")
    place = tmp_path / "model" / "seen-documents"
    assert sum(file.stat().st_size for file in place.iterdir()) < 8 * 500 + 2000
    assert load_model(tmp_path / "model").predict(shop["train"].texts).trained_share == 1
    for file in place.iterdir():
        file.unlink()
    place.rmdir()
    assert load_model(tmp_path / "model").predict(shop["train"].texts).trained_share is None


def test_damaged_hashes_are_refused(tmp_path):
    for wrong in (np.array([3, 2], np.uint64), np.array([1, 1], np.uint64), np.array([1, 2], np.int64)):
        SeenDocuments(wrong).save(tmp_path / "seen")
        with pytest.raises(StorageError, match="hashes"):
            SeenDocuments.load(tmp_path / "seen")
    too_many = np.arange(module.MOST + 1, dtype=np.uint64)
    SeenDocuments(too_many).save(tmp_path / "seen")
    with pytest.raises(StorageError, match="has more than 32,768 numbers, or they do not rise"):
        SeenDocuments.load(tmp_path / "seen")


def test_of_many_documents_a_sample_is_kept(monkeypatch):
    monkeypatch.setattr(module, "MOST", 200)
    texts = [f"text {number}" for number in range(5_000)]
    seen = SeenDocuments.of(texts)
    assert len(seen.hashes) == 200
    assert seen.share(texts) == 1
    assert seen.share([f"other {number}" for number in range(5_000)]) == 0
    half = [*texts[:2_500], *(f"other {number}" for number in range(2_500))]
    assert 0.3 < seen.share(half) < 0.7
    both = seen.with_more([f"other {number}" for number in range(5_000)])
    assert len(both.hashes) == 200
    assert both.share(texts) == both.share([f"other {number}" for number in range(5_000)]) == 1
    few = SeenDocuments.of(texts[:20])
    assert few.joined(seen).hashes.max() <= seen.hashes.max()


def test_blanks_and_few_documents_say_nothing():
    seen = SeenDocuments.of(["a shoe", "", "  ", "a mug", "one", "two", "three"])
    assert len(seen.hashes) == 5
    assert seen.share(["a shoe", " a mug "]) is None
    assert seen.share([" a shoe", "a mug ", "one", "two", "new", ""]) == 0.8
    assert SeenDocuments.of([]).share([f"{number}" for number in range(9)]) == 0


def test_rows_of_features_are_known_by_their_entries():
    X = Csr(sp.random(20, 30, density=0.3, format="csr", dtype=np.float32, random_state=0))
    seen = SeenDocuments.of(X)
    assert seen.share(X[3:15]) == 1
    assert seen.share(Csr(X * np.float32(2))) == 0


def test_an_ensemble_and_an_updated_model_know_theirs(model, shop):
    train, test = shop["train"], shop["test"]
    both = Ensemble.of([model, model])
    assert both.predict(train.texts).trained_share == 1
    whole = Ensemble(["default", "default"], threads=1).fit(train.texts, train.Y, label_names=train.labels)
    assert whole.predict(train.texts).trained_share == 1
    assert all(member.seen_ is None for member in whole.members)  # the ensemble's own are enough
    updated = update(model, test)
    assert updated.predict(test.texts).trained_share > 0.9
    assert model.predict(test.texts).trained_share < 0.2


def test_the_card_tells_the_data_from_others(model, shop):
    train = shop["train"]
    again = LinearTree(threads=1).fit(train.texts, train.Y, label_names=train.labels)
    assert again.report_.fingerprint == model.report_.fingerprint
    assert f"| fingerprint of the data | {model.report_.fingerprint} |" in render_card(model)
    other = Dataset.from_frame({"text": ["a shoe", "a mug"], "labels": [["shoe"], ["mug"]]})
    assert LinearTree().fit_dataset(other).report_.fingerprint != model.report_.fingerprint
