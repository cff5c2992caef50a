"""API keys: a file of their SHA-256 hashes. Keys are 256 random bits, so a slow hash would add nothing."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labelwise.errors import DataError, StorageError, UsageError
from labelwise.serve.logs import JsonLog

_LINE = re.compile(r"sha256:([0-9a-f]{64}) (user|admin) (\S+)")
_CUT_LINE = re.compile(r"sha256:[0-9a-f]{0,64}( (u(s(er?)?)?|a(d(m(in?)?)?)?)? ?)?")
"""What is left of a line that was not written to its end."""
_HEAD = "# API keys of labelwise serve: hash, role, name. Remove a line to withdraw a key.\n"
SETTLED_SECONDS = 2.0
"""A file that was changed less than this before it was read may change again without another time stamp: some file
systems store whole seconds."""


@dataclass(frozen=True)
class Key:
    """An entry of the key file."""

    digest: bytes
    role: str
    name: str


class Keyring:
    """The keys that a server accepts."""

    def __init__(self, keys: Sequence[Key] = ()) -> None:
        self.keys = tuple(keys)

    @classmethod
    def read(cls, file: Path) -> Keyring:
        """The keys of a file that `make_key` wrote; an error if a line is wrong, or if there is no key."""
        keys, wrong = _entries(_content(file))
        if wrong:
            raise DataError("this is not a line of a key file; make the file again", path=file, line=wrong[0])
        if not keys:
            raise DataError("the file has no key; make one with --make-key FILE", path=file)
        return cls(keys)

    def find(self, key: bytes) -> Key | None:
        """The key's entry; all entries are compared, each in constant time."""
        digest, found = hashlib.sha256(key).digest(), None
        for entry in self.keys:
            if hmac.compare_digest(digest, entry.digest):
                found = entry
        return found


class KeyFile:
    """The keys of a file as it is now: a key that is taken out of the file is refused from the next request on.

    Without a file, or without a key in it, no key is accepted. A line that cannot be read gives no key; the other lines
    count. The log has an event for each change.
    """

    def __init__(self, file: Path, log: JsonLog) -> None:
        self.file, self._log = file, log
        self._stamp = _stamp(file)
        self._read_at = time.time()
        self._problem = ""
        self._ring = Keyring.read(file)  # a server does not start with a key file that is wrong

    def current(self) -> Keyring:
        """The keys, read again if the file was changed."""
        stamp = _stamp(self.file)
        if stamp is None or stamp != self._stamp or self._read_at - max(stamp[:2]) / 1e9 < SETTLED_SECONDS:
            self._read(stamp)
        return self._ring

    def _read(self, stamp: tuple[int, ...] | None) -> None:
        self._read_at, before = time.time(), self._ring
        problem = ""
        try:
            keys, wrong = _entries(_content(self.file))
        except (OSError, DataError) as error:
            keys, wrong, problem = [], [], str(error)
            stamp = None
        if wrong:
            problem = f"{self.file}, line {wrong[0]}: this is not a line of a key file, so it gives no key"
        elif not keys:
            problem = problem or f"{self.file}: the file holds no key"
        self._ring = Keyring(keys)
        if problem and problem != self._problem:
            self._log.event("keys_failed", reason=problem, keys=len(keys))
        elif before.keys != self._ring.keys:
            self._log.event("keys_changed", keys=len(keys))
        self._stamp, self._problem = stamp, problem


def make_key(file: Path, *, name: str, admin: bool = False) -> str:
    """Add the hash of a new key to a file. Returns the key, which is stored nowhere.

    The file is written aside and renamed, so that it stays as it was if the disk is full. The rest of a line that was
    not written to its end is left out.
    """
    if not re.fullmatch(r"[\w.@-]{1,64}", name):
        raise UsageError(f"--key-name {name!r}: use letters, digits and . @ - _ only, at most 64")
    key = "lw_" + secrets.token_urlsafe(32)
    line = f"sha256:{hashlib.sha256(key.encode()).hexdigest()} {'admin' if admin else 'user'} {name}\n"
    target = file.resolve()  # a link stays a link
    for _ in range(10):
        stamp = _stamp(target)
        before = _HEAD if stamp is None else _complete_lines(target)
        if _replace(target, before + line, stamp):
            return key
    raise StorageError(f"{file} is being changed by another process; try again")


def _replace(file: Path, content: str, stamp: tuple[int, ...] | None) -> bool:
    """Write the file whole or not at all, with the rights that it had. Returns false if it changed meanwhile."""
    aside = file.with_name(f".{file.name}.{secrets.token_hex(8)}.partial")
    try:
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
            if stamp is not None:
                _take_rights(file, aside)
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        if _stamp(file) != stamp:
            return False
        aside.replace(file)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"{file}: the key cannot be stored ({reason}); the file is as it was") from error
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
    return True


def _take_rights(file: Path, aside: Path) -> None:
    """Give the new file the mode and, where that is allowed, the owner of the old one."""
    before = file.stat()
    if hasattr(os, "chown"):
        with contextlib.suppress(PermissionError):
            os.chown(aside, before.st_uid, before.st_gid)
    aside.chmod(before.st_mode & 0o777)


def _complete_lines(file: Path) -> str:
    """The content of a key file without a line that was cut off; an error if the file is something else."""
    whole, line_end, last = _content(file).rpartition("\n")
    cut = _HEAD.startswith(last) or "sha256:".startswith(last) or _CUT_LINE.fullmatch(last)
    text = whole + line_end + ("" if cut else last + "\n")
    wrong = _entries(text)[1]
    if wrong:
        raise DataError("this is not a line of a key file; make the file again", path=file, line=wrong[0])
    return text or _HEAD


def _content(file: Path) -> str:
    if file.exists() and not file.is_file():
        raise DataError("it is no regular file; keep the keys in a file of their own", path=file)
    if not file.is_file():
        raise DataError("there is no such file; make a key with --make-key FILE", path=file)
    return file.read_text(encoding="utf-8", errors="replace")


def _entries(text: str) -> tuple[list[Key], list[int]]:
    """The keys of a key file, and the numbers of the lines that are wrong."""
    keys, wrong = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:
            wrong.append(number)
        else:
            keys.append(Key(bytes.fromhex(found[1]), found[2], found[3]))
    return keys, wrong


def _stamp(file: Path) -> tuple[int, ...] | None:
    """What differs after a file was written again; None if there is no such file."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_size
