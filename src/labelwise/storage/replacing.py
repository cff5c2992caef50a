"""Files and folders that appear under their name when they are complete, and readers that see one version of them.

Everything is written beside its destination and renamed. Where a folder is there already, both are exchanged in one
step: `renameat2` with RENAME_EXCHANGE on Linux, `renamex_np` with RENAME_SWAP on macOS. At every moment the name stands
for the old or for the new folder.

Windows and some file systems have no exchange. There, three renames take its place, which whoever comes later can
finish: the complete folder becomes ``.NAME.TOKEN.ready``, the old one ``.NAME.TOKEN.old``, and the new one NAME. If
NAME is missing and both others are there, the process was killed in between: readers read the ready one
(`present_place`), and the next save renames it (`clean_beside`).
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from labelwise.errors import StorageError, UsageError
from labelwise.storage.leftovers import (
    MIN_AGE_HOURS,
    TemporaryPath,
    beside,
    folders_with_temporary_paths,
    is_in_temporary,
    left_behind,
    new_token,
    remove,
    size,
    temporary,
    temporary_paths,
)
from labelwise.storage.paths import checked_path, paths_below
from labelwise.storage.write_errors import check_name, told_as_storage_error

T = TypeVar("T")

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_RENAME_SWAP = 2
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)
"""How kernels and file systems say that they cannot exchange; EPERM comes from filters of system calls."""
_OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR)
PATIENCE_SECONDS = 60.0
"""How long a reader tries again when the folder is replaced while it reads."""


# ---------------------------------------------------------------------- writing


@contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Give a temporary path beside `path`; what was written there takes its place when the block ends well."""
    path = checked_path(path)
    check_name(path)
    with told_as_storage_error(path), _parents(path):
        clean_beside(path)
        with temporary(path, folder=False) as aside:
            usual = aside.stat().st_mode
            yield aside
            aside.chmod(usual)  # some writers, such as safetensors, make a file that only its owner can read
            durable = not is_in_temporary(path)
            if durable:
                fsync(aside)
            aside.replace(path)
            if durable:
                fsync(path.parent)


@contextmanager
def atomic_folder(path: Path | str, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary folder beside `path`; it takes its place when the block ends well.

    An existing non-empty folder is refused unless `overwrite`, and then kept until the new one is complete.
    """
    path = checked_path(path)
    check_name(path)
    with told_as_storage_error(path), _parents(path):
        clean_beside(path)
        if not overwrite and _is_occupied(path):
            raise _occupied(path)
        with temporary(path, folder=True) as aside:
            yield aside
            usual = aside.stat().st_mode & 0o666
            _remove_temporary_paths(aside)
            durable = not is_in_temporary(path)  # the outer folder is written to the disk with all that is in it
            for file in paths_below(aside):
                if file.is_file():
                    file.chmod(usual)
                if durable:
                    fsync(file)
            if durable:
                fsync(aside)
            _take_place(aside, path, overwrite)
            if durable:
                fsync(path.parent)


def _remove_temporary_paths(folder: Path) -> None:
    """Remove what saves of parts could not remove, or fail: it must not become a part of the complete folder."""
    for _, found in folders_with_temporary_paths(folder):
        for one in found:
            if one.path.is_dir() and not one.path.is_symlink():
                shutil.rmtree(one.path)
            else:
                one.path.unlink()


def _is_occupied(path: Path) -> bool:
    return path.exists() and not (path.is_dir() and not any(path.iterdir()))


def _occupied(path: Path) -> UsageError:
    return UsageError(f"{path} exists already; choose another place, or allow overwriting")


@contextmanager
def _parents(path: Path) -> Iterator[None]:
    """Make the folders above; if the block fails, those that were made and are empty go again."""
    made = []
    folder = path.parent
    while not folder.exists():
        made.append(folder)
        folder = folder.parent
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for new in made:
            fsync(new.parent)
        yield
    except BaseException:
        for new in made:
            with suppress(OSError):
                new.rmdir()
        raise


def _take_place(aside: Path, path: Path, overwrite: bool) -> None:
    """Give a complete folder its name; what had the name before is then removed."""
    try:
        aside.rename(path)  # nothing there, or an empty folder
        return
    except OSError as error:
        if error.errno not in _OCCUPIED and not isinstance(error, PermissionError | FileExistsError):
            raise
        if not os.path.lexists(path):
            raise
    if not overwrite:
        raise _occupied(path)
    if exchange(aside, path):
        fsync(path.parent)  # before the old one is removed
        return
    _take_place_in_steps(aside, path)


def _take_place_in_steps(aside: Path, path: Path) -> None:
    """The three renames where the system cannot exchange two folders; each one leaves a whole folder to be found."""
    token = new_token()
    ready, old = beside(path, "ready", token), beside(path, "old", token)
    aside.rename(ready)
    fsync(path.parent)
    try:
        _rename_both(ready, path, old)
    except BaseException:
        if not os.path.lexists(path) and os.path.lexists(old):
            old.rename(path)
        raise
    finally:
        remove(ready)
    fsync(path.parent)
    remove(old)


def _rename_both(ready: Path, path: Path, old: Path) -> None:
    while True:
        with suppress(FileNotFoundError):  # another save may be at the same point
            path.rename(old)
        try:
            ready.rename(path)
            return
        except FileNotFoundError:  # another process has finished it
            return
        except OSError as error:
            if error.errno not in _OCCUPIED:
                raise
            remove(old)  # another save was faster, and its folder is what is replaced now


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two files or folders in one step; False where the system cannot."""
    call = _exchange_call()
    if call is None:
        return False
    if call(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), os.fspath(other))


