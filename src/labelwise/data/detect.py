"""The format of a folder or file, found by looking at it."""

from os import PathLike
from pathlib import Path

from labelwise.config.settings import shown
from labelwise.data.batch import DataSource
from labelwise.data.files import SUFFIXES, plain_name, read_blocks, reading
from labelwise.data.formats import FORMATS, Format, file_format, file_formats
from labelwise.data.formats.format import FileStart
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError, UsageError

SPLIT_WORDS = {
    "train": ("train", "trn", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "tst"),
}
_SPLIT_OF = {word: split for split, words in SPLIT_WORDS.items() for word in words}
START_BYTES = 1_000_000
"""Bytes of a file by which its format is recognised."""


def open_source(path: Path | str, *, format: Format | None = None, options: ReadOptions) -> DataSource:  # noqa: A002
    """The data at `path`, ready to be streamed; `format` overrides what the files look like."""
    if not isinstance(path, str | PathLike):
        raise UsageError(f"the path of the data is {shown(path)}; give a string or a path")
    path = Path(path)
    if format is not None:
        check_format(format)
    with reading(path):
        if not path.exists():
            raise DataError("there is no such file or folder; check the spelling", path=path)
        source = _open_folder(path, format, options) if path.is_dir() else _open_file(path, format, options)
    named = options.named_columns
    if named and not source.has_columns:
        raise UsageError(f"{path} has no named columns; leave out {named[0]}, or give a file of records")
    return source


def check_format(name: str) -> None:
    """Raise a UsageError with the names of the formats if `name` is not one of them."""
    if not isinstance(name, str) or name not in FORMATS:
        raise UsageError(f"unknown format {shown(name)}; there are: {', '.join(FORMATS)}")


def split_of(name: str) -> str | None:
    """The split that a file's plain name says it holds: train.csv, eurlex_test.txt, …"""
    stem = name.partition(".")[0]
    return _SPLIT_OF.get(stem) or _SPLIT_OF.get(stem.rpartition("_")[2])


def guess_format(path: Path, options: ReadOptions) -> Format | None:
    """The format of a file by its suffix and, where that is not enough, by its first lines; None if it is unknown."""
    suffix = _suffix(path)
    by_suffix = [one for one in file_formats() if suffix in one.suffixes]
    if len(by_suffix) == 1:
        return by_suffix[0].name
    block = next(read_blocks(path, bad=BadRows(skip=True), **options.decoding), None)
    lines = [""] if block is None else block.data[:START_BYTES].decode("utf-8", "replace").split("\n")
    start = FileStart(suffix, lines, options)
    for one in by_suffix:
        if one.recognises is not None and one.recognises(start):
            return one.name
    for one in by_suffix:
        if one.recognises is None:
            return one.name
    for one in file_formats():
        if one.recognises is not None and one.recognises(start):
            return one.name
    return None


def _open_folder(folder: Path, wanted: Format | None, options: ReadOptions) -> DataSource:
    by_format = _files_by_format(folder, wanted, options)
    records = [one.name for one in file_formats() if one.records and one.name in by_format]
    if wanted is None and len(records) > 1:
        both = " and ".join(next(iter(by_format[name].values())).name for name in records)
        raise DataError(f"there are {both}; say which to read with --format", path=folder)
    for candidate in FORMATS if wanted is None else (wanted,):
        how, files = file_format(candidate), by_format.get(candidate, {})
        source: DataSource | None = None
        if files and how.open_files is not None:
            source = how.open_files(path=folder, files=files, options=options, beside=folder)
        elif how.open_folder is not None:
            source = how.open_folder(folder, options)
        if source is not None:
            return source
    names = sorted(path.name for path in folder.iterdir())
    there = ", ".join(names[:10]) + (", …" if len(names) > 10 else "") if names else "nothing"
    as_what = "" if wanted is None else f" as {wanted}"
    raise DataError(f"no data{as_what} found here; looked for {_layouts()}. There is: {there}", path=folder)


def _files_by_format(folder: Path, wanted: Format | None, options: ReadOptions) -> dict[Format, dict[str, Path]]:
    """Files with a split's name, by their format, in the order of splits."""
    found: dict[Format, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        split, suffix = split_of(plain_name(path)), _suffix(path)
        possible = [one.name for one in file_formats() if suffix in one.suffixes]
        if split is None or not possible or not path.is_file() or (wanted is not None and wanted not in possible):
            continue
        name = wanted or guess_format(path, options)
        if name is None:
            continue
        files = found.setdefault(name, {})
        if split in files:
            message = f"{path.name} is the same split as {files[split].name}; leave only one of them there"
            raise DataError(message, path=folder)
        files[split] = path
    return {name: {split: files[split] for split in SPLIT_WORDS if split in files} for name, files in found.items()}


def _open_file(path: Path, wanted: Format | None, options: ReadOptions) -> DataSource:
    name = wanted or guess_format(path, options)
    open_files = None if name is None else file_format(name).open_files
    if open_files is None:
        possible = [one for one in file_formats() if one.open_files is not None]
        *first, last = dict.fromkeys(f".{one.suffixes[0]}" for one in possible)
        message = (
            f"cannot tell the format of this file; name it {', '.join(first)} or {last}, or say it "
            f"with --format ({', '.join(one.name for one in possible)})"
        )
        raise DataError(message, path=path)
    split = split_of(plain_name(path))
    # Any folder may hold an unrelated labels.txt; next to a file called train or test it belongs to that file.
    beside = None if split is None else path.parent
    return open_files(path=path, files={split or "train": path}, options=options, beside=beside)


def _suffix(path: Path) -> str:
    return plain_name(path).rpartition(".")[2]


def _layouts() -> str:
    """What a folder of each format holds, for the error that no data were found."""
    records = ",".join(one.name for one in file_formats() if one.records)
    return ", ".join(
        [
            f"train/validation/test.{{{records}}} (also {' '.join(SUFFIXES)})",
            *(f"{one.layout} ({one.name})" for one in file_formats() if not one.records),
        ]
    )
