"""A process that measures one system."""

import pytest

from labelwise.comparison.system import System
from labelwise.comparison.worker import DataLocation, measure_in_process
from labelwise.errors import LabelwiseError


def test_a_process_that_dies_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(LabelwiseError, match="its process ended with code 1"):
        measure_in_process(
            System(name="default", preset="default"), DataLocation(path="x"), tmp_path / "o", top_k=5, run_dir=None
        )
