"""Records from csv and tsv files with a header row, quoted as spreadsheets do (RFC 4180)."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from labelwise.data.batch import DocumentBatch
from labelwise.data.builder import RecordBuilder
from labelwise.data.files import read_blocks
from labelwise.data.formats.records import ROWS_PER_BATCH, joined, require_columns
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError

DELIMITERS = {"csv": ",", "tsv": "\t"}


def read_table(path: Path, kind: Literal["csv", "tsv"], builder: RecordBuilder) -> Iterator[DocumentBatch]:
    """Batches of a table whose first row names the columns."""
    options, bad = builder.options, builder.bad
    rows = _rows(path, DELIMITERS[kind], options, bad)
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


def label_strings(path: Path, kind: Literal["csv", "tsv"], options: ReadOptions, bad: BadRows) -> Iterator[list[str]]:
    """The label column, to guess the separator from."""
    rows = _rows(path, DELIMITERS[kind], options, bad)
    _, header = next(rows, (0, []))
    if options.labels_column in header:
        at = header.index(options.labels_column)
        for _, row in rows:
            if len(row) > at:
                yield [row[at]]


def header_of(path: Path, delimiter: str, encoding: str) -> list[str]:
    """The fields of the first row; empty if there is none."""
    lenient = BadRows(skip=True)
    rows = _rows(path, delimiter, ReadOptions(encoding=encoding), lenient)
    return next(rows, (0, []))[1]


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
    for block in read_blocks(path, encoding=options.encoding, bad=bad):
        try:
            text = block.data.decode()
        except UnicodeDecodeError:
            text = "".join(f"{line or ''}\n" for line in block.lines(path, bad))
        yield from io.StringIO(text, newline="\n")
