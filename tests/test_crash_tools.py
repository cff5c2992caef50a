"""The programs in tools/crash/, for a few cases: kills, failed operations, loads during saves."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[1] / "tools" / "crash"
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the programs fork")


def run(program, *options):
    command = [sys.executable, str(TOOLS / program), *options, "--json"]
    memory = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}  # no waiting for disks
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **memory})
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_killed_commands_leave_the_old_or_the_new():
    done = run("kill.py", "--cases", "6", "--seed", "1", "--commands", "convert", "predict --output")
    assert done["failures"] == []
    assert sum(row["died"] for row in done["commands"].values()) >= 5


def test_failed_operations_are_told_in_one_sentence():
    done = run("faults.py", "--cases", "12", "--seed", "1", "--commands", "convert")
    assert done["failures"] == []
    assert all(row["refused"] >= 4 for row in done["commands"].values())


def test_loads_during_saves_give_one_model():
    done = run("torn.py", "--cases", "6")
    assert (done["mixtures"], done["refused"], done["saves"]) == (0, {}, 6)
    assert done["loads"] > 0
