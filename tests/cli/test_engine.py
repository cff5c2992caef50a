"""--engine and --address: where the work of a command runs."""

import os

import pytest

from labelwise.engines import current_engine
from labelwise.engines.interface import VARIABLE


@pytest.fixture
def shop(labelwise, tmp_path):
    assert labelwise("shop", tmp_path / "shop", "--products", 300, "--queries", 100).code == 0
    return tmp_path / "shop"


def test_threads_are_an_engine_too(labelwise, shop, tmp_path):
    assert labelwise("train", shop, tmp_path / "model", "--engine", "threads").code == 0
    assert labelwise("train", shop, tmp_path / "plain").code == 0
    for file in (tmp_path / "plain").rglob("*.safetensors"):
        assert file.read_bytes() == (tmp_path / "model" / file.relative_to(tmp_path / "plain")).read_bytes()
    found = labelwise("predict", tmp_path / "model", "--text", "a mirror", "--engine", "threads")
    assert found.out == labelwise("predict", tmp_path / "model", "--text", "a mirror").out
    assert VARIABLE not in os.environ
    assert current_engine().name == "threads"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--address", "auto"), "--address is that of a Ray cluster; add --engine ray, or leave it out"),
        (("--engine", "threads", "--address", "auto"), "--address is that of a Ray cluster; add --engine ray"),
        (("--engine", "spark"), "--engine spark: give one of threads, ray"),
    ],
)
def test_wrong_options_are_refused_before_the_work(labelwise, shop, tmp_path, options, sentence):
    result = labelwise("train", shop, tmp_path / "model", *options)
    assert result.code == 2
    assert result.err.splitlines()[-1].startswith(f"labelwise: {sentence}")
    assert not (tmp_path / "model").exists()


def test_a_cluster_that_is_not_there_is_refused(labelwise, shop, tmp_path):
    pytest.importorskip("ray", reason="needs the extra ray")
    result = labelwise("train", shop, tmp_path / "model", "--engine", "ray", "--address", "127.0.0.1:1")
    assert result.code == 2
    assert "the Ray cluster at 127.0.0.1:1 cannot be reached" in result.err


def test_the_environment_is_checked(labelwise, shop, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "spark")
    result = labelwise("train", shop, tmp_path / "model")
    assert result.code == 2
    assert "LABELWISE_ENGINE: there is no engine 'spark'; there are: threads, ray" in result.err
