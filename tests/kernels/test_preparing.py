"""Kernels compiled ahead: the list is true, processes compile it, and nothing breaks where they cannot."""

import json
import os
import subprocess
import sys
from importlib import import_module

import pytest

from labelwise.engines.kernel_cache import CacheFolders
from labelwise.errors import UsageError
from labelwise.kernels import preparing
from labelwise.kernels.preparing import Kernel, Preparation, listed, missing, needed, warm_up

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"), reason="kernels run as plain Python"
)
TRAINING = """
import json, sys
from labelwise.cli import main
from labelwise.serve.model_pool import load_version
from pathlib import Path
from labelwise.kernels import preparing

{work}

listed = {{(one.name, str(one.argument_types())) for one in preparing.listed()}}
called = set()
for name, module in list(sys.modules.items()):
    if name.startswith("labelwise.kernels."):
        for kernel, value in vars(module).items():
            if getattr(value, "__module__", "") == name and not kernel.startswith("_"):
                found = getattr(value, "signatures", ())
                called |= {{(f"{{name.rpartition('.')[2]}}.{{kernel}}", str(tuple(one))) for one in found}}
print(json.dumps(sorted(called - listed)))
"""
TRAIN = 'try:\n    main(["train", "shop", "model", "--quiet"])\nexcept SystemExit:\n    pass'
SERVE = 'load_version(Path("model"))'
CALLED_BY_OTHERS = {"beam.score_children", "beam.keep_best", "beam.as_float", "cluster.aim", "cluster.add_rows"}
CALLED_BY_OTHERS |= {"cluster.add_dense", "cluster.score_rows", "cluster.score_dense"}


@pytest.mark.parametrize("work", [TRAIN, SERVE], ids=["training", "serving"])
def test_the_list_has_what_a_training_and_a_server_call(work, tmp_path_factory):
    """If this fails, run tools/kernel_signatures.py."""
    pytest.importorskip("uvicorn")
    from labelwise.cli import main

    folder = tmp_path_factory.getbasetemp() / "listed"
    if not folder.exists():
        folder.mkdir()
        for command in (f"shop {folder}/shop --products 700 --queries 150", f"train {folder}/shop {folder}/model"):
            with pytest.raises(SystemExit) as ended:
                main([*command.split(), "--quiet"])
            assert ended.value.code == 0
    work = work.replace('"model", "--quiet"', '"model", "--quiet", "--overwrite"')
    found = subprocess.run(
        [sys.executable, "-c", TRAINING.format(work=work)], cwd=folder, capture_output=True, text=True, check=True
    )
    unlisted = [tuple(one) for one in json.loads(found.stdout.splitlines()[-1])]
    assert [one for one in unlisted if one[0] not in CALLED_BY_OTHERS] == []


def test_every_entry_names_a_kernel_and_types():
    for one in listed():
        module, _, name = one.name.partition(".")
        code = getattr(import_module(f"labelwise.kernels.{module}"), name).py_func.__code__
        assert len(one.argument_types()) == code.co_argcount
    assert len({(one.name, one.types) for one in listed()}) == len(listed())
    assert [one.seconds for one in listed()] == sorted((one.seconds for one in listed()), reverse=True)


def test_purposes_are_parts_of_the_list():
    linear, serving = needed(("linear",)), needed(("serving",))
    assert set(linear) < set(listed())
    assert 0 < len(serving) < len(linear)
    assert set(needed(("linear", "serving"))) == set(linear) | set(serving)
    with pytest.raises(UsageError, match="unknown purpose 'train'; there are: linear, serving"):
        needed(("train",))


@pytest.fixture
def two(monkeypatch, tmp_path):
    """Two small kernels, and an empty folder in this process and in those that it starts."""
    small = sorted(listed(), key=lambda one: one.seconds)
    small = [next(one for one in small if one.name == name) for name in ("terms.eight_letters", "terms.gather_letters")]
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(preparing, "needed", lambda purposes=(): small)

    def not_there(self):
        return bool(list(tmp_path.rglob(f"{self.name}-*.nbc")))

    monkeypatch.setattr(Kernel, "is_compiled", not_there)
    return small


def test_processes_compile_what_is_missing(two, tmp_path):
    events = []
    done = warm_up(on_event=lambda name, values: events.append((name, values)), processes=2)
    assert (done.compiled, done.found, done.left) == (2, 0, 0)
    assert len(list(tmp_path.rglob("*.nbc"))) >= 2
    name, last = events[-1]
    assert name == "progress"
    assert (last["task"], last["done"], last["total"], last["finished"]) == (preparing.TASK, 2, 2, True)
    again = warm_up(on_event=lambda name, values: events.append((name, values)))
    assert (again.compiled, again.found, again.left) == (0, 2, 0)
    assert events[-1] == (name, last)  # nothing to do, nothing to say


def test_a_process_that_fails_leaves_the_work_to_the_caller(two, monkeypatch):
    monkeypatch.setattr(preparing, "_PROGRAM", "raise SystemExit(3)")
    done = warm_up(processes=2)
    assert (done.compiled, done.left) == (0, 2)


@pytest.mark.parametrize("executable", ["", "/no/such/python"])
def test_no_python_to_start(two, monkeypatch, executable):
    monkeypatch.setattr(sys, "executable", executable)
    assert warm_up().left == 2


def test_nothing_is_started_where_nothing_can_be_kept(two, monkeypatch):
    monkeypatch.setattr(preparing, "cache_folders", lambda: CacheFolders(None, (), "none"))
    with Preparation() as preparation:
        assert preparation._threads == []
        preparation.wait()


def test_an_error_meanwhile_ends_the_processes(two):
    def fail():
        with Preparation(processes=2) as preparation:
            started.append(preparation)
            raise KeyboardInterrupt

    started = []
    with pytest.raises(KeyboardInterrupt):
        fail()
    assert all(process.poll() is not None for process in started[0]._processes)
    assert not any(thread.is_alive() for thread in started[0]._threads)


def test_a_kernel_that_cannot_be_looked_up_is_left_out(monkeypatch):
    strange = Kernel("terms.no_such_kernel", "(int64,)", (), 0.0)
    monkeypatch.setattr(preparing, "needed", lambda purposes=(): [strange])
    assert missing() == []


def test_a_process_answers_every_line(monkeypatch, capsys):
    compiled = []
    monkeypatch.setattr(Kernel, "compile", lambda self: compiled.append(self))
    monkeypatch.setattr(sys, "stdin", iter(["1\n", "nonsense\n", "0\n"]))
    preparing.work()
    assert capsys.readouterr().out == "1\nnonsense\n0\n"
    assert compiled == [listed()[1], listed()[0]]
