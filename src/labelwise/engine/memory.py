"""Memory that is free but still held by the process."""

import ctypes
from contextlib import suppress


def release() -> None:
    """Give freed memory back to the system, where the C library knows how to (glibc does).

    Between two stages this is what keeps the second one's arrays from lying on top of the first one's leavings.
    """
    with suppress(OSError, AttributeError, TypeError):  # other systems, other C libraries
        ctypes.CDLL(None).malloc_trim(0)
