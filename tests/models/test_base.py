"""What all models share: constructors that take a preset's name, a file, or a configuration, and flat settings."""

import inspect
from dataclasses import replace
from pathlib import Path

import pytest

from labelwise import generate_shop
from labelwise.config import (
    EncoderConfig,
    EnsembleConfig,
    LinearTreeConfig,
    MatcherConfig,
    RankerConfig,
    XTransformerConfig,
)
from labelwise.config.flat import flat_names
from labelwise.config.presets import load_preset
from labelwise.errors import UsageError
from labelwise.models.base import load_model
from labelwise.models.ensemble import Ensemble
from labelwise.models.linear_tree import LinearTree
from labelwise.models.xtransformer import XTransformer
from labelwise.rank.tree import TrainedTree
from labelwise.storage import replacing

MODELS = (LinearTree, XTransformer, Ensemble)


def test_a_presets_name_and_flat_settings(tmp_path):
    assert LinearTree("parabel", n_trees=5).config == replace(load_preset("parabel"), n_trees=5)
    config = XTransformer("hybrid", encoder="minilm", max_length=32, hold_out=0.1).config
    assert (config.encoder, config.holdout.share) == (EncoderConfig(name="minilm", max_length=32), 0.1)
    assert not config.fine_tune
    assert XTransformer(encoder=Path("folder")).config.encoder.name == "folder"
    (tmp_path / "mine.toml").write_text("beam = 5\n")
    for file in (tmp_path / "mine.toml", str(tmp_path / "mine.toml")):
        assert LinearTree(file, threads=1).config == LinearTreeConfig(beam=5, threads=1)


def test_an_ensemble_takes_presets_as_members():
    config = Ensemble(["parabel", LinearTreeConfig(beam=3)], hold_out=0.2, rule="average").config
    assert config.members == (load_preset("parabel"), LinearTreeConfig(beam=3))
    assert (config.rule, config.holdout.share) == ("average", 0.2)
    assert Ensemble(members=("bonsai",)).config == EnsembleConfig(members=(load_preset("bonsai"),))
    assert Ensemble(config, prune=0.1).config == replace(config, prune=0.1)


@pytest.mark.parametrize("model", MODELS)
def test_a_configuration_is_stored_as_it_is(model):
    config = model.config_class()
    assert model(config).config is config
    assert model().config == model(preset=None, seed=None).config == config
    wrong = model.config_class(seed=-1)
    assert model(wrong).config is wrong  # fit refuses it


def test_a_part_is_given_whole_or_by_its_fields_and_flat_names_count_on_top():
    assert LinearTree(ranker={"cost": 2.0, "bias": None}).config.ranker.cost == 2.0
    for given in ({"dropout": 0.5}, MatcherConfig(dropout=0.5)):
        assert XTransformer(epochs=2, matcher=given).config.matcher == MatcherConfig(dropout=0.5, epochs=2.0)


def test_epochs_count_instead_of_a_presets_steps():
    assert load_preset("eurlex-4k").matcher.steps == 1000
    for given in ({"epochs": 2}, {"matcher": {"epochs": 2}}):
        assert XTransformer("eurlex-4k", **given).config.matcher.steps is None
    assert XTransformer("eurlex-4k", epochs=2, steps=7).config.matcher.steps == 7
    assert XTransformer("eurlex-4k", batch_size=8).config.matcher.steps == 1000


