"""What every kind of model promises: linear, hybrid, fine-tuned, ensemble; and the two that are made of fitted models:
grown and exported."""

import gc
import json
import os
import pickle
import re
import tempfile
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from labelwise import add_labels, explain, generate_shop, load_model
from labelwise.config import EnsembleConfig, LinearTreeConfig
from labelwise.config.presets import load_preset
from labelwise.data import Dataset
from labelwise.errors import DataError, LabelwiseError, UsageError
from labelwise.models.registry import model_class, new_model
from labelwise.models.training_report import TrainingReport
from tests.features.tiny import write_model

FITTED = ("linear", "hybrid", "fine-tuned", "ensemble")
"""What `fit` makes."""
KINDS = (*FITTED, "grown", "exported")


@pytest.fixture(scope="module")
def shop():
    return generate_shop(600, 120)


@pytest.fixture(scope="module")
def train(shop):
    return shop["train"]


@pytest.fixture(scope="module")
def texts(shop):
    return [*shop["test"].texts[:20], "", "words that nobody used"]


@pytest.fixture(scope="module")
def configs(tmp_path_factory):
    """The settings of what `fit` makes, with one thread."""
    encoder = write_model(tmp_path_factory.mktemp("encoder") / "tiny", "bert")
    options = {"encoder": {"name": str(encoder), "max_length": 16}, "score_transform": "l3-hinge", "threads": 1}
    options |= {"matcher_weight": 1.0, "dense_weight": 1.0}
    linear, hybrid = LinearTreeConfig(threads=1), load_preset("hybrid", **options)
    tuned = load_preset("x-transformer", **options, matcher={"steps": 2, "batch_size": 16, "device": "cpu"})
    ensemble = EnsembleConfig(members=(replace(linear, n_trees=2), hybrid), threads=1)
    return dict(zip(FITTED, (linear, hybrid, tuned, ensemble), strict=True))


@pytest.fixture(scope="module")
def models(configs, train, tmp_path_factory):
    """A model of each kind, made once: `models(kind)`."""
    made = {}

    def get(kind):
        if kind not in made:
            if kind == "grown":
                label = {"label": "something new", "examples": train.texts[:2]}
                made[kind] = add_labels(get("linear"), [label], data=train)
            elif kind == "exported":
                pytest.importorskip("onnxruntime", reason="needs the extra onnx")
                pytest.importorskip("onnxscript", reason="needs the extra onnx")
                from labelwise.integrations.onnx_export import export_model

                folder = tmp_path_factory.mktemp("exported")
                get("hybrid").save(folder / "before")
                export_model(folder / "before", folder / "after")
                made[kind] = load_model(folder / "after")
            else:
                made[kind] = fit(new_model(configs[kind]), train)
        return made[kind]

    return get


@pytest.fixture(params=KINDS)
def model(request, models):
    return models(request.param)


def fit(model, data, **options):
    fitted = model.fit(data.texts, data.Y, label_names=data.labels, **options)
    assert fitted is model
    return fitted


def files(folder):
    """The contents of all files but the times and the number of threads in config.json."""
    found = {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
    moving = re.compile(rb'"(threads|seconds|cpu_seconds)": ?[\d.e-]+')
    return {name: moving.sub(b"", content) if name.endswith(".json") else content for name, content in found.items()}


def assert_same(one, other):
    assert one.labels == other.labels
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(one.matrix, name), getattr(other.matrix, name))


# ---------------------------------------------------------------------- what fit makes


@pytest.mark.parametrize("kind", FITTED)
def test_a_refit_leaves_nothing_of_the_earlier_and_threads_change_no_byte(kind, models, configs, train, tmp_path):
    models(kind).save(tmp_path / "one")
    again = new_model(replace(configs[kind], threads=2))
    fit(again, train.take(range(0, len(train), 3)))
    fit(again, train).save(tmp_path / "two")
    one, two = files(tmp_path / "one"), files(tmp_path / "two")
    assert [name for name in one | two if one.get(name) != two.get(name)] == []


