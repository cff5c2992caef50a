"""Text files to be written, compressed or not."""

import gzip
import io
import lzma
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO, TypeAlias, cast, get_args

from labelwise.data.files import zstd_module
from labelwise.errors import UsageError

WriteCompression: TypeAlias = Literal["gz", "xz", "zst"]
COMPRESSIONS: tuple[WriteCompression, ...] = get_args(WriteCompression)


@contextmanager
def open_writer(path: Path, compression: WriteCompression | None) -> Iterator[TextIO]:
    """A new UTF-8 text file; line ends are written as they are given."""
    if compression is not None and compression not in COMPRESSIONS:
        raise UsageError(f"unknown compression {compression!r}; there are: {', '.join(COMPRESSIONS)}")
    with path.open("xb") as raw, _packed(raw, compression) as packed:
        text = io.TextIOWrapper(packed, encoding="utf-8", newline="")
        try:
            yield text
        finally:
            text.flush()
            text.detach()


def append_file(path: Path, more: Path) -> None:
    """Append the bytes of a file and remove it; compressed files may be joined like this."""
    with path.open("ab") as out, more.open("rb") as raw:
        shutil.copyfileobj(raw, out, 1 << 22)
    more.unlink()


def _packed(raw: BinaryIO, compression: WriteCompression | None) -> AbstractContextManager[Any]:
    """A binary file over `raw` that compresses what is written to it."""
    if compression == "gz":
        # No name and no time in the header: the same data make the same bytes.
        return gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=0)
    if compression == "xz":
        return lzma.LZMAFile(raw, mode="wb", preset=6)
    if compression == "zst":
        return cast(AbstractContextManager[Any], zstd_module().ZstdFile(raw, mode="wb"))
    return nullcontext(raw)
