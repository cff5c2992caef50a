"""Every command on ten documents, as a user would call it."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import load_splits


def test_stats(labelwise, data, tmp_path):
    result = labelwise("stats", data, "--plot", tmp_path / "tail.png", "--output", tmp_path / "stats.json")
    assert result.code == 0
    assert "training documents" in result.out
    assert (tmp_path / "tail.png").read_bytes().startswith(b"\x89PNG")
    printed = json.loads(labelwise("stats", data, "--json").out)
    assert printed == json.loads((tmp_path / "stats.json").read_text())
    assert printed["n_train"] == 8
    assert printed["n_test"] == 2
    assert printed["n_unseen_labels"] == 1


def test_stats_refuses_other_pictures_before_it_reads(labelwise, tmp_path):
    result = labelwise("stats", tmp_path / "nothing", "--plot", "tail.gif")
    assert (result.code, result.err) == (2, "labelwise: --plot tail.gif: a picture is a .png or an .svg file\n")


@pytest.mark.parametrize("to", ["jsonl", "csv", "tsv", "parquet", "pecos", "annif"])
def test_convert_there_and_back(labelwise, data, tmp_path, to):
    assert labelwise("convert", data, tmp_path / to, "--to", to).code == 0
    assert labelwise("convert", tmp_path / to, tmp_path / "back", "--to", "jsonl").code == 0
    want, got = load_splits(data), load_splits(tmp_path / "back")
    for split in ("train", "test"):
        assert got[split].texts == want[split].texts
        assert got[split].labels == want[split].labels
        assert (got[split].Y != want[split].Y).nnz == 0


def test_convert_skips_bad_rows_and_counts_them(labelwise, data, tmp_path):
    with (data / "train.jsonl").open("a") as file:
        file.write('{"id": "x", "labels": ["plant"]}\n')
    result = labelwise("convert", data, tmp_path / "out", "--to", "csv")
    assert result.code == 1
    assert "train.jsonl, line 9" in result.err
    assert not (tmp_path / "out").exists()
    result = labelwise("convert", data, tmp_path / "out", "--to", "csv", "--skip-bad-rows")
    assert result.code == 0
    assert "1 bad rows were left out" in result.out
    assert json.loads(labelwise("convert", data, tmp_path / "o2", "--to", "csv", "--skip-bad-rows", "--json").out)[
        "documents"
    ] == {"train": 8, "test": 2}


def test_shop_then_stats(labelwise, tmp_path):
    result = labelwise("shop", tmp_path / "shop", "--products", 1000, "--queries", 500)
    assert result.code == 0
    assert "all generated (seed 0)" in result.out
    assert "generated" in labelwise("stats", tmp_path / "shop").out
    assert labelwise("shop", tmp_path / "shop", "--products", 1000, "--queries", 500).code == 2
    assert labelwise("shop", tmp_path / "other", "--products", 3).code == 2


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


def test_demo_twice_and_its_runs(labelwise, encoder, tmp_path):
    arguments = ("demo", tmp_path / "demo", "--products", 1000, "--queries", 500, "--encoder", encoder)
    first = labelwise(*arguments)
    assert first.code == 0
    assert "no product, brand or query is real" in first.out
    assert "PSP" in first.out
    assert "Parabel and X-Transformer on the test products" in first.out
    assert first.out.count("suggested: ") == 6
    assert first.out.count("led there: ") == 3
    assert (tmp_path / "demo" / "label-tail.png").is_file()
    data = next((tmp_path / "demo").glob("shop-*"))
    for model in ("model", "x-transformer"):
        assert labelwise("evaluate", tmp_path / "demo" / model, data, "--bootstrap", 0).code == 0
    second = labelwise(*arguments)
    assert "matcher: found in the run directory" in second.err
    listing = labelwise("runs", tmp_path / "demo" / "run")
    assert "tfidf" in listing.out
    stages = json.loads(labelwise("runs", tmp_path / "demo" / "run", "--json").out)["stages"]
    names = ["tfidf", *["tree"] * 3, *["tokens", "embeddings"] * 2, "index", "matcher", "ranker"]
    assert sorted(stage["name"] for stage in stages) == sorted(names)
    assert {stage["n_runs"] for stage in stages if stage["name"] == "tfidf"} == {4}  # the two models share it
    assert "removed tfidf-" not in labelwise("runs", tmp_path / "demo" / "run", "--prune", "--keep", 4).err
    result = labelwise("runs", tmp_path / "demo" / "run", "--prune", "--keep", 0)
    assert result.out.startswith("11 results")
    assert "removed tfidf-" in result.err


def test_a_tiny_demo_has_scores_only(labelwise, encoder, tmp_path):
    result = labelwise("demo", tmp_path / "demo", "--products", 300, "--queries", 100, "--encoder", encoder)
    assert result.code == 0
    assert "scores, no probabilities: only" in result.err
