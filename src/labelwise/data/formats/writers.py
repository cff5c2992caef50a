"""Batches into files, one writer per format. A writer sees batches split by split, and the labels at the end."""

import csv
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TextIO

import numpy as np
import scipy.sparse as sp

from labelwise.data.archive import WriteCompression, append_file, open_writer
from labelwise.data.batch import DocumentBatch, label_matrix
from labelwise.data.formats.annif import to_uri
from labelwise.errors import UsageError, need
from labelwise.types import Csr

PECOS_TAGS = {"train": ("trn", "train"), "validation": ("val", "val"), "test": ("tst", "test")}


class Writer(Protocol):
    """What writes a data set in some format."""

    def write(self, split: str, batch: DocumentBatch, names: Sequence[str]) -> None:
        """Add documents to a split; `names` are the labels met so far."""
        ...

    def finish(self, names: Sequence[str]) -> list[str]:
        """Write what needs the whole; the sentences say what the format could not hold."""
        ...

    def close(self) -> None:
        """Close every file, finished or not."""
        ...


class _Files:
    """The open text files of a writer, by split."""

    def __init__(self, folder: Path, pattern: str, compression: WriteCompression | None) -> None:
        self.folder, self.pattern, self.compression = folder, pattern, compression
        self._stack, self._open = ExitStack(), dict[str, TextIO]()

    def name(self, split: str) -> Path:
        suffix = "" if self.compression is None else f".{self.compression}"
        return self.folder / (self.pattern.format(split) + suffix)

    def __getitem__(self, split: str) -> TextIO:
        if split not in self._open:
            self._open[split] = self._stack.enter_context(open_writer(self.name(split), self.compression))
        return self._open[split]

    def close(self) -> None:
        self._stack.close()


class JsonlWriter:
    """A JSON object a line."""

    def __init__(self, folder: Path, compression: WriteCompression | None) -> None:
        self._files = _Files(folder, "{}.jsonl", compression)

    def write(self, split: str, batch: DocumentBatch, names: Sequence[str]) -> None:
        """Add documents to a split."""
        encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
        lines = []
        for doc_id, text, labels in _records(batch, names):
            row = {"text": text, "labels": labels} if doc_id is None else {"id": doc_id, "text": text, "labels": labels}
            lines.append(encode(row))
        lines.append("")
        self._files[split].write("\n".join(lines))

    def finish(self, names: Sequence[str]) -> list[str]:
        """Nothing is lost."""
        return []

    def close(self) -> None:
        """Close every file."""
        self._files.close()


class TableWriter:
    """A csv or tsv file with header; labels as a JSON list, which holds any name."""

    def __init__(self, folder: Path, compression: WriteCompression | None, *, delimiter: str, suffix: str) -> None:
        self._files, self._delimiter = _Files(folder, "{}." + suffix, compression), delimiter
        self._rows: dict[str, Any] = {}

    def write(self, split: str, batch: DocumentBatch, names: Sequence[str]) -> None:
        """Add documents to a split."""
        if split not in self._rows:
            self._rows[split] = csv.writer(self._files[split], delimiter=self._delimiter)
            self._rows[split].writerow(["text", "labels"] if batch.ids is None else ["id", "text", "labels"])
        for doc_id, text, labels in _records(batch, names):
            cells = [text, json.dumps(labels, ensure_ascii=False)]
            self._rows[split].writerow(cells if doc_id is None else [doc_id, *cells])

    def finish(self, names: Sequence[str]) -> list[str]:
        """Nothing is lost."""
        return []

    def close(self) -> None:
        """Close every file."""
        self._files.close()


class ParquetWriter:
    """Parquet with a list column of labels; a batch is a row group."""

    _CODECS: Mapping[WriteCompression | None, str] = {None: "snappy", "gz": "gzip", "zst": "zstd"}

    def __init__(self, folder: Path, compression: WriteCompression | None) -> None:
        self._arrow = need("pyarrow", extra="parquet", purpose="parquet files")
        self._parquet = need("pyarrow.parquet", extra="parquet", purpose="parquet files")
        if compression not in self._CODECS:
            raise UsageError(
                f"parquet files cannot be compressed with {compression}; choose gz, zst or nothing (snappy)"
            )
        self._folder, self._codec = folder, self._CODECS[compression]
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
        """Nothing is lost."""
        return []

    def close(self) -> None:
        """Close every file."""
        for writer in self._writers.values():
            writer.close()


class AnnifWriter:
    """A text, a tab, subjects in brackets."""

    def __init__(self, folder: Path, compression: WriteCompression | None) -> None:
        self._files, self._n_changed, self._with_ids = _Files(folder, "{}.tsv", compression), 0, False

    def write(self, split: str, batch: DocumentBatch, names: Sequence[str]) -> None:
        """Add documents to a split."""
        self._with_ids |= batch.ids is not None
        lines = []
        for _, text, labels in _records(batch, names):
            line = one_line(text).replace("\t", " ")
            self._n_changed += line != text
            lines.append(f"{line}\t{' '.join(map(to_uri, labels))}\n")
        self._files[split].write("".join(lines))

    def finish(self, names: Sequence[str]) -> list[str]:
        """Line breaks, tabs and ids are what Annif's files cannot hold."""
        lost = ["the ids of the documents are left out"] if self._with_ids else []
        if self._n_changed:
            lost.append(f"line breaks and tabs in {self._n_changed} texts became spaces")
        return lost

    def close(self) -> None:
        """Close every file."""
        self._files.close()


