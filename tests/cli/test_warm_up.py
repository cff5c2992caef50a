"""labelwise warm-up."""

import json

import pytest

from labelwise.engines.kernel_cache import CacheFolders
from labelwise.kernels import preparing
from labelwise.kernels.preparing import Prepared


@pytest.fixture
def done(monkeypatch, tmp_path):
    """What the function would do, without compiling."""
    calls = []

    def pretended(*purposes, processes, on_event):
        calls.append((purposes, processes))
        return Prepared(tmp_path, 3, 4, 0, 1.25)

    monkeypatch.setattr("labelwise.cli.warm_up.warm_up", pretended)
    return calls


def test_what_was_compiled_and_where_is_printed(labelwise, done, tmp_path):
    result = labelwise("warm-up", "--only", "linear", "serving", "--processes", 2)
    assert result.code == 0
    assert "compiled: 3 kernels in 1.2 s; found: 4\n" in result.out
    assert f"where: {tmp_path}" in result.out
    assert done == [(("linear", "serving"), 2)]


def test_json(labelwise, done, tmp_path):
    found = json.loads(labelwise("warm-up", "--json", "--quiet").out)
    assert (found["compiled"], found["found"], found["left"], found["folder"]) == (3, 4, 0, str(tmp_path))


@pytest.mark.parametrize("options", [("--processes", 0), ("--only", "everything")])
def test_wrong_options(labelwise, done, options):
    assert labelwise("warm-up", *options).code == 2
    assert done == []


def test_no_folder_is_an_error(labelwise, monkeypatch):
    monkeypatch.setattr("labelwise.cli.warm_up.cache_folders", lambda: CacheFolders(None, (), "none"))
    monkeypatch.setattr("labelwise.cli.warm_up.warm_up", lambda *_, **options: Prepared(None, 0, 0, 5, 0.1))
    result = labelwise("warm-up")
    assert result.code == 1
    assert "nothing was compiled; set NUMBA_CACHE_DIR" in result.err


def test_kernels_that_cannot_be_compiled_are_counted(labelwise, monkeypatch):
    monkeypatch.setattr("labelwise.cli.warm_up.warm_up", lambda *_, **options: Prepared(None, 1, 0, 2, 0.1))
    assert "2 kernels could not be compiled ahead" in labelwise("warm-up").err
    assert preparing.MOST_PROCESSES >= 1
