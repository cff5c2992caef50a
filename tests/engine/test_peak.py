"""The most memory of a piece of work, also where it is given back before the end."""

import time

import numpy as np
import pytest

from labelwise.engine.peak import PeakMemory, resident_bytes

MEGABYTE = 1 << 20


@pytest.mark.skipif(resident_bytes() is None, reason="the system does not tell")
def test_memory_that_is_given_back_is_seen():
    before = resident_bytes()
    with PeakMemory() as peak:
        block = np.ones(64 * MEGABYTE, np.uint8)
        time.sleep(0.2)
        del block
    assert peak.n_bytes >= before + 60 * MEGABYTE
    with PeakMemory() as later:  # the mark does not stay where it was
        pass
    assert later.n_bytes <= peak.n_bytes - 30 * MEGABYTE


def test_an_error_passes_through_and_ends_the_thread():
    with pytest.raises(ValueError, match="mine"), PeakMemory() as peak:
        raise ValueError("mine")
    assert not peak._thread.is_alive()


def test_a_system_that_does_not_tell(monkeypatch, tmp_path):
    monkeypatch.setattr("labelwise.engine.peak._STATM", tmp_path / "none")
    with PeakMemory() as peak:
        pass
    assert peak.n_bytes is None
