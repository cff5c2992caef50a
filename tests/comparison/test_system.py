"""The systems of a comparison: presets, files of settings, saved models, ensembles."""

import json

import numpy as np
import pytest

from labelwise import LinearTree, generate_shop, precision_at_k
from labelwise.comparison.splits import Splits
from labelwise.comparison.system import System, parse_systems
from labelwise.config import EnsembleConfig, LinearTreeConfig
from labelwise.errors import UsageError
from labelwise.models.ensemble import Ensemble


def test_systems_by_commas(tmp_path):
    (tmp_path / "mine.toml").write_text("n_trees = 2\n")
    LinearTree().fit(["a b", "c d"], [["x"], ["y"]]).save(tmp_path / "model")
    given = f"parabel, {tmp_path}/mine.toml,{tmp_path}/model,hybrid"
    neural = {"encoder": {"max_length": 16}}
    parabel, mine, model, hybrid = parse_systems(given, neural=neural, threads=1)
    assert [system.name for system in (parabel, mine, model, hybrid)] == ["parabel", "mine", "model", "hybrid"]
    assert isinstance(parabel.config, LinearTreeConfig)
    assert (parabel.config.n_trees, mine.config.n_trees, parabel.config.threads) == (3, 2, 1)
    assert hybrid.config.encoder.max_length == 16
    assert parabel.with_seed(7).config.seed == 7
    assert model.with_seed(7) == model
    assert System.from_dict(hybrid.to_dict()).config == hybrid.config


def test_settings_of_all_systems_by_their_flat_names():
    alone, both = parse_systems("default,default+parabel", calibrate=False)
    assert [one.config.holdout.calibrate for one in (alone, both, *both.members)] == [False] * 4


def test_an_ensemble_is_trained_as_one():
    (both,) = parse_systems("parabel+hybrid", neural={"encoder": {"max_length": 16}}, threads=1)
    config = both.config
    assert isinstance(config, EnsembleConfig)
    assert [type(member).__name__ for member in config.members] == ["LinearTreeConfig", "XTransformerConfig"]
    assert config.members[1].encoder.max_length == 16
    again = System.from_dict(json.loads(json.dumps(both.with_seed(3).to_dict()))).config
    assert (again.seed, [member.seed for member in again.members]) == (3, [3, 3])
    train, test = generate_shop(400, 100).values()
    splits = Splits(name="shop", train=train, validation=None, test=test)
    (linear,) = parse_systems("default+xr-linear")
    model = linear.model_for(splits, run_dir=None)
    assert isinstance(model, Ensemble)
    assert len(model.members_) == 2
    assert 40 < precision_at_k(test.Y, model.predict(test.texts, top_k=1), k=1) <= 100


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            "parable",
            "there is no system 'parable'; did you mean 'parabel'[?] Otherwise give a .toml file, a model's folder, or",
        ),
        (" , ", "no system is named"),
        ("parabel,parabel", "two systems are called 'parabel'"),
        ("auto", "auto chooses one of"),
        ("parabel+parabel", "two systems are called 'parabel'"),
        ("parabel+bonsay", "there is no system 'bonsay'"),
        ("missing.toml", "missing.toml does not exist"),
    ],
)
def test_wrong_systems_are_told(given, sentence):
    with pytest.raises(UsageError, match=sentence):
        parse_systems(given)


def test_options_of_an_encoder_need_one():
    with pytest.raises(UsageError, match="encoder: none of the systems has an encoder"):
        parse_systems("parabel", neural={"encoder": {"name": "minilm"}})


def test_what_is_trained_is_the_preset(tmp_path):
    train, test = generate_shop(300, 100).values()
    splits = Splits(name="shop", train=train, validation=None, test=test)
    model = System(name="xr-linear", preset="xr-linear").model_for(splits, run_dir=None)
    own = LinearTree(model.config).fit(train.texts, train.Y, label_names=train.labels)
    found, wanted = model.predict(test.texts).matrix, own.predict(test.texts).matrix
    assert np.array_equal(found.toarray(), wanted.toarray())
    model.save(tmp_path / "model")
    loaded = System(name="saved", model=str(tmp_path / "model"))
    assert np.array_equal(loaded.model_for(splits, run_dir=None).predict(test.texts).matrix.toarray(), wanted.toarray())
    with pytest.raises(UsageError, match="a trained model; it has no settings"):
        _ = loaded.config
    assert loaded.identity(splits) == loaded.identity(splits)
