"""Parquet files in batches of rows, each counted before it is written out.

A parquet file may hold a text once, in a dictionary, for a million rows, and its own figures leave such texts out. So
columns that could make too much are read as numbers of a dictionary, and the dictionary is applied when it is known how
much that makes. Arrow cannot do this for strings in lists; there it ends with an error at 2 GB for a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from labelwise.errors import need


def must_be_counted(path: Path, most: int) -> list[str]:
    """The columns of strings that could make more than so many bytes, by the longest string of their dictionaries."""
    arrow = need("pyarrow", extra="parquet", purpose="parquet files")
    parquet = need("pyarrow.parquet", extra="parquet", purpose="parquet files")
    with parquet.ParquetFile(path) as plain:
        about, schema = plain.metadata, plain.schema
        names = [one.path for one in schema if one.physical_type == "BYTE_ARRAY" and "." not in one.path]
    total: dict[str, int] = dict.fromkeys(names, 0)
    found: set[str] = set()
    with parquet.ParquetFile(path, read_dictionary=names) as file:
        for group in range(about.num_row_groups if names else 0):
            # The first row alone is decoded, and the dictionary, which stands before all rows.
            first = next(file.iter_batches(batch_size=1, row_groups=[group], columns=names), None)
            if first is None:
                continue
            for name in names:
                if _is_of_strings(first.column(name).type, arrow):
                    total[name] += about.row_group(group).num_rows * _longest(first.column(name))
                if total[name] > most:
                    found.add(name)
    return sorted(found)


def _longest(strings: Any) -> int:
    """Bytes of the longest string of a dictionary."""
    compute = need("pyarrow.compute", extra="parquet", purpose="parquet files")
    return int(compute.max(compute.binary_length(strings.dictionary)).as_py() or 0)


def plain_batches(parquet_file: Any, columns: Sequence[str], *, rows: int, most: int) -> Iterator[Any]:
    """Batches without dictionaries of strings; OverflowError where all of them make more than so many bytes."""
    arrow = need("pyarrow", extra="parquet", purpose="parquet files")
    total = 0
    for batch in parquet_file.iter_batches(batch_size=rows, columns=list(columns)):
        total += sum(map(_unpacked_bytes, batch.columns))
        if total > most:
            raise OverflowError
        plain = [one.dictionary_decode() if _is_of_strings(one.type, arrow) else one for one in batch.columns]
        yield arrow.RecordBatch.from_arrays(plain, names=batch.schema.names)


def _unpacked_bytes(array: Any) -> int:
    """Bytes of an array whose dictionaries are applied."""
    arrow = need("pyarrow", extra="parquet", purpose="parquet files")
    compute = need("pyarrow.compute", extra="parquet", purpose="parquet files")
    if _is_of_strings(array.type, arrow):
        lengths = compute.binary_length(array.dictionary)
        return int(compute.sum(compute.take(lengths, array.indices)).as_py() or 0)
    if arrow.types.is_list(array.type) or arrow.types.is_large_list(array.type):
        return _unpacked_bytes(array.flatten())
    return int(array.nbytes)


def _is_of_strings(kind: Any, arrow: Any) -> bool:
    """Whether values are numbers of a dictionary of strings."""
    known = (arrow.types.is_string, arrow.types.is_large_string, arrow.types.is_binary, arrow.types.is_large_binary)
    return bool(arrow.types.is_dictionary(kind)) and any(is_of_kind(kind.value_type) for is_of_kind in known)