class SparseWriter:
    """Lines of labels and features: xc with its header, libsvm without and counted from 1."""

    def __init__(self, folder: Path, compression: WriteCompression | None, *, header: bool) -> None:
        self._folder, self._header = folder, header
        self._files = _Files(folder, "{}.body" if header else "{}.svm", compression)
        self._shapes: dict[str, tuple[int, int]] = {}
        self._compression = compression
        self._lost: dict[str, None] = {}

    def write(self, split: str, batch: DocumentBatch, names: Sequence[str]) -> None:
        """Add documents to a split."""
        X = _features(batch)
        if batch.texts is not None:
            self._lost["the texts are left out"] = None
        if batch.ids is not None:
            self._lost["the ids of the documents are left out"] = None
        base = 0 if self._header else 1
        pair = "%d:%.9g".__mod__  # nine digits tell every float32 from its neighbours
        columns, values = (X.indices + base).tolist(), X.data.tolist()
        labels, starts, ends = batch.indices.tolist(), X.indptr.tolist(), batch.indptr.tolist()
        lines = []
        for row in range(len(batch)):
            start, end = starts[row], starts[row + 1]
            pairs = " ".join(map(pair, zip(columns[start:end], values[start:end], strict=True)))
            own = ",".join(map(str, labels[ends[row] : ends[row + 1]]))
            if not self._header and not own and not pairs:
                pairs = "1:0"  # a blank line would be no document
            lines.append(f"{own} {pairs}\n")
        self._files[split].write("".join(lines))
        n_docs = self._shapes.get(split, (0, 0))[0] + len(batch)
        self._shapes[split] = n_docs, int(X.shape[1])

    def finish(self, names: Sequence[str]) -> list[str]:
        """Put the headers, known only now, before the lines."""
        self._files.close()
        for split, (n_docs, n_features) in self._shapes.items():
            if self._header:
                body = self._files.name(split)
                path = body.with_name(body.name.replace(".body", ".txt", 1))
                with open_writer(path, self._compression) as stream:
                    stream.write(f"{n_docs} {n_features} {len(names)}\n")
                append_file(path, body)
        return list(self._lost)

    def close(self) -> None:
        """Close every file."""
        self._files.close()


class PecosWriter:
    """npz matrices, texts a line each, label names; the matrices are held in memory until the end."""

    def __init__(self, folder: Path, compression: WriteCompression | None) -> None:
        if compression is not None:
            raise UsageError(
                "the pecos format is read by programs that expect it uncompressed; leave out the compression"
            )
        self._folder, self._n_changed = folder, 0
        self._files, self._with_ids = _Files(folder, "{}_raw_texts.txt", None), False
        self._parts: dict[str, list[DocumentBatch]] = {}

    def write(self, split: str, batch: DocumentBatch, names: Sequence[str]) -> None:
        """Add documents to a split."""
        if batch.texts is not None:
            lines = [one_line(text) for text in batch.texts]
            self._n_changed += sum(line != text for line, text in zip(lines, batch.texts, strict=True))
            self._files[PECOS_TAGS[split][1]].write("".join(f"{line}\n" for line in lines))
        self._with_ids |= batch.ids is not None
        kept = DocumentBatch(indptr=batch.indptr, indices=batch.indices, features=batch.features)
        self._parts.setdefault(split, []).append(kept)

    def finish(self, names: Sequence[str]) -> list[str]:
        """Write the matrices and the names."""
        for split, parts in self._parts.items():
            tag = PECOS_TAGS[split][0]
            # PECOS reads these with scipy of any age: old-style matrices, not arrays.
            Y = sp.csr_matrix(label_matrix(parts, len(names)))
            sp.save_npz(self._folder / f"Y.{tag}.npz", Y, compressed=False)
            X = [part.features for part in parts if part.features is not None]
            if X:
                stacked = sp.csr_matrix(sp.vstack(X, format="csr"))
                sp.save_npz(self._folder / f"X.{tag}.npz", stacked, compressed=False)
        lines = [one_line(name) for name in names]
        with open_writer(self._folder / "label_map.txt", None) as stream:
            stream.write("".join(f"{line}\n" for line in lines))
        lost = ["the ids of the documents are left out"] if self._with_ids else []
        if self._n_changed:
            lost.append(f"line breaks in {self._n_changed} texts became spaces")
        return lost

    def close(self) -> None:
        """Close every file."""
        self._files.close()


def one_line(text: str) -> str:
    """`text` with spaces for line breaks."""
    if "\n" in text or "\r" in text:
        return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")
    return text


def _records(batch: DocumentBatch, names: Sequence[str]) -> Any:
    """(id, text, label names) of every document."""
    ids: Sequence[str | None] = [None] * len(batch) if batch.ids is None else batch.ids
    found, ends = [names[i] for i in batch.indices.tolist()], batch.indptr.tolist()
    return zip(ids, batch.texts or (), (found[a:b] for a, b in pairwise(ends)), strict=True)


def _features(batch: DocumentBatch) -> Csr:
    if batch.features is None:
        raise UsageError("this format needs features; convert makes them from the texts")
    return batch.features