@cache
def _exchange_call() -> Callable[[bytes, bytes], int] | None:
    """The system's function that exchanges two names; None where it has none."""
    name = {"linux": "renameat2", "darwin": "renamex_np"}.get(sys.platform)
    try:
        found: Any = getattr(ctypes.CDLL(None, use_errno=True), name) if name else None
    except (AttributeError, OSError, TypeError):
        found = None
    if found is None:
        return None
    path, number, flags = ctypes.c_char_p, ctypes.c_int, ctypes.c_uint
    found.restype = number
    if name == "renamex_np":
        found.argtypes = [path, path, flags]
        return lambda one, other: int(found(one, other, _RENAME_SWAP))
    found.argtypes = [number, path, number, path, flags]
    return lambda one, other: int(found(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE))


def clean_beside(path: Path) -> None:
    """Finish or remove what killed saves of the same name left; what a living process holds stays."""
    found = temporary_paths(path.parent, path.name)
    if found:
        _finish(path)
        for one in found:
            with left_behind(one) as free:
                if free:
                    remove(one.path)


def _finish(path: Path) -> None:
    """Give a ready folder its name, if the process was killed before it could."""
    place = present_place(path)
    if place != path:
        with suppress(OSError):  # another process was faster
            place.rename(path)
            fsync(path.parent)


def clean(
    folder: Path, *, dry_run: bool = False, min_age_hours: float = MIN_AGE_HOURS
) -> Iterator[tuple[TemporaryPath, int]]:
    """Remove what killed saves left in a folder and in the folders in it; gives each path with its size in bytes."""
    for at, _ in folders_with_temporary_paths(folder):
        yield from clean_folder(at, dry_run=dry_run, min_age_hours=min_age_hours)


def clean_folder(
    folder: Path, *, dry_run: bool = False, min_age_hours: float = MIN_AGE_HOURS
) -> list[tuple[TemporaryPath, int]]:
    """Remove what killed saves left in a folder, not in the folders in it; each path with its size in bytes."""
    found = temporary_paths(folder)
    unfinished = {present_place(folder / one.name): folder / one.name for one in found}
    for place, destination in unfinished.items():
        if place != destination and not dry_run:  # the save was killed before the last rename
            _finish(destination)
    removed = []
    for one in found:
        with left_behind(one, min_age_hours=min_age_hours) as free:
            if free and one.path not in unfinished:
                removed.append((one, size(one.path)))
                if not dry_run:
                    remove(one.path)
    return removed


def fsync(path: Path) -> None:
    """Have the system write a file, or the names in a folder, to the disk."""
    with suppress(PermissionError, IsADirectoryError):  # Windows cannot open a folder
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP) or not path.is_dir():  # some systems sync files only
                raise
        finally:
            os.close(handle)


# ---------------------------------------------------------------------- reading


def present_place(path: Path) -> Path:
    """Where the folder `path` lies: under its name, but for a save without an exchange that was killed."""
    if os.path.lexists(path):
        return path
    found = temporary_paths(path.parent, path.name)
    old = {one.token for one in found if one.state == "old"}
    ready = [one.path for one in found if one.state == "ready" and one.token in old]
    return ready[0] if ready and not os.path.lexists(path) else path


def read_whole(path: Path | str, read: Callable[[Path], T]) -> T:
    """What `read` makes of a folder of several parts, all of one version.

    A save may replace the folder while it is read. Then some parts are those of the old folder and some those of the
    new one, or some are missing, and the folder is read again. The open folder keeps its number on the disk from being
    used for another one.
    """
    path = checked_path(path)
    if path.is_file():
        raise StorageError(f"{path} is a file; give a folder that labelwise saved")
    begin = time.monotonic()
    while True:
        place = present_place(path)
        with _opened(place) as before:
            try:
                value = read(place)
            except Exception:
                if _identity(place) == before:
                    raise
            else:
                if _identity(place) == before:
                    return value
        if time.monotonic() - begin > PATIENCE_SECONDS:
            raise StorageError(f"{path} was replaced again and again while it was read; try again later")


@contextmanager
def _opened(path: Path) -> Iterator[tuple[int, int] | None]:
    """The identity of a folder, which is kept open for the time of the block."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # Windows cannot open a folder
        yield _identity(path)
        return
    except OSError as error:
        raise StorageError(f"{path} cannot be read ({error.strerror or error}); try again") from error
    try:
        status = os.fstat(handle)
        yield status.st_dev, status.st_ino
    finally:
        os.close(handle)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
