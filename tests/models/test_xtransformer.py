"""X-Transformer as a whole: fitted, kept, found again, with every kind of features and label embedding."""

from dataclasses import replace

import numpy as np
import pytest

from labelwise import Ensemble, add_labels, explain, generate_shop, load_model, precision_at_k
from labelwise.config import EnsembleConfig, HoldoutConfig
from labelwise.config.presets import load_preset
from labelwise.data import split_validation
from labelwise.errors import DataError, StorageError, UsageError
from labelwise.match.finetuned import FineTunedMatcher
from labelwise.match.frozen import FrozenMatcher
from labelwise.models.card import render_card
from labelwise.models.xtransformer import XTransformer
from labelwise.storage.run_directory import RunDirectory
from tests.explanations.test_single_model import total
from tests.features.tiny import write_model


@pytest.fixture(scope="module")
def shop():
    return generate_shop(700, 150)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("encoder") / "tiny", "bert")


@pytest.fixture(scope="module")
def settings(encoder):
    def make(preset="x-transformer", **overrides):
        base = {
            "encoder": {"name": str(encoder), "max_length": 16},
            "matcher": {"steps": 4, "batch_size": 32, "device": "cpu"},
            "hold_out": 0.15,
            "dense_weight": 1.0,
            "threads": 1,
        }
        for name, value in overrides.items():
            base[name] = {**base.get(name, {}), **value} if isinstance(value, dict) else value
        return load_preset(preset, **base)

    return make


def fitted(config, train, **options):
    return XTransformer(config).fit(train.texts, train.Y, label_names=train.labels, **options)


def same(first, second):
    assert first.labels == second.labels
    np.testing.assert_array_equal(first.matrix.toarray(), second.matrix.toarray())


@pytest.fixture(scope="module")
def model(shop, settings):
    return fitted(settings(), shop["train"])


def test_labels_with_probabilities(model, shop):
    found = model.predict(shop["test"].texts, top_k=5, ids=shop["test"].ids)
    assert precision_at_k(shop["test"].Y, found, k=1) > 50
    assert found.matrix.data.min() >= 0
    assert found.matrix.data.max() <= 1
    assert np.diff(found.matrix.indptr).max() <= 5
    assert found.ids == shop["test"].ids
    few = model.predict(shop["test"].texts, top_k=5, min_probability=0.5)
    assert few.matrix.data.min() >= 0.5
    assert isinstance(model.matcher_, FineTunedMatcher)


@pytest.fixture(scope="module")
def with_labels(shop, settings):
    return fitted(settings(matcher={"learn_labels": True}, label_weight=0.3), shop["train"])


def test_labels_that_the_network_learns_are_weights_of_the_ranker(with_labels, shop, tmp_path):
    model = with_labels
    texts = shop["test"].texts
    found = model.predict(texts, top_k=5)
    assert precision_at_k(shop["test"].Y, found, k=1) > 50
    hidden = model.matcher_.encoder_.hidden_size
    assert model.ranker_.level.dense.shape == (len(model.labels_), hidden + 1)
    assert model.report_.chosen.label_weight == 0.3
    assert any("network" in what for name, what in model.facts() if name == "scores combined by")
    model.save(tmp_path / "model")
    same(load_model(tmp_path / "model").predict(texts, top_k=5), found)


def test_a_model_with_learnt_labels_is_explained_and_grown_like_others(with_labels, shop):
    text = shop["test"].texts[0]
    (best, probability), *_ = with_labels.predict([text], top_k=1)[0]
    (why,) = explain(with_labels, text, best, words=10_000)
    assert total(why) == pytest.approx(why.own_score, abs=1e-5)
    assert why.neural.share != 0, "the network's own score is the embedding's share"
    assert why.probability == pytest.approx(probability, abs=1e-4)
    examples = ["a quiet garden chair", "quiet chair for gardens"]
    grown = add_labels(with_labels, [{"label": "quiet chairs", "examples": examples}], data=shop["train"])
    assert "quiet chairs" in [label for label, _ in grown.predict(examples[:1], top_k=5)[0]]


def test_models_that_share_an_encoder_share_the_labels_it_has_learnt(shop, settings):
    configs = [settings(matcher={"learn_labels": True}, label_embedding=kind) for kind in ("pifa-tfidf", "pifa-neural")]
    model = Ensemble(EnsembleConfig(members=tuple(configs), holdout=HoldoutConfig(share=0.15)))
    model.fit(shop["train"].texts, shop["train"].Y, label_names=shop["train"].labels)
    first, second = model.members_
    assert first.matcher_.joint is second.matcher_.joint
    assert len(first.matcher_.joint.groups_) == 2
    hidden = first.matcher_.encoder_.hidden_size
    assert first.ranker_.level.dense.shape[1] == second.ranker_.level.dense.shape[1] == hidden + 1
    not_tuned = replace(configs[1], fine_tune=False)
    frozen = EnsembleConfig(members=(configs[0], not_tuned), holdout=HoldoutConfig(share=0.15))
    with pytest.raises(UsageError, match=r"members\[1\].matcher.learn_labels needs an encoder that is fine-tuned"):
        Ensemble(frozen).fit(shop["train"].texts, shop["train"].Y, label_names=shop["train"].labels)


