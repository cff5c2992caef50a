"""Memory that is free but still held by the process."""

import ctypes
from contextlib import suppress

# Names of the GNU C library (mallopt(3)), and what is set: arrays from 4 MiB on have pages of their own, and a heap's
# unused end is given back from 1 MiB on.
_LIMITS = {-3: 1 << 22, -1: 1 << 20}


def release() -> None:
    """Give freed memory back to the system, where the C library knows how to (glibc does).

    Between two stages this is what keeps the second one's arrays from lying on top of the first one's leavings.
    """
    with suppress(OSError, AttributeError, TypeError):  # other systems, other C libraries
        ctypes.CDLL(None).malloc_trim(0)


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
