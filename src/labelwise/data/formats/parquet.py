"""parquet files of records, read column by column and written with a batch as a row group. pyarrow does the work."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelwise.data.archive import WriteCompression
from labelwise.data.batch import BadLabelError, DocumentBatch
from labelwise.data.builder import RecordBuilder
from labelwise.data.files import check_regular, most_unpacked, too_large
from labelwise.data.formats.columns import Columns, find_columns
from labelwise.data.formats.format import FileFormat
from labelwise.data.formats.records import ROWS_PER_BATCH, RecordSource, joined
from labelwise.errors import DataError, UsageError, need
from labelwise.storage.parquet import must_be_counted, plain_batches
from labelwise.types import Ints


@dataclass(kw_only=True)
class ParquetSource(RecordSource):
    """parquet files; a "line" of such a file is a row, counted from 1."""

    def read(self, path: Path, builder: RecordBuilder) -> Iterator[DocumentBatch]:
        """The documents of a file."""
        options, row = builder.options, 1
        with _Parquet(path, options.max_unpacked) as parquet:
            columns = find_columns(
                parquet.columns, options, path, bad=builder.bad, with_labels=builder.labels is not None
            )
            wanted = [*columns.text, *(name for name in (columns.labels, columns.id) if name is not None)]
            for table in parquet.batches(list(dict.fromkeys(wanted))):
                try:
                    made = _column_wise(table, row, builder, columns)
                    if made is None:
                        _row_wise(table, row, builder, columns)
                        made = builder.batch()
                except DataError:
                    raise
                except parquet.damage as err:
                    reason = _first_line(err)
                    message = f"the rows from here on cannot be read ({reason}); write or fetch the file again"
                    raise DataError(message, path=path, line=row) from err
                yield made
                row += table.num_rows
        builder.check_not_empty()

    def label_cells(self, path: Path) -> Iterator[list[str]]:
        """The label column, where it holds strings."""
        with _Parquet(path, self.options.max_unpacked) as parquet:
            columns = find_columns(parquet.columns, self.options, path)
            if columns.labels is not None:
                for table in parquet.batches([columns.labels]):
                    yield [cell for cell in table.column(0).to_pylist() if isinstance(cell, str)]

    def copy_rows(self, path: Path, part_of: Ints, files: Sequence[Path], compression: WriteCompression | None) -> None:
        """Copy rows into new files with the same columns."""
        parquet, codec = _pyarrow("parquet"), codec_of(compression)
        table = parquet.read_table(path)
        for part, file in enumerate(files):
            parquet.write_table(table.take(np.flatnonzero(part_of == part)), file, compression=codec)

    def columns(self, split: str) -> list[str]:
        """What the columns are called."""
        with _Parquet(self.files[split], self.options.max_unpacked) as parquet:
            return parquet.columns


class ParquetWriter:
    """Writes parquet with a list column of labels; a batch is a row group."""

    def __init__(self, folder: Path, compression: WriteCompression | None) -> None:
        self._arrow, self._parquet = _pyarrow(), _pyarrow("parquet")
        self._folder, self._codec = folder, codec_of(compression)
        self._writers: dict[str, Any] = {}

    def write(self, split: str, batch: DocumentBatch, names: Sequence[str]) -> None:
        """Add documents to a split."""
        arrow = self._arrow
        values = arrow.array([names[i] for i in batch.indices.tolist()], type=arrow.string())
        labels = arrow.ListArray.from_arrays(arrow.array(batch.indptr.astype(np.int32)), values)
        columns = {"text": arrow.array(batch.texts, type=arrow.string()), "labels": labels}
        if batch.ids is not None:
            columns = {"id": arrow.array(batch.ids, type=arrow.string()), **columns}
        table = arrow.table(columns)
        if split not in self._writers:
            path = self._folder / f"{split}.parquet"
            self._writers[split] = self._parquet.ParquetWriter(path, table.schema, compression=self._codec)
        self._writers[split].write_table(table)

    def finish(self, names: Sequence[str]) -> list[str]:
        """Nothing is left to write, and nothing is lost."""
        return []

    def close(self) -> None:
        """Close every file."""
        for writer in self._writers.values():
            writer.close()


_CODECS: Mapping[WriteCompression | None, str] = {None: "snappy", "gz": "gzip", "zst": "zstd"}


def codec_of(compression: WriteCompression | None) -> str:
    """What parquet calls a compression."""
    if compression not in _CODECS:
        raise UsageError(f"parquet files cannot be compressed with {compression}; choose gz, zst or nothing (snappy)")
    return _CODECS[compression]


def _pyarrow(module: str = "") -> Any:
    """pyarrow, or a module of it."""
    return need(f"pyarrow.{module}" if module else "pyarrow", extra="parquet", purpose="parquet files")


def _column_wise(table: Any, row: int, builder: RecordBuilder, columns: Columns) -> DocumentBatch | None:
    """The rows of a batch if nothing is wrong or unusual about any of them; None otherwise."""
    arrow, compute = _pyarrow(), _pyarrow("compute")
    options = builder.options
    if columns.labels is None or builder.labels is None:
        return None
    labels = table.column(columns.labels)
    if len(columns.text) > 1 or table.num_rows == 0 or labels.null_count:
        return None
    text = table.column(columns.text[0])
    if text.null_count or not _is_string(text.type, arrow) or not _is_list_of_strings(labels.type, arrow):
        return None
    if compute.any(compute.or_(compute.utf8_is_space(text), compute.equal(compute.utf8_length(text), 0))).as_py():
        return None
    if compute.max(compute.utf8_length(text)).as_py() > options.max_text_chars:
        return None
    counts = labels.value_lengths().to_numpy(zero_copy_only=False)
    if not options.allow_unlabelled and counts.min() == 0:
        return None
    ids = _new_ids(table, builder, columns.id)
    if ids is None and columns.id is not None and builder.with_ids is not False:
        return None
    names = labels.flatten().dictionary_encode()
    if names.null_count:
        return None
    try:
        found = np.array(builder.labels.ids_of(names.dictionary.to_pylist()), dtype=np.int32)
    except BadLabelError:
        return None
    if ids is not None and options.unique_ids:
        builder.line_of.update(zip(ids, range(row, row + len(ids)), strict=True))
    builder.with_ids = ids is not None
    rows = np.arange(builder.n_rows, builder.n_rows + table.num_rows)
    builder.n_rows += table.num_rows
    indptr = np.zeros(table.num_rows + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    indices = found[names.indices.to_numpy(zero_copy_only=False)] if len(names) else found
    return DocumentBatch(indptr=indptr, indices=indices, texts=text.to_pylist(), ids=ids, rows=rows)


def _new_ids(table: Any, builder: RecordBuilder, name: str | None) -> list[str] | None:
    """The ids if they are strings, distinct and not met before; None otherwise."""
    arrow = _pyarrow()
    if name is None or builder.with_ids is False:
        return None
    column = table.column(name)
    if column.null_count or not _is_string(column.type, arrow):
        return None
    ids: list[str] = column.to_pylist()
    if not builder.options.unique_ids:
        return ids
    if len(set(ids)) != len(ids) or not builder.line_of.keys().isdisjoint(ids):
        return None
    return ids


def _row_wise(table: Any, row: int, builder: RecordBuilder, columns: Columns) -> None:
    cells = {name: table.column(name).to_pylist() for name in table.schema.names}
    texts = [cells[name] for name in columns.text]
    ids = None if columns.id is None else cells[columns.id]
    for i, labels in enumerate([None] * table.num_rows if columns.labels is None else cells[columns.labels]):
        text = texts[0][i] if len(texts) == 1 else joined([column[i] for column in texts])
        builder.add(row + i, text, labels, None if ids is None else ids[i])


def _is_string(kind: Any, arrow: Any) -> bool:
    return bool(arrow.types.is_string(kind) or arrow.types.is_large_string(kind))


def _is_list_of_strings(kind: Any, arrow: Any) -> bool:
    is_list = arrow.types.is_list(kind) or arrow.types.is_large_list(kind)
    return bool(is_list and _is_string(kind.value_type, arrow))


class _Parquet:
    """An open parquet file; pyarrow's errors become DataErrors."""

    def __init__(self, path: Path, max_unpacked: int | None) -> None:
        self.path = path
        check_regular(path)
        arrow, parquet = _pyarrow(), _pyarrow("parquet")
        # ValueError stands for names and texts that are not UTF-8, MemoryError for sizes that are nonsense.
        self.damage = (arrow.ArrowException, OSError, ValueError, MemoryError)
        try:
            self._file = parquet.ParquetFile(path)
            self.columns: list[str] = list(self._file.schema_arrow.names)
            sizes = [self._file.metadata.row_group(i).total_byte_size for i in range(self._file.num_row_groups)]
            n_rows: int = self._file.metadata.num_rows
        except self.damage as err:
            raise self._damaged(err) from err
        self._most = most_unpacked(path, max_unpacked)
        if max(sum(sizes), n_rows) > self._most:
            raise too_large(path, self._most)
        try:
            if counted := must_be_counted(path, self._most):
                self._file = parquet.ParquetFile(path, read_dictionary=counted)
        except self.damage as err:
            raise self._damaged(err) from err
        if len(set(self.columns)) < len(self.columns):
            message = f"column names must differ; there are: {', '.join(map(repr, self.columns))}"
            raise DataError(message, path=path)

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Record batches of these columns."""
        rows = plain_batches(self._file, columns, rows=ROWS_PER_BATCH, most=self._most)
        while True:
            try:
                table = next(rows)
            except StopIteration:
                return
            except OverflowError as err:
                raise too_large(self.path, self._most) from err
            except self.damage as err:
                raise self._damaged(err) from err
            yield table

    def _damaged(self, err: Exception) -> DataError:
        if self.path.stat().st_size == 0:
            return DataError("the file is empty; there is no document in it", path=self.path)
        return DataError(f"not a whole parquet file ({_first_line(err)}); write or fetch it again", path=self.path)

    def __enter__(self) -> "_Parquet":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _first_line(err: Exception) -> str:
    return str(err).splitlines()[0] if str(err) else type(err).__name__


FORMAT = FileFormat(
    name="parquet",
    records=True,
    suffixes=("parquet",),
    needs="texts",
    open_files=ParquetSource,
    writer=ParquetWriter,
)
