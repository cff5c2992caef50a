"""`FileFormat`: the facts about one format, with its reader and its writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from labelwise.data.archive import WriteCompression
from labelwise.data.batch import DataSource
from labelwise.data.formats.writer import Writer
from labelwise.data.options import ReadOptions

if TYPE_CHECKING:
    from labelwise.data.formats import Format


@dataclass(frozen=True, slots=True)
class FileStart:
    """The start of a file, by which its format is recognised."""

    suffix: str
    """Suffix of the file's name, without the dot and without the suffix of a compression."""
    lines: list[str]
    """The first lines, about a megabyte of them; an empty file has one empty line."""
    options: ReadOptions


class OpenFiles(Protocol):
    """A function or class that opens data with one file for each split."""

    def __call__(
        self, *, path: Path, files: Mapping[str, Path], options: ReadOptions, beside: Path | None
    ) -> DataSource:
        """The data in `files` (split to path); `beside` is the folder with labels.txt, None for a single file."""
        ...


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """A file format: everything that detection and conversion have to know about it."""

    name: Format
    """Its name in the table of formats, which is also the name of its module."""
    needs: Literal["texts", "features"]
    """What the documents must have to be written in this format."""
    writer: Callable[[Path, WriteCompression | None], Writer]
    """Makes a writer into a folder."""
    suffixes: tuple[str, ...] = ()
    """Suffixes of files that hold one split, without the dot, the usual one first."""
    open_files: OpenFiles | None = None
    """Opens files that hold one split each; None where the data are always a folder of matrices."""
    open_folder: Callable[[Path, ReadOptions], DataSource | None] | None = None
    """Opens a folder with other files than one for each split; its result is None if there are none."""
    recognises: Callable[[FileStart], bool] | None = None
    """Whether a file with an ambiguous or unknown suffix starts like this format; None: its suffix alone decides."""
    records: bool = False
    """Whether files hold records: rows with named columns for text, labels and id."""
    streamed: bool = False
    """Whether records can be read one after the other, as they arrive."""
    layout: str = ""
    """What a folder in this format holds, for the error that no data were found; empty for records."""
    folder_suffixes: tuple[str, ...] = ()
    """Suffixes of further files that a folder in this format may hold."""
