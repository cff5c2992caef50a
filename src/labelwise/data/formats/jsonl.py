"""JSON lines: an object a line, with a text, labels and perhaps an id."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelwise.data.archive import WriteCompression, open_writer
from labelwise.data.batch import DocumentBatch, kind_of
from labelwise.data.builder import RecordBuilder
from labelwise.data.files import TextBlock, read_blocks
from labelwise.data.formats.columns import Columns, find_columns
from labelwise.data.formats.format import FileFormat, FileStart
from labelwise.data.formats.records import RecordSource, joined
from labelwise.data.formats.writer import TextWriter, named_rows
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError
from labelwise.types import Ints


@dataclass(kw_only=True)
class JsonlSource(RecordSource):
    """Files of JSON lines."""

    def read(self, path: Path, builder: RecordBuilder) -> Iterator[DocumentBatch]:
        """The documents of a file."""
        return read_jsonl(path, builder)

    def label_cells(self, path: Path) -> Iterator[list[str]]:
        """The labels of the rows that give them as a string."""
        bad = BadRows(skip=True)
        for block in read_blocks(path, bad=bad, **self.options.decoding):
            rows = (_object(line) for line in block.lines(path, bad))
            cells = (_labels(row, self.options) for row in rows if row is not None)
            yield [cell for cell in cells if isinstance(cell, str)]

    def copy_rows(self, path: Path, part_of: Ints, files: Sequence[Path], compression: WriteCompression | None) -> None:
        """Copy lines into new files."""
        bad, parts = BadRows(skip=True), iter(part_of.tolist())
        with ExitStack() as stack:
            outs = [stack.enter_context(open_writer(file, compression)) for file in files]
            for block in read_blocks(path, bad=bad, **self.options.decoding):
                for line in block.lines(path, bad):
                    if line is not None and (not line or line.isspace()):
                        continue
                    part = next(parts, -1)
                    if line is not None and part >= 0:
                        outs[part].write(f"{line}\n")

    def columns(self, split: str) -> list[str]:
        """The names in the first object."""
        bad = BadRows(skip=True)
        for block in read_blocks(self.files[split], bad=bad, **self.options.decoding):
            first = next((row for row in map(_object, block.lines(self.files[split], bad)) if row is not None), None)
            if first is not None:
                return list(first)
        return []


class JsonlWriter(TextWriter):
    """Writes a JSON object a line."""

    file_name = "{}.jsonl"

    def write(self, split: str, batch: DocumentBatch, names: Sequence[str]) -> None:
        """Add documents to a split."""
        encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
        lines = []
        for doc_id, text, labels in named_rows(batch, names):
            row = {"text": text, "labels": labels} if doc_id is None else {"id": doc_id, "text": text, "labels": labels}
            lines.append(encode(row))
        lines.append("")
        self.file(split).write("\n".join(lines))


def read_jsonl(path: Path, builder: RecordBuilder) -> Iterator[DocumentBatch]:
    """Batches of a file of JSON lines."""
    builder.check_surrogates = True
    columns: Columns | None = None
    for block in read_blocks(path, bad=builder.bad, **builder.options.decoding):
        columns = _add_objects(_numbered_objects(block, path, builder), builder, columns)
        yield builder.batch()
    builder.check_not_empty()


def _numbered_objects(block: TextBlock, path: Path, builder: RecordBuilder) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects with their line numbers, without blank lines."""
    loads = json.JSONDecoder().decode
    for line, raw in enumerate(block.lines(path, builder.bad), block.first_line):
        if raw is None:  # it is no UTF-8, and was noted
            builder.n_rows += 1
            continue
        if not raw or raw.isspace():
            continue
        try:
            row = loads(raw)
        except (ValueError, RecursionError) as err:
            builder.add_bad(f"invalid JSON ({err}); every line holds one object", line, err)
            continue
        if type(row) is not dict:
            builder.add_bad(f"the line is {kind_of(row)} where an object should be", line)
            continue
        yield line, row


def _add_objects(
    rows: Iterable[tuple[int, dict[str, Any]]], builder: RecordBuilder, columns: Columns | None
) -> Columns | None:
    """Add objects; the first one of all tells what the columns are called."""
    options, add = builder.options, builder.add
    for line, row in rows:
        if columns is None:
            columns = find_columns(
                row, options, builder.path, line, bad=builder.bad, with_labels=builder.labels is not None
            )
        names = columns.text
        text = row.get(names[0]) if len(names) == 1 else joined([row.get(name) for name in names])
        add(line, text, row.get(columns.labels or options.labels_column), row.get(columns.id or options.id_column))
    return columns


def _object(line: str | None) -> dict[str, Any] | None:
    try:
        row = json.loads(line or "")
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _labels(row: dict[str, Any], options: ReadOptions) -> object:
    """What stands in the labels column, however it is written."""
    if options.labels_column in row:
        return row[options.labels_column]
    try:
        columns = find_columns(row, options, Path())
    except DataError:
        return None
    return None if columns.labels is None else row[columns.labels]


def _recognises(start: FileStart) -> bool:
    return start.lines[0].lstrip().startswith("{")


FORMAT = FileFormat(
    name="jsonl",
    records=True,
    streamed=True,
    suffixes=("jsonl", "ndjson"),
    needs="texts",
    open_files=JsonlSource,
    recognises=_recognises,
    writer=JsonlWriter,
)
