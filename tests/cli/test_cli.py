"""The command line itself: help, version, exit codes, interruption."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import labelwise as package
from labelwise.cli import COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(labelwise, command):
    result = labelwise(command, "--help")
    assert result.code == 0
    assert f"Try it: labelwise {command}" in result.out
    assert "--quiet" in result.out


def test_the_overview_names_every_command(labelwise):
    result = labelwise("--help")
    assert result.code == 0
    for command, (_, about) in COMMANDS.items():
        assert command in result.out
        assert about in result.out
    assert "exit codes" in result.out
    assert labelwise().code == 2


def test_version(labelwise):
    result = labelwise("--version")
    assert (result.code, result.out) == (0, f"labelwise {package.__version__}\n")


def test_wrong_usage_exits_with_2(labelwise):
    result = labelwise("stat")
    assert (result.code, result.err) == (2, "labelwise: there is no command 'stat'; did you mean stats?\n")
    assert "there are: stats, convert" in labelwise("frobnicate").err
    assert labelwise("stats").code == 2
    assert labelwise("stats", "x", "--unknown").code == 2


def test_wrong_data_exits_with_1_in_one_sentence(labelwise, tmp_path):
    result = labelwise("stats", tmp_path / "nothing")
    assert result.code == 1
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert "Traceback" not in result.err


def test_what_the_system_refuses_is_told(labelwise, data, tmp_path):
    (tmp_path / "file").write_text("")
    result = labelwise("stats", data, "--output", tmp_path / "file" / "x.json")
    assert result.code == 1
    assert "Traceback" not in result.err
    assert "file" in result.err


def test_quiet_is_quiet(labelwise, data, tmp_path):
    result = labelwise("stats", data, "--quiet", "--output", tmp_path / "stats.json")
    assert result.code == 0
    assert result.err == ""
    assert (tmp_path / "stats.json").is_file()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_interruption_leaves_nothing(tmp_path, stop):
    command = [sys.executable, "-m", "labelwise", "shop", str(tmp_path / "shop"), "--products", "3000000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".shop*/train.jsonl")) and not list(tmp_path.glob("*shop*/*")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, stop)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (130 if stop == signal.SIGINT else 143)
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("resumable", [True, False])
def test_ctrl_c_says_how_to_go_on_where_that_is_possible(labelwise, data, tmp_path, monkeypatch, resumable):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("labelwise.cli.train.Train.run", interrupted)
    run_dir = ["--run-dir", tmp_path / "run"] if resumable else []
    result = labelwise("train", data, tmp_path / "model", *run_dir)
    assert result.code == 130
    assert result.err.startswith("labelwise: interrupted; no half-written files are left")
    assert ("run the same command again to go on" in result.err) == resumable


def test_a_reader_that_leaves_is_no_error(data):
    script = f"{sys.executable} -m labelwise stats {data} --json | true"
    result = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(data, tmp_path, closed):
    command = f'"$0" -m labelwise stats "$1" --output "$2" {closed}'
    result = subprocess.run(
        ["sh", "-c", command, sys.executable, data, tmp_path / "stats.json"], capture_output=True, text=True
    )
    assert (result.returncode, "Traceback" in result.stderr) == (0, False)
    assert json.loads((tmp_path / "stats.json").read_text())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_not_utf8(labelwise, data, tmp_path):
    folder = tmp_path / os.fsdecode(b"data \xff")
    data.rename(folder)
    result = labelwise("train", folder, tmp_path / "model", "--preset", "parabel")
    assert result.code == 0
    assert "data \\udcff" in (tmp_path / "model" / "README.md").read_text()
    assert labelwise("evaluate", tmp_path / "model", folder).code == 0
