"""labelwise evaluate: files of predictions, models, two systems."""

import json

import numpy as np
import scipy.sparse as sp

from labelwise import load_splits


def write_predictions(path, rows):
    path.write_text("".join(json.dumps({"id": name, "labels": labels}) + "\n" for name, labels in rows))


def test_evaluate(labelwise, data, tmp_path):
    write_predictions(tmp_path / "p.jsonl", [("test1", [["plant", 0.9], ["cat", 0.2]]), ("test0", [["animal", 0.8]])])
    result = labelwise("evaluate", tmp_path / "p.jsonl", data, "--output", tmp_path / "e.json", "--ks", 1, 2)
    assert result.code == 0
    assert "p.jsonl on data, test" in result.out
    assert "100.0" in result.out
    scores = json.loads((tmp_path / "e.json").read_text())["evaluation"]["scores"]
    assert scores["P@1"]["value"] == 100
    assert scores["P@2"]["value"] == 50
    assert scores["R@1"]["value"] == 50


def test_evaluate_against_another_system(labelwise, data, tmp_path):
    write_predictions(tmp_path / "a.jsonl", [("test0", [["animal", 1]]), ("test1", [["plant", 1], ["tree", 0.5]])])
    write_predictions(tmp_path / "b.jsonl", [("test0", [["nonsense", 1]]), ("test1", [["plant", 1]])])
    result = labelwise("evaluate", tmp_path / "a.jsonl", data, "--against", tmp_path / "b.jsonl", "--json")
    assert result.code == 0
    difference = json.loads(result.out)["comparison"]["differences"]["P@1"]
    assert difference["difference"] == 50


def test_an_evaluation_on_training_documents_says_so(labelwise, model, shop):
    result = labelwise("evaluate", model, shop, "--split", "train", "--bootstrap", 0)
    assert result.code == 0
    assert result.err.count("100 % of these documents were trained on: the figures say little of new documents") == 1
    assert "were trained on" not in labelwise("evaluate", model, shop, "--bootstrap", 0).err


def test_a_single_file_is_not_called_a_split(labelwise, data, tmp_path):
    write_predictions(tmp_path / "p.jsonl", [("test1", [["plant", 0.9]]), ("test0", [["animal", 0.8]])])
    result = labelwise("evaluate", tmp_path / "p.jsonl", data / "test.jsonl", "--bootstrap", 0)
    assert "p.jsonl on test.jsonl" in result.out
    assert "test.jsonl, test" not in result.out


def test_evaluate_a_matrix(labelwise, data, tmp_path):
    Y = load_splits(data)["test"].Y
    sp.save_npz(tmp_path / "p.npz", sp.csr_matrix(Y * np.float32(0.7)))
    result = labelwise("evaluate", tmp_path / "p.npz", data, "--json", "--bootstrap", 0)
    assert json.loads(result.out)["evaluation"]["scores"]["R@5"]["value"] == 100


def test_evaluate_tells_what_is_missing(labelwise, data, tmp_path):
    write_predictions(tmp_path / "p.jsonl", [("test0", [["animal", 1]])])
    result = labelwise("evaluate", tmp_path / "p.jsonl", data)
    assert result.code == 1
    assert "test1" in result.err
    result = labelwise("evaluate", tmp_path / "p.jsonl", data, "--ks", 0)
    assert (result.code, "--ks 0: give cut-offs of 1 or more" in result.err) == (2, True)
    result = labelwise("evaluate", tmp_path / "p.jsonl", data, "--split", "dev")
    assert "there is no split 'dev'; there are: train, test" in result.err


def test_evaluate_a_model(labelwise, shop, model, tmp_path):
    result = labelwise("evaluate", model, shop, "--json", "--bootstrap", 0)
    assert result.code == 0
    printed = json.loads(result.out)
    assert printed["evaluation"]["scores"]["P@1"]["value"] > 60
    assert "PSP@5" in printed["evaluation"]["scores"]
    assert 0 < printed["calibration_error"] < 20
    labelwise("predict", model, shop, "--top-k", 20, "--output", tmp_path / "p.jsonl")
    again = json.loads(labelwise("evaluate", tmp_path / "p.jsonl", shop, "--json", "--bootstrap", 0).out)
    assert again["evaluation"] == printed["evaluation"]
    assert "calibration_error" not in again


def test_evaluate_a_model_against_another(labelwise, shop, model, plain_model, tmp_path):
    result = labelwise("evaluate", model, shop, "--against", plain_model, "--bootstrap", 0)
    assert result.code == 0
    assert "model: calibration error" in result.out
    assert "plain: calibration error" not in result.out
    printed = json.loads(labelwise("evaluate", plain_model, shop, "--against", model, "--json").out)
    assert printed["comparison"]["differences"]["P@1"]["difference"] == 0
    assert "calibration_error" in printed["against"]


def test_evaluate_lays_the_truth_over_labels_the_model_does_not_have(labelwise, data, tmp_path):
    assert labelwise("train", data, tmp_path / "model", "--quiet").code == 0
    result = labelwise("evaluate", tmp_path / "model", data, "--json")  # "tree" is only in the test split
    assert result.code == 0
    assert json.loads(result.out)["evaluation"]["n_labels"] == 5


def test_evaluate_tells_what_is_no_model(labelwise, shop, model, shop_features):
    result = labelwise("evaluate", "nowhere", shop)
    assert (result.code, result.err) == (
        1,
        "labelwise: nowhere: there is no such model or file of predictions; check the spelling\n",
    )
    result = labelwise("evaluate", shop, shop)
    assert result.code == 1
    assert "config.json does not exist; give a folder that labelwise saved" in result.err
    result = labelwise("evaluate", model, shop_features)
    assert result.code == 1
    assert "the model was fitted on texts, but the data have only features" in result.err


def test_a_place_that_cannot_be_written_is_told_before_the_work(labelwise, shop, tmp_path):
    (tmp_path / "file").touch()
    result = labelwise("evaluate", tmp_path / "no-model", shop, "--output", tmp_path / "file" / "x.json")
    assert result.code == 1
    assert "x.json cannot be made, since" in result.err
    result = labelwise("evaluate", tmp_path / "no-model", shop, "--output", shop / "test.jsonl")
    assert (result.code, "is read by this command" in result.err) == (2, True)


def test_a_short_table(labelwise, model, plain_model, shop):
    full = labelwise("evaluate", model, shop, "--bootstrap", 0).out
    short = labelwise("evaluate", model, shop, "--bootstrap", 0, "--short").out
    assert [line.split()[1] for line in short.splitlines() if line.startswith("│")] == ["P", "nDCG", "PSP"]
    assert len(short.splitlines()) < len(full.splitlines()) / 2
    assert "calibration error" in short
    against = labelwise("evaluate", model, shop, "--against", plain_model, "--short").out
    rows = [line.split()[1].partition("@")[0] for line in against.splitlines() if line.startswith("│")]
    assert set(rows) == {"P", "nDCG", "PSP"}
    assert against.count("difference") == 1
