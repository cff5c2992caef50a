"""Standard input where a file is expected: what has arrived by now, again and again."""

import io
import queue
import select
import sys
import threading
from collections.abc import Generator
from pathlib import Path

from labelwise.errors import DataError

STANDARD_INPUT = Path("standard input")
"""Stands for standard input where a path is expected. It is this very object: a file may have that name."""
CHUNK_BYTES = 1 << 16
MOST_CHUNKS = 128
"""Chunks at once, at most."""
CHUNKS_AHEAD = 128


def arriving_chunks() -> Generator[bytes, None, None]:
    """The bytes of standard input: those that are there at once, without waiting for more.

    A thread reads, so that much is at hand when the input is fast. It may wait for ever; nobody waits for it.
    """
    ready: queue.Queue[bytes | Exception] = queue.Queue(maxsize=CHUNKS_AHEAD)

    def work() -> None:
        try:
            while chunk := _read():
                ready.put(chunk)
            ready.put(b"")
        except Exception as err:  # of the object that stands for standard input: the reader would wait for ever
            ready.put(err)

    threading.Thread(target=work, name="read standard input", daemon=True).start()
    while True:
        parts: list[bytes] = []
        item = ready.get()
        while isinstance(item, bytes) and item:
            parts.append(item)
            if ready.empty() or len(parts) >= MOST_CHUNKS:
                break
            item = ready.get()
        if parts:
            yield b"".join(parts)
        if isinstance(item, Exception):
            raise item
        if not item:
            return


def _read() -> bytes:
    """Some bytes of standard input, none at its end.

    A file descriptor is read past Python's own buffer, whose lock would be held by the thread while Python exits.
    """
    stream = sys.stdin
    if stream is None:
        return b""
    if getattr(stream, "closed", False):
        raise DataError("is closed; give a file, or send the data to standard input", path=STANDARD_INPUT)
    try:
        number = stream.fileno()
    except (OSError, ValueError, AttributeError):  # replaced by an object in memory
        binary = getattr(stream, "buffer", None)
        if binary is not None:
            return bytes(binary.read(CHUNK_BYTES))
        text = stream.read(CHUNK_BYTES)
        try:
            return text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # half a character, which the reader of the bytes refuses by its line
            return text.encode("utf-8", "surrogatepass")
    file = io.FileIO(number, closefd=False)
    while (chunk := file.read(CHUNK_BYTES)) is None:  # another program has set the input to not wait
        select.select([number], [], [])
    return chunk
