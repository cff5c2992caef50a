"""The peers' environment: which versions it holds, where it is, and how a script finds its Python.

PECOS, napkinXC and omikuji need older versions of numpy than labelwise, so they live in a virtual environment of their
own. `install.py` makes it; everything that runs a peer asks `peers_python` for its interpreter. Only the standard
library is imported here: the scripts run in labelwise's environment as well as in the peers'.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

DEFAULT = Path(__file__).resolve().parents[2] / ".peers"
"""The environment's place if none is given: a folder of the checkout that git ignores."""

NUMERIC = ("numpy==1.26.4", "scipy==1.13.1", "scikit-learn==1.5.2", "cffi==1.17.1")
"""The newest versions that the peers' wheels work with."""
LINEAR = ("napkinxc==0.7.2", "omikuji==0.5.2")
"""Installed with what they depend on."""
PECOS = ("libpecos==1.2.8",)
"""Installed without its dependencies: torch, transformers, peft and datasets. XR-Linear imports none of them, and
XR-Transformer only the first two."""
NEURAL = ("transformers==4.46.3", "tokenizers==0.20.3", "huggingface-hub==0.26.5", "sentencepiece==0.2.0")
"""What XR-Transformer needs in addition to torch, installed with what it depends on; torch is not part of that."""
VERSIONS = {"pecos": "libpecos", "napkinxc": "napkinxc", "omikuji": "omikuji"}
"""Peer -> its package on PyPI."""
PYTHONS = ((3, 11), (3, 12))
"""Versions of Python that every peer has wheels for and these scripts are written for."""


def add_peers_option(parser: argparse.ArgumentParser) -> None:
    """Add --peers to the command line of a script that runs a peer."""
    parser.add_argument(
        "--peers", type=Path, default=DEFAULT, metavar="ENV", help="environment of the peers (default: %(default)s)"
    )


def python_of(environment: Path) -> Path:
    """The interpreter of a virtual environment, whether it exists or not."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def peers_python(environment: Path) -> Path:
    """The interpreter of the peers' environment; exits with what to run where there is none."""
    python = python_of(environment)
    if not python.exists():
        sys.exit(missing(environment))
    return python


def missing(environment: Path) -> str:
    """The sentence for an environment that is not there."""
    place = "" if environment == DEFAULT else f" --into {environment}"
    return (
        f"there is no environment of the peers in {environment}; make it with\n"
        f"  python benchmarks/peers/install.py{place}\n"
        "or name another one by --peers"
    )
