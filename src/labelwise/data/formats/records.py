"""What the formats of records share: rows with a text, labels and perhaps an id, in named columns.

A reader passes its rows to a `RecordBuilder`, which checks the rows and turns label names into ids.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from labelwise.data.archive import WriteCompression
from labelwise.data.batch import DocumentBatch, FileSource, LabelVocabulary
from labelwise.data.builder import RecordBuilder, looks_like_list
from labelwise.data.formats.separators import Separator, guess_separator
from labelwise.data.label_names import label_list
from labelwise.data.options import BadRows, ReadOptions
from labelwise.types import Ints

ROWS_PER_BATCH = 4096
ROWS_TO_GUESS = 1000


@dataclass(kw_only=True)
class RecordSource(FileSource, ABC):
    """Base of the sources of records: one file for each split, or a single file."""

    path: Path
    files: Mapping[str, Path]
    options: ReadOptions
    beside: Path | None
    """Folder that may hold labels.txt and label_texts.jsonl."""
    with_labels: bool = True
    """Whether labels are read."""
    labels: LabelVocabulary = field(init=False)
    labels_known: bool = field(init=False)

    @property
    def has_columns(self) -> bool:
        """Options name the columns."""
        return True

    def __post_init__(self) -> None:
        how = {"max_unpacked": self.options.max_unpacked}
        names = None if self.beside is None else label_list(self.beside, **how)
        self.labels_known = names is not None
        self.labels = LabelVocabulary(names or ())

    @abstractmethod
    def read(self, path: Path, builder: RecordBuilder) -> Iterator[DocumentBatch]:
        """The documents of a file."""

    @abstractmethod
    def label_cells(self, path: Path) -> Iterator[list[str]]:
        """The strings in the label column, from which the separator is guessed; wrong rows are passed over."""

    @abstractmethod
    def columns(self, split: str) -> list[str]:
        """What the columns of a split are called; those of its first row where every row names its own."""

    @abstractmethod
    def copy_rows(self, path: Path, part_of: Ints, files: Sequence[Path], compression: WriteCompression | None) -> None:
        """Copy the rows of a file into new files: the row at place i goes to ``files[part_of[i]]``, or nowhere."""

    @cached_property
    def separator(self) -> Separator:
        """What separates labels in strings; guessed once, from the first split, so that all splits agree."""
        if self.options.label_separator is not None:
            return Separator.given(self.options.label_separator)
        found: list[str] = []
        for cells in self.label_cells(next(iter(self.files.values()))):
            found.extend(cell for cell in cells if not looks_like_list(cell))
            if len(found) >= ROWS_TO_GUESS:
                break
        return guess_separator(found[:ROWS_TO_GUESS])

    def batches(self, split: str, bad: BadRows) -> Iterator[DocumentBatch]:
        """The documents of a split, in order."""
        path = self.files[split]

        def separator() -> str | None:
            self.separator.say(bad, next(iter(self.files.values())))
            return self.separator.text

        labels = self.labels if self.with_labels else None
        builder = RecordBuilder(path=path, options=self.options, labels=labels, bad=bad, separator=separator)
        return self.read(path, builder)


def joined(parts: Sequence[object]) -> object:
    """Several text columns as one text, without the missing ones.

    A part that is not a string is the result itself, so that the builder refuses the row.
    """
    for part in parts:
        if part is not None and type(part) is not str:
            return part
    return " ".join(part for part in parts if isinstance(part, str) and part)
