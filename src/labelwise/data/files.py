"""Text files by name, compressed or not, as blocks of whole lines read ahead by a thread.

What a file is compressed with is told by its first bytes. The decompressors of the standard library release the
GIL, and they are fed and drained in megabytes, so that a file is unpacked while its earlier part is parsed.
"""

import bz2
import codecs
import lzma
import queue
import threading
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, TypeAlias

from labelwise.data.options import BadRows
from labelwise.errors import DataError, need

Compression: TypeAlias = Literal["gz", "xz", "zst", "bz2"]

SUFFIXES: dict[str, Compression] = {".gz": "gz", ".xz": "xz", ".zst": "zst", ".bz2": "bz2"}
BLOCK_BYTES = 1 << 23  # some 40 ms of decompression: long beside the 5 ms a thread may wait for the GIL
BLOCKS_AHEAD = 3

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
        raws = self.data.removesuffix(b"\n").split(b"\n")
        if b"\r" in self.data:
            raws = [raw.removesuffix(b"\r") for raw in raws]
        try:
            return [raw.decode() for raw in raws]  # by line: most lines are ASCII, few blocks are
        except UnicodeDecodeError:
            return [self._decode(raw, path, i, bad) for i, raw in enumerate(raws)]

    def _decode(self, raw: bytes, path: Path, i: int, bad: BadRows) -> str | None:
        try:
            return raw.decode()
        except UnicodeDecodeError as err:
            message = (
                f"not UTF-8 (byte 0x{raw[err.start]:02x} at position {err.start + 1}); if the file has another "
                "encoding, name it, e.g. --encoding latin-1"
            )
            bad.add(message, path=path, line=self.first_line + i, cause=err)
            return None


def compression_of(path: Path) -> Compression | None:
    """What the file is compressed with, by its first bytes."""
    try:
        with path.open("rb") as raw:
            start = raw.read(8)
    except FileNotFoundError as err:
        raise DataError("there is no such file; check the spelling", path=path) from err
    except OSError as err:
        raise DataError(f"cannot be read: {err.strerror}", path=path) from err
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


def read_blocks(path: Path, *, encoding: str = "utf-8", bad: BadRows) -> Iterator[TextBlock]:
    """Blocks of whole lines, in order, without byte order mark.

    A damaged archive yields the whole lines before the damage; then it is an error, or a bad row if those are
    skipped.
    """
    number, carry = 1, b""
    chunks = _ahead(path, compression_of(path))
    with closing(chunks):
        utf8 = _as_utf8(chunks, encoding, path)
        try:
            for chunk in utf8:
                cut = chunk.rfind(b"\n") + 1
                if cut == 0:
                    carry += chunk
                    continue
                block = TextBlock(b"".join((carry, memoryview(chunk)[:cut])), number)  # one copy, not two
                carry = chunk[cut:]
                yield block
                number += block.data.count(b"\n")
        except DamagedError as err:
            where = "after this line" if number > 1 else "before the end of its first line"
            message = (
                f"the archive is damaged {where} ({err}); fetch it again, or keep what can be read with --skip-bad-rows"
            )
            bad.add(message, path=path, line=number - 1 or None, cause=err)
            return
    if carry:
        yield TextBlock(carry, number)


def read_lines(
    path: Path, *, encoding: str = "utf-8", bad: BadRows | None = None
) -> Iterator[tuple[int, list[str | None]]]:
    """Lists of decoded lines, each with the number of its first line."""
    bad = BadRows() if bad is None else bad
    for block in read_blocks(path, encoding=encoding, bad=bad):
        yield block.first_line, block.lines(path, bad)


class DamagedError(Exception):
    """A compressed stream ended early or makes no sense."""


def _as_utf8(chunks: Iterator[bytes], encoding: str, path: Path) -> Iterator[bytes]:
    """The same text in UTF-8, without byte order mark."""
    start = b""
    for chunk in chunks:
        start += chunk
        if len(start) >= 4:
            break
    name = codecs.lookup(encoding).name
    if name in ("utf-8", "utf-8-sig"):
        if not start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            yield start.removeprefix(codecs.BOM_UTF8)
            yield from chunks
            return
        name = "utf-16"
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


def _ahead(path: Path, kind: Compression | None) -> Generator[bytes, None, None]:
    """The file's unpacked bytes in chunks that a thread prepares, a few at most ahead of their use."""
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
            with path.open("rb", buffering=0) as raw, closing(_unpacked(raw, kind)) as chunks:
                for chunk in chunks:
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
    """What lzma, bz2 and Python 3.14's zstd have in common."""

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


def zstd_module() -> Any | None:
    """Python 3.14's zstd module, where there is one."""
    try:
        return import_module("compression.zstd")
    except ImportError:
        return None


def _unpacked(raw: BinaryIO, kind: Compression | None) -> Generator[bytes, None, None]:
    if kind is None:
        return _plain(raw)
    if kind == "zst":
        zstd = zstd_module()
        return _arrow(raw) if zstd is None else _drain(raw, zstd.ZstdDecompressor, (zstd.ZstdError,))
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
    """Everything in an archive of one or more members."""
    decompressor, data = new(), raw.read(BLOCK_BYTES)
    while True:
        try:
            chunk = decompressor.decompress(data, BLOCK_BYTES)
        except damage as err:
            raise DamagedError(str(err)) from err
        if chunk:
            yield chunk
        data = b""
        if decompressor.eof:
            data = decompressor.unused_data.lstrip(b"\0")  # members may be padded with zeros
            while not data:
                if not (more := raw.read(BLOCK_BYTES)):
                    return
                data = more.lstrip(b"\0")
            decompressor = new()
        elif decompressor.needs_input and not (data := raw.read(BLOCK_BYTES)):
            raise DamagedError("it ends early")


def _arrow(raw: BinaryIO) -> Generator[bytes, None, None]:
    arrow = need("pyarrow", extra="parquet", purpose=".zst files")
    with arrow.CompressedInputStream(raw, "zstd") as stream:
        while True:
            try:
                chunk: bytes = stream.read(min(BLOCK_BYTES, 1 << 20))  # what is read with the damage is lost
            except (OSError, arrow.ArrowException) as err:
                raise DamagedError(str(err)) from err
            if not chunk:
                return
            yield chunk
