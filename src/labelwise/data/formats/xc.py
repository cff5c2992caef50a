"""The Extreme Classification Repository's files: with a header, the ``trn_X_Xf.txt`` family, and raw texts in JSON."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from labelwise.data.archive import append_file, open_writer
from labelwise.data.batch import DataSource, DocumentBatch, FileSource, NumberedLabels, zero_one
from labelwise.data.builder import RecordBuilder
from labelwise.data.files import most_numbers, read_lines
from labelwise.data.formats.format import FileFormat, FileStart
from labelwise.data.formats.jsonl import read_jsonl
from labelwise.data.formats.matrix import matrix_batches
from labelwise.data.formats.records import joined
from labelwise.data.formats.sparse import Header, SparseWriter, join_rows, read_header, read_sparse
from labelwise.data.label_names import column_names, find_beside, label_list, numbered_names
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError

NAME_FILES = ("Y.txt", "label_map.txt")
SPLIT_TAGS = {"train": "trn", "validation": "val", "test": "tst"}


def _names(folder: Path | None, n_labels: int, whose: Path, options: ReadOptions) -> list[str]:
    """Names of the label columns: labels.txt, else the repository's Y.txt, else numbers."""
    names = None if folder is None else label_list(folder, max_unpacked=options.max_unpacked)
    if names is not None and len(names) == n_labels:
        return names
    path = None
    if folder is not None:
        path = next((p for name in NAME_FILES if (p := find_beside(folder, name)) is not None), None)
    return column_names(path, n_labels, whose, options.decoding)


@dataclass(kw_only=True)
class HeaderSource(FileSource):
    """Files with an ``N D L`` header and ``l,l f:v f:v`` lines."""

    path: Path
    files: Mapping[str, Path]
    options: ReadOptions
    beside: Path | None
    headers: dict[str, Header] = field(init=False)
    labels: NumberedLabels = field(init=False)
    labels_known: bool = True

    def __post_init__(self) -> None:
        self.headers = {split: read_header(path, self.options, n_numbers=3) for split, path in self.files.items()}
        first = next(iter(self.files))
        for split, header in self.headers.items():
            ours, theirs = (header.n_columns, header.n_labels), self.headers[first]
            if ours != (theirs.n_columns, theirs.n_labels):
                message = (
                    f"the header promises {header.n_columns} features and {header.n_labels} labels, that of "
                    f"{self.files[first].name} {theirs.n_columns} and {theirs.n_labels}; splits must agree"
                )
                raise DataError(message, path=self.files[split], line=1)
        n_labels = self.headers[first].n_labels or 0
        self.labels = NumberedLabels(_names(self.beside, n_labels, self.files[first], self.options), closed=True)

    def batches(self, split: str, bad: BadRows) -> Iterator[DocumentBatch]:
        """The documents of a split, in order."""
        path, header = self.files[split], self.headers[split]
        start = 0
        for rows in read_sparse(path, bad, self.options, header=header):
            keep = np.flatnonzero(rows.good)
            Y = zero_one(rows.label_indptr, rows.label_indices, (len(rows), len(self.labels.names)))[keep]
            X = rows.features(header.n_columns)[keep]
            yield DocumentBatch(indptr=Y.indptr.astype(np.int64), indices=Y.indices, features=X, rows=start + keep)
            start += len(rows)


@dataclass(frozen=True)
class FamilyFiles:
    """The files of one split of the ``trn_X_Xf.txt`` family."""

    Y: Path
    X: Path | None
    texts: Path | None


@dataclass(kw_only=True)
class FamilySource(FileSource):
    """``trn_X_Xf.txt``, ``trn_X_Y.txt``, ``tst_…``: a matrix a file, and perhaps texts in ``trn_X.txt``.

    Features of labels (``lbl_X_Xf.txt``) and names of features (``Xf.txt``) are not read.
    """

    path: Path
    files: Mapping[str, FamilyFiles]
    options: ReadOptions
    labels: NumberedLabels = field(init=False)
    labels_known: bool = True

    def __post_init__(self) -> None:
        first = next(iter(self.files.values())).Y
        n_labels = read_header(first, self.options, n_numbers=2).n_columns
        names = _names(self.path, n_labels, first, self.options)
        self.labels = NumberedLabels(names, closed=True)

    @property
    def beside(self) -> Path | None:  # type: ignore[override]  # derived here, given elsewhere
        """The folder itself, which may hold descriptions of the labels."""
        return self.path

    def batches(self, split: str, bad: BadRows) -> Iterator[DocumentBatch]:
        """The documents of a split, in order."""
        files, options = self.files[split], self.options
        header = read_header(files.Y, options, n_numbers=2)
        if header.n_columns != len(self.labels.names):
            message = f"the header promises {header.n_columns} labels, the first split {len(self.labels.names)}"
            raise DataError(message, path=files.Y, line=1)
        parts = read_sparse(files.Y, bad, options, header=header, with_labels=False, noun="label")
        Y, good = join_rows(list(parts), header.n_columns)
        X = None
        if files.X is not None:
            header = read_header(files.X, options, n_numbers=2)
            parts = read_sparse(files.X, bad, options, header=header, with_labels=False)
            X, good_features = join_rows(list(parts), header.n_columns)
            if X.shape[0] != Y.shape[0]:
                message = f"has {X.shape[0]} rows but {files.Y.name} has {Y.shape[0]}; they belong together"
                raise DataError(message, path=files.X)
            good &= good_features
        Y = zero_one(Y.indptr, Y.indices, Y.shape)
        return matrix_batches(Y, X, files.texts, good=good, options=options, bad=bad)


