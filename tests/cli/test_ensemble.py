"""Ensembles on the command line: lists of presets, encoders and label embeddings."""

import json
import os
import subprocess
import sys

import pytest

from labelwise import load_model
from labelwise.models.ensemble import Ensemble
from labelwise.models.linear_tree import LinearTree
from labelwise.models.xtransformer import XTransformer
from tests.features.tiny import write_model

LISTS = ("--label-embedding", "pifa-tfidf,text-emb")


@pytest.fixture(scope="session")
def encoders(tmp_path_factory):
    """A folder with two tiny encoders, called by their names."""
    folder = tmp_path_factory.mktemp("encoders")
    for name, kind in (("gte-small", "bert"), ("mpnet", "mpnet")):
        write_model(folder / name, kind)
    return folder


@pytest.fixture(scope="session")
def short(tmp_path_factory):
    """A file of settings that trains in a moment."""
    file = tmp_path_factory.mktemp("short") / "short.toml"
    file.write_text(
        'model = "x-transformer"\ndense_weight = 1.0\nmatcher_weight = 1.0\n[encoder]\nmax_length = 16\n'
        "[matcher]\nsteps = 3\nbatch_size = 32\n",
        encoding="utf-8",
    )
    return file


@pytest.fixture
def options(short, encoders, monkeypatch):
    monkeypatch.setenv("LABELWISE_ENCODERS", str(encoders))
    return ("--preset", short, "--encoder", "gte-small,mpnet", *LISTS, "--hold-out", 0.1, "--threads", 1)


def test_the_product_of_two_lists(labelwise, shop, options, tmp_path):
    run = ("--run-dir", tmp_path / "run")
    result = labelwise("train", shop, tmp_path / "model", *options, *run)
    assert result.code == 0, result.err
    for row in ("1  gte-small, pifa-tfidf", "4  mpnet, text-emb", "together", "weight", "10 % of the data, held out"):
        assert row in result.out
    assert "member 3 of 4: mpnet, pifa-tfidf" in result.err
    assert "matcher 2 of 2: mpnet on the clusters of 2 label trees" in result.err
    model = load_model(tmp_path / "model")
    assert isinstance(model, Ensemble)
    kinds = [(member.config.encoder.name, member.config.label_embedding) for member in model.members_]
    names = ("gte-small", "mpnet")
    assert kinds == [(name, kind) for name in names for kind in ("pifa-tfidf", "text-emb")]
    assert model.config.share_encoder
    assert model.report_.preset == "short.toml"
    again = labelwise("train", shop, tmp_path / "model", *options, *run, "--overwrite", "--prune", 0.01)
    assert again.code == 0
    assert "matcher: found in the run directory" in again.err
    assert again.err.count("ranker: found in the run directory") == 4

    (tmp_path / "texts.txt").write_text("a mirror for the bathroom\n\n", encoding="utf-8")
    told = labelwise("predict", tmp_path / "model", tmp_path / "texts.txt", "--top-k", 2, "--threads", 1)
    assert (told.code, len(told.out.splitlines())) == (0, 2)
    judged = labelwise("evaluate", tmp_path / "model", shop, "--json", "--bootstrap", 0)
    assert json.loads(judged.out)["evaluation"]["scores"]["P@1"]["value"] > 50


def test_presets_of_both_kinds(labelwise, shop, encoders, tmp_path, monkeypatch):
    monkeypatch.setenv("LABELWISE_ENCODERS", str(encoders))
    lists = ("--preset", "parabel,hybrid", "--encoder", "gte-small", "--max-length", 16, "--n-trees", 1)
    result = labelwise("train", shop, tmp_path / "model", *lists, "--rule", "rank_average", "--hold-out", 0.1)
    assert result.code == 0, result.err
    model = load_model(tmp_path / "model")
    assert [type(member) for member in model.members_] == [LinearTree, XTransformer]
    assert model.members_[0].config.n_trees == 1
    assert (model.rule_, model.report_.preset) == ("rank_average", "parabel,hybrid")
    assert "rank_average of probabilities" in result.out


