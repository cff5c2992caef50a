"""The most memory of a piece of work, also where it is given back before the end."""

import subprocess
import sys

import pytest

from labelwise.engines.peak_memory import PeakMemory, resident_bytes

MEGABYTE = 1 << 20


SCRIPT = """
import time
import numpy as np
from labelwise.engines.peak_memory import PeakMemory, resident_bytes

before = resident_bytes()
with PeakMemory() as peak:
    block = np.ones(64 << 20, np.uint8)
    time.sleep(0.2)
    del block
with PeakMemory() as later:
    pass
print(before, peak.n_bytes, later.n_bytes)
"""


@pytest.mark.skipif(resident_bytes() is None, reason="the system does not tell")
def test_memory_that_is_given_back_is_seen():
    # In a process of its own: whether freed memory goes back to the system depends on what ran before.
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    before, peak, later = map(int, done.stdout.split())
    assert peak >= before + 60 * MEGABYTE
    assert later <= peak - 30 * MEGABYTE  # the mark does not stay where it was


def test_an_error_passes_through_and_ends_the_thread():
    with pytest.raises(ValueError, match="mine"), PeakMemory() as peak:
        raise ValueError("mine")
    assert not peak._thread.is_alive()


def test_a_system_that_does_not_tell(monkeypatch, tmp_path):
    monkeypatch.setattr("labelwise.engines.peak_memory._STATM", tmp_path / "none")
    with PeakMemory() as peak:
        pass
    assert peak.n_bytes is None
