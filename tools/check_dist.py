#!/usr/bin/env python3
"""Checks that the archives in a folder are fit for a package index: names, files, metadata, version.

    python tools/check_dist.py dist --tag v0.1.0

The wheel must be pure Python (`py3-none-any`, so that one wheel is for Linux, macOS and Windows) and hold the package
only; its description must have no relative links; its version must be that of the tag and of CITATION.cff.
"""

from __future__ import annotations

import argparse
import email.parser
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RELATIVE = re.compile(r"\]\((?!https?:|mailto:|#)[^)]*\)")
WANTED = ("Summary", "License-Expression", "Requires-Python", "Keywords", "Description-Content-Type")
URLS = ("Homepage", "Documentation", "Source", "Issues", "Changelog")


def wheel_problems(wheel: Path) -> Iterator[str]:
    """What is wrong with a wheel, a sentence each."""
    if not wheel.name.endswith("-py3-none-any.whl"):
        yield f"{wheel.name} is not for every system; no file of the package may be compiled"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (place,) = [name for name in names if re.fullmatch(r"labelwise-[^/]+\.dist-info/METADATA", name)]
        metadata = email.parser.Parser().parsestr(archive.read(place).decode("utf-8"))
    info = place.rpartition("/")[0]
    strange = [name for name in names if not name.startswith(("labelwise/", f"{info}/"))]
    compiled = [name for name in names if name.endswith((".so", ".pyd", ".dylib", ".pyc", ".nbi", ".nbc"))]
    for name in strange + compiled:
        yield f"{wheel.name} holds {name}, which does not belong there"
    for name in ("labelwise/py.typed", "labelwise/datasets/paper/sets.toml", f"{info}/licenses/LICENSE"):
        if name not in names:
            yield f"{wheel.name} lacks {name}"
    yield from metadata_problems(metadata)


def metadata_problems(metadata: Message) -> Iterator[str]:
    """What is wrong with the metadata."""
    for name in WANTED:
        if not metadata[name]:
            yield f"the metadata lack {name}"
    urls = {line.partition(",")[0] for line in metadata.get_all("Project-URL", [])}
    for name in URLS:
        if name not in urls:
            yield f"the metadata lack the address {name}"
    text = str(metadata.get_payload())
    for found in RELATIVE.findall(text):
        yield f"the description has the relative link {found}"
    if "![" not in text:
        yield "the description has no picture"


def version_problems(wheel: Path, tag: str | None) -> Iterator[str]:
    """Where another version stands than that of the wheel."""
    version = wheel.name.split("-")[1]
    if tag is not None and tag != f"v{version}":
        yield f"the tag is {tag}, but the version is {version}"
    cited = re.findall(r"(?m)^version: (\S+)", (ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    if cited != [version]:
        yield f"CITATION.cff has version {', '.join(cited)}, but the version is {version}"


def problems(folder: Path, tag: str | None) -> Iterator[str]:
    """What is wrong with the archives of a folder."""
    wheels, sources = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        yield f"{folder} holds {len(wheels)} wheels and {len(sources)} source distributions; it must be one of each"
        return
    yield from wheel_problems(wheels[0])
    yield from version_problems(wheels[0], tag)
    with tarfile.open(sources[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in (
        "pyproject.toml",
        "hatch_build.py",
        "README.md",
        "LICENSE",
        "CITATION.cff",
        "src/labelwise/__init__.py",
    ):
        if name not in names:
            yield f"{sources[0].name} lacks {name}"


def main() -> int:
    """Check and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag", help="the tag of the release, v and the version")
    options = parser.parse_args()
    found = list(problems(options.folder, options.tag))
    print(*found, sep="\n", file=sys.stderr)
    if not found:
        print(f"{options.folder}: fit for a package index")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
