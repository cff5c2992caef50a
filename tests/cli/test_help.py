"""The help of a command."""

import re

import pytest

from labelwise.cli import COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("columns", [80, 60])
def test_help_fits_the_terminal(labelwise, monkeypatch, command, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    out = labelwise(command, "--help").out
    lines = out.partition("arguments:" if "arguments:" in out else "options:")[2].splitlines()
    prose = [line for line in lines if not line.startswith("  -")]  # an option is not broken
    assert max(map(len, prose)) <= columns
    for noise in ("{None}", "default: None", "default: False", "default: True", "│"):
        assert noise not in out


def test_help_of_train_has_headings(labelwise):
    out = labelwise("train", "-h").out
    headings = re.findall(r"(?m)^([a-z -]+):$", out)
    assert headings == [
        "arguments",
        "model",
        "linear models",
        "encoder",
        "ensemble",
        "held-out documents",
        "where it runs",
        "output",
        "reading data",
        "help",
    ]
    assert out.startswith("usage: labelwise train [OPTIONS] DATA MODEL\n")


def test_usage_shows_what_is_needed_and_what_may_be_given(labelwise):
    assert labelwise("predict", "--help").out.startswith("usage: labelwise predict [OPTIONS] MODEL [TEXTS]\n")
    assert "labelwise serve [OPTIONS] [MODEL …]" in labelwise("serve", "--help").out
    assert "labelwise compare --systems NAME,NAME,… [OPTIONS] DATA" in labelwise("compare", "--help").out