def test_what_the_ranker_reads_decides_whether_they_count(shop, settings, tmp_path):
    changes = {
        "matcher": {"learn_labels": True},
        "score_transform": "ranker-only",
        "matcher_weight": 1.0,
        "calibrate": False,
    }
    plain = fitted(settings(features="tfidf", **changes), shop["train"], run_dir=tmp_path)
    assert plain.ranker_.level.dense.shape[1] == 1
    none = fitted(settings(label_weight=0.0, **changes), shop["train"], run_dir=tmp_path)
    assert none.report_.chosen.label_weight == 0
    texts = shop["test"].texts
    first, second = (model.predict(texts, top_k=5).matrix for model in (plain, none))
    np.testing.assert_allclose(second.toarray(), first.toarray(), atol=1e-4)


def test_labels_are_learnt_by_fine_tuning_only(shop, settings):
    for preset, changes, message in (
        ("hybrid", {"matcher": {"learn_labels": True}}, "learn_labels needs an encoder that is fine-tuned"),
        ("x-transformer", {"label_weight": 1.5}, "label_weight is 1.5; it must be a number from 0 to 1 or None"),
    ):
        with pytest.raises(UsageError, match=message):
            fitted(settings(preset, **changes), shop["train"])


def test_what_it_tells_of_itself(model):
    report = model.report_
    told = report.validation
    assert (report.documents, told.documents, told.kind, told.share) == (630, 94, "share", 0.15)
    assert list(report.recall) == [1, 5, 10, 20]
    assert 0 < report.recall[1] <= report.recall[5] <= report.recall[10] <= report.recall[20] <= 100
    best = max(report.trials, key=lambda trial: np.mean(trial.precisions))
    assert {**vars(report.chosen), "precisions": best.precisions} == vars(best)
    scores = [report.validation.scores[f"P@{k}"] for k in (1, 3, 5)]
    assert scores == pytest.approx(best.precisions)
    facts = dict(model.facts())
    assert facts["labels"] == "150 in 4 clusters by pifa-neural"
    assert facts["encoder"] == "tiny, 16 tokens of a text, fine-tuned on the clusters"
    assert model.title() == "X-Transformer (tiny)"


def test_kept_and_loaded(model, shop, tmp_path):
    model.save(tmp_path / "model")
    for again in (XTransformer.load(tmp_path / "model"), load_model(tmp_path / "model")):
        assert isinstance(again, XTransformer)
        assert again.config == model.config
        assert again.tree_.n_clusters == model.tree_.n_clusters
        assert again.calibrator_.to_dict() == model.calibrator_.to_dict()
        same(again.predict(shop["test"].texts), model.predict(shop["test"].texts))
    assert "X-Transformer (tiny) over 150 labels" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    for folder in ("tfidf", "matcher"):
        (tmp_path / "model" / folder).rename(tmp_path / folder)
        with pytest.raises(StorageError):
            load_model(tmp_path / "model")
        (tmp_path / folder).rename(tmp_path / "model" / folder)


def test_where_it_was_trained_does_not_matter_to_its_use(model, shop, tmp_path):
    trained = XTransformer(model.config)
    vars(trained).update(vars(model))
    trained.config = replace(model.config, matcher=replace(model.config.matcher, device="cuda:7"))
    trained.save(tmp_path / "model")
    same(load_model(tmp_path / "model").predict(shop["test"].texts), model.predict(shop["test"].texts))


def test_the_same_seed_gives_the_same_model(model, shop, settings):
    again = fitted(settings(threads=2), shop["train"])
    same(again.predict(shop["test"].texts), model.predict(shop["test"].texts))


def test_validation_documents_of_ones_own(shop, settings):
    train, validation = split_validation(shop["train"], 0.15)
    strange = replace(validation, labels=[*validation.labels[:-1], "never seen"], label_texts=None)
    model = fitted(settings(), train, validation=strange)
    assert model.report_.documents == len(train)
    told = model.report_.validation
    assert told.kind == "split"
    assert (told.kind, told.documents) == ("split", len(validation))
    assert model.calibrator_ is not None
    assert model.calibrator_.n_docs == len(validation)
    assert "never seen" not in model.labels_


