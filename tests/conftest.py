"""Settings of all tests: the examples of hypothesis, and which tests are quick."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile(
    "explore",
    max_examples=2_000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))  # the same examples every time, or `make explore`

TESTS = Path(__file__).parent
NOT_QUICK = ("slow", "gpu", "data", "rivals")
"""Marks of tests that `make check` leaves out."""
QUICK = (
    "config",
    "data",
    "datasets",
    "engine",
    "index",
    "kernels",
    "metrics",
    "predictions",
    "rank",
    "storage",
    "test_contributing.py",
    "test_layers.py",
    "test_mirror.py",
    "test_package.py",
    "test_readme.py",
    "test_repository.py",
    "test_structure.py",
)
"""Folders and files whose tests `make check` runs: they fit no model with an encoder, and start no other process."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the quick tests."""
    for item in items:
        if item.path.relative_to(TESTS).parts[0] in QUICK and not any(map(item.get_closest_marker, NOT_QUICK)):
            item.add_marker(pytest.mark.quick)
