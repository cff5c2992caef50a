"""labelwise doctor: facts, problems with what to do, nothing private, and never a traceback."""

import getpass
import json
import socket
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from labelwise import __version__
from labelwise.cli import installation
from labelwise.cli.installation import Findings, examine, without_names
from labelwise.engines.kernel_cache import CacheFolders
from labelwise.features.pretrained import hub_answers


@pytest.fixture
def found(monkeypatch):
    """The findings after a change; the GPU is not asked, which takes seconds."""
    monkeypatch.setattr(installation, "_torch", lambda findings: None)
    return examine


def todo(findings, start):
    (one,) = [one for one in findings.problems if one["problem"].startswith(start)]
    return one["do"]


def test_the_command_prints_facts(labelwise):
    result = labelwise("doctor")
    assert result.code in (0, 1)
    for row in ("labelwise", __version__, "numba", "cores", "kernels", "temporary folder", "minilm"):
        assert row in result.out
    assert result.out.startswith("no problems found" if result.code == 0 else "problem: ")


def test_the_command_prints_json(labelwise):
    result = labelwise("doctor", "--json")
    found = json.loads(result.out)
    assert set(found) == {"problems", "facts"}
    assert found["facts"]["system"]["labelwise"] == __version__
    assert result.code == (1 if found["problems"] else 0)


def test_what_is_missing_is_told_with_the_line_that_installs_it(found, monkeypatch):
    version = metadata.version

    def without(name):
        if name in ("numba", "matplotlib"):
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without)
    findings = found()
    assert todo(findings, "numba is not installed") == "run: pip install labelwise"
    assert findings.facts["extras"]["plot"] == "missing matplotlib: pip install 'labelwise[plot]'"


def test_what_is_too_old_is_told(found, monkeypatch):
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "0.9.3" if name == "scipy" else version(name))
    assert "pip install --upgrade 'scipy" in todo(found(), "scipy 0.9.3 is older than")


def test_extras_of_extras_count(found, monkeypatch):
    requires = ['labelwise[plot,rare]; extra == "many"', 'numpy>=1; extra == "plot"', 'nowhere>=1; extra == "rare"']
    monkeypatch.setattr(metadata, "requires", lambda name: requires)
    extras = found().facts["extras"]
    assert extras["many"] == "missing nowhere: pip install 'labelwise[many]'"
    assert extras["plot"].startswith("numpy ")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_a_torch_that_ends_the_process_is_a_problem(monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text("import os\nos.kill(os.getpid(), 11)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(installation, "_version", lambda name: "1.0")
    monkeypatch.setattr(sys, "modules", {name: found for name, found in sys.modules.items() if name != "torch"})
    findings = Findings()
    installation._torch(findings)
    assert "pip install --force-reinstall torch" in todo(
        findings, "torch ends the process that imports it (exit code -"
    )


@pytest.mark.parametrize("error", [ImportError("libtorch.so: no such file"), OSError("bad\nlibrary"), SystemError("x")])
def test_a_broken_torch_is_a_problem(error, monkeypatch):
    pytest.importorskip("torch")

    class Broken:
        def find_spec(self, name, path=None, target=None):
            if name == "torch":
                raise error
            return

    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    findings = Findings()
    installation._torch(findings)
    (problem,) = findings.problems
    assert problem["problem"].startswith("torch cannot be imported: ")
    assert "\n" not in problem["problem"]
    assert "linear models work without torch" in problem["do"]


def test_a_check_that_fails_is_a_problem_and_the_others_go_on(found, monkeypatch):
    def _packages(findings):
        raise RuntimeError("damaged metadata")

    monkeypatch.setattr(installation, "_packages", _packages)
    findings = found()
    assert "report" in todo(findings, "the check of packages failed: RuntimeError: damaged metadata")
    assert "encoders" in findings.facts


def test_no_folder_for_kernels_is_a_problem(found, monkeypatch):
    monkeypatch.setattr("labelwise.engines.kernel_cache.cache_folders", lambda: CacheFolders(None, (), "none"))
    monkeypatch.setattr("labelwise.kernels.preparing.missing", lambda purposes: [1])
    monkeypatch.setattr("numba.config.DISABLE_JIT", 0)
    assert "NUMBA_CACHE_DIR" in todo(found(), "no folder for compiled kernels")


def test_variables_that_slow_down_or_are_wrong(found, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setenv("LABELWISE_ENCODERS", str(tmp_path / "nowhere"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    findings = found()
    assert todo(findings, "NUMBA_DISABLE_JIT is set") == "unset NUMBA_DISABLE_JIT"
    assert todo(findings, "LABELWISE_ENCODERS names the folder") == "correct LABELWISE_ENCODERS"
    assert findings.facts["encoders"]["hub"] == "switched off by HF_HUB_OFFLINE"


@pytest.mark.parametrize(("answer", "told"), [(True, "answers"), (False, "does not"), (None, "huggingface_hub is not")])
def test_the_hub_is_asked_on_demand(answer, told, found, monkeypatch):
    monkeypatch.setattr("labelwise.features.pretrained.hub_answers", lambda: answer)
    assert found(network=True).facts["encoders"]["hub"].startswith(told)
    assert not found().facts["encoders"]["hub"].startswith(told)


def test_an_answer_of_the_hub(monkeypatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("labelwise.features.pretrained._is_reachable", lambda url: url.startswith("https"))
    assert hub_answers() is True
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert hub_answers() is False


def test_names_of_user_machine_and_home_are_not_shown(found, monkeypatch, tmp_path):
    home = tmp_path / "home-of-somebody"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(getpass, "getuser", lambda: "somebody")
    monkeypatch.setattr(socket, "gethostname", lambda: "secret-machine")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(home / "cache"))
    monkeypatch.setenv("TMPDIR", "/data/somebody/on/secret-machine")
    told = json.dumps([found().facts, found().problems])
    assert "~/cache" in told
    assert "/data/USER/on/HOST" in told
    for name in (str(home), "secret-machine", "/somebody/"):
        assert name not in told
    assert without_names("labels of somebodyelse") == "labels of somebodyelse"


def test_torch_is_not_imported_where_it_is_not_installed(monkeypatch):
    def without(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", without)
    findings = Findings()
    installation._torch(findings)
    assert findings.facts == {"GPU": {"torch": "not installed"}}


def test_it_runs_where_numba_is_broken():
    code = "import sys; sys.modules['numba'] = None; from labelwise.cli import main; main(['doctor', '--json'])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert found.returncode == 1
    assert "Traceback" not in found.stderr
    assert any(one["problem"].startswith("numba cannot be imported") for one in json.loads(found.stdout)["problems"])
    assert str(Path.home()) not in found.stdout or len(str(Path.home())) <= 2
