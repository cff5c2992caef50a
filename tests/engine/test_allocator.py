"""Giving memory back is safe anywhere."""

import ctypes

from labelwise.engine import allocator as memory


def test_release_works_and_returns_nothing():
    assert memory.release() is None


def test_release_is_silent_where_the_c_library_cannot(monkeypatch):
    def missing(name):
        raise OSError("no such library")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert memory.release() is None
