"""labelwise demo, and the run directory that it leaves."""

import json


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
    names = ["tfidf", *["tree", "levels"] * 3]
    names += ["tokens", "embeddings", "validation-tokens", "validation-embeddings", "tree", "matcher", "ranker"]
    assert sorted(stage["name"] for stage in stages) == sorted(names)
    assert {stage["n_runs"] for stage in stages if stage["name"] == "tfidf"} == {4}  # the two models share it
    assert "removed tfidf-" not in labelwise("runs", tmp_path / "demo" / "run", "--prune", "--keep", 4).err
    result = labelwise("runs", tmp_path / "demo" / "run", "--prune", "--keep", 0)
    assert result.out.startswith("14 results")
    assert "removed tfidf-" in result.err


def test_a_tiny_demo_has_scores_only(labelwise, encoder, tmp_path):
    result = labelwise("demo", tmp_path / "demo", "--products", 300, "--queries", 100, "--encoder", encoder)
    assert result.code == 0
    assert "scores, no probabilities: only" in result.err
