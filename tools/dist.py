#!/usr/bin/env python3
"""Builds the source distribution and the wheel twice, checks that the bytes are equal, and writes them to dist/.

    python tools/dist.py

The last commit is built, from two copies in folders of other names, times and rights; the time in the archives is that
of the commit (SOURCE_DATE_EPOCH). A wheel that is made of the source distribution must be the same too. Beside them are
written a software bill of materials (tools/sbom.py) and SHA256SUMS. hatchling must be installed.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

UMASKS = (0o022, 0o077)


def copy_of_commit(folder: Path, umask: int) -> Path:
    """The files of the last commit in a new folder, with rights of this umask and times of their own."""
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", "HEAD"], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    for number, path in enumerate(sorted(folder.rglob("*"))):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~umask)
        os.utime(path, (umask + number, umask + number))
    return folder


def built(source: Path, out: Path, seconds: int, *targets: str) -> dict[str, bytes]:
    """The archives that hatchling makes of a folder, by name."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    for target in targets:
        command += ["-t", target]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds)}
    subprocess.run(command, cwd=source, env=environment, check=True, stdout=subprocess.DEVNULL)
    return {file.name: file.read_bytes() for file in sorted(out.iterdir()) if file.suffix in (".whl", ".gz")}


def build_twice(folder: Path, seconds: int) -> dict[str, bytes]:
    """The archives, after all ways of building them have given the same bytes."""
    first: dict[str, bytes] = {}
    for number, umask in enumerate(UMASKS):
        source = copy_of_commit(folder / f"copy {number}", umask)
        found = built(source, folder / f"out-{number}", seconds, "sdist", "wheel")
        first = first or found
        check_equal(first, found, f"copy {number + 1}")
    (name,) = [name for name in first if name.endswith(".tar.gz")]
    with tarfile.open(fileobj=io.BytesIO(first[name])) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    wheel = built(folder / "unpacked" / name.removesuffix(".tar.gz"), folder / "out-unpacked", seconds, "wheel")
    check_equal({name: first[name] for name in wheel}, wheel, "the wheel of the source distribution")
    return first


def check_equal(first: dict[str, bytes], second: dict[str, bytes], what: str) -> None:
    """End with a sentence if archives differ."""
    different = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    if different:
        raise SystemExit(f"{what}: other bytes in {', '.join(different)}")


def main() -> int:
    """Build, compare, write."""
    from sbom import commit_seconds

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder for the archives")
    options = parser.parse_args()
    changed = subprocess.run(["git", "-C", str(ROOT), "status", "--short"], capture_output=True, text=True, check=True)
    if changed.stdout:
        print("note: the working tree has changes, which are not built; the last commit is", file=sys.stderr)
    seconds = commit_seconds()
    with tempfile.TemporaryDirectory() as folder:
        archives = build_twice(Path(folder), seconds)
    shutil.rmtree(options.output, ignore_errors=True)
    options.output.mkdir(parents=True)
    for name, content in archives.items():
        (options.output / name).write_bytes(content)
    (wheel,) = [name for name in archives if name.endswith(".whl")]
    bill = options.output / f"{'-'.join(wheel.split('-')[:2])}.cdx.json"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds)}
    subprocess.run([sys.executable, str(ROOT / "tools" / "sbom.py"), str(bill)], check=True, env=environment)
    files = sorted(file for file in options.output.iterdir())
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files]
    (options.output / "SHA256SUMS").write_text("\n".join(sums) + "\n", encoding="utf-8")
    print("built twice and from the source distribution, equal bytes:", *sums, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
