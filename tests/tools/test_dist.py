"""make dist: archives with equal bytes, and a list of packages that other programs can read."""

import json
import re
from pathlib import Path

import pytest

import labelwise
from tests.programs import loaded

TOOLS = Path(__file__).parents[2] / "tools"
pytestmark = pytest.mark.skipif(not TOOLS.is_dir(), reason="the tools are not beside the tests")


@pytest.fixture(scope="module")
def sbom():
    pytest.importorskip("packaging")
    with loaded(TOOLS / "sbom.py") as module:
        yield module


@pytest.fixture(scope="module")
def dist():
    with loaded(TOOLS / "dist.py") as module:
        yield module


@pytest.fixture(scope="module")
def bill(sbom):
    return sbom.bill(seconds=1_700_000_000)


def check_licences(entries):
    for entry in entries:
        assert entry.keys() in ({"expression"}, {"license"})
        assert "expression" not in entry or len(entries) == 1  # the schema: one expression, or licences
        assert "license" not in entry or entry["license"].keys() == {"name"}


def check_component(entry):
    assert entry["type"] == "library"
    assert entry.keys() <= {
        *("type", "bom-ref", "name", "version", "description", "scope", "licenses", "purl", "externalReferences")
    }
    assert re.fullmatch(r"pkg:pypi/[a-z0-9-]+@[A-Za-z0-9._%-]+", entry["purl"])
    assert entry.get("scope", "required") in ("required", "optional", "excluded")
    check_licences(entry.get("licenses", []))


def test_the_fields_are_those_of_cyclonedx(bill):
    assert bill.keys() == {
        *("$schema", "bomFormat", "specVersion", "serialNumber", "version", "metadata", "components", "dependencies")
    }
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", bill["serialNumber"])
    assert bill["metadata"].keys() == {"timestamp", "component"}
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    for entry in (bill["metadata"]["component"], *bill["components"]):
        check_component(entry)
    refs = [entry["bom-ref"] for entry in (bill["metadata"]["component"], *bill["components"])]
    assert len(set(refs)) == len(refs)
    assert sorted(edge["ref"] for edge in bill["dependencies"]) == sorted(refs)
    for edge in bill["dependencies"]:
        assert set(edge["dependsOn"]) <= set(refs)
        assert len(set(edge["dependsOn"])) == len(edge["dependsOn"])


def test_the_packages_are_those_of_the_constraints(bill, sbom):
    assert bill["metadata"]["component"]["version"] == labelwise.__version__
    found = {entry["name"]: entry for entry in bill["components"]}
    pinned = sbom.pins((TOOLS.parent / "constraints.txt").read_text(encoding="utf-8"))
    assert {name: found[name]["version"] for name in found if name in pinned} == {
        name: pinned[name] for name in found if name in pinned
    }
    for name in ("numpy", "scipy", "numba", "llvmlite", "safetensors"):  # llvmlite is what numba needs
        assert found[name]["scope"] == "required"
    assert "pytest" not in found
    (edge,) = [edge for edge in bill["dependencies"] if edge["ref"] == found["numba"]["bom-ref"]]
    assert found["llvmlite"]["bom-ref"] in edge["dependsOn"]


def test_the_same_bill_twice(bill, sbom):
    assert json.dumps(sbom.bill(seconds=1_700_000_000)) == json.dumps(bill)


def test_archives_that_differ_are_told(dist):
    dist.check_equal({"a": b"1"}, {"a": b"1"}, "copy 2")
    for other in ({"a": b"2"}, {"b": b"1"}, {}):
        with pytest.raises(SystemExit, match=r"copy 2: other bytes in .*a"):
            dist.check_equal({"a": b"1"}, other, "copy 2")
