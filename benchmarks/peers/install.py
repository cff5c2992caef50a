#!/usr/bin/env python3
"""Make the environment in which the peers run: PECOS, napkinXC and omikuji, in pinned versions from PyPI.

    python benchmarks/peers/install.py [--into .peers] [--python python3.12] [--xr-transformer]
    python benchmarks/peers/install.py --download WHEELS [--for-python 3.12] [--xr-transformer]
    python benchmarks/peers/install.py --wheels WHEELS [--into .peers] [--xr-transformer]

The first form installs from PyPI and takes about a minute, some minutes with --xr-transformer. The other two are for a
machine without network: --download fetches the wheels on a machine that has one, --wheels installs them from the
folder that was carried over. All peers have wheels for Linux on x86-64, so no compiler is needed.

With --xr-transformer the environment also holds what PECOS's neural model needs. torch is not installed: the
environment sees the packages of the Python it is made from (--python), which must have it.

Prints the environment's Python. Where everything is installed already, nothing is done.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from environment import DEFAULT, LINEAR, NEURAL, NUMERIC, PECOS, PYTHONS, python_of

PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64")
MARK = "peers-installed.txt"
"""File of the environment that names what was installed completely."""
BASE = "base-packages.pth"
"""File of the environment by which its Python also finds the packages of the one it was made from."""
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")
TRY = "import napkinxc.models, omikuji, scipy.sparse, sklearn; from pecos.xmc.xlinear.model import XLinearModel"
TRY_NEURAL = "import torch; from pecos.xmc.xtransformer.model import XTransformer"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=DEFAULT, metavar="ENV", help="default: %(default)s")
    parser.add_argument("--python", default=sys.executable, help="Python to make it from, 3.11 or 3.12")
    parser.add_argument("--xr-transformer", action="store_true", help="also what PECOS's XR-Transformer needs")
    parser.add_argument("--wheels", type=Path, help="install from this folder, without network")
    parser.add_argument("--download", type=Path, metavar="WHEELS", help="only fetch the wheels into this folder")
    parser.add_argument("--for-python", default="3.12", help="with --download: Python of the other machine")
    args = parser.parse_args(arguments)
    if args.download:
        download(args.download, args.for_python, neural=args.xr_transformer)
        print(args.download)
        return
    wanted = "\n".join([*NUMERIC, *LINEAR, *PECOS, *(NEURAL if args.xr_transformer else ())]) + "\n"
    mark = args.into / MARK
    if not set(wanted.split()) <= set(mark.read_text(encoding="utf-8").split() if mark.is_file() else ()):
        install(args.into, args.python, args.wheels, neural=args.xr_transformer)
        mark.write_text(wanted, encoding="utf-8")
    print(python_of(args.into))


def install(environment: Path, base: str, wheels: Path | None, *, neural: bool) -> None:
    """Make the environment, or complete it, and import every peer once."""
    if wheels is not None and not any(wheels.glob("*.whl")):
        sys.exit(f"there are no wheels in {wheels}; fetch them with install.py --download on a machine with network")
    packages = check_base(base, neural=neural)
    python = python_of(environment)
    if not python.exists():
        if environment.exists() and any(environment.iterdir()):
            sys.exit(f"{environment} is not a virtual environment and not empty; name another folder by --into")
        run([base, "-m", "venv", str(environment)])
    if neural:
        ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        own = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
        (own / BASE).write_text(packages + "\n", encoding="utf-8")
    if wheels is None:
        for packages, options in steps(neural=neural):
            run([str(python), *PIP, "install", "--no-warn-conflicts", "--only-binary=:all:", *options, *packages])
    else:
        files = sorted(str(file) for file in wheels.glob("*.whl"))
        run([str(python), *PIP, "install", "--no-index", "--no-deps", *files])
    run([str(python), "-c", TRY])
    if neural:
        run([str(python), "-c", TRY_NEURAL])


def download(folder: Path, version: str, *, neural: bool) -> None:
    """Fetch the wheels for Linux on x86-64 and a version of Python."""
    target = ["--dest", str(folder), "--only-binary=:all:", "--python-version", version]
    target += [part for platform in PLATFORMS for part in ("--platform", platform)]
    for packages, options in steps(neural=neural):
        run([sys.executable, *PIP, "download", *target, *options, *packages])


def steps(*, neural: bool) -> list[tuple[Sequence[str], Sequence[str]]]:
    """Packages and pip's options for them, in order. The numeric packages are named again to keep their versions."""
    found: list[tuple[Sequence[str], Sequence[str]]] = [((*NUMERIC, *LINEAR), ()), (PECOS, ("--no-deps",))]
    if neural:
        found.append(((*NUMERIC, *NEURAL), ()))
    return found


def check_base(base: str, *, neural: bool) -> str:
    """The folder of a Python's packages; exits with what to do if the environment cannot be made from this Python."""
    ask = (
        "import sys, sysconfig, importlib.util as util\n"
        "print(*sys.version_info[:2], util.find_spec('torch') is not None, sysconfig.get_path('purelib'))"
    )
    try:
        answer = subprocess.run([base, "-c", ask], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        sys.exit(f"{base} does not run or is not a Python; name one by --python")
    major, minor, has_torch, packages = answer.strip().split(" ", 3)
    if (int(major), int(minor)) not in PYTHONS:
        sys.exit(f"{base} is Python {major}.{minor}, but the peers need 3.11 or 3.12; name one by --python")
    if neural and has_torch != "True":
        sys.exit(f"{base} has no torch, which XR-Transformer needs; name a Python that has it by --python")
    return packages


def run(command: Sequence[str]) -> None:
    """Run a command and show what it prints on standard error; exit if it fails."""
    code = subprocess.run(command, stdout=sys.stderr, check=False).returncode
    if code:
        sys.exit(f"the command failed (exit code {code}), its reason is above: {' '.join(command)}")


if __name__ == "__main__":
    main()
