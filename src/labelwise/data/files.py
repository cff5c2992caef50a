"""Text files by name, compressed or not, as blocks of whole lines read ahead by a thread.

What a file is compressed with is told by its first bytes. The decompressors of the standard library release the
GIL, and they are fed and drained in megabytes, so that a file is unpacked while its earlier part is parsed.
"""

import bz2
import codecs
import lzma
import queue
import re
import stat
import sys
import threading
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, TypeAlias

from labelwise.data.options import LONGEST_LINE, BadRows
from labelwise.data.sniffing import check_text, encoding_hint, utf16_by_zeros
from labelwise.data.standard_input import STANDARD_INPUT, arriving_chunks
from labelwise.errors import DataError, LabelwiseError

Compression: TypeAlias = Literal["gz", "xz", "zst", "bz2"]

SUFFIXES: dict[str, Compression] = {".gz": "gz", ".xz": "xz", ".zst": "zst", ".bz2": "bz2"}
BLOCK_BYTES = 1 << 23  # some 40 ms of decompression: long beside the 5 ms a thread may wait for the GIL
FIRST_PIECE_BYTES = 1 << 12
"""What a decompressor is given of a member that is not the first of its file, before it is given more."""
BLOCKS_AHEAD = 3
LARGEST_RATIO = 100
"""A compressed file may unpack to so many times its size; texts unpack to three to twenty times."""
ALWAYS_UNPACKED = 1 << 24
"""Bytes that a compressed file may unpack to, however small it is."""
NUMBERS_WITHOUT_PROOF = 1 << 22
"""Labels, or rows of a matrix, that a file may claim to have, however small it is."""

_NOT_ZERO = re.compile(rb"[^\0]")
_MAGIC: dict[bytes, Compression] = {
    b"\x1f\x8b": "gz",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zst",
    b"BZh": "bz2",
}


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Some whole lines of a file, as UTF-8."""

    data: bytes
    """The lines; the last one may lack its line end at the end of the file."""
    first_line: int
    """1-based number of the first line."""

    def lines(self, path: Path, bad: BadRows) -> list[str | None]:
        """The lines without their ends; None stands for a line that is not UTF-8."""
        raws = self._raw_lines()
        try:
            return [raw.decode() for raw in raws]  # by line: most lines are ASCII, few blocks are
        except UnicodeDecodeError:
            problems = self.problems()
        for line, (message, err) in problems.items():
            bad.add(message, path=path, line=line, cause=err)
        return [None if line in problems else raw.decode() for line, raw in enumerate(raws, self.first_line)]

    def problems(self) -> dict[int, tuple[str, UnicodeDecodeError]]:
        """What is wrong with each line that is not UTF-8, by its number."""
        errors: dict[int, UnicodeDecodeError] = {}
        for line, raw in enumerate(self._raw_lines(), self.first_line):
            try:
                raw.decode()
            except UnicodeDecodeError as err:
                errors[line] = err
        hint = encoding_hint(b"".join(err.object for err in errors.values()))
        return {
            line: (f"not UTF-8 (byte 0x{err.object[err.start]:02x} at position {err.start + 1}); {hint}", err)
            for line, err in errors.items()
        }

    def _raw_lines(self) -> list[bytes]:
        raws = self.data.removesuffix(b"\n").split(b"\n")
        return [raw.removesuffix(b"\r") for raw in raws] if b"\r" in self.data else raws


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Errors of the system as data errors: no permission, no such file, too many open files."""
    try:
        yield
    except FileNotFoundError as err:
        raise DataError("there is no such file; check the spelling", path=err.filename or path) from err
    except OSError as err:
        if isinstance(err, LabelwiseError):
            raise
        raise DataError(f"cannot be read: {err.strerror or err}", path=err.filename or path) from err


def check_regular(path: Path) -> None:
    """Refuse what is no file that can be read from its start again: a pipe, a device, a folder."""
    with reading(path):
        mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise DataError(f"is {what}; give a file", path=path)


def most_unpacked(path: Path, wanted: int | None) -> int:
    """Bytes that a compressed file may unpack to: as wanted, or a multiple of its size."""
    if wanted is not None:
        return wanted
    with reading(path):
        return max(ALWAYS_UNPACKED, LARGEST_RATIO * path.stat().st_size)


