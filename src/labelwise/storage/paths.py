"""Paths that callers pass in: checked in one place, so that no function of the system meets what is no path."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from labelwise.config.settings import shown
from labelwise.errors import StorageError, UsageError

_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""What the system says of a name that stands for nothing: whether that is wrong depends on what the path is for."""


def checked_path(path: Any) -> Path:
    """A path as a `Path`: a string or a path that names can have here, and that can be reached where it exists."""
    try:
        found = Path(path)
    except TypeError as err:
        raise UsageError(f"the path is {shown(path)}; give a string or a pathlib.Path") from err
    try:
        found.stat()
    except ValueError as err:  # a NUL byte, or half of a character
        raise UsageError(f"the path {shown(str(path))} has a character that no file name can have; mend it") from err
    except OSError as err:
        if err.errno not in _NOTHING_THERE and os.name == "posix":
            name = shown(str(found)) if err.errno == errno.ENAMETOOLONG else found
            raise StorageError(f"{name} cannot be reached ({err.strerror}); give another path") from err
    return found
