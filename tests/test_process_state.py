"""Calls of the library change no state of the process: random seeds, C allocator, umask, environment, logging …

Programs that use labelwise have settings and random numbers of their own, and other libraries rely on them.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def changes(tmp_path_factory) -> dict[str, dict[str, list[str]]]:
    """For each piece of work in `tests.process_state`, the parts of the state that it changed: before and after."""
    for name in ("torch", "transformers", "onnxruntime"):
        pytest.importorskip(name, reason="needs the extras neural, ann and onnx")
    command = [sys.executable, "-m", "tests.process_state", str(tmp_path_factory.mktemp("work"))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("work", ["linear", "neural"])
def test_the_library_changes_no_state_of_the_process(changes, work):
    assert changes[work] == {}


@pytest.mark.parametrize(("work", "part"), [("torch_seed", "torch random"), ("heap_limit", "allocator")])
def test_the_check_finds_what_is_changed(changes, work, part):
    if work == "heap_limit" and not sys.platform.startswith("linux"):
        pytest.skip("glibc only")
    assert list(changes[work]) == [part]