@pytest.mark.parametrize("kind", FITTED)
def test_probabilities_by_default_and_scores_without_a_calibration(kind, models, configs, train, texts):
    model = models(kind)
    assert model.calibrator_ is not None
    assert model.report_.validation.kind == "share"
    config = configs[kind]
    if kind == "fine-tuned":  # one X-Transformer is enough
        return
    scores = fit(new_model(replace(config, holdout=replace(config.holdout, calibrate=False))), train)
    assert scores.calibrator_ is None
    assert scores.predict(texts, top_k=3).matrix.shape == model.predict(texts, top_k=3).matrix.shape


@pytest.mark.parametrize("kind", FITTED)
def test_a_model_that_is_not_fitted_is_of_no_use(kind, configs, tmp_path):
    model = new_model(configs[kind])
    assert model.config is configs[kind]
    for use in (lambda: model.predict(["a text"]), lambda: model.save(tmp_path / "model")):
        with pytest.raises(UsageError, match=rf"this {type(model).__name__} is not fitted yet; call fit, or load a"):
            use()
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("kind", FITTED)
def test_what_cannot_be_learnt_from_is_refused(kind, configs, train):
    model = new_model(configs[kind])
    wrong = {
        "there are 2 documents but 1 rows of labels": (["a", "b"], [["x"]], None),
        "no document has a label": (["a", "b"], [[], []], None),
        "the labels of document 1 are one string": (["a", "b"], [["x"], "y"], None),
        "but there are 1 label names": (train.texts, train.Y, ["x"]),
        "text 1 is|not a string|string": (["a", 3], [["x"], ["y"]], None),
    }
    for message, (documents, labels, names) in wrong.items():
        with pytest.raises(LabelwiseError, match=message) as caught:
            model.fit(documents, labels, label_names=names)
        assert "\n" not in str(caught.value)
    assert not hasattr(model, "labels_")
    learning = new_model(replace(model.config, holdout=replace(model.config.holdout, learn_validation=True)))
    with pytest.raises(UsageError, match="learn_validation is True, but there are no validation documents; give some"):
        fit(learning, train)


@pytest.mark.parametrize("kind", ["linear", "hybrid"])
def test_a_run_that_finds_its_stages_gives_the_same_files(kind, configs, train, tmp_path):
    for name in ("first", "again"):
        fit(new_model(configs[kind]), train, run_dir=tmp_path / "run").save(tmp_path / name)
    first, again = files(tmp_path / "first"), files(tmp_path / "again")
    assert [name for name in first | again if first.get(name) != again.get(name)] == []
    assert not list((tmp_path / "run").glob("scratch/*"))


# ---------------------------------------------------------------------- predictions


@pytest.mark.parametrize("top_k", [1, 4])
def test_predictions_have_a_row_for_each_text_with_the_best_labels_first(model, texts, top_k):
    found = model.predict(texts, top_k=top_k)
    assert found.matrix.shape == (len(texts), len(model.labels_))
    assert found.labels == model.labels_
    for row in found:
        assert 1 <= len(row) <= top_k
        names, scores = zip(*row, strict=True)
        assert list(scores) == sorted(scores, reverse=True)
        assert set(names) <= set(model.labels_)
        assert 0 <= scores[-1] <= scores[0] <= 1


def test_predictions_depend_on_neither_threads_nor_the_other_texts(model, texts):
    wanted = model.predict(texts, top_k=3)
    assert_same(model.predict(texts, top_k=3), wanted)
    assert_same(model.predict(texts, top_k=3, threads=2), wanted)
    for at in (0, 7, 20):
        alone = model.predict([texts[at]], top_k=3)[0]
        assert [name for name, _ in alone] == [name for name, _ in wanted[at]]
        np.testing.assert_allclose([p for _, p in alone], [p for _, p in wanted[at]], atol=1e-5)


