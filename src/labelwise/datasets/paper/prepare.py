"""Unpacked files of a data set as a folder that `labelwise.data.convert` reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.errors import DataError
from labelwise.events import Task
from labelwise.storage.npz import load_npz
from labelwise.types import Csr, OnEvent

SPLITS = {"train": "trn", "test": "tst"}
LONGEST_TEXT = 1 << 26
"""Bytes of a document, at most."""


def prepare(unpacked: Path, folder: Path, on_event: OnEvent | None) -> tuple[bool, list[str]]:
    """Write the matrices, texts and names of all splits into a folder, as PECOS has them.

    Documents without labels or without a text are left out: nothing can be learnt from them, or be right about them.

    Returns
    -------
    with_texts
        Whether the documents have texts; if not, they have features.
    notes
        What is different from the archive, a sentence each.
    """
    tags = {split: tag for split, tag in SPLITS.items() if (unpacked / f"Y.{tag}.npz").is_file()}
    if "train" not in tags:
        message = "holds no Y.trn.npz, so it is no data set of PECOS; check that it is the right archive"
        raise DataError(message, path=unpacked)
    with_texts = all((unpacked / f"X.{tag}.txt").is_file() for tag in tags.values())
    notes: list[str] = []
    n_labels = 0
    for split, tag in tags.items():
        Y = load_npz(unpacked / f"Y.{tag}.npz")
        Y.eliminate_zeros()
        n_labels = int(Y.shape[1])
        kept = np.diff(Y.indptr) > 0
        if with_texts:
            source, target = unpacked / f"X.{tag}.txt", folder / f"{split}_raw_texts.txt"
            kept = _copy_texts(source, target, kept, on_event, split)
        else:
            sp.save_npz(folder / f"X.{tag}.npz", _features(unpacked, tag, kept.size)[kept], compressed=False)
        sp.save_npz(folder / f"Y.{tag}.npz", Y[kept], compressed=False)
        if n_lost := int(kept.size - kept.sum()):
            has, were = ("document has", "was") if n_lost == 1 else ("documents have", "were")
            notes.append(f"{n_lost:,} {split} {has} no labels or no text, and {were} left out")
    names = unpacked / "output-items.txt"
    if not names.is_file():
        notes.append("the archive has no output-items.txt: labels are called by number")
    elif (n_names := _copy_names(names, folder / names.name)) != n_labels:
        (folder / names.name).unlink()
        notes.append(f"output-items.txt has {n_names:,} names for {n_labels:,} labels: labels are called by number")
    return with_texts, notes


def _copy_texts(
    source: Path, target: Path, labelled: npt.NDArray[np.bool_], on_event: OnEvent | None, split: str
) -> npt.NDArray[np.bool_]:
    """Copy the texts of labelled documents; which documents were kept."""
    kept = labelled.copy()
    row = 0
    with source.open("rb") as lines, target.open("xb") as out, Task(on_event, f"reading texts of {split}") as task:
        while line := lines.readline(LONGEST_TEXT):
            if len(line) == LONGEST_TEXT:
                raise DataError(f"the text has over {LONGEST_TEXT:,} bytes; is it damaged?", path=source, line=row + 1)
            if row == kept.size:
                raise DataError(f"has more texts than the {kept.size:,} documents of the label matrix", path=source)
            text = line.decode("utf-8", "replace").replace("\r", " ").replace("\0", " ").strip()
            kept[row] &= bool(text)
            if kept[row]:
                out.write(f"{text}\n".encode())
            row += 1
            task.advance()
    if row < kept.size:
        raise DataError(f"has {row:,} texts, but the label matrix has {kept.size:,} documents", path=source)
    return kept


def _features(unpacked: Path, tag: str, n_docs: int) -> Csr:
    """The features of a split, where there are no texts."""
    path = next((path for name in (f"tfidf.X.{tag}.npz", f"X.{tag}.npz") if (path := unpacked / name).is_file()), None)
    if path is None:
        raise DataError(f"holds neither X.{tag}.txt nor X.{tag}.npz; use another archive", path=unpacked)
    X = load_npz(path)
    if X.shape[0] != n_docs:
        raise DataError(f"X has {X.shape[0]:,} rows, but the label matrix has {n_docs:,}", path=path)
    return X


def _copy_names(source: Path, target: Path) -> int:
    """Copy the names of the labels, a line each; a label without a name gets its number. How many there are."""
    number = 0
    with source.open("rb") as lines, target.open("xb") as out:
        while line := lines.readline(LONGEST_TEXT):
            name = line.decode("utf-8", "replace").replace("\r", " ").replace("\0", " ").strip()
            out.write(f"{name or number}\n".encode())
            number += 1
    return number
