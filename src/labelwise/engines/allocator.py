"""What the C library does with memory that Python has freed."""

import ctypes
from contextlib import suppress

# Parameters of mallopt(3) in the GNU C library, with the values that are set: arrays of 4 MiB and more have pages of
# their own (M_MMAP_THRESHOLD), and a heap returns an unused end of 1 MiB and more (M_TRIM_THRESHOLD).
_LIMITS = {-3: 1 << 22, -1: 1 << 20}


def release_free_memory() -> None:
    """Return freed memory to the system now, where the C library can (glibc can). No setting is changed.

    Called between two stages, so that the arrays of the second do not come on top of the freed arrays of the first.
    """
    with suppress(OSError, AttributeError, TypeError):  # other systems, other C libraries
        ctypes.CDLL(None).malloc_trim(0)


def limit_heap_growth() -> None:
    """Make the C library return large freed arrays to the system at once, for the rest of the process.

    By default glibc raises its own limits, up to 32 and 64 MiB, each time a large array is freed. Smaller arrays then
    come from the heap of a thread, and not even `malloc_trim` returns the unused end of such a heap. Embedding,
    clustering and training work with large arrays in threads, so each stage adds to what the earlier stages left: a
    sixth of the peak memory on eurlex57k.

    This is a setting of the whole process, so only programs call this function: the commands of labelwise that train
    do, functions and models of the library do not. Other C libraries than glibc are not changed.
    """
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in _LIMITS.items():
            mallopt(parameter, value)
