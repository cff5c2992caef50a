"""labelwise compare, as a user would type it."""

import json

import pytest


def test_systems_are_trained_compared_and_found_again(labelwise, shop, model, tmp_path):
    predicted = tmp_path / "others" / "theirs.jsonl"
    assert labelwise("predict", model, shop / "test.jsonl", "--output", predicted, "--top-k", 10).code == 0
    options = ("--run-dir", tmp_path / "run", "--output", tmp_path / "out", "--against", predicted.parent)
    result = labelwise("compare", shop, "--systems", f"default,xr-linear,{model}", *options)
    assert result.code == 0, result.err
    for words in ("default", "xr-linear", "theirs", "train s", "ms a document", "MiB", "MB on disk", "nDCG", "PSP"):
        assert words in result.out
    assert "minus default" in result.out
    assert "The data are generated" in result.out
    written = {file.name for file in (tmp_path / "out").iterdir()}
    assert written >= {"comparison.md", "comparison.json", "time.svg", "frequency.svg"}

    found = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    default, xr, saved, theirs = found["systems"]
    assert [system["kind"] for system in found["systems"]] == ["trained", "trained", "model", "file"]
    for system in (default, xr):
        costs = system["costs"]
        assert 50 < costs["peak_mib"] < 5000
        assert all(costs[name] > 0 for name in ("train_s", "train_cpu_s", "predict_ms", "model_mb"))
    assert theirs["costs"]["train_s"] is None
    assert saved["costs"]["peak_mib"] is None
    # The file holds the saved model's predictions: the same figures by two ways.
    assert saved["evaluation"]["scores"] == theirs["evaluation"]["scores"]
    # The saved model is the default, calibrated: the same labels but for ties.
    difference = saved["against_first"]["differences"]["P@1"]
    assert abs(difference["difference"]) < 3
    assert difference["low"] <= difference["difference"] <= difference["high"]

    told = json.loads(labelwise("evaluate", predicted, shop, "--json", "--quiet").out)
    assert theirs["evaluation"]["scores"] == told["evaluation"]["scores"]

    again = labelwise("compare", shop, "--systems", f"xr-linear,default,{model}", *options[:4], "--json")
    assert again.err.count("system: found in the run directory") == 3
    first, second, _ = json.loads(again.out)["systems"]
    assert (first["evaluation"], second["evaluation"]) == (xr["evaluation"], default["evaluation"])
    assert first["costs"] == xr["costs"]


def test_means_over_seeds(labelwise, shop, tmp_path):
    options = ("--systems", "default", "--seeds", 2, "--ks", "1,2", "--output", tmp_path / "out", "--json")
    result = labelwise("compare", shop, *options)
    assert result.code == 0, result.err
    (system,) = json.loads(result.out)["systems"]
    values = [seed["P@2"] for seed in system["seeds"]]
    assert len(values) == 2
    assert system["evaluation"]["scores"]["P@2"]["value"] == pytest.approx(sum(values) / 2)
    spread = abs(values[0] - values[1]) / 2**0.5
    assert system["deviation"]["P@2"] == pytest.approx(spread)
    page = (tmp_path / "out" / "comparison.md").read_text(encoding="utf-8")
    assert "mean ± standard deviation over 2 seeds" in page
    assert f"{sum(values) / 2:.2f} ±{spread:.2f}" in page


def test_a_system_that_fails_has_the_reason_in_its_row(labelwise, shop_features, tmp_path):
    result = labelwise("compare", shop_features, "--systems", "hybrid,default", "--output", tmp_path / "out")
    assert result.code == 1
    assert "this system reads texts, and features has only features" in result.out
    assert "1 of 2 systems failed: hybrid" in result.err
    page = (tmp_path / "out" / "comparison.md").read_text(encoding="utf-8")
    assert "**hybrid failed**: this system reads texts" in page
    assert "| default | " in page


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--systems", "parable"), "there is no system 'parable'"),
        (("--systems", "default", "--ks", "one"), "--ks one: give whole numbers"),
        (("--systems", "default", "--against", "nowhere"), "nowhere: there is no such folder or file"),
        (("--systems", "default", "--seeds", 0), "the number of seeds is 0"),
        (("--systems", "default", "--encoder", "minilm"), "none of the systems has an encoder"),
    ],
)
def test_wrong_options(labelwise, shop, options, sentence):
    result = labelwise("compare", shop, *options)
    assert result.code in (1, 2)
    assert sentence in result.err
    assert "Traceback" not in result.err
