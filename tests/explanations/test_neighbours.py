"""Similar documents of explanations."""

from dataclasses import replace

import numpy as np
import pytest

from labelwise import explain
from labelwise.errors import DataError, StorageError, UsageError
from labelwise.explanations import Neighbours
from labelwise.features.normalize import unit_rows
from labelwise.models.prediction_cache import PredictionCache


def embedded(model, texts):
    if model.encoder is None:
        return unit_rows(model.tfidf_.transform(texts).toarray())
    return unit_rows(PredictionCache(texts, threads=1).match(model.matcher_, model.tfidf_, 1)[0])


@pytest.mark.parametrize("kind", ["linear", "neural", "ensemble"])
def test_neighbours_are_the_nearest_documents_with_the_label(linear, neural, ensemble, shop, kind):
    model = {"linear": linear("one-tree"), "neural": neural("hybrid"), "ensemble": ensemble("average")}[kind]
    train, text = shop["train"], shop["test"].texts[0]
    reader = model.members[2] if kind == "ensemble" else model
    cosines = embedded(reader, train.texts) @ embedded(reader, [text])[0]
    near = Neighbours.of(model, train)
    for one in explain(model, text, neighbours=near):
        have = np.flatnonzero(train.Y[:, [train.labels.index(one.label)]].toarray())
        best = have[np.argsort(-cosines[have], kind="stable")[:3]]
        assert [found.similarity for found in one.neighbours] == pytest.approx(cosines[best], abs=1e-5)
        assert all(found.id in {train.ids[row] for row in have} for found in one.neighbours)
        assert all(found.text == train.texts[train.ids.index(found.id)] for found in one.neighbours)


def test_a_text_is_nearest_to_itself_and_long_ones_are_cut(linear, shop):
    model, train = linear("one-tree"), shop["train"]
    text, label = train.texts[0], train.labels[train.Y[[0]].indices[0]]
    (one,) = explain(model, text, label, neighbours=train)
    assert one.neighbours[0].similarity == pytest.approx(1)
    assert one.neighbours[0].text == text
    long = replace(train, texts=[f"{text} {'many words ' * 100}" for text in train.texts], ids=None)
    (one,) = explain(model, text, label, neighbours=long)
    assert len(one.neighbours[0].text) == 300
    assert one.neighbours[0].text.endswith("…")
    assert one.neighbours[0].id is None


def test_unknown_labels_have_no_neighbours_and_unknown_words_no_similarity(linear, shop):
    model, train = linear("one-tree"), shop["train"]
    label = train.labels[0]
    other = replace(train, labels=["another", *train.labels[1:]])
    assert explain(model, "x", label, neighbours=other)[0].neighbours == ()
    (one,) = explain(model, "§§§", label, neighbours=train)
    assert all(found.similarity == 0 for found in one.neighbours)


@pytest.mark.parametrize("kind", ["linear", "neural"])
def test_saved_neighbours_are_the_same_when_loaded(linear, neural, shop, kind, tmp_path):
    model = linear("one-tree") if kind == "linear" else neural("hybrid")
    odd = shop["train"].take(range(60))
    odd = replace(odd, texts=["line\nbreak  \x85", *odd.texts[1:]])
    near = Neighbours.of(model, odd)
    near.save(tmp_path / "near")
    again = Neighbours.load(tmp_path / "near")
    assert (again.texts, again.labels, again.ids) == (near.texts, near.labels, near.ids)
    text = shop["test"].texts[0]
    assert explain(model, text, neighbours=again) == explain(model, text, neighbours=near)
    (tmp_path / "near" / "texts.jsonl").write_text('"one"\n')
    with pytest.raises(StorageError, match="is not complete"):
        Neighbours.load(tmp_path / "near")
    (tmp_path / "near" / "texts.jsonl").unlink()
    with pytest.raises(StorageError, match="is not complete"):
        Neighbours.load(tmp_path / "near")


def test_neighbours_of_another_model_are_refused(linear, neural, shop):
    near = Neighbours.of(linear("one-tree"), shop["train"].take(range(60)))
    label = shop["train"].labels[shop["train"].Y[[0]].indices[0]]
    for model in (neural("hybrid"), linear("bigrams")):
        with pytest.raises(UsageError, match="prepared with another model"):
            explain(model, "x", label, neighbours=near)
    features = replace(shop["train"], texts=None, features=shop["train"].Y)
    with pytest.raises(DataError, match="the data have only features"):
        explain(linear("one-tree"), "x", label, neighbours=features)
