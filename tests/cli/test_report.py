"""labelwise report: finds what a run was about, and says what it cannot find."""

import pytest

from labelwise.cli import main
from tests.report.reading import read


@pytest.fixture
def typed(monkeypatch, labelwise):
    """A command with the words in `sys.argv`, where the run directory reads them."""

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["labelwise", *map(str, arguments)])
        return labelwise(*arguments)

    return call


def test_model_and_data_are_found_by_the_run(typed, shop, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert typed("train", shop, "model", "--run-dir", "run", "--threads", 1).code == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    result = typed("report", tmp_path / "run", "--bootstrap", 50)
    assert result.code == 0, result.err
    assert "report.html" in result.out
    page = read(tmp_path / "run" / "report.html")
    assert page.all("h1")[0][1] == "model on shop (generated data)"
    assert "made by a program" in page.text("data")
    assert f"labelwise train {shop} model --run-dir run" in page.text("model")
    assert {"P@1", "PSP@5", "torso:R@5", "calibration error"} <= page.figures().keys()
    assert any(node["w"] for node in page.tree())

    # The training of the given model, though another training came later.
    monkeypatch.chdir(tmp_path)
    assert typed("train", shop, "later", "--run-dir", "run", "--threads", 1, "--seed", 1).code == 0
    result = typed("report", "run", "--model", "model", "--output", "page.html", "--bootstrap", 0)
    assert result.code == 0
    assert f"labelwise train {shop} model" in read(tmp_path / "page.html").text("model")

    (tmp_path / "model").rename(tmp_path / "moved")
    result = typed("report", "run", "--model", "moved", "--data", shop, "--output", "page.html", "--bootstrap", 0)
    assert result.code == 0
    assert "P@1" in read(tmp_path / "page.html").figures()


def test_a_run_that_does_not_record_model_and_data(labelwise, shop, model, tmp_path):
    labelwise("train", shop, tmp_path / "model", "--run-dir", tmp_path / "run", "--threads", 1)
    result = labelwise("report", tmp_path / "run", "--output", tmp_path / "a.html")
    assert result.code == 0
    assert "does not record model and data: pass --model and --data" in result.err
    assert "The model is not known" in read(tmp_path / "a.html").text("model")


def test_a_fine_tuned_model_has_curves(typed, shop, encoder, tmp_path):
    settings = tmp_path / "short.toml"
    settings.write_text(
        f'model = "x-transformer"\ndense_weight = 1.0\n[encoder]\nname = "{encoder.as_posix()}"\nmax_length = 16\n'
        "[matcher]\nsteps = 4\nbatch_size = 32\n",
        encoding="utf-8",
    )
    run, model = tmp_path / "run", tmp_path / "model"
    assert typed("train", shop, model, "--preset", settings, "--run-dir", run).code == 0
    assert typed("report", run, "--bootstrap", 0).code == 0
    page = read(run / "report.html")
    labels = [attributes["aria-label"] for attributes, _ in page.all("svg", role="img")]
    assert {"loss by step", "recall, % by step", "learning rate by step"} <= set(labels)
    for name in ("tfidf", "tokens", "embeddings", "tree", "matcher"):
        assert name in page.text("time")
    assert [node["p"] for node in page.tree()] == [-1] + [0] * 8  # flat


def test_wrong_arguments(labelwise, shop, model, tmp_path):
    result = labelwise("report", tmp_path)
    assert (result.code, result.out) == (2, "")
    assert "is not a run directory; give the folder of run_dir or --run-dir" in result.err
    labelwise("train", shop, tmp_path / "m", "--run-dir", tmp_path / "run", "--threads", 1)
    for options, code, words in (
        (("--model", tmp_path / "none"), 1, "is not a model; give a folder that was written by labelwise train"),
        (("--model", shop), 1, "config.json"),
        (("--model", model, "--data", tmp_path / "none"), 1, "there is no such file or folder"),
        (("--model", model, "--data", shop, "--split", "dev"), 1, "there is no split 'dev'; there are: train, test"),
        (("--output", tmp_path), 2, "is a folder; give a file to write"),
    ):
        result = labelwise("report", tmp_path / "run", *options)
        assert (result.code, words in result.err.replace("\n", " ")) == (code, True), result.err
        assert "Traceback" not in result.err
    assert not list((tmp_path / "run").glob("*.html"))


def test_help(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["report", "--help"])
    assert ended.value.code == 0
    assert "RUN_DIR" in capsys.readouterr().out
