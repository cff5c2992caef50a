"""Every kind of model in the table: its classes belong together, and it answers every question about itself."""

import dataclasses
import inspect
import json
import sys
import types
from typing import ClassVar, get_args

import numpy as np
import pytest

from labelwise import generate_shop, load_model
from labelwise.config import EnsembleConfig, LinearTreeConfig, ModelConfig
from labelwise.config.models import MODEL_CONFIGS, SINGLE_CONFIGS
from labelwise.config.presets import load_preset
from labelwise.errors import StorageError, UsageError
from labelwise.models.base import Model
from labelwise.models.linear_tree import LinearTree
from labelwise.models.registry import KINDS, ModelKind, model_class, new_model
from tests.features.tiny import write_model


@pytest.fixture(scope="module")
def shop():
    return generate_shop(400, 100)


@pytest.fixture(scope="module")
def fitted(shop, tmp_path_factory):
    """A fitted model of a kind, made once."""
    encoder = write_model(tmp_path_factory.mktemp("encoder") / "tiny", "bert")
    linear = LinearTreeConfig(n_trees=2, threads=1)
    fine_tuning = {"steps": 2, "batch_size": 16, "device": "cpu"}
    options = {"dense_weight": 1.0, "score_transform": "l3-hinge"}
    neural = load_preset(
        "x-transformer", encoder={"name": str(encoder), "max_length": 16}, matcher=fine_tuning, **options
    )
    configs = {
        "linear-tree": linear,
        "x-transformer": neural,
        "ensemble": EnsembleConfig(members=(linear, neural), threads=1),
    }
    train, made = shop["train"], {}

    def get(kind):
        if kind not in made:
            made[kind] = new_model(configs[kind]).fit(train.texts, train.Y, label_names=train.labels)
        return made[kind]

    return get


def test_the_table_holds_every_class_of_configurations():
    assert {kind.config for kind in KINDS.values()} == set(get_args(ModelConfig))


@pytest.mark.parametrize("kind", KINDS)
def test_the_classes_of_a_kind_belong_together(kind):
    config, model = KINDS[kind].config, model_class(kind)
    assert issubclass(model, Model)
    assert not inspect.isabstract(model)
    assert config.kind == model.kind == kind
    assert model.config_class is config
    assert type(new_model(config())) is model
    assert new_model(config()).config == config()


@pytest.mark.parametrize("kind", KINDS)
def test_a_configuration_answers_for_itself(kind):
    config = KINDS[kind].config()
    assert config.describe()
    assert all(encoder.name for encoder in config.encoders())
    assert config.warm_up().validated().n_trees == 1
    assert "kind" not in {field.name for field in dataclasses.fields(config)}  # no setting: nobody may change it


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_answers_for_itself(kind, fitted, shop):
    model, test = fitted(kind), shop["test"]
    assert len(model.trees) == len(model.label_levels) >= 1
    for tree, level in zip(model.trees, model.label_levels, strict=True):
        assert tree.n_labels == level.n_children == len(model.labels_)
    assert model.reads_texts
    assert model.bounded_scores
    assert model.describe() == model.config.describe()
    assert (model.encoder is None) == (not model.config.encoders())
    assert (model.history is None) == (kind == "linear-tree")
    for member in model.members:
        assert (member.matcher is None) == (member.encoder is None)
        assert member.matcher is None or member.matcher.encoder_ is member.encoder
    assert model.encoder is next((one.encoder for one in model.members if one.encoder is not None), None)
    assert all(member.members == (member,) for member in model.members)
    scores = model.scores(model.reading(model.inputs(test)), 5)
    assert 0 <= scores.data.min() <= scores.data.max() <= 1
    assert model.title()
    assert dict(model.facts())["labels"].startswith(f"{len(model.labels_):,}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_with_changed_members_leaves_the_first_as_it_was(kind, fitted, shop):
    model, seen = fitted(kind), []

    def change(member):
        seen.append(member)
        return member

    same = model.map_members(change)
    assert tuple(seen) == model.members == same.members
    assert type(same) is type(model)
    texts = shop["test"].texts[:5]
    np.testing.assert_array_equal(same.predict(texts).matrix.toarray(), model.predict(texts).matrix.toarray())


@pytest.mark.parametrize("kind", KINDS)
def test_the_members_of_a_model_can_be_explained(kind, fitted, shop):
    model, texts = fitted(kind), shop["test"].texts
    for member in model.members:
        assert member.combination is None
        scored = member.scored_trees(member.reading(texts[:1]), 5)
        assert [one.tree for one in scored] == list(member.trees)
        assert [one.level for one in scored] == list(member.label_levels)
        best = member.predict(texts[:1], top_k=1).matrix.indices
        assert any(one.listed[best].all() for one in scored)
        for one in scored:
            nodes = one.nodes_above(int(best[0]))
            assert [node.number for node in nodes] == list(one.tree.path(int(best[0]))[-1 - len(nodes) : -1])
    vectors = model.document_vectors(model.reading(texts))
    assert vectors.shape[0] == len(texts)
    if model.encoder is not None:
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    if model.members != (model,):
        assert len(model.combination.weights) == len(model.members)
        with pytest.raises(UsageError, match="cannot be explained"):
            model.scored_trees(model.reading(texts[:1]), 5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_members_of_a_model_can_grow(kind, fitted):
    model = fitted(kind)
    for member in model.members:
        adapter = member.growth()
        assert adapter.model is member
        for (tree, level), own_tree, own_level in zip(
            adapter.label_trees, member.trees, member.label_levels, strict=True
        ):
            np.testing.assert_array_equal(tree.clusters, own_tree.clusters)
            assert level is own_level
    if model.members != (model,):
        with pytest.raises(UsageError, match="cannot grow"):
            model.growth()


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_says_its_kind_and_is_loaded_as_that(kind, fitted, shop, tmp_path):
    model, texts = fitted(kind), shop["test"].texts
    model.save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "config.json").read_text())["kind"] == kind
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(model)
    assert loaded.config.threads is None  # those of the machine that trained
    np.testing.assert_array_equal(loaded.predict(texts).matrix.toarray(), model.predict(texts).matrix.toarray())


