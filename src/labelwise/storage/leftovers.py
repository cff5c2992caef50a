"""Temporary files beside a destination: how they are named and locked, and which of them a killed process left.

A save writes beside its destination, into ``.NAME.TOKEN.partial``. It holds a lock (flock) on that file or folder as
long as it writes, and the system ends the lock with the process. So a temporary file that nobody holds was left behind.
The first six digits of TOKEN tell the running system that made the file. Locks of another machine may not be visible
here, on a network file system for example. What another machine made, or this one before it was started anew, is
therefore left alone until nothing in it has changed for `MIN_AGE_HOURS`.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Literal

try:
    import fcntl
except ImportError:  # Windows, where only the age tells
    fcntl = None  # type: ignore[assignment]

MIN_AGE_HOURS = 24.0
"""Hours without a change after which temporary files of other machines count as left behind."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAME = re.compile(r"\.(?P<name>.+)\.(?P<token>[0-9a-f]{16})\.(?P<state>partial|ready|old)", re.DOTALL)

State = Literal["partial", "ready", "old"]


class HeldElsewhereError(Exception):
    """Another open file holds the lock."""


@dataclass(frozen=True)
class TemporaryPath:
    """A file or folder that a save made beside its destination."""

    path: Path
    name: str
    """Name of the destination."""
    token: str
    state: State
    """`partial` while it is written; `ready` and `old` see `labelwise.storage.replacing`."""

    @property
    def is_ours(self) -> bool:
        """Whether this machine made it since it was started."""
        return self.token.startswith(this_system())


@cache
def this_system() -> str:
    """Six hexadecimal digits that stand for this machine since it was started."""
    try:
        name = _BOOT_ID.read_bytes()
    except OSError:
        name = f"{socket.gethostname()} {uuid.getnode()}".encode()
    return blake2b(name, digest_size=3).hexdigest()


def beside(path: Path, state: State = "partial", token: str | None = None) -> Path:
    """A path in the folder of `path`, for what belongs to it for a while."""
    return path.with_name(f".{path.name}.{token or new_token()}.{state}")


def new_token() -> str:
    """Sixteen hexadecimal digits: the running system, then chance."""
    return this_system() + secrets.token_hex(5)


def temporary_paths(folder: Path, name: str | None = None) -> list[TemporaryPath]:
    """The temporary paths in a folder, those of one destination or of all."""
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _NAME.fullmatch(entry.name) if entry.name.startswith(".") else None
            if match is not None and name in (None, match["name"]):
                state: State = match["state"]  # type: ignore[assignment]  # the pattern has no other
                found.append(TemporaryPath(Path(entry.path), match["name"], match["token"], state))
    return sorted(found, key=lambda one: one.path)


def is_in_temporary(path: Path) -> bool:
    """Whether a path lies in a folder that is still being written."""
    return any(part.startswith(".") and _NAME.fullmatch(part) for part in path.parent.parts)


# ---------------------------------------------------------------------- locks


def hold(path: Path) -> int | None:
    """Lock a file or folder until the returned descriptor is closed; None where the system has no such locks.

    The lock belongs to the file, not to its name: it goes along when the file is renamed.
    """
    if fcntl is None:
        return None
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except PermissionError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise HeldElsewhereError from error
    except OSError:  # no locks there, as for folders on NFS
        os.close(handle)
        return None
    return handle


def release(handle: int | None) -> None:
    """End what `hold` began."""
    if handle is not None:
        os.close(handle)


@contextmanager
def temporary(path: Path, *, folder: bool) -> Iterator[Path]:
    """A new locked file or folder beside `path`, which is removed at the end if it is still there.

    What is made there gets the usual rights, those that the umask leaves.
    """
    aside, handle = _new(path, folder)
    try:
        yield aside
    finally:
        remove(aside)
        release(handle)


def _new(path: Path, folder: bool) -> tuple[Path, int | None]:
    while True:
        aside = beside(path)
        if folder:
            aside.mkdir()
        else:
            aside.touch(exist_ok=False)
        try:
            handle = hold(aside)
        except HeldElsewhereError:  # somebody who cleans up was faster, and removes it
            continue
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                continue
            remove(aside)
            raise
        if handle is None or aside.exists():
            return aside, handle
        release(handle)


# ---------------------------------------------------------------------- what was left behind


@contextmanager
def left_behind(one: TemporaryPath, *, min_age_hours: float = MIN_AGE_HOURS) -> Iterator[bool]:
    """Whether nobody holds a temporary path; while the block runs, nobody else can take it."""
    try:
        handle = hold(one.path)
    except (HeldElsewhereError, OSError):
        yield False
        return
    try:
        yield (handle is not None and one.is_ours) or _age(one.path) >= min_age_hours * 3600
    finally:
        release(handle)


def folders_with_temporary_paths(folder: Path) -> Iterator[tuple[Path, list[TemporaryPath]]]:
    """A folder and the folders in it that have temporary paths, with these; links are not followed."""
    for at, folders, _ in os.walk(folder):
        found = temporary_paths(Path(at))
        if found:
            yield Path(at), found
        folders[:] = sorted(name for name in folders if not _NAME.fullmatch(name))


def remove(path: Path) -> None:
    """Remove a file, a link or a whole folder, as far as the system lets us."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    total = 0
    for part in (path, *path.rglob("*")):
        with suppress(OSError):
            if part.is_file() and not part.is_symlink():
                total += part.stat().st_size
    return total


def _age(path: Path) -> float:
    """Seconds since anything in it was changed."""
    latest = 0.0
    for part in (path, *path.rglob("*")):
        with suppress(OSError):
            status = part.lstat()
            latest = max(latest, status.st_mtime, status.st_ctime)
    return time.time() - latest
