"""Small models of every kind over the same generated shop, fitted once."""

import pytest
import torch

from labelwise import generate_shop
from labelwise.config import EnsembleConfig, HoldoutConfig, IndexConfig, LinearTreeConfig, TfidfConfig
from labelwise.config.presets import load_preset
from labelwise.models.ensemble import Ensemble
from labelwise.models.linear_tree import LinearTree
from labelwise.models.xtransformer import XTransformer
from tests.features.tiny import write_model

TWO_LEVELS = IndexConfig(n_clusters=16, branching=4)
LINEAR = {
    "one-tree": LinearTreeConfig(index=TWO_LEVELS, threads=1),
    "three-trees": LinearTreeConfig(index=TWO_LEVELS, n_trees=3, beam=4, threads=1),
    "sigmoid": LinearTreeConfig(index=TWO_LEVELS, score_transform="sigmoid", threads=1),
    "ranker-only": LinearTreeConfig(index=TWO_LEVELS, score_transform="ranker-only", threads=1),
    "flat": LinearTreeConfig(index=IndexConfig(method="none"), threads=1),
    "bigrams": LinearTreeConfig(tfidf=TfidfConfig(ngram_range=(1, 2)), score_transform="l2-hinge", threads=1),
    "opening": LinearTreeConfig(tfidf=TfidfConfig(opening=3), threads=1),
    "neighbours": LinearTreeConfig(matching="neighbours", neighbours=30, score_transform="sigmoid", threads=1),
}


@pytest.fixture(scope="package", autouse=True)
def one_thread():
    """Tiny networks are quicker without threads that wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="package")
def shop():
    return generate_shop(500, 120)


@pytest.fixture(scope="package")
def encoder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("encoder") / "tiny", "bert")


@pytest.fixture(scope="package")
def linear(shop):
    """A fitted `LinearTree` by its name in LINEAR."""
    train, made = shop["train"], {}

    def get(name):
        if name not in made:
            made[name] = LinearTree(LINEAR[name]).fit(train.texts, train.Y, label_names=train.labels)
        return made[name]

    return get


@pytest.fixture(scope="package")
def neural(shop, encoder):
    """A fitted `XTransformer` by its preset."""
    train, made = shop["train"], {}

    def get(preset, **overrides):
        key = (preset, *overrides.items())
        if key not in made:
            config = load_preset(
                preset,
                encoder={"name": str(encoder), "max_length": 16},
                matcher={"steps": 3, "batch_size": 32, "device": "cpu"},
                index={"n_clusters": 8},
                hold_out=0.15,
                dense_weight=1.5 if overrides.get("features", "both") == "both" else None,
                beam=3,
                threads=1,
                **overrides,
            )
            made[key] = XTransformer(config).fit(train.texts, train.Y, label_names=train.labels)
        return made[key]

    return get


@pytest.fixture(scope="package")
def ensemble(linear, neural, shop):
    """An `Ensemble` of three models by its rule."""
    members = [linear("one-tree"), linear("three-trees"), neural("hybrid")]

    def get(rule, over="scores", validation=None):
        config = EnsembleConfig(
            rule=rule,
            combine_on=over,
            weights="equal",
            holdout=HoldoutConfig(calibrate=False),
            candidates_per_model=5,
            threads=1,
        )
        made = Ensemble.of(members, config, validation=validation)
        made.weights_ = made.weights_ * [0.5, 1.0, 1.5]
        return made

    return get
