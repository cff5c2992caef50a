"""From any format to any other, in batches: the texts of a whole data set are never in memory."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from labelwise.config import TfidfConfig
from labelwise.data.archive import COMPRESSIONS, WriteCompression, open_writer
from labelwise.data.batch import DataSource, DocumentBatch
from labelwise.data.detect import check_format, open_source
from labelwise.data.files import plain_name
from labelwise.data.formats import Format, file_format, file_formats
from labelwise.data.formats.format import FileFormat
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError, UsageError
from labelwise.events import Task
from labelwise.storage import atomic_folder, check_writable
from labelwise.storage.paths import checked_path
from labelwise.types import OnEvent


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """The summary of a conversion: what was written, and what was left out."""

    path: str
    """The folder that was written."""
    format: Format
    """Its format."""
    documents: dict[str, int]
    """Documents by split."""
    n_labels: int
    """Labels, the unused ones included."""
    n_features: int | None
    """Features, where the format has them."""
    bad_rows: int
    """Rows of the source that were dropped."""
    notes: list[str]
    """What the format could not hold, a sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        return asdict(self)


def convert(
    src: Path | str,
    dst: Path | str,
    to: Format,
    *,
    format: Format | None = None,  # noqa: A002
    compression: WriteCompression | None = None,
    on_event: OnEvent | None = None,
    overwrite: bool = False,
    tfidf: TfidfConfig | None = None,
    iri_prefix: str | None = None,
    **options: Any,
) -> Conversion:
    """Write the data at `src` into the folder `dst` in another format, all splits and label names.

    The folder appears when it is complete: an error or an interrupt leaves nothing behind.

    Parameters
    ----------
    src, dst
        A folder or file to read, and a folder to make.
    to
        Format to write. pecos, xc and libsvm hold features: a source without them gets tf-idf features, fitted on
        its training split.
    format
        Format of the source; found by looking if not given.
    compression
        Compress the text files written (or the parquet columns) with this.
    overwrite
        Replace a folder that holds a data set already.
    tfidf
        Settings of the features that are made from texts.
    iri_prefix
        For annif: what the IRIs of labels begin with that are no IRIs themselves; ``urn:labelwise:`` if not given.
    **options
        Fields of `ReadOptions`.

    Examples
    --------
    >>> from labelwise import convert
    >>> from labelwise.datasets.shop import write_shop
    >>> summary = write_shop("my-shop", 500, 100)
    >>> done = convert("my-shop", "my-csv", "csv")
    >>> done.documents, done.n_labels
    ({'train': 450, 'test': 50}, 100)
    """
    options_ = ReadOptions.of(options)
    check_format(to)
    if compression is not None and compression not in COMPRESSIONS:
        raise UsageError(f"unknown compression {compression!r}; there are: {', '.join(COMPRESSIONS)}")
    how = _with_prefix(file_format(to), iri_prefix)
    check_writable(dst)
    src, dst = checked_path(src), checked_path(dst)
    source = open_source(src, format=format, options=options_)
    check_destination(src, dst, overwrite)
    bad = BadRows(skip=options_.skip_bad_rows)
    with atomic_folder(dst, overwrite=True) as unfinished:
        made = _write_all(source, unfinished, how, compression, bad, on_event, tfidf or TfidfConfig())
    bad.report(on_event, src)
    return replace(made, path=str(dst))


def _with_prefix(to: FileFormat, iri_prefix: str | None) -> FileFormat:
    """A format whose labels are IRIs that begin with a prefix."""
    if iri_prefix is None:
        return to
    if to.name != "annif":
        raise UsageError(f"iri_prefix is for annif, whose labels are IRIs; leave it out for {to.name}")
    from labelwise.data.formats.annif import AnnifWriter, check_prefix

    check_prefix(iri_prefix)
    return replace(to, writer=partial(AnnifWriter, prefix=iri_prefix))


