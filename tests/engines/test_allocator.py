"""Returning memory to the system is safe everywhere, whatever the C library."""

import ctypes

import pytest

from labelwise.engines import allocator


@pytest.mark.parametrize("function", [allocator.release_free_memory, allocator.limit_heap_growth])
def test_a_call_is_silent_where_the_c_library_has_no_such_function(monkeypatch, function):
    def missing(name):
        raise OSError("no such library")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert function() is None


def test_memory_can_be_released_at_any_time():
    assert allocator.release_free_memory() is None


def test_the_limits_are_those_of_mallopt(monkeypatch):
    calls = []

    class Library:
        def __init__(self, name):
            self.mallopt = lambda parameter, value: calls.append((parameter, value))

    monkeypatch.setattr(ctypes, "CDLL", Library)
    allocator.limit_heap_growth()
    assert calls == [(-3, 4 * 2**20), (-1, 2**20)]  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
