"""JSON lines: an object a line, with a text, labels and perhaps an id."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelwise.data.batch import DocumentBatch, kind_of
from labelwise.data.builder import RecordBuilder
from labelwise.data.files import TextBlock, read_blocks
from labelwise.data.formats.format import FileFormat, FileStart
from labelwise.data.formats.records import RecordSource, joined, require_columns
from labelwise.data.formats.writer import TextWriter, named_rows
from labelwise.data.options import BadRows


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
            cells = (row.get(self.options.labels_column) for row in rows if row is not None)
            yield [cell for cell in cells if isinstance(cell, str)]


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
    for block in read_blocks(path, bad=builder.bad, **builder.options.decoding):
        _add_objects(_numbered_objects(block, path, builder), path, builder)
        yield builder.batch()
    builder.check_not_empty()


def _numbered_objects(block: TextBlock, path: Path, builder: RecordBuilder) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects with their line numbers, without blank lines."""
    loads = json.JSONDecoder().decode
    for line, raw in enumerate(block.lines(path, builder.bad), block.first_line):
        if not raw or raw.isspace():
            continue
        try:
            row = loads(raw)
        except (ValueError, RecursionError) as err:
            builder.n_rows += 1
            message = f"invalid JSON ({err}); every line holds one object"
            builder.bad.add(message, path=path, line=line, cause=err)
            continue
        if type(row) is not dict:
            builder.n_rows += 1
            builder.bad.add(f"the line is {kind_of(row)} where an object should be", path=path, line=line)
            continue
        yield line, row


def _add_objects(rows: Iterable[tuple[int, dict[str, Any]]], path: Path, builder: RecordBuilder) -> None:
    options, add = builder.options, builder.add
    text_columns, labels_column, id_column = options.text_columns, options.labels_column, options.id_column
    text_column = text_columns[0] if len(text_columns) == 1 else None
    for line, row in rows:
        if builder.n_rows == 0:
            require_columns(row, options, path, line)
        text = row.get(text_column) if text_column is not None else joined([row.get(c) for c in text_columns])
        add(line, text, row.get(labels_column), row.get(id_column))


def _object(line: str | None) -> dict[str, Any] | None:
    try:
        row = json.loads(line or "")
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _recognises(start: FileStart) -> bool:
    return start.lines[0].lstrip().startswith("{")


FORMAT = FileFormat(
    name="jsonl",
    records=True,
    suffixes=("jsonl", "ndjson"),
    needs="texts",
    open_files=JsonlSource,
    recognises=_recognises,
    writer=JsonlWriter,
)
