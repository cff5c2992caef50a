"""One call from data to a model: every form of data, every form of a preset, and what is refused before any work."""

import logging

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import generate_shop, load_model, precision_at_k
from labelwise.config import EnsembleConfig, LinearTreeConfig
from labelwise.config.presets import load_preset
from labelwise.data import Dataset
from labelwise.datasets.shop import write_shop
from labelwise.errors import DataError, UsageError
from labelwise.models.ensemble import Ensemble
from labelwise.models.linear_tree import LinearTree
from labelwise.tuning import Machine, choice, one_call, train
from labelwise.tuning.one_call import train as same


@pytest.fixture(scope="module")
def shop():
    return generate_shop(600, 150)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("data") / "shop"
    write_shop(place, n_products=600, n_queries=150)
    return place


@pytest.fixture
def no_encoder(monkeypatch):
    """A machine without torch: auto then chooses the linear default."""
    monkeypatch.setattr(choice.Machine, "current", lambda *_, **__: Machine(cores=2, memory=1 << 33, neural=False))


def test_a_data_set_and_a_preset(shop, tmp_path):
    assert train is same
    model = train(shop["train"], preset="parabel", n_trees=1, out=tmp_path / "model", threads=1)
    assert type(model) is LinearTree
    assert model.config == load_preset("parabel", n_trees=1, threads=1)
    assert model.calibrator_ is not None
    assert precision_at_k(shop["test"].Y, model.predict(shop["test"].texts, top_k=1), k=1) > 40
    report = model.report_
    assert (report.preset, report.data) == ("parabel", None)
    assert report.seconds > 0
    again = load_model(tmp_path / "model")
    assert again.report_.preset == "parabel"
    assert train(shop["train"], preset="default", calibrate=False).calibrator_ is None


def test_a_folder_is_chosen_for(folder, tmp_path, no_encoder, caplog):
    with caplog.at_level(logging.INFO, logger="labelwise"):
        model = train(folder, cost=2.0, out=tmp_path / "model")
    assert (model.config.ranker.cost, model.report_.preset, model.report_.data) == (2.0, "auto: default", "shop")
    assert caplog.messages[0] == "auto chose default"
    assert "torch and transformers are not installed" in caplog.messages[1]
    assert load_model(tmp_path / "model").labels_ == model.labels_
    train(str(folder / "train.jsonl"), out=tmp_path / "model")  # an earlier model is replaced


def test_the_validation_split_of_a_folder_calibrates(shop, tmp_path):
    for name, part in (("train", shop["train"]), ("validation", shop["test"])):
        lines = [f'{{"text": "{text}", "labels": ["{part.labels[part.Y.indices[part.Y.indptr[row]]]}"]}}\n'
                 for row, text in enumerate(part.texts) if part.Y.indptr[row] < part.Y.indptr[row + 1]]  # fmt: skip
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    model = train(tmp_path, preset="default")
    assert model.report_.validation.kind == "split"
    given = train(shop["train"], preset="default", validation=shop["test"])
    assert (given.report_.validation.kind, given.report_.validation.documents) == ("split", len(shop["test"]))


def test_texts_features_and_tables(shop):
    part = shop["train"].take(np.arange(200))
    names = [[part.labels[i] for i in part.Y[[row]].indices] for row in range(200)]
    by_texts = train(part.texts, names, preset="default")
    assert by_texts.tfidf_ is not None
    by_table = train({"text": part.texts, "labels": names}, preset="default")
    texts = part.texts[:20]
    assert (by_table.predict(texts).matrix != by_texts.predict(texts).matrix).nnz == 0
    X = sp.csr_array(np.eye(200, 30, dtype=np.float32) + 0.1)
    by_features = train(X, part.Y, preset="default")
    assert (by_features.tfidf_, by_features.n_features_) == (None, 30)


