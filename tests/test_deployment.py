"""deploy/ and what a container does to a process: another user, no home, packages that cannot be written."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from pathlib import Path

import pytest

from labelwise import LinearTree
from labelwise.cli.serve import Serve

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PACKAGE = ROOT / "src" / "labelwise"
NOBODY = 65534
beside = pytest.mark.skipif(not DEPLOY.is_dir(), reason="deploy/ is not beside the tests")
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="only root can run a program as another user, and setpriv must be there",
)


def parsed(name):
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def containerfile():
    joined = re.sub(r"\\\n\s*", " ", (DEPLOY / "Containerfile").read_text(encoding="utf-8"))
    return [line for line in joined.splitlines() if line and not line.startswith("#")]


# ---------------------------------------------------------------------- the files


@beside
def test_the_image_has_a_user_a_check_and_compiled_kernels(containerfile):
    stages = [line for line in containerfile if line.startswith("FROM ")]
    assert len(stages) == 2
    last = containerfile[containerfile.index(stages[1], containerfile.index(stages[0]) + 1) :]
    assert "USER 10001:10001" in last
    assert [line for line in last if line.startswith("HEALTHCHECK") and "/health" in line]
    assert not [line for line in last if line.startswith(("RUN", "ADD"))]
    assert [line for line in containerfile if "labelwise warm-up" in line]
    assert not [line for line in containerfile if re.search("(?i)password|token|secret", line)]


@beside
def test_the_extras_and_files_of_the_image_exist(containerfile):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    text = "\n".join((DEPLOY / name).read_text(encoding="utf-8") for name in ("Containerfile", "compose.yaml"))
    named = {one for found in re.findall(r'EXTRAS(?:=|: ")([a-z,]+)', text) for one in found.split(",")}
    assert named
    assert named <= extras.keys()
    for line in containerfile:
        if line.startswith("COPY ") and "--from" not in line:
            assert all((ROOT / name).exists() for name in line.split()[1:-1])


@beside
def test_compose_gives_no_rights(containerfile):
    (found,) = parsed("compose.yaml")
    assert set(found["services"]) == {"labelwise", "gpu"}
    for service in found["services"].values():
        assert service["read_only"] is True
        assert service["user"] == "10001:10001"
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert all(volume["read_only"] for volume in service["volumes"])
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert (ROOT / "deploy" / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        assert service["secrets"] == list(found["secrets"])
    assert found["services"]["gpu"]["deploy"]["resources"]["reservations"]["devices"]


@beside
def test_kubernetes_gives_no_rights_and_probes_routes_that_exist():
    kinds = {one["kind"]: one for one in parsed("kubernetes.yaml")}
    assert set(kinds) == {"Deployment", "Service", "HorizontalPodAutoscaler"}
    pod = kinds["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    probes = {name: container[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startupProbe": "/ready",
        "readinessProbe": "/ready",
        "livenessProbe": "/health",
    }
    ports = {port["name"] for port in container["ports"]}
    assert {probe["port"] for probe in probes.values()} == ports
    assert kinds["Service"]["spec"]["ports"][0]["targetPort"] in ports
    labels = kinds["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert kinds["Service"]["spec"]["selector"].items() <= labels.items()
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in pod["volumes"]}
    assert mounts["model"]["readOnly"] is True
    assert mounts["keys"]["readOnly"] is True
    keys = next(volume for volume in pod["volumes"] if volume["name"] == "keys")
    assert "secretName" in keys["secret"]
    grace = pod["terminationGracePeriodSeconds"]
    drain = float(container["args"][container["args"].index("--drain") + 1])
    assert grace > drain + 5  # preStop sleeps 5 seconds
    assert kinds["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == "labelwise"


@beside
def test_the_commands_have_options_that_exist(containerfile):
    pytest.importorskip("tyro")
    from labelwise.cli import parse

    command = json.loads(next(line for line in containerfile if line.startswith("CMD ")).removeprefix("CMD "))
    (compose,) = parsed("compose.yaml")
    pod = next(one for one in parsed("kubernetes.yaml") if one["kind"] == "Deployment")["spec"]["template"]["spec"]
    commands = [command, pod["containers"][0]["args"], *(one["command"] for one in compose["services"].values())]
    for name, *options in commands:
        loaded = parse(name, options)
        assert isinstance(loaded, Serve)
        assert (loaded.models, loaded.host, loaded.port) == (("/model",), "0.0.0.0", 8000)


# ---------------------------------------------------------------------- the process


@pytest.fixture(scope="module")
def image():
    """What an image holds: packages and a model that belong to root and cannot be written, in a folder all can read."""
    folder = Path(tempfile.mkdtemp(prefix="image-"))
    try:
        shutil.copytree(PACKAGE, folder / "site" / "labelwise")
        (folder / "site" / "labelwise" / "kernels" / "__pycache__").mkdir(exist_ok=True)
        texts = ["red shoe", "blue shoe", "red mug", "blue mug"] * 5
        labels = [["shoe"], ["shoe"], ["mug"], ["mug"]] * 5
        LinearTree(calibrate=False).fit(texts, labels).save(folder / "model")
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o444)
        yield folder
    finally:
        shutil.rmtree(folder)


def environment(image, temporary, **more):
    """The variables of a container: nearly none, and no home."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "NUMBA_DISABLE_JIT")}
    return {**kept, "PYTHONPATH": str(image / "site"), "HOME": "/nonexistent", "TMPDIR": str(temporary), **more}


