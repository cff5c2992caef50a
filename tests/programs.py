"""Programs that lie outside of the package: tools, benchmarks, examples, scripts of the documentation."""

import importlib.util
import sys
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def loaded(file: Path):
    """A program as a module, which can be imported by its name while the block runs."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.modules.pop(spec.name, None)
