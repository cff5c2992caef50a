"""The commands with models that have an encoder: train, predict, evaluate, auto, and several processes."""

import json
import os
import subprocess
import sys

import pytest

from labelwise import load_model
from labelwise import tuning as auto
from labelwise.cli import main
from labelwise.errors import MissingExtraError, UsageError
from labelwise.models.xtransformer import XTransformer
from labelwise.tuning import Machine

GB = 10**9


@pytest.fixture(scope="session")
def settings(encoder, tmp_path_factory):
    """A file of settings that trains in a moment."""
    file = tmp_path_factory.mktemp("settings") / "short.toml"
    file.write_text(
        f'model = "x-transformer"\ndense_weight = 1.0\n[encoder]\nname = "{encoder.as_posix()}"\nmax_length = 16\n'
        "[matcher]\nsteps = 4\nbatch_size = 32\n",
        encoding="utf-8",
    )
    return file


@pytest.fixture(scope="session")
def neural_model(settings, shop, tmp_path_factory):
    folder = tmp_path_factory.mktemp("neural") / "neural"
    with pytest.raises(SystemExit) as ended:
        main(["train", str(shop), str(folder), "--preset", str(settings), "--quiet"])
    assert ended.value.code == 0
    return folder


def test_train(labelwise, shop, settings, tmp_path):
    options = ("--preset", settings, "--hold-out", 0.1, "--label-embedding", "pifa-tfidf", "--device", "cpu")
    result = labelwise("train", shop, tmp_path / "model", *options, "--beam", 3, "--seed", 5, "--cost", 0.5)
    assert result.code == 0
    for row in ("500 in 8 clusters by pifa-tfidf", "tiny, 16 tokens of a text", "true clusters found", "P@1 "):
        assert row in result.out
    for row in ("scores combined by", "size on disk", "10 % of the data, held out", "probabilities", "CPU s"):
        assert row in result.out
    assert "before the ranker saw them" not in result.out
    assert "training without" not in result.err  # once is enough
    assert "clusters found" in result.err
    model = load_model(tmp_path / "model")
    assert isinstance(model, XTransformer)
    config = model.config
    assert (config.beam, config.seed, config.holdout.share, config.ranker.cost) == (3, 5, 0.1, 0.5)
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "| preset | short.toml |" in card
    assert "a share of the training documents, held out" in card