def too_large(path: Path, most: int) -> DataError:
    """The error that a file unpacks to more than it may."""
    return DataError(
        f"unpacks to more than {most:,} bytes, from {path.stat().st_size:,}; if that is meant, allow it with "
        "--max-unpacked",
        path=path,
    )


def most_numbers(paths: Iterable[Path]) -> int:
    """How many labels, or rows of a matrix, files of these sizes can tell of."""
    n_bytes = 0
    for path in paths:
        with reading(path):
            n_bytes += path.stat().st_size * (10 if path.suffix.lower() in SUFFIXES else 1)
    return min(max(NUMBERS_WITHOUT_PROOF, n_bytes), (1 << 31) - 2)


def compression_of(path: Path) -> Compression | None:
    """What the file is compressed with, by its first bytes."""
    check_regular(path)
    with reading(path), path.open("rb") as raw:
        start = raw.read(8)
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            return kind
    named = SUFFIXES.get(path.suffix.lower())
    if named is not None and start:
        raise DataError(
            f"is named {path.suffix} but does not start like one; it is damaged, or not compressed at all "
            "(then rename it)",
            path=path,
        )
    return None


def plain_name(path: Path) -> str:
    """The file's name without a compression suffix: train.jsonl.xz is a train.jsonl."""
    return path.name[: -len(path.suffix)] if path.suffix.lower() in SUFFIXES else path.name


def read_blocks(
    path: Path,
    *,
    encoding: str = "utf-8",
    max_unpacked: int | None = None,
    longest_line: int = LONGEST_LINE,
    bad: BadRows,
) -> Iterator[TextBlock]:
    """Blocks of whole lines, in order, without byte order mark.

    A damaged archive yields the whole lines before the damage; then it is an error, or a bad row if those are
    skipped.

    Parameters
    ----------
    max_unpacked
        Bytes that a compressed file may unpack to; a multiple of its size if None.
    longest_line
        Bytes of a line, at most.
    """
    number = 1
    carry: list[bytes] = []
    if path is STANDARD_INPUT:
        chunks = arriving_chunks()
    else:
        kind = compression_of(path)
        chunks = _ahead(path, kind, None if kind is None else most_unpacked(path, max_unpacked))
    with reading(path), closing(chunks):
        utf8 = _as_utf8(chunks, encoding, path, bad)
        try:
            for chunk in utf8:
                cut = chunk.rfind(b"\n") + 1
                if cut == 0:
                    carry.append(chunk)
                    if sum(map(len, carry)) > longest_line:
                        message = (
                            f"the line has more than {longest_line:,} bytes; is the file damaged, or are line ends "
                            "missing?"
                        )
                        raise DataError(message, path=path, line=number)
                    continue
                block = TextBlock(b"".join((*carry, memoryview(chunk)[:cut])), number)  # one copy, not two
                carry = [chunk[cut:]]
                yield block
                number += block.data.count(b"\n")
        except DamagedError as err:
            where = "after this line" if number > 1 else "before the end of its first line"
            message = (
                f"the archive is damaged {where} ({err}); fetch it again, or keep what can be read with --skip-bad-rows"
            )
            bad.add(message, path=path, line=number - 1 or None, cause=err)
            return
    if end := b"".join(carry):
        yield TextBlock(end, number)


def read_lines(path: Path, *, bad: BadRows | None = None, **how: Any) -> Iterator[tuple[int, list[str | None]]]:
    """Lists of decoded lines, each with the number of its first line; `how` is as in `read_blocks`."""
    bad = BadRows() if bad is None else bad
    for block in read_blocks(path, bad=bad, **how):
        yield block.first_line, block.lines(path, bad)


class DamagedError(Exception):
    """A compressed stream ended early or makes no sense."""


def _as_utf8(chunks: Iterator[bytes], encoding: str, path: Path, bad: BadRows) -> Iterator[bytes]:
    """The same text in UTF-8, without byte order mark."""
    start = b""
    for chunk in chunks:
        start += chunk
        if len(start) >= 4 or b"\n" in start:
            break
    check_text(start, path)
    name = codecs.lookup(encoding).name
    if name in ("utf-8", "utf-8-sig"):
        marked = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        found = "utf-16" if marked else utf16_by_zeros(start)
        if found is None:
            yield start.removeprefix(codecs.BOM_UTF8)
            yield from chunks
            return
        bad.remark(f"{path}: the encoding is {found.upper()}, by its {'first' if marked else 'zero'} bytes")
        name = found
    decoder, number = codecs.getincrementaldecoder(name)(), 1
    for final, chunk in _with_end(start, chunks):
        try:
            text = decoder.decode(chunk, final)
        except UnicodeError as err:
            message = f"not {name} (after this line); name the file's encoding, e.g. --encoding latin-1"
            raise DataError(message, path=path, line=number) from err
        number += text.count("\n")
        yield text.encode("utf-8", "surrogatepass")


