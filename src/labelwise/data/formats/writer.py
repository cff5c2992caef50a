"""What the writers of all formats share. A writer gets batches split by split, and all label names at the end."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Protocol, TextIO

from labelwise.data.archive import WriteCompression, open_writer
from labelwise.data.batch import DocumentBatch

NO_IDS = "the ids of the documents are left out"
NO_TEXTS = "the texts are left out"


class Writer(Protocol):
    """Writes a data set in one format."""

    def write(self, split: str, batch: DocumentBatch, names: Sequence[str]) -> None:
        """Add documents to a split; `names` are the labels met so far."""
        ...

    def finish(self, names: Sequence[str]) -> list[str]:
        """Write what depends on all documents; the result says what the format could not hold, a sentence each."""
        ...

    def close(self) -> None:
        """Close every file, finished or not."""
        ...


class TextWriter:
    """Base of the writers of text files: one open file for each split."""

    file_name: ClassVar[str]
    """Name of a split's file, with {} for the split."""

    def __init__(self, folder: Path, compression: WriteCompression | None) -> None:
        self.folder, self.compression = folder, compression
        self._files: dict[str, TextIO] = {}
        self._open_files = ExitStack()

    def path(self, split: str) -> Path:
        """The file of a split."""
        suffix = "" if self.compression is None else f".{self.compression}"
        return self.folder / (self.file_name.format(split) + suffix)

    def file(self, split: str) -> TextIO:
        """The open file of a split, which is created on first use."""
        if split not in self._files:
            self._files[split] = self._open_files.enter_context(open_writer(self.path(split), self.compression))
        return self._files[split]

    def finish(self, names: Sequence[str]) -> list[str]:
        """Nothing is left to write, and nothing is lost."""
        return []

    def close(self) -> None:
        """Close every file."""
        self._open_files.close()


def named_rows(batch: DocumentBatch, names: Sequence[str]) -> Iterator[tuple[str | None, str, list[str]]]:
    """(id, text, label names) of every document."""
    ids: Sequence[str | None] = [None] * len(batch) if batch.ids is None else batch.ids
    labels, ends = [names[i] for i in batch.indices.tolist()], batch.indptr.tolist()
    return zip(ids, batch.texts or (), (labels[start:end] for start, end in pairwise(ends)), strict=True)


def one_line(text: str) -> str:
    """`text` with spaces for line breaks."""
    if "\n" in text or "\r" in text:
        return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")
    return text
