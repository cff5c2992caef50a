"""X-Transformer and PECOS folders: npz matrices, raw texts a line each, a file of label names."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelwise.data.archive import WriteCompression, open_writer
from labelwise.data.batch import DataSource, DocumentBatch, FileSource, NumberedLabels, label_matrix, zero_one
from labelwise.data.formats.format import FileFormat
from labelwise.data.formats.matrix import matrix_batches
from labelwise.data.formats.writer import NO_IDS, TextWriter, one_line
from labelwise.data.label_names import column_names, find_beside, label_list
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError, UsageError
from labelwise.storage.npz import load_npz

SPLIT_TAGS = {"train": ("trn", "train"), "validation": ("val", "dev", "valid"), "test": ("tst", "test")}
NAME_FILES = ("label_map.txt", "output-items.txt")


@dataclass(frozen=True)
class PecosFiles:
    """The files of one split."""

    Y: Path
    X: Path | None
    texts: Path | None


@dataclass(kw_only=True)
class PecosSource(FileSource):
    """An X-Transformer or PECOS folder."""

    path: Path
    files: Mapping[str, PecosFiles]
    options: ReadOptions
    labels: NumberedLabels = field(init=False)
    labels_known: bool = True

    def __post_init__(self) -> None:
        first = next(iter(self.files.values())).Y
        n_labels = load_npz(first, max_unpacked=self.options.max_unpacked).shape[1]
        names = label_list(self.path, max_unpacked=self.options.max_unpacked)
        if names is None or len(names) != n_labels:
            path = next((p for name in NAME_FILES if (p := find_beside(self.path, name)) is not None), None)
            names = column_names(path, n_labels, first, self.options.decoding)
        self.labels = NumberedLabels(names, closed=True)

    @property
    def beside(self) -> Path | None:  # type: ignore[override]  # derived here, given elsewhere
        """The folder itself, which may hold descriptions of the labels."""
        return self.path

    def batches(self, split: str, bad: BadRows) -> Iterator[DocumentBatch]:
        """The documents of a split, in order."""
        files = self.files[split]
        Y = load_npz(files.Y, max_unpacked=self.options.max_unpacked)
        if Y.shape[1] != len(self.labels.names):
            message = f"Y has {Y.shape[1]} columns, but the first split has {len(self.labels.names)}"
            raise DataError(message, path=files.Y)
        X = None if files.X is None else load_npz(files.X, max_unpacked=self.options.max_unpacked).astype(np.float32)
        if X is not None and X.shape[0] != Y.shape[0]:
            message = f"X has {X.shape[0]} rows but {files.Y.name} has {Y.shape[0]}; they belong together"
            raise DataError(message, path=files.X)
        if Y.shape[0] == 0:
            raise DataError("the matrix is empty; there is no document in it", path=files.Y)
        Y.eliminate_zeros()
        Y = zero_one(Y.indptr, Y.indices, Y.shape)
        return matrix_batches(Y, X, files.texts, options=self.options, bad=bad)


def open_pecos(folder: Path, options: ReadOptions) -> DataSource | None:
    """The data of a PECOS folder; None if it is none."""
    found: dict[str, PecosFiles] = {}
    for split, tags in SPLIT_TAGS.items():
        Y = _first(folder, [f"Y.{tag}.npz" for tag in tags])
        if Y is None:
            continue
        X = _first(folder, [f"X.{tag}.npz" for tag in tags])
        names = [f"{tag}_raw_texts.txt" for tag in (split, *tags)] + [f"X.{tag}.txt" for tag in tags]
        texts = next((path for name in names if (path := find_beside(folder, name)) is not None), None)
        if X is None and texts is None:
            message = f"there is neither {names[0]} nor X.{tags[0]}.npz beside it; one of them has to be there"
            raise DataError(message, path=Y)
        found[split] = PecosFiles(Y, X, texts)
    return PecosSource(path=folder, files=found, options=options) if found else None


def _first(folder: Path, names: list[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


class PecosWriter(TextWriter):
    """Writes npz matrices, a text a line, and label names; the matrices are held in memory until the end."""

    file_name = "{}_raw_texts.txt"

    def __init__(self, folder: Path, compression: WriteCompression | None) -> None:
        if compression is not None:
            raise UsageError(
                "the pecos format is read by programs that expect it uncompressed; leave out the compression"
            )
        super().__init__(folder, None)
        self._n_changed, self._with_ids = 0, False
        self._parts: dict[str, list[DocumentBatch]] = {}

    def write(self, split: str, batch: DocumentBatch, names: Sequence[str]) -> None:
        """Add documents to a split."""
        if batch.texts is not None:
            lines = [one_line(text) for text in batch.texts]
            self._n_changed += sum(line != text for line, text in zip(lines, batch.texts, strict=True))
            self.file("val" if split == "validation" else split).write("".join(f"{line}\n" for line in lines))
        self._with_ids |= batch.ids is not None
        kept = DocumentBatch(indptr=batch.indptr, indices=batch.indices, features=batch.features)
        self._parts.setdefault(split, []).append(kept)

    def finish(self, names: Sequence[str]) -> list[str]:
        """Write the matrices and the names."""
        for split, parts in self._parts.items():
            tag = SPLIT_TAGS[split][0]
            # PECOS reads these with scipy of any age: old-style matrices, not arrays.
            Y = sp.csr_matrix(label_matrix(parts, len(names)))
            sp.save_npz(self.folder / f"Y.{tag}.npz", Y, compressed=False)
            X = [part.features for part in parts if part.features is not None]
            if X:
                stacked = sp.csr_matrix(sp.vstack(X, format="csr"))
                sp.save_npz(self.folder / f"X.{tag}.npz", stacked, compressed=False)
        lines = [one_line(name) for name in names]
        with open_writer(self.folder / "label_map.txt", None) as stream:
            stream.write("".join(f"{line}\n" for line in lines))
        lost = [NO_IDS] if self._with_ids else []
        if self._n_changed:
            lost.append(f"line breaks in {self._n_changed} texts became spaces")
        return lost


FORMAT = FileFormat(
    name="pecos",
    layout="Y.trn.npz with X.trn.npz or train_raw_texts.txt",
    folder_suffixes=("npz", "txt"),
    needs="features",
    open_folder=open_pecos,
    writer=PecosWriter,
)
