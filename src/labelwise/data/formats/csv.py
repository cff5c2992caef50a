"""csv files with a header row, quoted as spreadsheets do (RFC 4180). tsv files share reader and writer."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from labelwise.data.archive import WriteCompression, open_writer
from labelwise.data.batch import DocumentBatch
from labelwise.data.builder import RecordBuilder
from labelwise.data.files import TextBlock, read_blocks
from labelwise.data.formats.columns import find_columns, has_columns
from labelwise.data.formats.format import FileFormat
from labelwise.data.formats.records import ROWS_PER_BATCH, RecordSource, joined
from labelwise.data.formats.writer import TextWriter, named_rows
from labelwise.data.options import BadRows, ReadOptions
from labelwise.data.standard_input import STANDARD_INPUT
from labelwise.errors import DataError
from labelwise.types import Ints

DELIMITERS = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'"}
"""What may separate fields, and what it is called."""
BYTES_TO_GUESS = 1 << 18
ROWS_TO_GUESS = 20


@dataclass(kw_only=True)
class CsvSource(RecordSource):
    """csv files whose first row names the columns."""

    delimiter: ClassVar[str] = ","

    def read(self, path: Path, builder: RecordBuilder) -> Iterator[DocumentBatch]:
        """The documents of a file."""
        options, with_labels = builder.options, builder.labels is not None
        table = self.table(path, builder.bad, with_labels=with_labels)
        columns = find_columns(table.header, options, path, table.first_line, bad=builder.bad, with_labels=with_labels)
        text_at = [table.header.index(name) for name in columns.text]
        labels_at = None if columns.labels is None else table.header.index(columns.labels)
        id_at = None if columns.id is None else table.header.index(columns.id)
        for line, row in table.rows():
            if row is None:
                builder.n_rows += 1  # what is wrong with it was noted
            else:
                text = row[text_at[0]] if len(text_at) == 1 else joined([row[i] for i in text_at])
                labels = None if labels_at is None else row[labels_at]
                builder.add(line, text, labels, None if id_at is None else row[id_at])
            if len(builder.texts) == ROWS_PER_BATCH or (table.pauses and builder.texts):
                yield builder.batch()
        yield builder.batch()
        builder.check_not_empty()

    def table(self, path: Path, bad: BadRows, *, with_labels: bool = True) -> "CsvTable":
        """A file, opened at its first row."""
        usual = (self.delimiter, *(other for other in DELIMITERS if other != self.delimiter))
        return CsvTable(path, usual, self.options, bad, with_labels=with_labels)

    def columns(self, split: str) -> list[str]:
        """What the header names."""
        return self.table(self.files[split], BadRows(skip=True), with_labels=self.with_labels).header

    def copy_rows(self, path: Path, part_of: Ints, files: Sequence[Path], compression: WriteCompression | None) -> None:
        """Copy rows into new files with the same header."""
        table = self.table(path, BadRows(skip=True))
        with ExitStack() as stack:
            outs = [stack.enter_context(open_writer(file, compression)) for file in files]
            writers = [csv.writer(out, delimiter=table.delimiter) for out in outs]
            for writer in writers:
                writer.writerow(table.header)
            for part, (_, row) in zip(part_of.tolist(), table.rows(), strict=False):
                if row is not None and part >= 0:
                    writers[part].writerow(row)

    def label_cells(self, path: Path) -> Iterator[list[str]]:
        """The label column, row by row."""
        bad = BadRows(skip=True)
        table = self.table(path, bad)
        columns = find_columns(table.header, self.options, path)
        if columns.labels is not None:
            at = table.header.index(columns.labels)
            for _, row in table.rows():
                if row is not None:
                    yield [row[at]]


class CsvTable:
    """The rows of a csv file, whose delimiter is found by looking if none is given."""

    def __init__(
        self, path: Path, delimiters: Sequence[str], options: ReadOptions, bad: BadRows, *, with_labels: bool
    ) -> None:
        self.path, self.options, self.bad = path, options, bad
        # The limit belongs to the csv module, not to a reader; ours is checked per text, with a better message.
        csv.field_size_limit(max(csv.field_size_limit(), min(options.max_text_chars * 2, 2**31 - 1)))
        self._problems: dict[int, tuple[str, UnicodeDecodeError]] = {}
        self._at_end_of_block = False
        blocks = read_blocks(path, bad=bad, **options.decoding)
        first = next(blocks, None)
        if first is None:
            raise DataError("the file is empty; there is not even a header row", path=path)
        lines = first.data[:BYTES_TO_GUESS].decode("utf-8", "replace").splitlines(keepends=True)
        self.delimiter: str = options.delimiter or _guess(lines, delimiters, options, with_labels=with_labels)
        if options.delimiter is None and self.delimiter != delimiters[0]:
            by = DELIMITERS[self.delimiter]
            bad.remark(f"{path}: fields are separated by {by}; if that is wrong, pass --delimiter")
        self._reader = csv.reader(self._lines(chain((first,), blocks)), delimiter=self.delimiter, strict=True)
        self.first_line, header = next(self._all_rows(), (0, []))
        if header is None:
            raise DataError(f"the header row cannot be read: {bad.reasons[-1]}")
        if not header:
            raise DataError("the file is empty; there is not even a header row", path=path)
        self.header: list[str] = header

    @property
    def pauses(self) -> bool:
        """Whether a stream has no further row at hand: then the rows so far should not wait."""
        return self._at_end_of_block and self.path is STANDARD_INPUT

    def rows(self) -> Iterator[tuple[int, list[str] | None]]:
        """Rows with the number of their first line; None for a bad row, which was noted."""
        n_columns = len(self.header)
        for line, row in self._all_rows():
            if row is not None and len(row) != n_columns:
                message = f"the row has {len(row)} fields where the header has {n_columns}; is a quote missing?"
                self.bad.add(message, path=self.path, line=line)
                row = None
            yield line, row

    def _all_rows(self) -> Iterator[tuple[int, list[str] | None]]:
        """Rows that are not blank."""
        while True:
            line = self._reader.line_num + 1
            try:
                row = next(self._reader)
            except StopIteration:
                return
            except csv.Error as err:
                self.bad.add(f"not well-formed ({err}); is a quote missing?", path=self.path, line=line, cause=err)
                yield line, None
                continue
            if self._problems and (wrong := self._wrong_line(line, self._reader.line_num)):
                message, cause = self._problems[wrong]
                self.bad.add(message, path=self.path, line=wrong, cause=cause)
                yield line, None
            elif row:
                yield line, row

    def _wrong_line(self, first: int, last: int) -> int | None:
        """The first of some lines that is not UTF-8."""
        return next((line for line in range(first, last + 1) if line in self._problems), None)

    def _lines(self, blocks: Iterable[TextBlock]) -> Iterator[str]:
        """Lines with their ends, which a quoted field may keep."""
        for block in blocks:
            try:
                text = block.data.decode()
            except UnicodeDecodeError:
                text = block.data.decode("utf-8", "replace")
                self._problems.update(block.problems())
            lines = iter(io.StringIO(text, newline="\n"))
            line = next(lines, None)
            while line is not None:
                following = next(lines, None)
                self._at_end_of_block = following is None
                yield line
                line = following


class CsvWriter(TextWriter):
    """Writes a header row and a row for each document; labels are a JSON list, which can hold any name."""

    file_name = "{}.csv"
    delimiter: ClassVar[str] = ","

    def __init__(self, folder: Path, compression: WriteCompression | None) -> None:
        super().__init__(folder, compression)
        self._tables: dict[str, Any] = {}

    def write(self, split: str, batch: DocumentBatch, names: Sequence[str]) -> None:
        """Add documents to a split."""
        if split not in self._tables:
            self._tables[split] = csv.writer(self.file(split), delimiter=self.delimiter)
            self._tables[split].writerow(["text", "labels"] if batch.ids is None else ["id", "text", "labels"])
        for doc_id, text, labels in named_rows(batch, names):
            cells = [text, json.dumps(labels, ensure_ascii=False)]
            self._tables[split].writerow(cells if doc_id is None else [doc_id, *cells])


def _guess(lines: Sequence[str], delimiters: Sequence[str], options: ReadOptions, *, with_labels: bool) -> str:
    """The delimiter by which the header names the columns that are wanted, or else by which rows have equal lengths."""
    shapes: dict[str, int] = {}
    for delimiter in delimiters:
        rows = []
        try:
            for row in csv.reader(lines, delimiter=delimiter, strict=True):
                rows.append(row)
                if len(rows) == ROWS_TO_GUESS:
                    break
        except csv.Error:  # the lines end within a quoted field, or this is not how the file is quoted
            pass
        rows = [row for row in rows if row]
        if rows and has_columns(rows[0], options, with_labels=with_labels):
            return delimiter
        if rows and len({len(row) for row in rows[:-1]} or {0}) == 1:
            shapes[delimiter] = len(rows[0])
    best = max(shapes.values(), default=1)
    return next((one for one, n_columns in shapes.items() if n_columns == best > 1), delimiters[0])


FORMAT = FileFormat(
    name="csv",
    records=True,
    streamed=True,
    suffixes=("csv",),
    needs="texts",
    open_files=CsvSource,
    writer=CsvWriter,
)