@dataclass(kw_only=True)
class RawSource(FileSource):
    """``trn.json``, ``tst.json`` and ``lbl.json``: titles and contents, labels by number."""

    path: Path
    files: Mapping[str, Path]
    options: ReadOptions
    labels: NumberedLabels = field(init=False)
    labels_known: bool = field(init=False)
    label_texts: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        path = find_beside(self.path, "lbl.json")
        self.labels_known = path is not None
        if path is None:
            self.labels = NumberedLabels(most=most_numbers(self.files.values()))
            return
        titles, texts = [], []
        for row in _objects(path, self.options):
            title, content = row.get("title"), row.get("content")
            title = title if isinstance(title, str) and title.strip() else str(row.get("uid", ""))
            titles.append(title)
            texts.append(str(joined([title, content if isinstance(content, str) else None])))
        self.labels = NumberedLabels(numbered_names(titles), closed=True)
        self.label_texts = dict(zip(self.labels.names, texts, strict=True))

    @property
    def has_columns(self) -> bool:
        """Options name the columns."""
        return True

    def batches(self, split: str, bad: BadRows) -> Iterator[DocumentBatch]:
        """The documents of a split, in order."""
        path, given, usual = self.files[split], self.options, ReadOptions()
        text_column = given.text_column
        if text_column == usual.text_column:
            first: Mapping[str, object] = next(_objects(path, given), {})
            text_column = ",".join(name for name in ("title", "content") if name in first) or "title"
        options = replace(
            given,
            text_column=text_column,
            labels_column="target_ind" if given.labels_column == usual.labels_column else given.labels_column,
            id_column="uid" if given.id_column == usual.id_column else given.id_column,
            allow_unlabelled=True,
        )
        return read_jsonl(path, RecordBuilder(path=path, options=options, labels=self.labels, bad=bad))


def _objects(path: Path, options: ReadOptions) -> Iterator[dict[str, object]]:
    for first, lines in read_lines(path, **options.decoding):
        for line, raw in enumerate(lines, first):
            if not raw:
                continue
            try:
                row = json.loads(raw)
            except (ValueError, RecursionError) as err:
                message = f"invalid JSON ({err}); every line holds one object"
                raise DataError(message, path=path, line=line) from err
            if not isinstance(row, dict):
                raise DataError("every line holds one object", path=path, line=line)
            yield row


def open_family(folder: Path, options: ReadOptions) -> DataSource | None:
    """The raw texts in JSON, or the matrices in files of their own; None if the folder has neither."""
    raw = {split: path for split, tag in SPLIT_TAGS.items() if (path := find_beside(folder, f"{tag}.json"))}
    if raw:
        return RawSource(path=folder, files=raw, options=options)
    family = {}
    for split, tag in SPLIT_TAGS.items():
        if (Y := find_beside(folder, f"{tag}_X_Y.txt")) is not None:
            X, texts = find_beside(folder, f"{tag}_X_Xf.txt"), find_beside(folder, f"{tag}_X.txt")
            if X is None and texts is None:
                message = f"there is neither {tag}_X_Xf.txt nor {tag}_X.txt beside it; one of them has to be there"
                raise DataError(message, path=Y)
            family[split] = FamilyFiles(Y, X, texts)
    return FamilySource(path=folder, files=family, options=options) if family else None


class XcWriter(SparseWriter):
    """Writes files with an ``N D L`` header; a split's lines are kept in a file of their own until N is known."""

    file_name = "{}.body"

    def finish(self, names: Sequence[str]) -> list[str]:
        """Write the headers and append the lines to them."""
        lost = super().finish(names)
        for split, (n_docs, n_features) in self.shapes.items():
            body = self.path(split)
            path = body.with_name(body.name.replace(".body", ".txt", 1))
            with open_writer(path, self.compression) as stream:
                stream.write(f"{n_docs} {n_features} {len(names)}\n")
            append_file(path, body)
        return lost


def _recognises(start: FileStart) -> bool:
    return bool(re.fullmatch(r"\d+\s+\d+\s+\d+", start.lines[0].strip()))


FORMAT = FileFormat(
    name="xc",
    layout="train.txt with an N D L header, trn_X_Y.txt or trn.json",
    suffixes=("txt",),
    folder_suffixes=("json",),
    needs="features",
    open_files=HeaderSource,
    open_folder=open_family,
    recognises=_recognises,
    writer=XcWriter,
)