def test_train_with_a_validation_split(labelwise, shop, encoder, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    lines = (shop / "train.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "train.jsonl").write_text("".join(lines[:-100]), encoding="utf-8")
    (folder / "validation.jsonl").write_text("".join(lines[-100:]), encoding="utf-8")
    options = ("--preset", "hybrid", "--encoder", encoder, "--max-length", 16)
    result = labelwise("train", folder, tmp_path / "model", *options)
    assert result.code == 0
    assert "100 documents: the validation split" in result.out
    assert "as it was pretrained" in result.out
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "Measured on 100 documents, the validation split" in card
    assert "Settings were chosen by the mean of P@1, P@3 and P@5 on the same documents, the best of" in card
    result = labelwise("train", folder, tmp_path / "model", *options, "--no-calibrate", "--overwrite")
    assert "scores, not calibrated" in result.out
    assert load_model(tmp_path / "model").calibrator_ is None


def test_too_few_documents_to_calibrate(labelwise, data, settings, tmp_path):
    result = labelwise("train", data, tmp_path / "model", "--preset", settings, "--hold-out", 0.2)
    assert result.code == 0
    assert "predictions are scores, not probabilities: only" in result.err


def test_epochs_stand_in_for_a_presets_steps(labelwise, shop, settings, tmp_path):
    result = labelwise("train", shop, tmp_path / "model", "--preset", settings, "--epochs", 0.2)
    assert result.code == 0
    matcher = load_model(tmp_path / "model").config.matcher
    assert (matcher.steps, matcher.epochs) == (None, 0.2)


def test_labels_are_learnt_if_asked(labelwise, shop, settings, tmp_path):
    result = labelwise("train", shop, tmp_path / "model", "--preset", settings, "--learn-labels")
    assert result.code == 0
    assert "fine-tuned on labels and" in " ".join(result.out.split())
    model = load_model(tmp_path / "model")
    assert model.config.matcher.learn_labels
    assert model.ranker_.level.dense.shape[1] == model.matcher_.encoder_.hidden_size + 1


def test_predict_and_evaluate(labelwise, shop, neural_model, model, tmp_path):
    (tmp_path / "texts.txt").write_text("a mirror for the bathroom\n\n", encoding="utf-8")
    result = labelwise("predict", neural_model, tmp_path / "texts.txt", "--top-k", 2, "--threads", 1)
    assert result.code == 0
    assert len(result.out.splitlines()) == 2
    result = labelwise("evaluate", neural_model, shop, "--json", "--bootstrap", 0, "--against", model)
    printed = json.loads(result.out)
    assert printed["evaluation"]["scores"]["P@1"]["value"] > 50
    assert "P@1" in printed["comparison"]["differences"]


def test_features_are_not_enough(labelwise, shop_features, neural_model, settings, tmp_path):
    result = labelwise("train", shop_features, tmp_path / "model", "--preset", settings)
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert "short.toml reads texts, and these data have only features; use a linear preset" in result.err
    result = labelwise("evaluate", neural_model, shop_features)
    assert (result.code, "the model reads texts, but the data have only features" in result.err) == (1, True)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            ("--preset", "parabel", "--epochs", 3),
            "--epochs is an option of X-Transformer, but the preset parabel is of",
        ),
        (("--encoder", "minilm"), "--encoder is an option of X-Transformer, but the preset default is of linear trees"),
        (("--preset", "hybrid", "--tune"), "--tune is an option of linear trees, but the preset hybrid is of X-Trans"),
        (("--preset", "x-transformer", "--n-trees", 2), "--n-trees is an option of linear trees"),
        (("--preset", "hybrid", "--epochs", 2), "hybrid does not fine-tune"),
        (("--preset", "hybrid", "--learn-labels"), "--learn-labels: the preset hybrid does not fine-tune"),
        (("--preset", "parabel", "--learn-labels"), "--learn-labels is an option of X-Transformer"),
        (("--preset", "hybrid", "--encoder", "./none"), "there is no folder ./none"),
    ],
)
def test_options_of_the_other_kind_are_refused_before_anything_is_read(labelwise, data, tmp_path, options, complaint):
    result = labelwise("train", tmp_path / "not there", tmp_path / "model", *options)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert complaint in result.err


