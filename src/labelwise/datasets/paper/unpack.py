"""The files that are needed from an archive that nobody vouches for."""

from __future__ import annotations

import gzip
import hashlib
import re
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Self, cast

from labelwise.errors import DataError
from labelwise.events import Task
from labelwise.types import OnEvent

WANTED = re.compile(r"X\.(trn|tst)\.(txt|npz)|Y\.(trn|tst)\.npz|output-items\.txt")
FEATURES = "tfidf-attnxml"
"""The folder with the features of the paper's linear models."""
MOST_MEMBERS = 10_000
MOST_NAME = 1_000
MOST_HEADER = 1 << 20
"""Bytes of a header with a long name or further attributes; tarfile reads the whole of it into memory."""
MOST_PADDING = 1 << 20
"""Bytes after the end of a tar archive; programs fill up to a multiple of some kilobytes."""
_DAMAGE = (tarfile.TarError, EOFError, zlib.error, OSError, ValueError)


_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


class _Member(tarfile.TarInfo):
    """A member whose headers are bounded."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """What a block of the archive says of the next member."""
        found = super().frombuf(buf, encoding, errors)
        if found.type in _HEADERS and not 0 <= found.size <= MOST_HEADER:
            raise DataError("has a header that no such data set has; nothing was kept")
        return found


def sha256_of(path: Path, on_event: OnEvent | None) -> str:
    """The checksum of a file."""
    digest = hashlib.sha256()
    size = max(1, path.stat().st_size // 1_000_000)
    with path.open("rb") as file, Task(on_event, f"checking {path.name}", total=size, unit="MB") as task:
        while piece := file.read(1 << 22):
            digest.update(piece)
            task.advance(file.tell() // 1_000_000 - task.done)
    return digest.hexdigest()


def unpack(archive: Path, folder: Path, *, most: int, on_event: OnEvent | None) -> set[str]:
    """Write the wanted files of a tar archive into a folder; their names.

    Every member is checked, wanted or not: no links and no devices, no path that leaves the folder, and sizes that stay
    below `most` bytes together. What an archive says of owners and rights is not taken over.
    """
    found: set[str] = set()
    left = most
    try:
        with _opened(archive) as stream, Task(on_event, "unpacking", unit="files") as task:
            tar = tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member)  # noqa: SIM115  # it owns nothing
            for number, member in enumerate(tar):
                left -= member.size
                _check(member, archive, number, left, most)
                name = _wanted(member)
                if name is None:
                    continue
                if name in found:
                    raise DataError(f"holds two files {name}; use another archive", path=archive)
                plain = member.replace(name=name, mode=0o644, deep=False)
                tar.extract(plain, folder, set_attrs=False, filter="data")
                found.add(name)
                task.advance()
            while rest := stream.read(1 << 20):  # to the checksum, which is at the end
                left -= len(rest)
                if left < -MOST_PADDING:
                    raise DataError("goes on after its end; nothing was kept", path=archive)
    except DataError as err:
        raise DataError(err.message, path=archive) from err
    except _DAMAGE as err:
        if isinstance(err, OSError) and err.errno is not None:
            raise  # of the disk, not of the archive
        message = f"is no whole tar archive ({err}); fetch it again"
        raise DataError(message, path=archive) from err
    return found


def _opened(archive: Path) -> BinaryIO:
    """The bytes of the tar archive, compressed or not."""
    with archive.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(archive)) if is_gzip else archive.open("rb")


def _check(member: tarfile.TarInfo, archive: Path, number: int, left: int, most: int) -> None:
    if number >= MOST_MEMBERS or left < 0:
        what = f"{MOST_MEMBERS:,} files" if number >= MOST_MEMBERS else f"{most:,} bytes"
        raise DataError(f"holds more than {what}, which no such data set has; nothing was kept", path=archive)
    shown = repr(member.name[:80])
    if member.issparse() or not (member.isreg() or member.isdir()):  # holes are not in the size of a sparse file
        what = "a file with holes" if member.issparse() else "a link or a device"
        raise DataError(f"{shown} is {what}, which no data set needs; nothing was kept", path=archive)
    parts = PurePosixPath(member.name.replace("\\", "/")).parts
    if ".." in parts or member.name.startswith(("/", "\\")) or any(":" in part for part in parts[:1]):
        raise DataError(f"{shown} would be written outside of the folder; nothing was kept", path=archive)
    if len(member.name) > MOST_NAME or member.size < 0:
        raise DataError(f"{shown} has a name or a size that no file has; nothing was kept", path=archive)


def _wanted(member: tarfile.TarInfo) -> str | None:
    """The name under which a member is written; None for what is not needed."""
    path = PurePosixPath(member.name)
    if not member.isreg() or not WANTED.fullmatch(path.name):
        return None
    if path.parent.name == FEATURES:
        return f"tfidf.{path.name}" if path.name.startswith("X.") else None
    return path.name
