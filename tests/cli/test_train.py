"""labelwise train: every way through it, and what it refuses."""

import json
import re

import pytest

from labelwise import load_dataset, load_splits
from labelwise.cli import train as module
from labelwise.config.presets import load_preset
from labelwise.data import split_validation
from labelwise.models.linear_tree import LinearTree


@pytest.fixture
def with_validation(shop, tmp_path):
    """The shop with a validation split of its own."""
    folder = tmp_path / "three-splits"
    folder.mkdir()
    train, validation = split_validation(load_dataset(shop), 0.15)
    for split, part in (("train", train), ("validation", validation)):
        lines = [
            json.dumps({"text": text, "labels": [part.labels[j] for j in part.Y[[i]].indices]})
            for i, text in enumerate(part.texts)
        ]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_train_without_a_validation_split(labelwise, shop, tmp_path):
    result = labelwise("train", shop, tmp_path / "model", "--preset", "parabel", "--n-trees", 2, "--threads", 1)
    assert result.code == 0
    remark = "50 of 900 documents are held out to choose and calibrate; the linear models then learn from them too"
    assert remark in result.err
    assert "500 in 4 clusters" in result.out
    assert "2, averaged" in result.out
    assert re.search(r"P@1 \d\d\.\d\d  P@3 .* nDCG@5", result.out)
    assert "50 documents: 5.56 % of the data, held out" in result.out
    model = LinearTree.load(tmp_path / "model")
    assert model.config == load_preset("parabel", n_trees=2)
    assert model.calibrator_.n_docs == 50
    assert model.report_.documents == 900
    card = (tmp_path / "model" / "README.md").read_text()
    assert "Measured on 50 documents, a share of the training documents, held out" in card
    assert "| preset | parabel |" in card


def test_train_with_a_validation_split(labelwise, with_validation, tmp_path):
    result = labelwise("train", with_validation, tmp_path / "model", "--cost", 0.5, "--beam", 5, "--seed", 3)
    assert result.code == 0
    assert "training without" not in result.err
    assert "the validation split" in result.out
    assert "calibration error" in result.out
    model = LinearTree.load(tmp_path / "model")
    assert (model.config.matcher.cost, model.config.ranker.cost) == (0.5, 0.5)
    assert (model.config.beam, model.config.seed) == (5, 3)
    n_train = len(load_dataset(with_validation))
    assert model.report_.documents == n_train
    assert "the validation split, which the model was not trained on" in (tmp_path / "model" / "README.md").read_text()


@pytest.mark.parametrize("calibrate", [True, False])
def test_train_on_the_validation_split_too(labelwise, with_validation, shop, tmp_path, calibrate):
    options = ("--learn-validation", "--seed", 3, *(() if calibrate else ("--no-calibrate",)))
    result = labelwise("train", with_validation, tmp_path / "model", *options)
    assert result.code == 0
    assert "before the models learnt from it" in " ".join(result.out.replace("│", " ").split())
    model = LinearTree.load(tmp_path / "model")
    n_docs = len(load_dataset(with_validation)) + len(load_dataset(with_validation, "validation"))
    assert model.report_.documents == n_docs == len(load_dataset(shop))
    assert (model.calibrator_ is not None) == calibrate
    assert (
        "the validation split, before linear models learnt from it too"
        in (tmp_path / "model" / "README.md").read_text()
    )

    refused = labelwise("train", shop, tmp_path / "none", "--learn-validation")
    assert refused.code != 0
    assert "has no validation split; leave it out" in " ".join(refused.err.split())
    assert not (tmp_path / "none").exists()


def test_the_opening_counts(labelwise, shop, tmp_path):
    assert labelwise("train", shop, tmp_path / "model", "--opening", 3).code == 0
    model = LinearTree.load(tmp_path / "model")
    assert model.config.tfidf.opening == 3
    assert any(name.startswith("^") for name in model.tfidf_.feature_names())
    wrong = labelwise("train", shop, tmp_path / "wrong", "--opening", -2)
    assert wrong.code != 0
    assert "opening is -2" in wrong.err
    assert not (tmp_path / "wrong").exists()


def test_train_without_calibration(labelwise, shop, with_validation, tmp_path):
    result = labelwise("train", shop, tmp_path / "a", "--no-calibrate", "--negatives", "tfn+man")
    assert result.code == 0
    assert "scores, not calibrated" in result.out
    assert "P@1" not in result.out
    assert LinearTree.load(tmp_path / "a").config.ranker.negatives == "tfn+man"
    result = labelwise("train", with_validation, tmp_path / "b", "--no-calibrate")
    assert "scores, not calibrated" in result.out
    assert "P@1" in result.out
    assert LinearTree.load(tmp_path / "b").calibrator_ is None


def test_too_few_documents_to_calibrate(labelwise, data, tmp_path):
    result = labelwise("train", data, tmp_path / "model")
    assert result.code == 0
    assert result.err.count("too few of the 8 documents can be held out; give more documents") == 1  # logged as well
    assert "scores, not calibrated" in result.out
    assert LinearTree.load(tmp_path / "model").labels_ == ["animal", "cat", "dog", "plant"]
    (data / "validation.jsonl").write_text((data / "test.jsonl").read_text())
    result = labelwise("train", data, tmp_path / "model", "--overwrite")
    assert result.code == 0
    assert "predictions are scores, not probabilities: only 2 documents" in result.err
    result = labelwise("train", data, tmp_path / "model", "--overwrite", "--tune")
    assert result.code == 1
    assert "there are 2 documents to tune on, and at least 50 are needed" in result.err
    (data / "validation.jsonl").unlink()
    result = labelwise("train", data, tmp_path / "model", "--overwrite", "--tune")
    assert (result.code, "8 documents are too few to tune on" in result.err) == (1, True)


