"""API keys: a file of their SHA-256 hashes. Keys are 256 random bits, so a slow hash would add nothing."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from labelwise.errors import DataError, UsageError

_LINE = re.compile(r"sha256:([0-9a-f]{64}) (user|admin) (\S+)")
_HEAD = "# API keys of labelwise serve: hash, role, name. Remove a line to withdraw a key.\n"


@dataclass(frozen=True)
class Key:
    """An entry of the key file."""

    digest: bytes
    role: str
    name: str


class Keyring:
    """The keys that a server accepts."""

    def __init__(self, keys: list[Key]) -> None:
        self._keys = keys

    @classmethod
    def read(cls, file: Path) -> Keyring:
        """The keys of a file that `make_key` wrote."""
        if not file.is_file():
            raise DataError("there is no such file; make a key with --make-key FILE", path=file)
        keys = []
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            if not line.strip() or line.startswith("#"):
                continue
            found = _LINE.fullmatch(line.strip())
            if found is None:
                raise DataError("this is not a line of a key file; make the file again", path=file, line=number)
            keys.append(Key(bytes.fromhex(found[1]), found[2], found[3]))
        if not keys:
            raise DataError("the file has no key; make one with --make-key FILE", path=file)
        return cls(keys)

    def find(self, key: bytes) -> Key | None:
        """The key's entry; all entries are compared, each in constant time."""
        digest, found = hashlib.sha256(key).digest(), None
        for entry in self._keys:
            if hmac.compare_digest(digest, entry.digest):
                found = entry
        return found


def make_key(file: Path, *, name: str, admin: bool = False) -> str:
    """Add the hash of a new key to a file. Returns the key, which is stored nowhere."""
    if not re.fullmatch(r"[\w.@-]{1,64}", name):
        raise UsageError(f"--key-name {name!r}: use letters, digits and . @ - _ only, at most 64")
    key = "lw_" + secrets.token_urlsafe(32)
    new = not file.exists()
    if not new:
        Keyring.read(file)  # an error if the file is not a key file
    role = "admin" if admin else "user"
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(handle, "a", encoding="utf-8") as out:
        line = f"sha256:{hashlib.sha256(key.encode()).hexdigest()} {role} {name}\n"
        out.write(_HEAD + line if new else line)
    return key