def test_every_form_of_a_preset(shop, tmp_path):
    (tmp_path / "mine.toml").write_text("beam = 3\n", encoding="utf-8")
    data = shop["train"]
    for preset, name in ((tmp_path / "mine.toml", "mine.toml"), (LinearTreeConfig(beam=3), "LinearTreeConfig")):
        model = train(data, preset=preset)
        assert (model.config.beam, str(model.report_.preset).endswith(name)) == (3, True)
    both = train(data, preset=["default", LinearTreeConfig(beam=3)], rule="average")
    assert type(both) is Ensemble
    assert both.config.rule == "average"
    assert type(train(data, preset=EnsembleConfig(members=(LinearTreeConfig(),)))) is Ensemble


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"n_tree": 3}, "train: there is no setting 'n_tree'; did you mean 'n_trees'? there are: tfidf,"),
        ({"cost": -1}, "train: cost is -1; it must be a number above 0"),
        ({"max_length": 1}, "train: max_length is 1; it must be a whole number of at least 4"),
        ({"preset": "parabel", "max_length": 32}, "LinearTree: 'max_length' is a setting of XTransformer"),
        ({"preset": "parabel", "beam": 0}, "LinearTree: beam is 0; it must be a whole number of at least 1"),
        ({"preset": LinearTreeConfig(beam=0)}, "beam is 0; it must be a whole number of at least 1"),
        ({"preset": "parable"}, "there is no preset 'parable'; did you mean 'parabel'? there are: default"),
        ({"preset": 3}, "3 is not a preset; give its name, a .toml file, or a configuration"),
        ({"preset": ["parabel", "parable"]}, "there is no preset 'parable'"),
    ],
)
def test_what_is_wrong_is_refused_before_the_data_are_read(options, complaint, tmp_path):
    with pytest.raises(UsageError) as caught:
        train(tmp_path / "there-is-none", **options)
    assert str(caught.value).startswith(complaint)


def test_how_a_file_or_a_table_is_read(shop, tmp_path):
    table = {"title": ["red shoe", "blue mug"], "tags": ["red;shoe", "blue;mug"]}
    (tmp_path / "data.csv").write_text("title,tags\nred shoe,red;shoe\nblue mug,blue;mug\n")
    options = {"text_column": "title", "labels_column": "tags", "preset": "default"}
    for data in (tmp_path / "data.csv", table):
        model = train(data, **options, n_trees=1)
        assert sorted(model.labels_) == ["blue", "mug", "red", "shoe"]
        columns = {"text_column": "title", "labels_column": "tags", "id_column": "id", "label_separator": ";"}
        assert model.report_.columns.to_dict() == columns  # so that the command line reads files of the same form
    for data in ((shop["train"],), (["a", "b"], [["x"], ["y"]])):
        with pytest.raises(UsageError, match="text_column says how a file or a table is read, but these data are read"):
            train(*data, preset="default", text_column="title")


def test_other_mistakes(shop, tmp_path, no_encoder):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file is a file; give a folder for the model"):
        train(tmp_path / "there-is-none", out=tmp_path / "file")
    with pytest.raises(UsageError, match="is not empty and holds no model that can be read; it is not overwritten"):
        train(tmp_path / "there-is-none", out=tmp_path)  # said before the data are read
    with pytest.raises(DataError, match="there is no such file or folder"):
        train(tmp_path / "there-is-none")
    with pytest.raises(UsageError, match="labels are given twice"):
        train(shop["train"], [["a"]])
    with pytest.raises(UsageError, match=r"^auto chose default: 'max_length' is a setting of XTransformer"):
        train(shop["train"], max_length=32)
    features = Dataset(Y=shop["train"].Y, labels=shop["train"].labels, features=shop["train"].Y)
    with pytest.raises(DataError, match="hybrid reads texts, and these data have only features"):
        train(features, preset="hybrid")


def test_a_helper_of_a_distributed_training_saves_nothing(shop, tmp_path, monkeypatch):
    class Helper(LinearTree):
        def fit_dataset(self, *_, **__):
            self.role_ = "helper"

    monkeypatch.setattr(one_call, "new_model", Helper)
    assert train(shop["train"], preset="default", out=tmp_path / "model").role_ == "helper"
    assert not (tmp_path / "model").exists()
