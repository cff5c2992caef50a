"""One data set in parts: training, validation and test documents, in files of the same format."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelwise.config.settings import checked_value
from labelwise.data.archive import WriteCompression
from labelwise.data.batch import DataSource, DocumentBatch
from labelwise.data.conversion import Conversion, check_destination, write_label_files
from labelwise.data.dataset import Dataset
from labelwise.data.detect import open_source
from labelwise.data.formats import Format, file_format
from labelwise.data.formats.records import RecordSource
from labelwise.data.load import read_split
from labelwise.data.options import BadRows, ReadOptions
from labelwise.data.split import split_rows
from labelwise.errors import DataError, UsageError
from labelwise.storage import atomic_folder, check_writable
from labelwise.types import Ints, OnEvent


def split_data(
    src: Path | str,
    dst: Path | str,
    *,
    test: float = 0.1,
    validation: float = 0.0,
    seed: int = 0,
    format: Format | None = None,  # noqa: A002
    compression: WriteCompression | None = None,
    on_event: OnEvent | None = None,
    overwrite: bool = False,
    **options: Any,
) -> Conversion:
    """Write the documents at `src` into the folder `dst`, as train, test and perhaps validation documents.

    Documents are drawn at random. Documents with the same text stay in one part, and every label keeps a training
    document, so that a part may stay a little below its share where most labels are rare. Tables keep all their
    columns; text files are written as UTF-8.

    Parameters
    ----------
    src, dst
        A file, or a folder with a training split alone, to read; and a folder to make.
    test, validation
        Shares of the documents; 0 for none.
    seed
        The same seed gives the same parts.
    format
        Format of the source; found by looking if not given.
    compression
        Compress the files written with this.
    overwrite
        Replace a folder that holds a data set already.
    **options
        Fields of `ReadOptions`.

    Examples
    --------
    >>> from labelwise.data import split_data
    >>> with open("shop.csv", "w") as file:
    ...     print("title,text,labels", *(f"{i},product {i},{'ab'[i % 2]}" for i in range(100)), sep="\\n", file=file)
    >>> split_data("shop.csv", "my-split", test=0.2).documents
    {'train': 80, 'test': 20}
    """
    shares = _shares({"test": test, "validation": validation})
    options_ = ReadOptions.of(options)
    check_writable(dst)
    src, dst = Path(src), Path(dst)
    source = open_source(src, format=format, options=options_)
    if len(source.splits) > 1:
        raise UsageError(f"{src} has the splits {', '.join(source.splits)} already; give one file or folder of all")
    check_destination(src, dst, overwrite)
    bad = BadRows(skip=options_.skip_bad_rows)
    dataset = read_split(source, source.splits[0], bad, on_event)
    parts = draw_parts(dataset, shares, seed)
    with atomic_folder(dst, overwrite=True) as unfinished:
        name, notes = _write(source, dataset, parts, unfinished, compression)
    bad.report(on_event, src)
    return Conversion(
        path=str(dst),
        format=name,
        documents={part: len(rows) for part, rows in parts.items()},
        n_labels=dataset.n_labels,
        n_features=None if dataset.features is None else int(dataset.features.shape[1]),
        bad_rows=bad.count,
        notes=notes,
    )


def draw_parts(dataset: Dataset, shares: Mapping[str, float], seed: int = 0) -> dict[str, Ints]:
    """Rows of each part, in their order: "train" first, then those of `shares`."""
    groups = np.arange(len(dataset))
    if dataset.texts is not None:
        first_with: dict[str, int] = {}
        groups = np.array([first_with.setdefault(" ".join(text.split()), len(first_with)) for text in dataset.texts])
    n_docs, n_groups = len(dataset), int(groups.max(initial=-1)) + 1
    if n_groups == 1 < n_docs:
        raise DataError(f"the {n_docs:,} documents have the same text, so they stay in one part; give more documents")
    member: Any = sp.csr_array((np.ones(n_docs, np.float32), (groups, np.arange(n_docs))), shape=(n_groups, n_docs))
    Y: Any = sp.csr_array(member @ dataset.Y)
    rest, left, of_part = np.arange(n_groups), 1.0, np.zeros(n_groups, np.int64)
    for number, share in enumerate(shares.values(), 1):
        kept, aside = split_rows(Y[rest], share / left, seed)
        of_part[rest[aside]] = number
        rest, left = rest[kept], left - share
    return {name: np.flatnonzero(of_part[groups] == number) for number, name in enumerate(("train", *shares))}


def _shares(given: Mapping[str, float]) -> dict[str, float]:
    shares = {name: checked_value(float, share, name) for name, share in given.items()}
    for name, share in shares.items():
        if not 0 <= share < 1:
            raise UsageError(f"{name} is {share:g}; give a share of the documents between 0 and 1, such as 0.1")
    if not 0 < sum(shares.values()) < 1:
        raise UsageError("the shares of test and validation documents must add up to more than 0 and less than 1")
    return {name: share for name, share in shares.items() if share}


def _write(
    source: DataSource,
    dataset: Dataset,
    parts: Mapping[str, Ints],
    folder: Path,
    compression: WriteCompression | None,
) -> tuple[Format, list[str]]:
    """Write the parts; the name of the format, and what it could not hold."""
    name: Any = type(source).__module__.rpartition(".")[2]  # a format is the name of its module
    if isinstance(source, RecordSource):
        places = np.arange(len(dataset)) if dataset.positions is None else dataset.positions
        part_of = np.full(int(places.max(initial=-1)) + 1, -1)
        for number, rows in enumerate(parts.values()):
            part_of[places[rows]] = number
        suffix = "" if compression is None or name == "parquet" else f".{compression}"
        paths = [folder / f"{part}.{name}{suffix}" for part in parts]
        source.copy_rows(source.files[source.splits[0]], part_of, paths, compression)
        return name, write_label_files(source, folder, compression) if source.labels_known else []
    writer = file_format(name).writer(folder, compression)
    try:
        for part, rows in parts.items():
            one = dataset.take(rows)
            batch = DocumentBatch(
                indptr=one.Y.indptr.astype(np.int64),
                indices=one.Y.indices,
                texts=one.texts,
                ids=one.ids,
                features=one.features,
            )
            writer.write(part, batch, dataset.labels)
        notes = writer.finish(dataset.labels)
    finally:
        writer.close()
    return name, notes + write_label_files(source, folder, compression)