@pytest.mark.parametrize("model", MODELS)
def test_the_signature_lists_every_flat_setting(model):
    first, *others = inspect.signature(model).parameters.values()
    assert (first.name, first.default) == ("preset", None)
    assert [one.name for one in others] == flat_names(model.config_class)
    assert {one.kind for one in others} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: LinearTree("parabel", n_tree=4), "LinearTree: there is no setting 'n_tree'; did you mean 'n_trees'?"),
        (lambda: XTransformer(max_len=4), "XTransformer: there is no setting 'max_len'; did you mean 'max_length'?"),
        (lambda: Ensemble(combine="average"), "Ensemble: the setting 'combine' is called rule now"),
        (lambda: LinearTree(cost=-1), "LinearTree: cost is -1; it must be a number above 0"),
        (lambda: LinearTree(ranker={"cost": -1}), "LinearTree: ranker.cost is -1; it must be a number above 0"),
        (lambda: LinearTree("parable"), "there is no preset 'parable'; did you mean 'parabel'? there are: default"),
        (lambda: LinearTree("hybrid"), "LinearTree: the settings are of XTransformer; give 'hybrid' to XTransformer"),
        (lambda: XTransformer(LinearTreeConfig()), "XTransformer: the settings are of LinearTree; give them to"),
        (
            lambda: LinearTree(3),
            "LinearTree: 3 is not a preset; give its name, a .toml file, or its configuration (LinearTreeConfig)",
        ),
        (
            lambda: XTransformer(EnsembleConfig()),
            "is not a preset; give its name, a .toml file, or its configuration (XTransformerConfig)",
        ),
        (lambda: Ensemble("parabel"), "Ensemble: members is 'parabel'; it must be a list, each item a preset or a"),
        (lambda: Ensemble(XTransformerConfig()), "Ensemble: members is of class XTransformerConfig; it must be a list"),
        (
            lambda: Ensemble([LinearTree(), "bonsai"]),
            "Ensemble: members[0] is a model (LinearTree); give a preset's name, a .toml file or a configuration",
        ),
        (lambda: LinearTree(max_length=32), "LinearTree: 'max_length' is a setting of XTransformer, not of LinearTree"),
        (lambda: LinearTree(ngram_range=(2, 1)), "LinearTree: ngram_range is (2, 1); the shortest n-gram comes first"),
        (lambda: LinearTree(tfidf={"ngram_range": (2, 1)}), "LinearTree: tfidf.ngram_range is (2, 1); the shortest"),
        (
            lambda: XTransformer(encoder=5),
            "it must be a table of settings (in Python a dict, or an object of class Enc",
        ),
        (
            lambda: Ensemble(["bonsai", 3]),
            "members[1] is 3; it must be of class LinearTreeConfig or XTransformerConfig",
        ),
    ],
)
def test_what_is_wrong_is_refused_at_once_by_name(make, complaint):
    with pytest.raises(UsageError) as caught:
        make()
    assert complaint in str(caught.value)


@pytest.mark.parametrize("in_steps", [False, True])
def test_a_load_during_a_save_gives_one_of_the_models(tmp_path, monkeypatch, in_steps):
    """A save that lands between two trees of a load: the model is read again, and is the new one as a whole."""
    if in_steps:
        monkeypatch.setattr(replacing, "_exchange_call", lambda: None)
    texts = ["red shoe", "blue shoe", "red mug", "blue mug"]
    first, second = (
        LinearTree(n_trees=3, seed=seed).fit(texts, rows)
        for seed, rows in enumerate(([["shoe"], ["shoe"], ["mug"], ["mug"]], [["mug"], ["mug"], ["shoe"], ["shoe"]]))
    )
    first.save(tmp_path / "model")
    real, calls = TrainedTree.load, []

    def load(path, **options):
        calls.append(path)
        tree = real(path, **options)
        if len(calls) == 1:
            second.save(tmp_path / "model")
        return tree

    monkeypatch.setattr(TrainedTree, "load", load)
    for read in (load_model, LinearTree.load):
        calls.clear()
        first.save(tmp_path / "model")
        found = read(tmp_path / "model")
        assert len(calls) == 6
        assert list(found.predict(texts)) == list(second.predict(texts))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        (LinearTree, {"ranker": {"cost": 2}, "cost": 3}, "LinearTree: ranker.cost is set twice, by cost and in ranker"),
        (LinearTree, {"holdout": {"share": 0.2}, "hold_out": 0.1}, "holdout.share is set twice, by hold_out and in"),
        (XTransformer, {"encoder": {"max_length": 16}, "max_length": 32}, "encoder.max_length is set twice"),
        (XTransformer, {"features": "tfidf", "dense_weight": 2.0}, "dense_weight is 2.0, but with features 'tfidf'"),
        (
            XTransformer,
            {"learn_labels": True, "dense_weight": 2.0},
            "dense_weight is 2.0, but where the matcher",
        ),
        (
            XTransformer,
            {"learn_labels": True, "features": "tfidf", "label_weight": 0.5},
            "label_weight is 0.5, but with features 'tfidf'",
        ),
    ],
)
def test_settings_that_would_change_nothing_are_refused(model, settings, message):
    with pytest.raises(UsageError, match=message):
        model(**settings)


def test_a_setting_is_given_twice_in_a_file(tmp_path):
    (tmp_path / "mine.toml").write_text("cost = 1.0\n[ranker]\ncost = 2.0\n")
    with pytest.raises(UsageError, match=r"mine.toml: ranker.cost is set twice, by cost and in ranker; leave one of"):
        load_preset(tmp_path / "mine.toml")


def test_flat_names_change_a_part_that_is_given_whole():
    assert LinearTree(ranker=RankerConfig(cost=2.0, bias=1.0), cost=3.0).config.ranker.cost == 3.0


def test_models_and_data_have_short_representations():
    train, test = generate_shop(200, 100).values()
    model = LinearTree(calibrate=False)
    assert repr(model) == "LinearTree(not fitted)"
    model.fit(train.texts, train.Y, label_names=train.labels)
    assert repr(model) == "LinearTree(linear, one tree, 100 labels)"
    assert repr(train) == "Dataset(180 documents, 100 labels)"
    assert repr(model.predict(test.texts)) == "Predictions(20 documents, 100 labels, scores)"