def _with_end(start: bytes, chunks: Iterator[bytes]) -> Iterator[tuple[bool, bytes]]:
    yield False, start
    for chunk in chunks:
        yield False, chunk
    yield True, b""


def _ahead(path: Path, kind: Compression | None, most: int | None) -> Generator[bytes, None, None]:
    """The file's unpacked bytes in chunks that a thread prepares, a few at most ahead of their use.

    `most` is the number of bytes that the file may unpack to; None for no limit.
    """
    ready: queue.Queue[bytes | Exception | None] = queue.Queue(maxsize=BLOCKS_AHEAD)
    abandoned = threading.Event()

    def put(item: bytes | Exception | None) -> None:
        while not abandoned.is_set():
            try:
                ready.put(item, timeout=0.05)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            n_bytes = 0
            with path.open("rb", buffering=0) as raw, closing(_unpacked(raw, kind)) as chunks:
                for chunk in chunks:
                    n_bytes += len(chunk)
                    if most is not None and n_bytes > most:
                        raise too_large(path, most)
                    put(chunk)
                    if abandoned.is_set():
                        return
            put(None)
        except Exception as err:
            put(err)

    thread = threading.Thread(target=work, name=f"read {path.name}", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        abandoned.set()
        thread.join()


class _Decompressor(Protocol):
    """What lzma, bz2 and zstd have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _GzipDecompressor:
    """zlib's decompressor with the interface of the others."""

    def __init__(self) -> None:
        self._inner, self._tail = zlib.decompressobj(wbits=31), b""

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._tail and not self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        out = self._inner.decompress(self._tail + data, max_length)
        self._tail = self._inner.unconsumed_tail
        return out


def zstd_module() -> Any:
    """The zstd module of Python 3.14, which a package brings to older versions."""
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def _unpacked(raw: BinaryIO, kind: Compression | None) -> Generator[bytes, None, None]:
    if kind is None:
        return _plain(raw)
    if kind == "zst":
        zstd = zstd_module()
        return _drain(raw, zstd.ZstdDecompressor, (zstd.ZstdError,))
    if kind == "gz":
        return _drain(raw, _GzipDecompressor, (zlib.error,))
    if kind == "xz":
        return _drain(raw, lzma.LZMADecompressor, (lzma.LZMAError,))
    return _drain(raw, bz2.BZ2Decompressor, (OSError, ValueError))


def _plain(raw: BinaryIO) -> Generator[bytes, None, None]:
    while chunk := raw.read(BLOCK_BYTES):
        yield chunk


def _drain(
    raw: BinaryIO, new: Callable[[], _Decompressor], damage: tuple[type[Exception], ...]
) -> Generator[bytes, None, None]:
    """Everything in an archive of one or more members.

    A decompressor copies what follows its member. So members after the first are fed in pieces that begin small and
    grow: an archive of many small members would take a time that grows with the square of its size.
    """
    decompressor, read, at, step, data = new(), b"", 0, BLOCK_BYTES, b""
    while True:
        if decompressor.needs_input:
            if at == len(read):
                read, at = raw.read(BLOCK_BYTES), 0
            if not read:
                raise DamagedError("it ends early")
            data = read[at : at + step]
            at, step = at + len(data), min(2 * step, BLOCK_BYTES)
        try:
            chunk = decompressor.decompress(data, BLOCK_BYTES)
        except damage as err:
            raise DamagedError(str(err)) from err
        if chunk:
            yield chunk
        data = b""
        if decompressor.eof:
            at -= len(decompressor.unused_data)
            while (found := _NOT_ZERO.search(read, at)) is None:  # members may be padded with zeros
                read, at = raw.read(BLOCK_BYTES), 0
                if not read:
                    return
            decompressor, at, step = new(), found.start(), FIRST_PIECE_BYTES
