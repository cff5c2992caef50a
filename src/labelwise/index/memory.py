"""Large arrays that go back to the system when they are let go of, whichever thread made them."""

import ctypes
from contextlib import suppress

# Names of the GNU C library (mallopt(3)), and what is set: arrays from 4 MiB on have pages of their own, and a heap's
# unused end is given back from 1 MiB on.
_LIMITS = {-3: 1 << 22, -1: 1 << 20}


def give_back_large_arrays() -> None:
    """Keep the C library, for the rest of the process, from holding on to what threads have let go of.

    It raises its own limits, up to 32 and 64 MiB, each time a large array is let go of; what a thread allocates below
    them comes from a heap of the thread's, whose unused end not even `malloc_trim` gives back. Embedding, clustering
    and training all work by threads in large arrays, each stage on top of what the one before left behind: on
    eurlex57k that was a sixth of the highest memory. Other C libraries are left alone.
    """
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for name, value in _LIMITS.items():
            mallopt(name, value)
