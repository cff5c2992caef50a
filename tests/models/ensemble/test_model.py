"""Ensembles: trained together, brought together, kept, found again, and reading a text once."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from labelwise import generate_shop, load_model, precision_at_k
from labelwise.config import EnsembleConfig, HoldoutConfig
from labelwise.config.presets import load_preset
from labelwise.data import split_validation
from labelwise.data.split import split_rows
from labelwise.errors import DataError, StorageError, UsageError
from labelwise.features.encoder import Encoder
from labelwise.features.tfidf import Tfidf
from labelwise.features.token_store import TokenStore
from labelwise.match.finetuned import FineTunedMatcher
from labelwise.match.shared import SharedMatcherView
from labelwise.models.ensemble import Ensemble
from labelwise.models.ensemble import members as training
from labelwise.models.ensemble.rules import combine
from labelwise.models.linear_tree import LinearTree
from labelwise.models.pipeline import Pipeline
from labelwise.models.xtransformer import XTransformer
from labelwise.storage.run_directory import RunDirectory
from tests.features.tiny import write_model

TREES = ("pifa-tfidf", "pifa-neural")


@pytest.fixture(scope="module")
def shop():
    return generate_shop(700, 150)


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoders")
    return [write_model(folder / kind, kind) for kind in ("bert", "roberta")]


@pytest.fixture(scope="module")
def settings(encoders):
    def make(preset="x-transformer", encoder=0, **overrides):
        base = {
            "encoder": {"name": str(encoders[encoder]), "max_length": 16},
            "matcher": {"steps": 3, "batch_size": 32, "device": "cpu"},
            "dense_weight": 1.0,
            "matcher_weight": 1.0,
            "threads": 1,
        }
        return load_preset(preset, **{**base, **overrides})

    return make


@pytest.fixture(scope="module")
def members(settings):
    """Two trees on one encoder, one on another, one that is frozen, and a linear tree."""
    return (
        *(settings(label_embedding=kind) for kind in TREES),
        settings(encoder=1),
        settings("hybrid"),
        load_preset("default", threads=1),
    )


def fitted(config, train, **options):
    return Ensemble(config).fit(train.texts, train.Y, label_names=train.labels, **options)


def same(first, second):
    assert first.labels == second.labels
    np.testing.assert_array_equal(first.matrix.toarray(), second.matrix.toarray())


@pytest.fixture(scope="module")
def config(members):
    return EnsembleConfig(members=members, holdout=HoldoutConfig(share=0.15), threads=1)


@pytest.fixture(scope="module")
def trained(config, shop, tmp_path_factory):
    """A model with its run directory and what was heard."""
    heard, run = [], tmp_path_factory.mktemp("run")
    model = fitted(config, shop["train"], run_dir=run, on_event=lambda name, values: heard.append((name, values)))
    return model, run, heard


def counted(monkeypatch):
    """How often texts are weighed, tokenised and read by an encoder."""
    calls = Counter()
    for owner, name in ((Tfidf, "transform"), (TokenStore, "build"), (Encoder, "forward")):
        before = getattr(owner, name)
        real = before.__func__ if hasattr(before, "__func__") else before

        def call(self, *args, _real=real, _name=name, **options):
            who = id(self) if _name == "forward" else 0
            calls[_name, who] += 1
            return _real(self, *args, **options)

        monkeypatch.setattr(owner, name, classmethod(call) if hasattr(before, "__func__") else call)
    return calls


def test_what_it_is(trained, shop):
    model, _, heard = trained
    assert [type(member) for member in model.members_] == [XTransformer] * 4 + [LinearTree]
    first, second, third, _, _ = model.members_
    assert isinstance(first.matcher_, SharedMatcherView)
    assert first.matcher_.joint is second.matcher_.joint
    assert isinstance(third.matcher_, FineTunedMatcher)
    assert len({id(member.tfidf_) for member in model.members_}) == 1
    assert model.weights_.sum() == pytest.approx(1)
    assert (model.weights_ >= 0).all()
    found = model.predict(shop["test"].texts, top_k=5, ids=shop["test"].ids)
    assert found.ids == shop["test"].ids
    assert np.diff(found.matrix.indptr).max() <= 5
    assert 0 < found.matrix.data.min() <= found.matrix.data.max() < 1
    assert precision_at_k(shop["test"].Y, found, k=1) > 60
    said = [values["text"] for name, values in heard if name == "remark"]
    assert "matcher 1 of 3: bert on the clusters of 2 label trees" in said
    assert "member 2 of 5: bert, pifa-neural" in said
    assert "member 4 of 5: bert, pifa-neural, not fine-tuned" in said
    assert "member 5 of 5: linear, one tree" in said


def test_one_fine_tuning_for_each_encoder(trained):
    _, _, heard = trained
    ends = Counter(values["task"] for name, values in heard if name == "progress" and values["finished"])
    assert ends["fine-tuning the matcher"] == 2
    assert ends["embeddings"] == 2


def test_predictions_are_the_rule_on_those_of_the_members(trained, shop):
    model, texts = trained[0], shop["test"].texts
    assert model.over_ == "probabilities"
    parts = [member.predict(texts, top_k=20).matrix for member in model.members_]
    options = {"weights": model.weights_, "depth": 20, "over": "probabilities", "top_k": 5}
    expected = combine(parts, model.rule_, **options)
    found = model.predict(texts, top_k=5)
    np.testing.assert_array_equal(found.matrix.indices, expected.indices)
    np.testing.assert_allclose(
        found.matrix.data, model.calibrator_.transform_matrix(expected).data, rtol=1e-4, atol=1e-6
    )
    more = model.predict(texts, top_k=60)
    assert 20 < np.diff(more.matrix.indptr).max() <= 60


def test_all_are_judged_by_the_same_documents(trained, config, shop):
    model, Y = trained[0], shop["train"].Y
    _, aside = split_rows(Y, config.holdout.share, seed=config.seed)
    report = model.report_
    assert report.validation.documents == len(aside) == model.calibrator_.n_docs
    for member, told in zip(model.members_, report.members, strict=True):
        assert member.report_.validation.documents == len(aside)
        assert told.scores == member.report_.validation.scores
    held = [member.calibrator_.transform_matrix(member.held_out_scores_) for member in model.members_]
    assert all(matrix.shape == (len(aside), 150) for matrix in held)
    mine = [report.validation.scores[f"P@{k}"] for k in (1, 3, 5)]
    equal = fitted(replace(config, rule=model.rule_, weights="equal"), shop["train"], run_dir=trained[1])
    theirs = [equal.report_.validation.scores[f"P@{k}"] for k in (1, 3, 5)]
    assert np.mean(mine) >= np.mean(theirs)
    np.testing.assert_allclose(equal.weights_, 0.2)


def test_a_text_is_read_once(trained, shop, monkeypatch):
    model = trained[0]
    calls = counted(monkeypatch)
    model.predict(shop["test"].texts[:3])
    assert calls["transform", 0] == 1
    assert calls["build", 0] == 2  # a tokenizer of BERT's and one of RoBERTa's
    # The fine-tuned BERT for two members, RoBERTa, and BERT as it was pretrained.
    assert [count for (name, _), count in calls.items() if name == "forward"] == [1, 1, 1]


def test_found_again(trained, config, shop):
    model, run, heard = trained
    made = Counter(values["stage"] for name, values in heard if name == "stage")
    expected = {"tfidf": 1, "tokens": 2, "embeddings": 2, "tree": 3, "matcher": 2, "frozen-matcher": 1}
    assert made == {**expected, "ranker": 4, "levels": 1}
    assert not any(values["found"] for name, values in heard if name == "stage")
    again = []
    second = fitted(config, shop["train"], run_dir=run, on_event=lambda name, values: again.append((name, values)))
    assert all(values["found"] for name, values in again if name == "stage")
    tasks = {values["task"] for name, values in again if name == "progress"}
    assert not tasks & {"fine-tuning the matcher", "embeddings", "tokens", "matching", "choosing the ranker"}
    same(second.predict(shop["test"].texts), model.predict(shop["test"].texts))
    assert second.report_ == model.report_
    assert len(RunDirectory(run).stages()) == sum(made.values())


def test_kept_and_loaded(trained, shop, tmp_path, monkeypatch):
    model = trained[0]
    model.save(tmp_path / "model")
    shared = sorted(folder.name for folder in (tmp_path / "model" / "shared").iterdir())
    assert shared == ["encoder-1", "matcher-1", "tfidf-1"]
    assert len(list((tmp_path / "model").rglob("model.safetensors"))) == 3
    texts = shop["test"].texts
    again = load_model(tmp_path / "model")
    assert isinstance(again, Ensemble)
    policy = model.config.holdout  # it counted for all members, and their settings say so
    members = tuple(replace(member, holdout=policy, threads=None) for member in model.config.members)
    assert [replace(member, threads=None) for member in again.config.members] == list(members)
    assert replace(again.config, members=()) == replace(model.config, members=())
    assert again.rule_ == model.rule_
    same(again.predict(texts), model.predict(texts))
    for number, member in enumerate(model.members_, start=1):  # each of them can be used alone
        alone = load_model(tmp_path / "model" / "members" / f"{number:02}")
        same(alone.predict(texts[:5]), member.predict(texts[:5]))
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "# An ensemble of 5 models over 150 labels" in card
    assert "| member 1 | bert, pifa-tfidf; P@1" in card
    assert "XTransformerConfig(" not in card
    calls = counted(monkeypatch)
    again.predict(texts[:3])
    assert (calls["transform", 0], calls["build", 0], calls.total()) == (1, 2, 6)
    link = tmp_path / "model" / "members" / "01" / "tfidf.link.json"
    for text, complaint in (('{"folder": "../../../elsewhere"}', "names no shared part"), ("[]", "no shared part")):
        link.write_text(text, encoding="utf-8")
        with pytest.raises(StorageError, match=complaint):
            load_model(tmp_path / "model")


def test_own_encoders(settings, shop, monkeypatch):
    config = EnsembleConfig(
        members=tuple(settings(label_embedding=kind) for kind in TREES),
        share_encoder=False,
        holdout=HoldoutConfig(share=0.15),
        threads=1,
    )
    model = fitted(config, shop["train"])
    assert all(isinstance(member.matcher_, FineTunedMatcher) for member in model.members_)
    alone = XTransformer(replace(config.members[0], holdout=HoldoutConfig(share=0.15))).fit(
        shop["train"].texts, shop["train"].Y, label_names=shop["train"].labels
    )
    same(model.members_[0].predict(shop["test"].texts), alone.predict(shop["test"].texts))
    calls = counted(monkeypatch)
    model.predict(shop["test"].texts[:3])
    assert (calls["transform", 0], calls["build", 0], calls.total()) == (1, 1, 4)


def test_shared_negatives_of_matchers_that_did_not_see_the_document(settings, shop):
    heard = []
    matcher = {"steps": 2, "batch_size": 32, "device": "cpu", "negatives_from": "out-of-fold", "folds": 2}
    two = tuple(settings(label_embedding=kind, matcher=matcher) for kind in TREES)
    config = EnsembleConfig(members=two, holdout=HoldoutConfig(share=0.15), threads=1)
    model = fitted(config, shop["train"], on_event=lambda name, values: heard.append((name, values)))
    ends = [values["task"] for name, values in heard if name == "progress" and values["finished"]]
    assert ends.count("fine-tuning the matcher") == 3  # for both members together
    assert precision_at_k(shop["test"].Y, model.predict(shop["test"].texts), k=1) > 50


def test_a_validation_split_and_features(shop):
    train, validation = split_validation(shop["train"], 0.15)
    linear = tuple(load_preset("default", threads=1, ranker={"cost": cost}) for cost in (0.5, 2.0))
    config = EnsembleConfig(members=linear, threads=1)
    model = fitted(config, train, validation=validation)
    assert model.report_.validation.kind == "split"
    assert model.report_.documents == len(train)
    assert model.calibrator_.n_docs == len(validation)
    tfidf = model.members_[0].tfidf_
    rows, aside, test = (tfidf.transform(part.texts) for part in (train, validation, shop["test"]))
    given = replace(validation, texts=None, features=aside)
    on_rows = Ensemble(config).fit(rows, train.Y, label_names=train.labels, validation=given)
    assert on_rows.tfidf_ is None
    same(on_rows.predict(test), model.predict(shop["test"].texts))
    learning = replace(config, holdout=HoldoutConfig(learn_validation=True))
    for documents, judged in ((train.texts, validation), (rows, given)):
        learnt = Ensemble(learning).fit(documents, train.Y, label_names=train.labels, validation=judged)
        assert learnt.report_.documents == len(train) + len(validation)
        assert learnt.report_.validation.kind == "learnt split"
        seen = learnt.predict(documents if documents is train.texts else aside, top_k=1)
        assert len(seen) == (len(train) if documents is train.texts else len(validation))
    assert precision_at_k(validation.Y, seen, k=1) > precision_at_k(validation.Y, on_rows.predict(aside, top_k=1), k=1)
    with pytest.raises(DataError, match="the validation data have only texts"):
        Ensemble(config).fit(rows, train.Y, label_names=train.labels, validation=validation)
    with pytest.raises(UsageError, match="fitted on features"):
        on_rows.predict(["a text"])


def test_nothing_held_out(shop):
    linear = tuple(load_preset("default", threads=1, seed=seed) for seed in (0, 1))
    model = fitted(EnsembleConfig(members=linear, holdout=HoldoutConfig(share=0.0)), shop["train"])
    assert (model.over_, model.rule_, model.calibrator_) == ("scores", "average", None)
    assert model.weights_.tolist() == [0.5, 0.5]
    assert precision_at_k(shop["test"].Y, model.predict(shop["test"].texts), k=1) > 50
    with pytest.raises(UsageError, match="not every member is calibrated"):
        fitted(
            EnsembleConfig(members=linear, holdout=HoldoutConfig(share=0.0), combine_on="probabilities"), shop["train"]
        )


def test_members_that_bring_nothing_are_dropped(shop, tmp_path):
    good = load_preset("default", threads=1)
    config = EnsembleConfig(members=(good, good, good), holdout=HoldoutConfig(share=0.15), prune=0.05, threads=1)
    model = fitted(config, shop["train"])
    assert len(model.members_) == len(model.weights_) == 1
    assert [member.weight is None for member in model.report_.members].count(True) == 2
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.config.members == (replace(good, holdout=config.holdout),)
    same(again.predict(shop["test"].texts), model.predict(shop["test"].texts))
    assert "dropped" in dict(again.facts())["member 1"]


@pytest.fixture(scope="module")
def pair(shop):
    train = shop["train"]
    return [
        LinearTree("default", threads=1, seed=seed, calibrate=False).fit(train.texts, train.Y, label_names=train.labels)
        for seed in (0, 1)
    ]


def test_fitted_models_brought_together(pair, shop, monkeypatch):
    model = Ensemble.of(pair)
    assert (model.over_, model.rule_) == ("scores", "average")
    texts = shop["test"].texts
    parts = [member.predict(texts, top_k=20).matrix for member in pair]
    expected = combine(parts, "average", weights=np.ones(2), depth=20, top_k=10)
    np.testing.assert_allclose(model.predict(texts).matrix.toarray(), expected.toarray(), atol=1e-6)
    calls = counted(monkeypatch)
    model.predict(texts[:3])
    assert calls["transform", 0] == 1  # one vocabulary, though each model had its own
    judged = Ensemble.of(pair, EnsembleConfig(rule="rank_average"), validation=shop["test"])
    assert judged.rule_ == "rank_average"
    assert judged.calibrator_.n_docs == len(shop["test"])
    model.calibrate(shop["test"])
    assert model.predict(texts).matrix.data.max() < 1


def test_models_that_do_not_go_together(pair, shop):
    train = shop["train"]
    other = LinearTree().fit(train.texts, train.Y, label_names=[f"x{i}" for i in range(150)])
    with pytest.raises(UsageError, match="model 2 has 150 labels and not the 150 of the first model"):
        Ensemble.of([pair[0], other])
    rows = LinearTree().fit(pair[0].tfidf_.transform(train.texts), train.Y, label_names=train.labels)
    with pytest.raises(UsageError, match="one reads texts and the other features"):
        Ensemble.of([pair[0], rows])
    for wrong, complaint in (
        ([], "an ensemble needs models"),
        ([Ensemble.of(pair)], "model 1 is an ensemble itself"),
        ([pair[0], LinearTree()], "this LinearTree is not fitted yet"),
    ):
        with pytest.raises(UsageError, match=complaint):
            Ensemble.of(wrong)


def test_wrong_settings(settings, shop):
    train = shop["train"].take(range(40))
    for config, complaint in (
        (EnsembleConfig(), "an ensemble needs members to train"),
        (
            EnsembleConfig(members=(settings(),), candidates_per_model=0),
            "candidates_per_model is 0; it must be a whole number",
        ),
        (
            EnsembleConfig(members=(settings(),), holdout=HoldoutConfig(share=1.0)),
            "holdout.share is 1.0; it must be a number from 0 to below 1",
        ),
        (EnsembleConfig(members=(settings(),), prune=-1.0), "prune is -1.0; it must be a number of at least 0 or None"),
    ):
        with pytest.raises(UsageError, match=complaint):
            fitted(config, train)
    with pytest.raises(DataError, match="reads texts"):
        Ensemble(EnsembleConfig(members=(settings(),))).fit(train.Y, train.Y)
    with pytest.raises(UsageError, match="this Ensemble is not fitted yet"):
        Ensemble().predict(["a text"])


def test_what_was_killed_goes_on_after_the_last_finished_member(settings, shop, tmp_path):
    two = tuple(settings("hybrid", label_embedding=kind) for kind in TREES)
    config, stages = EnsembleConfig(members=two, holdout=HoldoutConfig(share=0.15), threads=1), []

    def kill(name, values):
        if name == "remark" and values["text"].startswith("member 2 of 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(config, shop["train"], run_dir=tmp_path / "run", on_event=kill)

    def hear(name, values):
        if name == "stage":
            stages.append((values["stage"], values["found"]))

    fitted(config, shop["train"], run_dir=tmp_path / "run", on_event=hear)
    assert [found for stage, found in stages if stage == "ranker"] == [True, False]
    assert all(found for stage, found in stages if stage != "ranker")


TEXTS = ["red shoe", "blue mug"] * 60
LABELS = [["shoe"], ["mug"]] * 60


def test_one_holdout_policy_counts_for_all_members(tmp_path):
    share = HoldoutConfig(share=0.4)
    one, other = load_preset("default", holdout=share), load_preset("parabel")
    with pytest.raises(UsageError, match=r"member 1 of the ensemble has a hold-out policy of its own \(hold_out 0.4,"):
        Ensemble([one, other]).fit(TEXTS, LABELS)
    with pytest.raises(UsageError, match="member 1 of the ensemble has a hold-out policy of its own"):
        Ensemble([one, one], hold_out=0.3).fit(TEXTS, LABELS)
    adopted = Ensemble([one, replace(one, seed=1)]).fit(TEXTS, LABELS)
    for model in (Ensemble([other, one], holdout=share).fit(TEXTS, LABELS), adopted):
        assert model.report_.validation.share == 0.4
        model.save(tmp_path / "model")
        again = load_model(tmp_path / "model").config
        assert [again.holdout, *(member.holdout for member in again.members)] == [share] * 3
        assert again.for_training() == again
    scores = Ensemble([other], calibrate=False).fit(TEXTS, LABELS)
    assert scores.calibrator_ is None
    assert scores.members[0].config.holdout.calibrate
    scores.save(tmp_path / "model")
    load_model(tmp_path / "model").config.for_training()


def test_threads_of_an_ensemble_are_those_of_its_members(monkeypatch):
    seen = []

    def pipeline(config, cache):
        seen.append(config.threads)
        return Pipeline(config, cache)

    monkeypatch.setattr(training, "Pipeline", pipeline)
    Ensemble(["default", load_preset("parabel", threads=2, n_trees=1)], threads=1).fit(TEXTS, LABELS)
    assert seen == [1, 2]