def test_no_texts_and_empty_texts(model):
    none = model.predict([])
    assert none.matrix.shape == (0, len(model.labels_))
    (row,) = model.predict([""], top_k=2)
    assert len(row) == 2
    assert model.predict(["", "x"], ids=["a", "b"]).ids == ["a", "b"]
    assert model.predict(["nothing of this"], min_probability=1.0).matrix.nnz == 0


@pytest.mark.parametrize("wrong", ["one text", [3], [None], 7])
def test_what_is_no_list_of_texts_is_refused_in_one_sentence(model, wrong):
    with pytest.raises(LabelwiseError) as caught:
        model.predict(wrong)
    assert "\n" not in str(caught.value)


def test_features_of_another_kind_are_refused(model, train):
    features = Dataset(Y=train.Y[:3], labels=train.labels, features=train.Y[:3])
    with pytest.raises(DataError, match="have only features"):
        model.inputs(features)


# ---------------------------------------------------------------------- keeping


def test_a_saved_model_is_found_and_answers_with_the_same_bits(model, texts, tmp_path):
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(model) is model_class(model.kind)
    assert_same(loaded.predict(texts, top_k=3), model.predict(texts, top_k=3))
    assert loaded.labels_ == model.labels_
    assert loaded.describe() == model.describe()
    assert dict(loaded.facts()) == dict(model.facts())
    loaded.save(tmp_path / "copy")
    changed = files(tmp_path / "model").items() ^ files(tmp_path / "copy").items()
    assert {name for name, _ in changed if not name.endswith(("config.json", "encoder.json"))} == set()
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert model.title() in card


def test_a_model_goes_through_a_pickle_and_answers_with_the_same_bits(model, texts):
    again = pickle.loads(pickle.dumps(model))
    again = pickle.loads(pickle.dumps(again))  # its files are temporary ones
    assert (type(again), again.config, again.labels_) == (type(model), model.config, model.labels_)
    assert list(again.predict(texts, top_k=5)) == list(model.predict(texts, top_k=5))
    copied = copy(model)
    assert copied.__dict__.keys() == model.__dict__.keys()
    assert list(copied.predict(texts[:1])) == list(model.predict(texts[:1]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_leaves_the_files_of_a_model_from_a_pickle(models, tmp_path, monkeypatch):
    content = pickle.dumps(models("linear"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    again = pickle.loads(content)
    (folder,) = tmp_path.iterdir()
    child = os.fork()
    if child == 0:
        del again
        gc.collect()
        os._exit(not folder.is_dir())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    del again
    gc.collect()
    assert not folder.exists()


@pytest.mark.parametrize("kind", FITTED)
def test_a_model_that_is_not_fitted_goes_through_a_pickle(kind, configs):
    again = pickle.loads(pickle.dumps(new_model(configs[kind])))
    assert again.config == configs[kind]
    assert not hasattr(again, "labels_")


def test_the_report_is_the_same_after_json(model):
    written = json.loads(json.dumps(model.report_.to_dict()))
    again = TrainingReport.from_dict(written, "a model")
    assert again == model.report_
    assert json.dumps(again.to_dict()) == json.dumps(written)
    assert written["documents"] == model.report_.documents > 0


# ---------------------------------------------------------------------- answers about itself


def test_a_model_answers_for_itself(model):
    assert len(model.trees) == len(model.label_levels) >= 1
    for tree, level in zip(model.trees, model.label_levels, strict=True):
        assert tree.n_labels == level.n_children == len(model.labels_)
    assert (model.encoder is not None) == bool(model.config.encoders()) == model.config.texts_only
    assert all(member.members == (member,) for member in model.members)
    assert (model.combination is None) == (model.members == (model,))
    assert dict(model.facts())["labels"].startswith(f"{len(model.labels_):,}")
    for member in model.members:
        assert member.growth().model is member
    if model.combination is not None:
        with pytest.raises(UsageError, match="cannot grow"):
            model.growth()


def test_a_model_is_explained(model, texts):
    (best,) = model.predict(texts[:1], top_k=1)
    (explanation,) = explain(model, texts[0], top_k=1)
    assert explanation.label == best[0][0]
    assert str(explanation)