def _write_all(
    source: DataSource,
    folder: Path,
    to: FileFormat,
    compression: WriteCompression | None,
    bad: BadRows,
    on_event: OnEvent | None,
    config: TfidfConfig,
) -> Conversion:
    make_features = _feature_maker(source, to, on_event, config)
    documents: dict[str, int] = {}
    n_features: int | None = None
    writer = to.writer(folder, compression)
    try:
        for split in source.splits:
            documents[split] = 0
            with Task(on_event, f"converting {split}") as task:
                for batch in source.batches(split, bad):
                    if not len(batch):
                        continue
                    _check_texts(batch, to, source.path)
                    batch = make_features(batch)
                    n_features = None if batch.features is None else int(batch.features.shape[1])
                    writer.write(split, batch, source.labels.names)
                    documents[split] += len(batch)
                    task.advance(len(batch))
            if documents[split] == 0:
                raise DataError(f"no document of the {split} split is left to use", path=source.path)
        notes = writer.finish(source.labels.names)
    finally:
        writer.close()
    notes += write_label_files(source, folder, compression)
    return Conversion(
        path=str(folder),
        format=to.name,
        documents=documents,
        n_labels=len(source.labels.names),
        n_features=n_features if to.needs == "features" else None,
        bad_rows=bad.count,
        notes=notes,
    )


def _check_texts(batch: DocumentBatch, to: FileFormat, path: Path) -> None:
    if to.needs == "texts" and batch.texts is None:
        possible = ", ".join(one.name for one in file_formats() if one.needs == "features")
        message = f"there are features but no texts here, and {to.name} holds texts; possible are: {possible}"
        raise DataError(message, path=path)


def _feature_maker(
    source: DataSource, to: FileFormat, on_event: OnEvent | None, config: TfidfConfig
) -> Callable[[DocumentBatch], DocumentBatch]:
    """What gives batches the features they need: nothing, or tf-idf fitted on the training split."""
    if to.needs != "features":
        return lambda batch: batch
    first = next((batch for batch in source.batches(source.splits[0], BadRows(skip=True)) if len(batch)), None)
    if first is None or first.features is not None:
        return lambda batch: batch
    from labelwise.features.tfidf import Tfidf

    split = "train" if "train" in source.splits else source.splits[0]
    vectorizer = Tfidf(config)
    with Task(on_event, f"fitting tf-idf on {split}") as task:
        vectorizer.fit(_texts(source, split, task))

    def with_features(batch: DocumentBatch) -> DocumentBatch:
        return replace(batch, features=vectorizer.transform(batch.texts or []))

    return with_features


def _texts(source: DataSource, split: str, task: Task) -> Iterator[str]:
    for batch in source.batches(split, BadRows(skip=True)):
        yield from batch.texts or ()
        task.advance(len(batch))


def write_label_files(source: DataSource, folder: Path, compression: WriteCompression | None) -> list[str]:
    """labels.txt, or labels.jsonl where a name holds a line break, and label_texts.jsonl."""
    names, texts = source.labels.names, source.label_texts
    broken = any("\n" in name or "\r" in name for name in names)
    with open_writer(folder / ("labels.jsonl" if broken else "labels.txt"), None) as stream:
        stream.writelines(f"{json.dumps(name, ensure_ascii=False) if broken else name}\n" for name in names)
    if texts is not None:
        suffix = "" if compression is None else f".{compression}"
        with open_writer(folder / f"label_texts.jsonl{suffix}", compression) as stream:
            for name in names:
                if name in texts:
                    row = {"label": name, "text": texts[name]}
                    stream.write(json.dumps(row, ensure_ascii=False) + "\n")
    return ["some label names hold line breaks: they are in labels.jsonl instead of labels.txt"] if broken else []


def check_destination(src: Path, dst: Path, overwrite: bool) -> None:
    """Refuse a folder that holds the source, anything else than data, or data that should stay."""
    if not dst.exists():
        return
    if not dst.is_dir():
        raise UsageError(f"{dst} is a file; name a folder to write to")
    names = sorted(path.name for path in dst.iterdir())
    if not names:
        return
    if not overwrite:
        raise UsageError(f"{dst} exists and is not empty; choose another folder, or replace it with --overwrite")
    inside = src.resolve()
    if dst.resolve() in (inside, *inside.parents):
        raise UsageError(f"{dst} holds the data that are to be read; choose another folder")
    suffixes = tuple(f".{suffix}" for one in file_formats() for suffix in (*one.suffixes, *one.folder_suffixes))
    for path in dst.iterdir():
        if not path.is_file() or not plain_name(path).endswith(suffixes):
            raise UsageError(f"{dst} holds {path.name}, which is not part of a data set; choose another folder")
