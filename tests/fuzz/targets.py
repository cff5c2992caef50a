"""The programs in tools/fuzz as modules."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "tools" / "fuzz"


def fuzz_target(name: str):
    """A program of tools/fuzz; the test is skipped where the tools are not beside the tests."""
    if not (FOLDER / f"{name}.py").is_file():
        pytest.skip("the tools are not beside the tests")
    path = list(sys.path)
    try:
        sys.path.insert(0, str(FOLDER))
        return importlib.import_module(name)
    finally:
        sys.path[:] = path
