"""A destination that cannot be written, said in one sentence: before the work, and when it turns out later."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labelwise.errors import LabelwiseError, StorageError, UsageError
from labelwise.storage.leftovers import beside, remove
from labelwise.storage.paths import checked_path

PROBE_BYTES = 1 << 16
"""Size of the file that is written to try a destination."""

_ADVICE = {
    errno.ENOSPC: "free some space, or choose another place",
    errno.EDQUOT: "free some space, or choose another place",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), or choose another place",
    errno.EACCES: "choose a place where you may write",
    errno.EPERM: "choose a place where you may write",
    errno.EROFS: "choose a place where you may write",
    errno.EMFILE: "close files, or raise the limit of open files (ulimit -n)",
    errno.ENFILE: "close files, or raise the system's limit of open files",
    errno.EIO: "check the disk or the network drive",
    errno.ENAMETOOLONG: "choose a shorter name",
}
_RUST = re.compile(r"\(os error (\d+)\)")


class WriteError(StorageError):
    """A destination could not be written."""

    def __init__(self, path: Path, number: int, culprit: object) -> None:
        super().__init__(_sentence(path, number, culprit))
        self.number, self.culprit = number, culprit


@contextmanager
def told_as_storage_error(path: Path) -> Iterator[None]:
    """Errors of the system while `path` is being written, as a `StorageError` with the path and what to do.

    An error in a part of a folder is told with the name of the folder, which the user gave.
    """
    try:
        yield
    except WriteError as error:
        raise WriteError(path, error.number, error.culprit) from error.__cause__
    except (LabelwiseError, BrokenPipeError):
        raise
    except Exception as error:
        number = _error_number(error)
        if number is None:
            raise
        raise WriteError(path, number, getattr(error, "filename", None)) from error


def _error_number(error: Exception) -> int | None:
    """The system's number of an error; None if it was no error of the system.

    safetensors and tokenizers are written in Rust. They tell the number in their messages only, the latter in an
    exception that has no class of its own.
    """
    if isinstance(error, OSError):
        return error.errno
    if type(error) is Exception or type(error).__name__ == "SafetensorError":
        found = _RUST.search(str(error))
        return int(found[1]) if found else None
    return None


def _sentence(path: Path, number: int, culprit: object) -> str:
    reason, advice = os.strerror(number), _ADVICE.get(number, "choose another place")
    if isinstance(culprit, str | Path) and not _belongs(Path(culprit), path):
        return f"{culprit}: {reason}; {path} was not written"
    return f"{path} cannot be written ({reason}): {advice}"


def _belongs(culprit: Path, path: Path) -> bool:
    """Whether a file is the destination, lies in it or beside it, or is a folder above."""
    culprit, folder = Path(os.path.abspath(culprit)), Path(os.path.abspath(path)).parent  # noqa: PTH100  # keeps links
    return culprit.is_relative_to(folder) or folder.is_relative_to(culprit)


def check_writable(path: Path | str, *, is_file: bool = False) -> None:
    """Raise an error now if the folder or file `path` could not be written at the end of the work.

    A file is written beside it, in the nearest folder that exists, and removed.
    """
    path = checked_path(path)
    check_name(path)
    if is_file and path.is_dir():
        raise UsageError(f"{path} is a folder; give a file to write")
    with told_as_storage_error(path):
        if os.path.ismount(path):
            raise StorageError(
                f"{path} is the root of a mounted file system, which cannot be replaced; name a folder in it, such as "
                f"{path / 'model'}"
            )
        name, folder = path, path.parent
        while not folder.exists() and folder != folder.parent:
            name, folder = folder, folder.parent
        if not folder.is_dir():
            raise StorageError(f"{path} cannot be made, since {folder} is a file; choose another place")
        _check_sticky(path, folder)
        probe = beside(folder / name.name)
        try:
            with probe.open("xb") as file:
                file.write(bytes(PROBE_BYTES))
        finally:
            remove(probe)


def check_name(path: Path) -> None:
    """Refuse paths that have no name of their own, beside which nothing can be written."""
    if path.name in ("", ".."):
        raise UsageError(f"{path} cannot be replaced by a new folder or file; name one in it, such as {path / 'model'}")


def _check_sticky(path: Path, folder: Path) -> None:
    """Refuse what belongs to others in a folder such as /tmp, where only owners may rename."""
    if not hasattr(os, "geteuid") or os.geteuid() == 0 or not os.path.lexists(path):
        return
    above = folder.stat()
    if above.st_mode & stat.S_ISVTX and os.geteuid() not in (above.st_uid, path.lstat().st_uid):
        raise StorageError(f"{path} belongs to another user, who alone may replace it; choose another place")
