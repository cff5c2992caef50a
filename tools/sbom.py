#!/usr/bin/env python3
"""Writes a software bill of materials (CycloneDX 1.6, JSON) of labelwise: all packages that it may need, by version.

    python tools/sbom.py dist/labelwise.cdx.json

The versions are those of constraints.txt, which are tested together. Which package needs which, and under what licence
it is, comes from the metadata of the packages that are installed in the environment that runs this; nothing is asked
of a server. Packages of the core are `required`, those of the extras `optional`; those for developing labelwise are
left out. The same commit and environment give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import quote

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
NOT_SHIPPED = ("dev", "docs", "annif", "all")
"""Extras for developing labelwise; annif has versions of its own, in constraints-annif.txt."""
SPEC = "1.6"


def pins(text: str) -> dict[str, str]:
    """Versions by canonical name."""
    found = re.findall(r"(?m)^([A-Za-z0-9_.-]+)==(\S+)", text)
    return {canonicalize_name(name): version for name, version in found}


def needs(name: str, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """The packages that an installed package needs here, with the extras that it asks of them."""
    for line in distribution(name).requires or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in (extras or {""})):
            yield canonicalize_name(requirement.name), frozenset(requirement.extras)


def closure(requirements: list[str]) -> dict[str, set[str]]:
    """All packages that requirements lead to, each with those that it needs itself; packages not installed are out."""
    graph: dict[str, set[str]] = {}
    done: set[tuple[str, frozenset[str]]] = set()
    waiting = [(canonicalize_name(one.name), frozenset(one.extras)) for one in map(Requirement, requirements)]
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in done:
            continue
        done.add((name, extras))
        try:
            found = list(needs(name, extras))
        except PackageNotFoundError:
            continue
        graph.setdefault(name, set()).update(needed for needed, _ in found)
        waiting += found
    return {name: {needed for needed in needed_by if needed in graph} for name, needed_by in graph.items()}


def licences(name: str) -> list[dict[str, Any]]:
    """What the metadata of a package say about its licence, as CycloneDX writes it."""
    about = distribution(name).metadata
    if about.get("License-Expression"):
        return [{"expression": about["License-Expression"]}]
    classifiers = about.get_all("Classifier") or []
    named = [line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License ::")]
    short = (about.get("License") or "").strip()
    if not named and short and "\n" not in short and len(short) < 80:
        named = [short]
    return [{"license": {"name": one}} for one in dict.fromkeys(named)]


def package_url(name: str, version: str) -> str:
    """The name of a package in all tables of packages."""
    return f"pkg:pypi/{name}@{quote(version)}"


def component(name: str, version: str, scope: str) -> dict[str, Any]:
    """The entry of a package."""
    purl = package_url(name, version)
    entry = {"type": "library", "bom-ref": purl, "name": name, "version": version, "scope": scope, "purl": purl}
    found = licences(name)
    return {**entry, "licenses": found} if found else entry


def bill(root: Path = ROOT, *, seconds: int = 0) -> dict[str, Any]:
    """The whole bill, of a time in seconds since 1970."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    code = (root / "src" / "labelwise" / "__init__.py").read_text(encoding="utf-8")
    version = re.search(r'(?m)^__version__ = "(.+)"', code)[1]  # type: ignore[index]
    pinned = pins((root / "constraints.txt").read_text(encoding="utf-8"))
    own = [
        line for name, lines in project["optional-dependencies"].items() if name not in NOT_SHIPPED for line in lines
    ]
    optional = [line for line in own if not line.startswith("labelwise[")]
    core, whole = closure(project["dependencies"]), closure([*project["dependencies"], *optional])
    versions = {name: pinned.get(name, distribution(name).version) for name in whole}
    purls = {name: package_url(name, versions[name]) for name in whole}
    me = package_url("labelwise", version)
    direct = {canonicalize_name(Requirement(line).name) for line in (*project["dependencies"], *optional)} & set(whole)
    about: dict[str, Any] = {
        "timestamp": datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "component": {
            "type": "library",
            "bom-ref": me,
            "name": "labelwise",
            "version": version,
            "description": project["description"],
            "licenses": [{"expression": project["license"]}],
            "purl": me,
            "externalReferences": [{"type": "vcs", "url": project["urls"]["Source"]}],
        },
    }
    edges = [{"ref": me, "dependsOn": sorted(purls[name] for name in direct)}]
    edges += [{"ref": purls[name], "dependsOn": sorted(purls[one] for one in whole[name])} for name in sorted(whole)]
    scopes = {name: "required" if name in core else "optional" for name in whole}
    components = [component(name, versions[name], scopes[name]) for name in sorted(whole)]
    content = {"metadata": about, "components": components, "dependencies": edges}
    serial = uuid.uuid5(uuid.NAMESPACE_URL, project["urls"]["Source"] + json.dumps(content, sort_keys=True))
    return {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPEC}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPEC,
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        **content,
    }


def commit_seconds(root: Path = ROOT) -> int:
    """The time of the last commit, or that of SOURCE_DATE_EPOCH."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is not None:
        return int(given)
    command = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> int:
    """Write the bill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the file to write")
    options = parser.parse_args()
    found = bill(seconds=commit_seconds())
    options.file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{options.file}: {len(found['components'])} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