def test_without_torch_it_says_what_to_install(labelwise, data, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "labelwise.features.encoder", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    result = labelwise("train", data, tmp_path / "model", "--preset", "hybrid")
    assert result.code == 2
    assert "pip install 'labelwise[neural]'" in result.err


def test_a_dry_run_says_that_its_estimate_is_without_tuning(labelwise, shop, tmp_path):
    result = labelwise("train", shop, tmp_path / "model", "--dry-run", "--tune")
    assert (result.code, "eight to eleven models of one tree, which the estimate does not" in result.out) == (0, True)


@pytest.mark.parametrize("preset", ["default", "parabel", "hybrid", "eurlex-4k", "auto"])
def test_a_dry_run_only_tells(labelwise, shop, encoder, tmp_path, preset):
    named = ("--encoder", encoder) if preset == "eurlex-4k" else ()
    result = labelwise("train", shop, tmp_path / "model", "--preset", preset, *named, "--dry-run", "--quiet")
    assert result.code == 0
    assert "rough estimates" in result.out
    assert preset in result.out
    assert not (tmp_path / "model").exists()


def test_a_preset_of_the_paper_needs_an_encoder(labelwise, shop, tmp_path):
    result = labelwise("train", shop, tmp_path / "model", "--preset", "eurlex-4k")
    assert result.code == 2
    assert "the presets of the paper name no encoder; give one (--encoder" in result.err
    assert "bert-large-cased-whole-word-masking, roberta-large and xlnet-large-cased" in " ".join(result.err.split())
    assert not (tmp_path / "model").exists()


def test_auto(labelwise, shop, shop_features, encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(auto.Machine, "current", lambda *_, **__: Machine(cores=4, memory=9 * GB))
    result = labelwise("train", shop, tmp_path / "a", "--preset", "auto", "--encoder", encoder)
    assert result.code == 0
    assert result.err.startswith("auto: hybrid\nno GPU to fine-tune on, but 4 cores embed the texts in about 1 s\n")
    assert "500 labels in 8 clusters" in result.err
    assert "rough estimates" in result.err
    assert "| preset | auto: hybrid |" in (tmp_path / "a" / "README.md").read_text(encoding="utf-8")
    assert load_model(tmp_path / "a").config.encoder.max_length == 32
    result = labelwise("train", shop_features, tmp_path / "b", "--preset", "auto", "--no-calibrate")
    assert result.code == 0
    assert "auto: default\nthe data have features and no texts\n" in result.err
    result = labelwise("train", shop_features, tmp_path / "c", "--preset", "auto", "--epochs", 3)
    assert (result.code, "the preset default (chosen by auto) is of linear trees" in result.err) == (2, True)
    gpu = Machine(cores=4, memory=9 * GB, gpu="pretended", gpu_memory=9 * GB)
    monkeypatch.setattr(auto.Machine, "current", lambda *_, **__: gpu)
    result = labelwise("train", shop, tmp_path / "d", "--preset", "auto", "--dry-run", "--epochs", 3)
    assert result.out.startswith("auto: x-transformer\nthere is a GPU to fine-tune on: pretended, 9.0 GB free\n")


def test_other_processes_are_silent(labelwise, shop, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    for options in (("--no-calibrate",), ("--cost", "-1"), ("--dry-run",), ("--epochs", "2")):
        result = labelwise("train", shop, tmp_path / "model", *options)
        assert (result.out, result.err) == ("", "")
        assert result.code == (2 if "--epochs" in options or "--cost" in options else 0)
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
def test_several_processes_train_together(shop, settings, tmp_path):
    launch = [
        sys.executable,
        "-m",
        "accelerate.commands.launch",
        "--cpu",
        "--num_processes",
        "2",
        "--num_machines",
        "1",
    ]
    launch += ["--mixed_precision", "no", "--dynamo_backend", "no", "-m", "labelwise"]
    train = ["train", str(shop), str(tmp_path / "model"), "--preset", str(settings), "--run-dir", str(tmp_path / "run")]
    for overwrite in ([], ["--overwrite"]):  # trained, then found
        result = subprocess.run(
            [*launch, *train, *overwrite], capture_output=True, text=True, timeout=300, check=False, env={**os.environ}
        )
        assert result.returncode == 0, result.stderr
        assert result.stdout.count("the model: ") == 1
        assert load_model(tmp_path / "model").predict(["a mirror"], top_k=1)[0]


def test_a_demo_without_an_encoder_shows_parabel_alone(labelwise, tmp_path, monkeypatch):
    def missing(name):
        raise MissingExtraError("encoders need torch, which is not installed; run: pip install 'labelwise[neural]'")

    monkeypatch.setattr("labelwise.features.pretrained.find_encoder", missing)
    result = labelwise("demo", tmp_path / "demo", "--products", 300, "--queries", 100)
    assert result.code == 0
    assert "no X-Transformer, Parabel alone: encoders need torch" in result.err
    assert "Parabel on the test products" in result.out
    assert result.out.count("suggested: ") == 3


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain", "update", "serve"])
def test_every_command_with_an_encoder_takes_a_device(labelwise, neural_model, shop, tmp_path, monkeypatch, command):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("labelwise.serve.server.run", lambda *_, **options: None)
    rest = {
        "predict": (shop, "--json"),
        "evaluate": (shop, "--bootstrap", 0),
        "explain": ("a mirror", "--top-k", 1),
        "update": (shop, "--output", tmp_path / "updated"),
        "serve": ("--port", 0),
    }[command]
    assert labelwise(command, neural_model, *rest, "--device", "cpu").code == 0
    result = labelwise(command, neural_model, *rest, "--device", "cuda:7", *(("--overwrite",) * (command == "update")))
    assert result.code == 2
    assert "the device is cuda:7, but torch finds no GPU here; leave the device out, or use cpu" in result.err
    result = labelwise(command, neural_model, *rest, "--device", "gpu")
    assert result.code == 2
    assert "--device is 'gpu'; it must be auto, cpu, cuda, mps or a device like cuda:1" in result.err


def test_a_model_is_loaded_to_a_device(neural_model, monkeypatch):
    model = load_model(neural_model, device="cpu")
    assert str(model.matcher_.device) == "cpu"
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert str(load_model(neural_model, device="auto").matcher_.device) == "cpu"
    with pytest.raises(UsageError, match="finds no GPU here"):
        load_model(neural_model, device="cuda")
    with pytest.raises(UsageError, match="device is 'gpu'; it must be auto"):
        load_model(neural_model, device="gpu")
