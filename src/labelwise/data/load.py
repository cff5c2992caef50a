"""Data from files into memory: `load_dataset` for one split, `load_splits` for all of them over one label list."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelwise.data.batch import DataSource, DocumentBatch, label_matrix, positions
from labelwise.data.dataset import Dataset
from labelwise.data.detect import check_format, open_source
from labelwise.data.formats import Format, file_format, file_formats
from labelwise.data.formats.records import RecordSource
from labelwise.data.options import BadRows, ReadOptions
from labelwise.data.standard_input import STANDARD_INPUT
from labelwise.errors import DataError, UsageError
from labelwise.events import Task, heard
from labelwise.types import OnEvent

log = logging.getLogger(__name__)


def load_dataset(
    path: Path | str,
    split: str = "train",
    *,
    format: Format | None = None,  # noqa: A002
    labels: Sequence[str] | None = None,
    on_event: OnEvent | None = None,
    bad_rows: BadRows | None = None,
    **options: Any,
) -> Dataset:
    """One split of the data at `path`.

    The columns of `Y` are those of the training split, whichever split is asked for: they come from labels.txt
    where there is one, else from the training file. Labels that occur in neither follow at the end.

    Parameters
    ----------
    path
        A folder or a single file. A single file is read as it is, whatever `split` says.
    split
        "train", "validation" or "test".
    format
        One of `FORMATS`; found by looking at the files if not given.
    labels
        Names in the column order that is wanted, e.g. those of a model; other labels follow at the end.
    on_event
        Hears "progress", "bad_rows" and "unseen_labels".
    bad_rows
        Counts the rows that were dropped, for a caller who wants to know.
    **options
        Fields of `ReadOptions`.

    Examples
    --------
    >>> from labelwise import load_dataset
    >>> with open("tickets.csv", "w") as file:
    ...     print("subject,body,tags", file=file)
    ...     print("Login,The page is blank,login;browser", file=file)
    ...     print("Money back,Wrong card,refund", file=file)
    >>> data = load_dataset("tickets.csv", text_column="subject,body", labels_column="tags", label_separator=";")
    >>> data.texts[0], data.labels
    ('Login The page is blank', ['login', 'browser', 'refund'])
    """
    options_ = ReadOptions.of(options)
    source = open_source(path, format=format, options=options_)
    bad = _counter(bad_rows, options_)
    split = _split_there(source, split)
    if not source.labels_known and split != "train" and "train" in source.splits:
        scan_labels(source, "train", on_event)
    n_known = len(source.labels.names)
    parts = _read(source, split, bad, on_event)
    dataset = _dataset(source, parts)
    bad.report(on_event, source.path)
    if labels is not None:
        dataset, n_known = dataset.with_labels(labels), len(labels)
    if split != "train" or labels is not None:
        used = np.zeros(dataset.n_labels, dtype=np.bool_)
        used[:n_known] = True
        _report_unseen(dataset, used, split, source.path, on_event)
    return dataset


def load_documents(
    path: Path | str,
    split: str = "train",
    *,
    format: Format | None = None,  # noqa: A002
    on_event: OnEvent | None = None,
    **options: Any,
) -> Dataset:
    """One split as `load_dataset` gives it, without labels where the format has them in columns.

    Labels that are wrong, or not there, are no matter: this is for documents that are to get some.
    """
    options_ = ReadOptions.of({**options, "allow_unlabelled": True})
    source = open_source(path, format=format, options=options_)
    bad = _counter(None, options_)
    if not isinstance(source, RecordSource):
        return load_dataset(path, split, format=format, on_event=on_event, **{**options, "allow_unlabelled": True})
    source.with_labels = False
    split = _split_there(source, split)
    dataset = read_split(source, split, bad, on_event)
    bad.report(on_event, source.path)
    return dataset


def columns_of(
    path: Path | str,
    split: str,
    *,
    format: Format | None = None,  # noqa: A002
    options: ReadOptions,
) -> list[str] | None:
    """What the columns of a split are called, of the first one if it is not there; None in formats without columns."""
    source = open_source(path, format=format, options=options)
    if not isinstance(source, RecordSource):
        return None
    return source.columns(split if split in source.splits else source.splits[0])


def arriving_documents(
    form: Format, bad: BadRows, *, on_event: OnEvent | None = None, **options: Any
) -> Iterator[Dataset]:
    """The documents of standard input without labels, in batches of what is there, so that none has to wait."""
    check_format(form)
    how = file_format(form)
    options_ = ReadOptions.of({**options, "allow_unlabelled": True})
    files = {"test": STANDARD_INPUT}
    source = None
    if how.records and how.open_files is not None and how.streamed:
        source = how.open_files(path=STANDARD_INPUT, files=files, options=options_, beside=None)
    if not isinstance(source, RecordSource):
        streamed = ", ".join(one.name for one in file_formats() if one.streamed)
        raise UsageError(f"--format {form}: standard input is read as {streamed}, or as texts, one a line; give a file")
    source.with_labels = False
    n_told = 0
    for batch in source.batches("test", bad):
        for sentence in bad.remarks[n_told:]:
            if on_event is not None:
                on_event("remark", {"text": sentence})
        n_told = len(bad.remarks)
        if len(batch):
            yield _dataset(source, [batch])
    bad.remarks.clear()
    bad.report(on_event, STANDARD_INPUT)


def load_training_splits(
    path: Path | str,
    *,
    format: Format | None = None,  # noqa: A002
    on_event: OnEvent | None = None,
    bad_rows: BadRows | None = None,
    **options: Any,
) -> tuple[Dataset, Dataset | None]:
    """The training split, and the validation split if there is one. Parameters as for `load_dataset`; `bad_rows` are
    those of the training split."""
    splits = open_source(path, format=format, options=ReadOptions.of(options)).splits
    on_event = _without_repetition(on_event)
    train = load_dataset(path, "train", format=format, on_event=on_event, bad_rows=bad_rows, **options)
    if Path(path).is_file() or "validation" not in splits:
        return train, None
    labels = train.labels
    return train, load_dataset(path, "validation", format=format, labels=labels, on_event=on_event, **options)


def _without_repetition(on_event: OnEvent | None) -> OnEvent | None:
    """The same, but remarks only once: what is found in one split is found in the next."""
    heard: set[str] = set()

    def hear(name: str, values: Mapping[str, Any]) -> None:
        if name == "remark":
            if values["text"] in heard:
                return
            heard.add(values["text"])
        if on_event is not None:
            on_event(name, values)

    return hear


def load_splits(
    path: Path | str,
    *,
    format: Format | None = None,  # noqa: A002
    labels: Sequence[str] | None = None,
    on_event: OnEvent | None = None,
    bad_rows: BadRows | None = None,
    **options: Any,
) -> dict[str, Dataset]:
    """Every split there is at `path`, train first, over one list of labels. Parameters as for `load_dataset`.

    Examples
    --------
    >>> from labelwise import load_splits
    >>> from labelwise.datasets.shop import write_shop
    >>> summary = write_shop("my-shop", 500, 100)  # train.jsonl, test.jsonl and labels.txt
    >>> splits = load_splits("my-shop")
    >>> {name: len(split) for name, split in splits.items()}
    {'train': 450, 'test': 50}
    """
    options_ = ReadOptions.of(options)
    source = open_source(path, format=format, options=options_)
    bad = _counter(bad_rows, options_)
    parts = {split: _read(source, split, bad, on_event) for split in source.splits}
    splits = {split: _dataset(source, part) for split, part in parts.items()}
    bad.report(on_event, source.path)
    if labels is not None:
        splits = {split: dataset.with_labels(labels) for split, dataset in splits.items()}
    shared = next(iter(splits.values()))
    splits = {
        split: replace(dataset, labels=shared.labels, label_texts=shared.label_texts)
        for split, dataset in splits.items()
    }
    if "train" in splits:
        used = np.bincount(splits["train"].Y.indices, minlength=shared.n_labels) > 0
        for split, dataset in splits.items():
            if split != "train":
                _report_unseen(dataset, used, split, source.path, on_event)
    return splits


def read_split(source: DataSource, split: str, bad: BadRows, on_event: OnEvent | None) -> Dataset:
    """A split of an open source; what `bad` gathers is not reported yet."""
    return _dataset(source, _read(source, split, bad, on_event))


def scan_labels(source: DataSource, split: str, on_event: OnEvent | None) -> None:
    """Read a split only for its labels, so that another one gets the same columns.

    Rows that are wrong are passed over: whoever loads that split will hear of them.
    """
    with Task(on_event, f"scanning {split} for labels") as task:
        for batch in source.batches(split, BadRows(skip=True)):
            task.advance(len(batch))


def _split_there(source: DataSource, split: str) -> str:
    """The split that is asked for; a single file is read as it is."""
    if source.path.is_file():
        return source.splits[0]
    if split not in source.splits:
        raise DataError(f"there is no split {split!r}; there are: {', '.join(source.splits)}", path=source.path)
    return split


def _counter(given: BadRows | None, options: ReadOptions) -> BadRows:
    bad = BadRows() if given is None else given
    bad.skip = options.skip_bad_rows
    return bad


def _read(source: DataSource, split: str, bad: BadRows, on_event: OnEvent | None) -> list[DocumentBatch]:
    parts = []
    with Task(on_event, f"reading {split}") as task:
        for batch in source.batches(split, bad):
            parts.append(batch)
            task.advance(len(batch))
    if not any(map(len, parts)):
        reasons = f"; the first: {bad.reasons[0]}" if bad.reasons else ""
        raise DataError(f"no document of the {split} split is left to use{reasons}", path=source.path)
    return parts


def _dataset(source: DataSource, parts: list[DocumentBatch]) -> Dataset:
    names = list(source.labels.names)
    parts = [part for part in parts if len(part)]
    first = parts[0]
    described = source.label_texts
    features: Any = None
    if first.features is not None:
        features = sp.vstack([part.features for part in parts if part.features is not None], format="csr")
    return Dataset(
        Y=label_matrix(parts, len(names)),
        labels=names,
        texts=None if first.texts is None else list(chain.from_iterable(part.texts or () for part in parts)),
        ids=None if first.ids is None else list(chain.from_iterable(part.ids or () for part in parts)),
        features=features,
        positions=positions(parts),
        label_texts=None if described is None else [described.get(name, name) for name in names],
    )


def _report_unseen(
    dataset: Dataset, seen: np.ndarray[Any, np.dtype[np.bool_]], split: str, path: Path, on_event: OnEvent | None
) -> None:
    """Say how many labels of a split no training document has."""
    counts = np.bincount(dataset.Y.indices, minlength=dataset.n_labels)
    unseen = np.flatnonzero((counts > 0) & ~seen)
    if unseen.size == 0:
        return
    occurrences = int(counts[unseen].sum())
    log.info(
        "%s: %d labels of the %s split (%d of %d occurrences) are not among the labels of training; they are kept",
        path,
        unseen.size,
        split,
        occurrences,
        dataset.Y.nnz,
    )
    on_event = heard(on_event)
    if on_event is not None:
        values = {"split": split, "labels": int(unseen.size), "occurrences": occurrences}
        first = [dataset.labels[i] for i in unseen[:5]]
        on_event("unseen_labels", {**values, "path": str(path), "first": first})
