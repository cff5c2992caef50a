"""What xc and libsvm share: sparse matrices in text files, ``l,l f:v f:v`` a line, with or without a header."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.data.archive import WriteCompression
from labelwise.data.batch import DocumentBatch
from labelwise.data.files import TextBlock, read_blocks
from labelwise.data.formats.writer import NO_IDS, NO_TEXTS, TextWriter
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError, UsageError
from labelwise.types import Csr, Floats, Ints

NO_LIMIT = 2**31 - 1
LARGEST_VALUE = np.finfo(np.float32).max


@dataclass(frozen=True, slots=True)
class SparseRows:
    """Some lines of a sparse text file; a wrong line is empty and not `good`."""

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
        """(n_lines, n_features) the values, without explicit zeros."""
        X = sp.csr_array((self.values, self.indices, self.indptr), shape=(len(self), n_features))
        n_entries = X.nnz
        X.sum_duplicates()
        if X.nnz < n_entries:  # a sum of finite values may be too large
            np.clip(X.data, -LARGEST_VALUE, LARGEST_VALUE, out=X.data)
        X.eliminate_zeros()
        return X


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a sparse file: its shape."""

    n_rows: int
    n_columns: int
    n_labels: int | None
    """Only where lines start with labels."""


def read_header(path: Path, options: ReadOptions, *, n_numbers: int) -> Header:
    """The shape on a file's first line: ``N D L``, or ``N D`` where lines have no labels."""
    block = next(read_blocks(path, bad=BadRows(skip=True), **options.decoding), None)
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
    options: ReadOptions,
    *,
    header: Header | None = None,
    most_labels: int = NO_LIMIT,
    with_labels: bool = True,
    noun: str = "feature",
) -> Iterator[SparseRows]:
    """Rows of a sparse text file in blocks, checked against the header: ranges and number of rows.

    Without a header, every feature below 2^31 is accepted, and every label below `most_labels`. `noun` is what
    messages call a column.
    """
    from labelwise.kernels import parse  # numba is slow to import; detection does without

    n_labels = most_labels if header is None or header.n_labels is None else header.n_labels
    n_columns = NO_LIMIT if header is None else header.n_columns
    n_rows = 0
    for i, block in enumerate(read_blocks(path, bad=bad, **options.decoding)):
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
            message = _explain(int(codes[row]), int(details[row]), header, n_labels, noun)
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
    """`data` without the blank lines after the first `n_rows`: many files end in some, which are not documents."""
    lines = data.split(b"\n")
    while len(lines) > n_rows and not lines[-1].strip():
        lines.pop()
    return b"".join(line + b"\n" for line in lines)


def _explain(code: int, detail: int, header: Header | None, n_labels: int, noun: str) -> str:
    """What is wrong with a line."""
    from labelwise.kernels import parse

    if code == parse.BAD_LABEL:
        return f"what stands at position {detail} is not a label number; labels are whole numbers like 3,17"
    if code == parse.LABEL_RANGE:
        return f"label {detail} is out of range: {_limit(n_labels, header)}"
    if code == parse.BAD_FEATURE:
        return f"what stands at position {detail} is not a {noun}:value pair like 12:0.5"
    if code == parse.FEATURE_RANGE:
        return f"{noun} {detail} is out of range: {_limit(NO_LIMIT if header is None else header.n_columns, header)}"
    return f"the value of the {noun} at position {detail} is not a finite number"


def _limit(n: int, header: Header | None) -> str:
    if n == NO_LIMIT:
        return "numbers must be below 2^31"
    if header is None:
        return f"files of this size can tell of {n:,} labels at most"
    return f"the header says there are {n}, counted from 0"


def join_rows(parts: list[SparseRows], n_columns: int) -> tuple[Csr, npt.NDArray[np.bool_]]:
    """All rows as one matrix, and which of them are good."""
    if not parts:
        nothing: Csr = sp.csr_array(np.zeros((0, n_columns), dtype=np.float32))
        return nothing, np.zeros(0, dtype=np.bool_)
    blocks: list[Any] = [part.features(n_columns) for part in parts]
    X: Any = sp.vstack(blocks, format="csr")
    return X, np.concatenate([part.good for part in parts])


class SparseWriter(TextWriter):
    """Base of the writers of sparse text files: a line of labels and ``feature:value`` pairs for each document."""

    first_feature: ClassVar[int] = 0
    """Number of the first feature."""
    empty_line: ClassVar[str] = ""
    """Pairs of a document that has neither labels nor features."""

    def __init__(self, folder: Path, compression: WriteCompression | None) -> None:
        super().__init__(folder, compression)
        self.shapes: dict[str, tuple[int, int]] = {}
        self._lost: dict[str, None] = {}

    def write(self, split: str, batch: DocumentBatch, names: Sequence[str]) -> None:
        """Add documents to a split."""
        if batch.features is None:
            raise UsageError("this format needs features; convert makes them from the texts")
        X = batch.features
        if batch.texts is not None:
            self._lost[NO_TEXTS] = None
        if batch.ids is not None:
            self._lost[NO_IDS] = None
        pair = "%d:%.9g".__mod__  # nine digits tell every float32 from its neighbours
        columns, values = (X.indices + self.first_feature).tolist(), X.data.tolist()
        labels, starts, ends = batch.indices.tolist(), X.indptr.tolist(), batch.indptr.tolist()
        lines = []
        for row in range(len(batch)):
            start, end = starts[row], starts[row + 1]
            pairs = " ".join(map(pair, zip(columns[start:end], values[start:end], strict=True)))
            own = ",".join(map(str, labels[ends[row] : ends[row + 1]]))
            lines.append(f"{own} {pairs if own or pairs else self.empty_line}\n")
        self.file(split).write("".join(lines))
        n_docs = self.shapes.get(split, (0, 0))[0] + len(batch)
        self.shapes[split] = n_docs, int(X.shape[1])

    def finish(self, names: Sequence[str]) -> list[str]:
        """Texts and ids are what these files cannot hold."""
        self.close()
        return list(self._lost)
