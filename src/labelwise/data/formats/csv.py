"""csv files with a header row, quoted as spreadsheets do (RFC 4180). tsv files share reader and writer."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from labelwise.data.archive import WriteCompression
from labelwise.data.batch import DocumentBatch
from labelwise.data.builder import RecordBuilder
from labelwise.data.files import read_blocks
from labelwise.data.formats.format import FileFormat
from labelwise.data.formats.records import ROWS_PER_BATCH, RecordSource, joined, require_columns
from labelwise.data.formats.writer import TextWriter, named_rows
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError


@dataclass(kw_only=True)
class CsvSource(RecordSource):
    """csv files whose first row names the columns."""

    delimiter: ClassVar[str] = ","

    def read(self, path: Path, builder: RecordBuilder) -> Iterator[DocumentBatch]:
        """The documents of a file."""
        options, bad = builder.options, builder.bad
        rows = _rows(path, self.delimiter, options, bad)
        line, header = next(rows, (0, []))
        if not header:
            raise DataError("the file is empty; there is not even a header row", path=path)
        require_columns(header, options, path, line)
        text_at = [header.index(name) for name in options.text_columns]
        labels_at = header.index(options.labels_column) if options.labels_column in header else None
        id_at = header.index(options.id_column) if options.id_column in header else None
        for line, row in rows:
            if len(row) != len(header):
                builder.n_rows += 1
                message = f"the row has {len(row)} fields where the header has {len(header)}; is a quote missing?"
                bad.add(message, path=path, line=line)
                continue
            text = row[text_at[0]] if len(text_at) == 1 else joined([row[i] for i in text_at])
            labels = None if labels_at is None else row[labels_at]
            builder.add(line, text, labels, None if id_at is None else row[id_at])
            if len(builder.texts) == ROWS_PER_BATCH:
                yield builder.batch()
        yield builder.batch()
        builder.check_not_empty()

    def label_cells(self, path: Path) -> Iterator[list[str]]:
        """The label column, row by row."""
        rows = _rows(path, self.delimiter, self.options, BadRows(skip=True))
        _, header = next(rows, (0, []))
        if self.options.labels_column in header:
            at = header.index(self.options.labels_column)
            for _, row in rows:
                if len(row) > at:
                    yield [row[at]]


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


def _rows(path: Path, delimiter: str, options: ReadOptions, bad: BadRows) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the number of its first line."""
    # The limit belongs to the csv module, not to a reader; ours is checked per text, with a better message.
    csv.field_size_limit(max(csv.field_size_limit(), min(options.max_text_chars * 2, 2**31 - 1)))
    reader = csv.reader(_lines(path, options, bad), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as err:
            bad.add(f"not well-formed ({err}); is a quote missing?", path=path, line=line, cause=err)
            continue
        if row:
            yield line, row


def _lines(path: Path, options: ReadOptions, bad: BadRows) -> Iterator[str]:
    """Lines with their ends, which a quoted field may keep."""
    for block in read_blocks(path, bad=bad, **options.decoding):
        try:
            text = block.data.decode()
        except UnicodeDecodeError:
            text = "".join(f"{line or ''}\n" for line in block.lines(path, bad))
        yield from io.StringIO(text, newline="\n")


FORMAT = FileFormat(
    name="csv",
    records=True,
    suffixes=("csv",),
    needs="texts",
    open_files=CsvSource,
    writer=CsvWriter,
)