def test_train_on_features(labelwise, shop_features, tmp_path):
    assert labelwise("train", shop_features, tmp_path / "model").code == 0
    model = LinearTree.load(tmp_path / "model")
    assert model.tfidf_ is None
    test = load_splits(shop_features)["test"]
    assert model.predict(test.features, top_k=1)[0]
    assert "labelwise predict MODEL DATA" in (tmp_path / "model" / "README.md").read_text()


def test_train_on_a_single_file(labelwise, shop, tmp_path):
    assert labelwise("train", shop / "train.jsonl", tmp_path / "model", "--no-calibrate").code == 0


def test_tune_and_its_run_directory(labelwise, with_validation, tmp_path):
    arguments = ("train", with_validation, tmp_path / "model", "--tune", "--run-dir", tmp_path / "run", "--overwrite")
    result = labelwise(*arguments)
    assert result.code == 0
    assert "tuning, by nDCG@5 on " in result.out
    assert "trial 8: cost " in result.err
    for setting in ("cost", "max_leaf", "threshold"):
        assert re.search(rf"^{setting} (stays|\S+ instead of)", result.out, re.MULTILINE)
    assert "these documents also chose the settings" in result.out
    assert "the best of 8 trials" in (tmp_path / "model" / "README.md").read_text()
    before = (tmp_path / "model" / "tree-0" / "ranker" / "arrays.safetensors").read_bytes()
    again = labelwise(*arguments)
    assert again.err.count("levels: found in the run directory") == 9  # eight trials and the final model
    assert (tmp_path / "model" / "tree-0" / "ranker" / "arrays.safetensors").read_bytes() == before


def test_a_settings_file(labelwise, data, tmp_path):
    (tmp_path / "mine.toml").write_text('[tfidf]\nanalyzer = "char"\n[index]\nn_clusters = 2\n')
    assert labelwise("train", data, tmp_path / "model", "--preset", tmp_path / "mine.toml").code == 0
    assert LinearTree.load(tmp_path / "model").trees_[0].tree.n_clusters == 2


def test_what_is_refused_before_anything_is_read(labelwise, data, model, tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("the data were read")

    monkeypatch.setattr(module, "load_training_splits", never)
    result = labelwise("train", data, model)
    assert result.code == 2
    assert result.err.endswith("exists already; choose another place, or pass --overwrite\n")
    (tmp_path / "file").write_text("")
    assert "is a file; give a folder" in labelwise("train", data, tmp_path / "file").err
    result = labelwise("train", data, data, "--overwrite")
    assert result.code == 2
    assert "holds no model that can be read; it is not overwritten" in result.err
    assert (data / "train.jsonl").is_file()
    result = labelwise("train", data, tmp_path / "new", "--preset", "parable")
    assert (result.code, "there is no preset 'parable'; did you mean 'parabel'? there are: default" in result.err) == (
        2,
        True,
    )
    (tmp_path / "bad.toml").write_text("beam = [")
    result = labelwise("train", data, tmp_path / "new", "--preset", tmp_path / "bad.toml")
    assert (result.code, "is not valid TOML" in result.err) == (2, True)


def test_settings_that_make_no_sense(labelwise, data, tmp_path):
    result = labelwise("train", data, tmp_path / "model", "--cost", -1)
    assert (result.code, result.err.splitlines()[-1]) == (
        2,
        "labelwise: --cost is -1.0; it must be a number above 0",
    )
    assert labelwise("train", data, tmp_path / "model", "--negatives", "none").code == 2
    result = labelwise("train", tmp_path / "nothing", tmp_path / "model")
    assert (result.code, "there is no such file or folder" in result.err) == (1, True)
    assert not (tmp_path / "model").exists()


def test_a_place_that_cannot_be_written_is_told_before_the_data_are_read(labelwise, tmp_path):
    (tmp_path / "file").touch()
    for options in ((tmp_path / "file" / "m",), (tmp_path / "m", "--run-dir", tmp_path / "file" / "run")):
        refused = labelwise("train", tmp_path / "no-data", *options)
        assert refused.code == 1
        assert "is a file; choose another place" in refused.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("--threads", 0, "--threads is 0; it must be a whole number of at least 1"),
        ("--device", "gpu", "--device is 'gpu'; it must be auto, cpu, cuda, mps or a device like cuda:1"),
        ("--preset", "autoo", "there is no preset 'autoo'; did you mean 'auto'? there are: default"),
    ],
)
def test_an_error_has_the_words_of_the_command_line(labelwise, data, tmp_path, option, value, sentence):
    result = labelwise("train", data, tmp_path / "model", option, value)
    assert result.code == 2
    assert result.err.startswith(f"labelwise: {sentence}")
    assert "None" not in result.err


def test_an_analyzer_is_named_on_the_command_line(labelwise, shop, tmp_path):
    result = labelwise("train", shop, tmp_path / "m", "--analyzer", "char_wb", "--no-calibrate", "--quiet")
    assert result.code == 0
    settings = LinearTree.load(tmp_path / "m").tfidf_.settings_
    assert (settings.analyzer, settings.ngram_range) == ("char_wb", (1, 3))