def test_held_out_documents_choose_as_given_ones_do(shop, settings):
    """All that is chosen, and what scores mean, is the same; but the ranker learns from the documents in the end."""
    from labelwise.data.split import split_rows

    train, config = shop["train"], settings("hybrid", label_embedding="pifa-tfidf")
    rest, aside = split_rows(train.Y, config.holdout.share, seed=config.seed)
    whole = fitted(config, train)
    given = fitted(config, train.take(rest), validation=train.take(aside))
    assert whole.report_.validation.documents == given.report_.validation.documents == len(aside)
    assert whole.report_.documents == len(train) > given.report_.documents
    texts = train.take(aside).texts
    learnt, unseen = (precision_at_k(train.Y[aside], model.predict(texts, top_k=1), k=1) for model in (whole, given))
    assert learnt > unseen


def test_given_documents_can_be_learnt_from_too(shop, settings):
    """The same is chosen with and without; but the ranker has seen them in the end, as it has those held out."""
    train, validation = split_validation(shop["train"], 0.15)
    strange = replace(validation, labels=[*validation.labels[:-1], "never seen"], label_texts=None)
    plain = fitted(settings("hybrid", label_embedding="text-emb"), train, validation=strange)
    model = fitted(settings("hybrid", label_embedding="text-emb", learn_validation=True), train, validation=strange)
    assert model.report_.documents == len(train) + len(validation) > plain.report_.documents
    told = model.report_.validation
    assert (told.kind, told.documents) == ("learnt split", len(validation))
    assert "the validation split, before linear models learnt from it too" in render_card(model)
    assert model.calibrator_ is not None
    assert "never seen" not in model.labels_
    known = strange.with_labels(model.labels_).Y[:, : len(model.labels_)]
    learnt, unseen = (precision_at_k(known, m.predict(strange.texts, top_k=1), k=1) for m in (model, plain))
    assert learnt > unseen


def test_nothing_held_out(shop, settings):
    model = fitted(settings("hybrid", hold_out=0.0), shop["train"])
    assert model.calibrator_ is None
    assert model.report_.chosen.score_transform == "l3-hinge"
    assert model.report_.validation is None
    assert precision_at_k(shop["test"].Y, model.predict(shop["test"].texts), k=1) > 50


def test_too_few_documents_to_calibrate(shop, settings):
    few, heard = shop["train"].take(range(300)), []
    model = fitted(
        settings("hybrid", hold_out=0.1), few, on_event=lambda name, values: heard.append(values.get("text"))
    )
    assert model.calibrator_ is None
    assert model.report_.validation.documents == 30
    assert any(text and text.startswith("predictions are scores, not probabilities: only 30 docu") for text in heard)
    assert fitted(settings("hybrid", calibrate=False), shop["train"]).calibrator_ is None


@pytest.mark.parametrize("features", ["both", "tfidf", "neural"])
def test_what_the_ranker_sees(features, shop, settings, tmp_path):
    model = fitted(settings("hybrid", features=features), shop["train"])
    assert isinstance(model.matcher_, FrozenMatcher)
    found = model.predict(shop["test"].texts, top_k=3)
    if features != "neural":  # a random encoder knows next to nothing
        assert precision_at_k(shop["test"].Y, found, k=1) > 50
    model.save(tmp_path / "model")
    same(load_model(tmp_path / "model").predict(shop["test"].texts, top_k=3), found)


@pytest.mark.parametrize("embedding", ["pifa-tfidf", "pifa-neural", "text-emb"])
def test_label_embeddings(embedding, shop, settings):
    train = shop["train"]
    config = settings("hybrid", label_embedding=embedding)
    model = fitted(config, train)
    assert dict(model.facts())["labels"].endswith(f"by {embedding}")
    assert precision_at_k(shop["test"].Y, model.predict(shop["test"].texts), k=1) > 50
    words = ["the law of fishing", "northern waters", "a cheap red shoe", "running children"]
    texts = [words[at % 4] for at in range(len(train.labels))]
    described = fitted(config, train, label_texts=texts)
    moved = (described.tree_.clusters != model.tree_.clusters).any()
    assert moved == (embedding == "text-emb")


def test_negatives_of_matchers_that_did_not_see_the_document(shop, settings):
    heard = []
    config = settings(matcher={"negatives_from": "out-of-fold", "folds": 2, "steps": 2})
    model = fitted(config, shop["train"], on_event=lambda name, values: heard.append((name, values)))
    ends = [values for name, values in heard if name == "progress" and values["finished"]]
    assert sum(values["task"] == "fine-tuning the matcher" for values in ends) == 3
    assert precision_at_k(shop["test"].Y, model.predict(shop["test"].texts), k=1) > 50