PREFIX = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def as_nobody(image, temporary, *arguments, stdin="", **more):
    """Run Python as a user without privileges."""
    return subprocess.run(
        [*PREFIX, sys.executable, *arguments],
        env=environment(image, temporary, **more),
        cwd="/",
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def temporary():
    """A temporary folder as systems have it."""
    folder = Path(tempfile.mkdtemp(prefix="tmp-"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


COUNT = """
import numpy as np
from labelwise.kernels.terms import eight_letters as kernel
from labelwise.engines.kernel_cache import cache_folders
import labelwise
kernel(np.zeros(8, np.uint8), np.zeros(1, np.int64), np.ones(1, np.int64), 0)
print(labelwise.__file__)
print(cache_folders().chosen_by, sum(kernel.stats.cache_hits.values()), sep=": ")
"""


def chosen(found, image):
    assert found.returncode == 0, found.stderr
    file, told = found.stdout.splitlines()
    assert file.startswith(str(image))
    return told


@pytest.fixture
def bare(image):
    """The image without compiled kernels."""
    kernels = image / "site" / "labelwise" / "kernels"
    shutil.move(kernels / "__pycache__", image / "kept")
    yield image
    shutil.move(image / "kept", kernels / "__pycache__")


@as_root
def test_kernels_are_kept_for_a_user_without_a_home(bare, temporary):
    assert chosen(as_nobody(bare, temporary, "-c", COUNT), bare) == "the temporary folder: 0"
    assert (temporary / f"labelwise-{NOBODY}").stat().st_mode & 0o777 == 0o700
    assert chosen(as_nobody(bare, temporary, "-c", COUNT), bare) == "the temporary folder: 1"
    cache = temporary / "cache"
    cache.mkdir()
    os.chown(cache, NOBODY, NOBODY)
    named = as_nobody(bare, temporary, "-c", COUNT, NUMBA_CACHE_DIR=str(cache / "numba"))
    assert chosen(named, bare) == "NUMBA_CACHE_DIR: 0"
    mounted = as_nobody(bare, temporary, "-c", COUNT, XDG_CACHE_HOME=str(cache))
    assert chosen(mounted, bare) == "XDG_CACHE_HOME: 0"


@as_root
def test_kernels_in_a_folder_that_root_prepared_for_nobody_are_not_read(bare, temporary):
    trap = temporary / f"labelwise-{NOBODY}"
    trap.mkdir()
    trap.chmod(0o777)
    found = as_nobody(bare, temporary, "-c", COUNT)
    assert chosen(found, bare) == "no folder can be written: 0"
    assert found.stderr.count("set NUMBA_CACHE_DIR") == 1
    assert list(trap.iterdir()) == []


@as_root
def test_commands_run_where_nothing_can_be_written(image, temporary):
    """The image's kernels are read from the package, and nothing is written."""
    temporary.chmod(0o755)
    command = ("-m", "labelwise", "predict", str(image / "model"), "-", "--json")
    found = as_nobody(image, temporary, *command, stdin="a red shoe\n")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["labels"][0][0] == "shoe"
    assert "Traceback" not in found.stderr
    found = as_nobody(image, temporary, "-m", "labelwise", "doctor", "--json")
    assert json.loads(found.stdout)["facts"]["kernels"]["read from"].startswith(str(image))
    assert "Traceback" not in found.stderr
    assert list(temporary.iterdir()) == []


@as_root
def test_the_probes_of_a_real_server(image, temporary):
    pytest.importorskip("uvicorn")
    command = [*PREFIX, sys.executable, "-m", "labelwise", "serve", str(image / "model"), "--host", "0.0.0.0"]
    options = {"env": environment(image, temporary), "cwd": "/", "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, "--port", "0"], **options) as server:
        try:
            told = iter(server.stderr)
            port = next(line["port"] for line in map(json.loads, told) if line["event"] == "listening")
            for path in ("/ready", "/health"):
                request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Host": "10.1.2.3:8000"})
                with urllib.request.urlopen(request, timeout=20) as answer:
                    assert answer.status == 200
            text = (DEPLOY / "Containerfile").read_text(encoding="utf-8") if DEPLOY.is_dir() else ""
            for program in re.findall(r'CMD \["python", "-c", "(.*)"\]', text):
                check = program.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
                subprocess.run([sys.executable, "-c", check], check=True, timeout=20)
            server.send_signal(signal.SIGTERM)
            begin = time.monotonic()
            assert server.wait(20) == 0
            assert time.monotonic() - begin < 20
        finally:
            server.kill()