def test_linear_presets_on_features(labelwise, shop_features, tmp_path):
    result = labelwise("train", shop_features, tmp_path / "model", "--preset", "default,plt", "--no-calibrate")
    assert result.code == 0, result.err
    assert "scores, not calibrated" in result.out
    assert load_model(tmp_path / "model").tfidf_ is None


def test_a_dry_run_tells_the_members(labelwise, shop, options, tmp_path):
    result = labelwise("train", shop, tmp_path / "model", *options, "--dry-run")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "an ensemble of 4 models: 900 documents, 500 labels"
    assert lines[1:4] == [
        "member 1: gte-small, pifa-tfidf",
        "member 2: gte-small, text-emb, with the same fine-tuned encoder",
        "member 3: mpnet, pifa-tfidf",
    ]
    assert "rough estimates" in lines[5]
    own = labelwise("train", shop, tmp_path / "model", *options, "--dry-run", "--own-encoders")
    assert "the same fine-tuned encoder" not in own.out
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--rule", "average"), "--rule is an option of ensembles; name several presets, encoders or"),
        (("--preset", "hybrid", "--own-encoders"), "--own-encoders is an option of ensembles"),
        (("--preset", "default,plt", "--tune"), "--tune tunes one model"),
        (("--preset", "default,,plt"), "give different names with commas between them"),
        (("--preset", "plt,plt"), "give different names with commas between them"),
        (("--preset", "auto,plt"), "--preset auto chooses one model"),
        (("--preset", "auto", "--prune", 1), "--prune is an option of ensembles, but the preset auto chooses one"),
        (("--preset", "default,plt", "--epochs", 2), "--epochs is an option of X-Transformer"),
        (
            ("--preset", "hybrid", "--label-embedding", "pifa-tfidf,none"),
            "--label-embedding is 'none'; it must be one of",
        ),
        (("--preset", "hybrid,nothing"), "there is no preset 'nothing'"),
        (
            ("--preset", "hybrid", "--encoder", "minilm,gte-small"),
            "by its name if LABELWISE_ENCODERS lists the folder that contains it",
        ),
    ],
)
def test_what_makes_no_ensemble(labelwise, tmp_path, options, complaint, monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.delenv("LABELWISE_ENCODERS", raising=False)
    result = labelwise("train", tmp_path / "not there", tmp_path / "model", *options)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert complaint in result.err


@pytest.mark.slow
def test_several_processes_train_together(shop, options, tmp_path):
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2"]
    launch += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "-m", "labelwise"]
    train = ["train", str(shop), str(tmp_path / "model"), *map(str, options), "--run-dir", str(tmp_path / "run")]
    for overwrite in ([], ["--overwrite"]):  # trained, then found
        result = subprocess.run(
            [*launch, *train, *overwrite], capture_output=True, text=True, timeout=300, check=False, env={**os.environ}
        )
        assert result.returncode == 0, result.stderr
        assert result.stdout.count("the model: ") == 1
        assert load_model(tmp_path / "model").predict(["a mirror"], top_k=1)[0]


def test_presets_with_a_holdout_policy_of_their_own(labelwise, data, tmp_path):
    for name, share in (("one", 0.3), ("two", 0.3), ("other", 0.1)):
        (tmp_path / f"{name}.toml").write_text(f"seed = {len(name)}\nbeam = {len(name)}\n[holdout]\nshare = {share}\n")
    files = {name: tmp_path / f"{name}.toml" for name in ("one", "two", "other")}
    result = labelwise("train", data, tmp_path / "model", "--preset", f"{files['one']},{files['other']}")
    assert "of the ensemble has a hold-out policy of its own" in result.err
    assert not (tmp_path / "model").exists()
