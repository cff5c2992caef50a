"""Paths that callers pass in, checked in one place, and what lies below a path."""

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


def paths_below(folder: Path) -> list[Path]:
    """All files and folders below a folder, in order. OSError if one cannot be read, where pathlib finds nothing."""
    found: list[Path] = []

    def refuse(error: OSError) -> None:
        raise error

    for place, folders, files in os.walk(folder, onerror=refuse):
        found += (Path(place) / name for name in (*folders, *files))
    return sorted(found)


def files_below(folder: Path, ending: str = "") -> list[Path]:
    """All files below a folder whose names have this ending, as `paths_below` finds them."""
    return [path for path in paths_below(folder) if path.name.endswith(ending) and path.is_file()]
