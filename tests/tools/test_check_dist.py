"""What a package index gets: metadata, links of the README, the files of the wheel."""

import os
import re
import subprocess
import sys
import types
import zipfile
from email.message import Message
from pathlib import Path

import pytest

import labelwise
from tests.programs import loaded

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "tools").is_dir(), reason="the tools are not beside the tests")


@pytest.fixture(scope="module")
def check():
    with loaded(ROOT / "tools" / "check_dist.py") as module:
        yield module


@pytest.fixture
def hook(monkeypatch):
    """The hook, with or without hatchling."""
    name = "hatchling.metadata.plugin.interface"
    plugin = types.ModuleType(name)
    plugin.MetadataHookInterface = type("MetadataHookInterface", (), {"root": str(ROOT)})
    for package in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, package, types.ModuleType(package))
    monkeypatch.setitem(sys.modules, name, plugin)
    with loaded(ROOT / "hatch_build.py") as module:
        yield module


def test_links_and_images_get_the_address_of_the_tag(hook):
    text = "[a](docs/a.md#b) ![c](docs/c.svg) [d](https://x.org/d) [e](#e) [f](mailto:f@x.org) f(x) [g]"
    assert hook.for_index(text, "https://github.com/o/r", "v1.0") == (
        "[a](https://github.com/o/r/blob/v1.0/docs/a.md#b) "
        "![c](https://raw.githubusercontent.com/o/r/v1.0/docs/c.svg?sanitize=true) "
        "[d](https://x.org/d) [e](#e) [f](mailto:f@x.org) f(x) [g]"
    )


def test_the_readme_in_the_metadata_has_no_relative_link(hook, check):
    metadata = {"urls": {"Source": "https://github.com/labelwise/labelwise"}}
    hook.CustomMetadataHook().update(metadata)
    readme = metadata["readme"]
    assert readme["content-type"] == "text/markdown"
    assert check.RELATIVE.findall(readme["text"]) == []
    assert check.RELATIVE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    files = re.findall(rf"/(?:blob/)?v{re.escape(labelwise.__version__)}/([^)#?]+)", readme["text"])
    assert len(files) > 20
    assert [file for file in files if not (ROOT / file).exists()] == []


def metadata(**entries):
    message = Message()
    for name, values in entries.items():
        for value in values if isinstance(values, list) else [values]:
            message[name.replace("_", "-")] = value
    return message


GOOD = {
    "Summary": "s",
    "License_Expression": "MIT",
    "Requires_Python": ">=3.11",
    "Keywords": "k",
    "Description_Content_Type": "text/markdown",
    "Project_URL": [
        f"{name}, https://x.org" for name in ("Homepage", "Documentation", "Source", "Issues", "Changelog")
    ],
}


def test_what_is_wrong_with_metadata_is_said(check):
    good = metadata(**GOOD)
    good.set_payload("![p](https://x.org/p.svg)")
    assert list(check.metadata_problems(good)) == []
    bad = metadata(**{**GOOD, "Project_URL": []} | {"Summary": []})
    bad.set_payload("[a](docs/a.md)")
    found = list(check.metadata_problems(bad))
    assert "the metadata lack Summary" in found
    assert "the metadata lack the address Issues" in found
    assert "the description has the relative link ](docs/a.md)" in found
    assert "the description has no picture" in found


def test_what_is_wrong_with_a_wheel_is_said(check, tmp_path):
    wheel = tmp_path / "labelwise-9.9-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("labelwise-9.9.dist-info/METADATA", "Name: labelwise\n\n")
        archive.writestr("labelwise/fast.so", "")
        archive.writestr("tests/test_a.py", "")
    found = "\n".join(check.wheel_problems(wheel))
    for said in (
        "is not for every system",
        "holds labelwise/fast.so",
        "holds tests/test_a.py",
        "lacks labelwise/py.typed",
    ):
        assert said in found
    assert next(check.version_problems(wheel, "v9.8")) == "the tag is v9.8, but the version is 9.9"
    assert list(check.problems(tmp_path, None)) == [
        f"{tmp_path} holds 1 wheels and 0 source distributions; it must be one of each"
    ]


def test_the_archives_that_hatchling_builds_are_fit(check, tmp_path):
    pytest.importorskip("hatchling", reason="hatchling is not installed; make dist installs it")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1"})
    assert list(check.problems(tmp_path, f"v{labelwise.__version__}")) == []