@pytest.mark.parametrize("preset", ["x-transformer", "hybrid"])
def test_a_run_directory_is_gone_on_from(preset, shop, settings, tmp_path):
    def fit():
        heard = []
        model = fitted(
            settings(preset),
            shop["train"],
            run_dir=tmp_path / "run",
            on_event=lambda name, values: heard.append((name, values)),
        )
        return model, {values["stage"]: values["found"] for name, values in heard if name == "stage"}

    first, made = fit()
    second, found = fit()
    matcher = "matcher" if preset == "x-transformer" else "frozen-matcher"
    assert list(made) == list(found) == ["tfidf", "tokens", "embeddings", "tree", matcher, "ranker"]
    assert not any(made.values())
    assert all(found.values())
    same(second.predict(shop["test"].texts), first.predict(shop["test"].texts))
    assert second.report_ == first.report_
    assert len(RunDirectory(tmp_path / "run").stages()) == 6
    # Another ranker does not need another matcher.
    other = fitted(settings(preset, ranker={"cost": 0.5}), shop["train"], run_dir=tmp_path / "run")
    assert other.config.ranker.cost == 0.5
    assert len(RunDirectory(tmp_path / "run").stages()) == 7


def test_lists_of_label_names(settings):
    texts = ["the law of fishing", "northern waters", "a cheap red shoe", "running children"] * 10
    labels = [["law", "fish"], ["fish"], ["shoe"], ["shoe", "child"]] * 10
    model = XTransformer(settings(hold_out=0.0, matcher={"steps": 2})).fit(texts, labels)
    assert model.labels_ == ["law", "fish", "shoe", "child"]
    assert model.predict(["a red shoe"], top_k=1)[0][0][0] == "shoe"
    assert len(model.predict([""], top_k=9)[0]) <= 4
    assert len(model.predict([])) == 0


@pytest.mark.parametrize(
    ("overrides", "complaint"),
    [
        ({"beam": 0}, "beam is 0; it must be a whole number of at least 1"),
        ({"hold_out": 1.0}, "hold_out is 1.0; it must be a number from 0 to below 1"),
        ({"dense_weight": -1.0}, "dense_weight is -1.0; it must be a number above 0 or None"),
        ({"matcher": {"epochs": 0.0}}, "matcher.epochs is 0.0; it must be a number above 0"),
        ({"encoder": {"max_length": 2}}, "max_length is 2; it must be a whole number of at least 4"),
        ({"encoder": {"max_length": 4096}}, "reads at most 64 tokens"),
        ({"encoder": {"name": "./nowhere"}}, "there is no folder ./nowhere"),
        ({"matcher": {"device": "cuda:7"}}, "the device is cuda:7, but torch finds no GPU here"),
    ],
)
def test_wrong_settings(overrides, complaint, shop, settings, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    few = shop["train"].take(range(40))
    with pytest.raises(UsageError, match=complaint) as raised:
        fitted(settings(**overrides), few)
    assert "\n" not in str(raised.value)


def test_wrong_data(model, shop, settings):
    train = shop["train"].take(range(40))
    unfitted = XTransformer(settings())
    for texts, complaint in (
        (train.Y, "X-Transformer reads texts: give a list of strings, not features"),
        ("one text", "a list of texts, got one string; write .text. for a single one"),
        (None, "give a list of strings"),
        (train.texts[:3], "there are 3 documents but 40 rows of labels; they must match"),
        ([*train.texts[:-1], 7], "not a string"),
    ):
        with pytest.raises((DataError, UsageError), match=complaint):
            unfitted.fit(texts, train.Y)
    with pytest.raises(DataError, match="there are 1 label texts but 150 are needed"):
        unfitted.fit(train.texts, train.Y, label_texts=["law"])
    features = replace(train, texts=None, features=train.Y)
    with pytest.raises(DataError, match="learns from texts"):
        fitted(settings(), train, validation=features)
    with pytest.raises(DataError, match="the model reads texts, but the data have only features"):
        model.inputs(features)
    with pytest.raises(UsageError, match="this XTransformer is not fitted yet"):
        unfitted.predict(["a text"])
    with pytest.raises(UsageError, match="not fitted"):
        unfitted.save("nowhere")


def test_texts_that_the_encoder_cannot_read_are_said(settings, caplog):
    texts = ["ein roter Schuh", "ein blauer Schuh", "eine rote Tasse", "eine blaue Tasse"] * 3
    labels = [["shoe"], ["shoe"], ["mug"], ["mug"]] * 3
    XTransformer(settings("hybrid", hold_out=0.0)).fit(texts, labels)
    said = [record for record in caplog.records if "unknown to the encoder" in record.getMessage()]
    assert [record.levelname for record in said] == ["WARNING"]
    assert "100 % of the tokens" in said[0].getMessage()
    caplog.clear()
    known = ["a red shoe", "a cheap shoe", "the law of fishing", "northern waters"] * 3
    XTransformer(settings("hybrid", hold_out=0.0)).fit(known, labels)
    assert not [record for record in caplog.records if "unknown to the encoder" in record.getMessage()]
