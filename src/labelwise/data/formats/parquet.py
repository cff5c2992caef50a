"""Records from parquet files, column by column and row group by row group."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from labelwise.data.batch import BadLabelError, DocumentBatch
from labelwise.data.builder import RecordBuilder
from labelwise.data.formats.records import ROWS_PER_BATCH, joined, require_columns
from labelwise.data.options import ReadOptions
from labelwise.errors import DataError, need


def read_parquet(path: Path, builder: RecordBuilder) -> Iterator[DocumentBatch]:
    """Batches of a parquet file; a "line" of it is a row, counted from 1."""
    options, row = builder.options, 1
    with _Parquet(path) as parquet:
        require_columns(parquet.columns, options, path, None)
        wanted = [*options.text_columns]
        wanted += [name for name in (options.labels_column, options.id_column) if name in parquet.columns]
        for table in parquet.batches(list(dict.fromkeys(wanted))):
            try:
                made = _column_wise(table, row, builder)
                if made is None:
                    _row_wise(table, row, builder)
                    made = builder.batch()
            except DataError:
                raise
            except parquet.damage as err:
                message = f"the rows from here on cannot be read ({_first_line(err)}); write or fetch the file again"
                raise DataError(message, path=path, line=row) from err
            yield made
            row += table.num_rows
    builder.check_not_empty()


def label_strings(path: Path, options: ReadOptions) -> Iterator[list[str]]:
    """The label column where it holds strings, to guess the separator from."""
    with _Parquet(path) as parquet:
        if options.labels_column in parquet.columns:
            for table in parquet.batches([options.labels_column]):
                yield [cell for cell in table.column(0).to_pylist() if isinstance(cell, str)]


def _column_wise(table: Any, row: int, builder: RecordBuilder) -> DocumentBatch | None:
    """The rows of a batch if nothing is wrong or unusual about any of them; None otherwise."""
    arrow = need("pyarrow", extra="parquet", purpose="parquet files")
    compute = need("pyarrow.compute", extra="parquet", purpose="parquet files")
    options = builder.options
    if options.labels_column not in table.schema.names:
        return None
    labels = table.column(options.labels_column)
    if len(options.text_columns) > 1 or table.num_rows == 0 or labels.null_count:
        return None
    text = table.column(options.text_columns[0])
    if text.null_count or not _is_string(text.type, arrow) or not _is_list_of_strings(labels.type, arrow):
        return None
    if compute.any(compute.or_(compute.utf8_is_space(text), compute.equal(compute.utf8_length(text), 0))).as_py():
        return None
    if compute.max(compute.utf8_length(text)).as_py() > options.max_text_chars:
        return None
    counts = labels.value_lengths().to_numpy(zero_copy_only=False)
    if not options.allow_unlabelled and counts.min() == 0:
        return None
    ids = _new_ids(table, builder)
    if ids is None and options.id_column in table.schema.names and builder.with_ids is not False:
        return None
    names = labels.flatten().dictionary_encode()
    if names.null_count:
        return None
    try:
        found = np.array(builder.labels.ids_of(names.dictionary.to_pylist()), dtype=np.int32)
    except BadLabelError:
        return None
    if ids is not None:
        builder.line_of.update(zip(ids, range(row, row + len(ids)), strict=True))
    builder.with_ids = ids is not None
    builder.n_rows += table.num_rows
    indptr = np.zeros(table.num_rows + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    indices = found[names.indices.to_numpy(zero_copy_only=False)] if len(names) else found
    return DocumentBatch(indptr=indptr, indices=indices, texts=text.to_pylist(), ids=ids)


def _new_ids(table: Any, builder: RecordBuilder) -> list[str] | None:
    """The ids if they are strings that differ from each other and from those before."""
    arrow = need("pyarrow", extra="parquet", purpose="parquet files")
    if builder.options.id_column not in table.schema.names or builder.with_ids is False:
        return None
    column = table.column(builder.options.id_column)
    if column.null_count or not _is_string(column.type, arrow):
        return None
    ids: list[str] = column.to_pylist()
    if builder.options.allow_duplicate_ids:
        return ids
    if len(set(ids)) != len(ids) or not builder.line_of.keys().isdisjoint(ids):
        return None
    return ids


def _row_wise(table: Any, row: int, builder: RecordBuilder) -> None:
    options = builder.options
    columns = {name: table.column(name).to_pylist() for name in table.schema.names}
    texts = [columns[name] for name in options.text_columns]
    ids = columns.get(options.id_column)
    for i, labels in enumerate(columns.get(options.labels_column, [None] * table.num_rows)):
        text = texts[0][i] if len(texts) == 1 else joined([column[i] for column in texts])
        builder.add(row + i, text, labels, None if ids is None else ids[i])


def _is_string(kind: Any, arrow: Any) -> bool:
    return bool(arrow.types.is_string(kind) or arrow.types.is_large_string(kind))


def _is_list_of_strings(kind: Any, arrow: Any) -> bool:
    is_list = arrow.types.is_list(kind) or arrow.types.is_large_list(kind)
    return bool(is_list and _is_string(kind.value_type, arrow))


class _Parquet:
    """An open parquet file whose errors are ours."""

    def __init__(self, path: Path) -> None:
        self.path = path
        arrow = need("pyarrow", extra="parquet", purpose="parquet files")
        parquet = need("pyarrow.parquet", extra="parquet", purpose="parquet files")
        # ValueError stands for names and texts that are not UTF-8, MemoryError for sizes that are nonsense.
        self.damage = (arrow.ArrowException, OSError, ValueError, MemoryError)
        try:
            self._file = parquet.ParquetFile(path)
            self.columns: list[str] = list(self._file.schema_arrow.names)
        except self.damage as err:
            raise self._damaged(err) from err
        if len(set(self.columns)) < len(self.columns):
            message = f"column names must differ; there are: {', '.join(map(repr, self.columns))}"
            raise DataError(message, path=path)

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Record batches of these columns."""
        rows = self._file.iter_batches(batch_size=ROWS_PER_BATCH, columns=columns)
        while True:
            try:
                table = next(rows)
            except StopIteration:
                return
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