@pytest.mark.parametrize("kind", KINDS)
def test_threads_are_asked_for_by_call_and_change_nothing(kind, fitted, shop):
    model, texts = fitted(kind), shop["test"].texts
    before = model.config
    found = model.predict(texts, threads=2)
    assert model.config is before
    np.testing.assert_array_equal(found.matrix.toarray(), model.predict(texts, threads=1).matrix.toarray())
    asked = [model.reading(texts, threads=threads).threads for threads in (3, None)]
    assert asked == [3, model.config.threads]


def test_a_folder_of_another_kind_is_refused(fitted, tmp_path):
    fitted("linear-tree").save(tmp_path / "model")
    file = tmp_path / "model" / "config.json"
    file.write_text(file.read_text().replace('"linear-tree"', '"forest"'))
    with pytest.raises(StorageError, match="is a saved forest, not a model; give a folder that was written by"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    "save", [lambda model, place: model.save(place), lambda model, place: model.save_pretrained(place)]
)
def test_only_a_model_is_replaced(save, fitted, tmp_path):
    model, place = fitted("linear-tree"), tmp_path / "place"
    place.mkdir()
    save(model, place)  # an empty folder
    save(model, place)  # a model
    for name, content in (("precious.txt", "years of work"), ("config.json", "{"), ("config.json", '{"kind": []}')):
        folder = tmp_path / f"{name}-{len(content)}"
        folder.mkdir()
        (folder / name).write_text(content)
        with pytest.raises(UsageError, match="is not empty and holds no model that can be read; it is not overwritten"):
            save(model, folder)
        assert [file.read_text() for file in folder.iterdir()] == [content]
    with pytest.raises(UsageError, match=r"precious.txt is a file; give a folder for the model"):
        save(model, tmp_path / "precious.txt-13" / "precious.txt")


def test_a_new_kind_is_a_line_of_the_table_and_two_classes(monkeypatch, shop, tmp_path):
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class ForestConfig(LinearTreeConfig):
        kind = "forest"
        FLAT_NAMES: ClassVar = {**LinearTreeConfig.FLAT_NAMES, "tolerance": (("ranker", "tolerance"),)}

    class Forest(LinearTree):
        kind = "forest"
        config_class = ForestConfig

    module = types.ModuleType("a_package_of_somebody")
    module.Forest = Forest
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(KINDS, "forest", ModelKind(ForestConfig, module.__name__, "Forest"))
    model = Forest(n_trees=2, cost=2.0, tolerance=0.2)
    assert "tolerance" in inspect.signature(Forest).parameters
    assert (model.config.n_trees, model.config.ranker.cost, model.config.ranker.tolerance) == (2, 2.0, 0.2)
    train = shop["train"]
    model.fit_dataset(train).save(tmp_path / "model")
    model.save(tmp_path / "model")  # it is known as a model, so it is replaced
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(new_model(ForestConfig())) is Forest
    assert list(loaded.predict(train.texts[:3])) == list(model.predict(train.texts[:3]))


def test_the_kinds_of_configurations_are_those_of_the_table():
    assert tuple(kind.config for kind in KINDS.values()) == MODEL_CONFIGS
    assert set(SINGLE_CONFIGS) < set(MODEL_CONFIGS)
