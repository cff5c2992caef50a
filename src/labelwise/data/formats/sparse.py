"""Sparse matrices in text files: ``l,l f:v f:v`` a line, with or without a header, parsed in blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.data.files import TextBlock, read_blocks
from labelwise.data.options import BadRows
from labelwise.errors import DataError
from labelwise.kernels import parse
from labelwise.types import Csr, Floats, Ints

NO_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SparseRows:
    """Some lines of a sparse text file; those that are wrong are empty and not `good`."""

    good: npt.NDArray[np.bool_]
    """(n_lines,) whether the line is well-formed and in range."""
    label_indptr: Ints
    label_indices: Ints
    indptr: Ints
    indices: Ints
    values: Floats
    first_line: int

    def __len__(self) -> int:
        return int(self.good.size)

    def features(self, n_features: int) -> Csr:
        """(n_lines, n_features) the values; explicit zeros dropped, for they carry nothing."""
        X = sp.csr_array((self.values, self.indices, self.indptr), shape=(len(self), n_features))
        X.sum_duplicates()
        X.eliminate_zeros()
        return X


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a sparse file: its shape."""

    n_rows: int
    n_columns: int
    n_labels: int | None
    """Only where lines start with labels."""


def read_header(path: Path, encoding: str, *, n_numbers: int) -> Header:
    """The shape on a file's first line: ``N D L``, or ``N D`` where lines have no labels."""
    block = next(read_blocks(path, encoding=encoding, bad=BadRows(skip=True)), None)
    if block is None:
        raise DataError("the file is empty; there is not even a header", path=path)
    first = block.data.split(b"\n", 1)[0].decode("utf-8", "replace").strip()
    if not re.fullmatch(rf"\d{{1,10}}(\s+\d{{1,10}}){{{n_numbers - 1}}}", first):
        meant = "documents, features and labels" if n_numbers == 3 else "rows and columns"
        message = f"the header should be {n_numbers} whole numbers ({meant}), not {first[:80]!r}"
        raise DataError(message, path=path, line=1)
    numbers = [int(part) for part in first.split()]
    if max(numbers) >= NO_LIMIT:
        raise DataError(f"the header's numbers must be below 2^31, not {max(numbers)}", path=path, line=1)
    return Header(numbers[0], numbers[1], numbers[2] if n_numbers == 3 else None)


def read_sparse(
    path: Path,
    bad: BadRows,
    *,
    encoding: str = "utf-8",
    header: Header | None = None,
    with_labels: bool = True,
    noun: str = "feature",
) -> Iterator[SparseRows]:
    """Rows of a sparse text file in blocks; the ranges and the number of rows are held to the header.

    Without a header, all numbers are taken as they come. `noun` is what the columns are, for messages.
    """
    n_labels = NO_LIMIT if header is None or header.n_labels is None else header.n_labels
    n_columns = NO_LIMIT if header is None else header.n_columns
    n_rows = 0
    for i, block in enumerate(read_blocks(path, encoding=encoding, bad=bad)):
        if header is not None:
            if i == 0:
                block = TextBlock(block.data.partition(b"\n")[2], 2)
            if n_rows + block.data.count(b"\n") > header.n_rows:
                block = TextBlock(_without_blank_end(block.data, header.n_rows - n_rows), block.first_line)
        if not block.data:
            continue
        found = parse.parse_lines(np.frombuffer(block.data, dtype=np.uint8), with_labels, n_labels, n_columns)
        codes, details, label_indptr, label_indices, indptr, indices, values = found
        for row in np.flatnonzero(codes):
            message = _explain(int(codes[row]), int(details[row]), n_labels, n_columns, noun)
            bad.add(message, path=path, line=block.first_line + int(row))
        rows = SparseRows(codes == parse.OK, label_indptr, label_indices, indptr, indices, values, block.first_line)
        n_rows += len(rows)
        yield rows
    if header is not None and n_rows != header.n_rows:
        message = (
            f"the header promises {header.n_rows} rows but there are {n_rows}; the file is cut or the header wrong"
        )
        bad.add(message, path=path, line=1)


def _without_blank_end(data: bytes, n_rows: int) -> bytes:
    """`data` without blank lines after the first `n_rows`: they end many files and are no documents."""
    lines = data.split(b"\n")
    while len(lines) > n_rows and not lines[-1].strip():
        lines.pop()
    return b"".join(line + b"\n" for line in lines)


def _explain(code: int, detail: int, n_labels: int, n_columns: int, noun: str) -> str:
    if code == parse.BAD_LABEL:
        return f"what stands at position {detail} is not a label number; labels are whole numbers like 3,17"
    if code == parse.LABEL_RANGE:
        return f"label {detail} is out of range: {_limit(n_labels)}"
    if code == parse.BAD_FEATURE:
        return f"what stands at position {detail} is not a {noun}:value pair like 12:0.5"
    if code == parse.FEATURE_RANGE:
        return f"{noun} {detail} is out of range: {_limit(n_columns)}"
    return f"the value of the {noun} at position {detail} is not a finite number"


def _limit(n: int) -> str:
    return "numbers must be below 2^31" if n == NO_LIMIT else f"the header says there are {n}, counted from 0"


def join_rows(parts: list[SparseRows], n_columns: int) -> tuple[Csr, npt.NDArray[np.bool_]]:
    """All rows as one matrix, and which of them are good."""
    if not parts:
        nothing: Csr = sp.csr_array(np.zeros((0, n_columns), dtype=np.float32))
        return nothing, np.zeros(0, dtype=np.bool_)
    blocks: list[Any] = [part.features(n_columns) for part in parts]
    X: Any = sp.vstack(blocks, format="csr")
    return X, np.concatenate([part.good for part in parts])
