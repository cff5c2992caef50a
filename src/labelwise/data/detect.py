"""Which format a folder or file is in, found by looking at it."""

import re
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from labelwise.data.batch import DataSource
from labelwise.data.files import plain_name, read_blocks
from labelwise.data.label_names import find_beside
from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError, UsageError

Format: TypeAlias = Literal["jsonl", "csv", "tsv", "parquet", "pecos", "xc", "libsvm", "annif"]
FORMATS: tuple[Format, ...] = get_args(Format)
"""The formats, in the order in which a folder is searched for them."""
RECORD_FORMATS: tuple[Format, ...] = ("jsonl", "csv", "tsv", "parquet")

SPLIT_WORDS = {
    "train": ("train", "trn", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "tst"),
}
_SPLIT_OF = {word: split for split, words in SPLIT_WORDS.items() for word in words}
_SUFFIX_FORMATS: dict[str, tuple[Format, ...]] = {
    "jsonl": ("jsonl",),
    "ndjson": ("jsonl",),
    "csv": ("csv",),
    "tsv": ("tsv", "annif"),
    "parquet": ("parquet",),
    "txt": ("xc", "libsvm", "annif"),
    "svm": ("libsvm",),
    "libsvm": ("libsvm",),
    "svmlight": ("libsvm",),
}
_LOOKED_FOR = (
    "train/validation/test.{jsonl,csv,tsv,parquet} (also .gz .xz .zst .bz2), Y.trn.npz with X.trn.npz or "
    "train_raw_texts.txt (pecos), train.txt with an N D L header, trn_X_Y.txt or trn.json (xc), train.txt or "
    "train.svm without a header (libsvm), train.tsv with <uri> subjects (annif)"
)


def open_source(path: Path | str, *, format: Format | None = None, options: ReadOptions) -> DataSource:  # noqa: A002
    """The data at `path`, ready to be streamed; `format` overrides what the files look like."""
    path = Path(path)
    if format is not None and format not in FORMATS:
        raise UsageError(f"unknown format {format!r}; there are: {', '.join(FORMATS)}")
    if not path.exists():
        raise DataError("there is no such file or folder; check the spelling", path=path)
    if not path.is_dir():
        return _file_source(path, format, options)
    by_format = _by_format(path, format, options)
    if format is None and len(several := [f for f in RECORD_FORMATS if f in by_format]) > 1:
        both = " and ".join(next(iter(by_format[f].values())).name for f in several)
        raise DataError(f"there are {both}; say which to read with --format", path=path)
    for candidate in FORMATS if format is None else (format,):
        source = _folder_source(path, candidate, by_format.get(candidate, {}), options)
        if source is not None:
            return source
    names = sorted(p.name for p in path.iterdir())
    there = ", ".join(names[:10]) + (", …" if len(names) > 10 else "") if names else "nothing"
    as_what = "" if format is None else f" as {format}"
    raise DataError(f"no data{as_what} found here; looked for {_LOOKED_FOR}. There is: {there}", path=path)


def split_of(name: str) -> str | None:
    """The split that a file's plain name tells: train.csv, eurlex_test.txt, …"""
    stem = name.partition(".")[0]
    return _SPLIT_OF.get(stem) or _SPLIT_OF.get(stem.rpartition("_")[2])


def _by_format(folder: Path, wanted: Format | None, options: ReadOptions) -> dict[Format, dict[str, Path]]:
    """Files with a split's name, by their format, in the order of splits."""
    found: dict[Format, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        name = plain_name(path)
        split, formats = split_of(name), _SUFFIX_FORMATS.get(name.rpartition(".")[2], ())
        if split is None or not formats or not path.is_file() or (wanted is not None and wanted not in formats):
            continue
        kind = formats[0] if len(formats) == 1 else wanted or looks_like(path, options)
        if kind is None:
            continue
        files = found.setdefault(kind, {})
        if split in files:
            message = f"{path.name} is the same split as {files[split].name}; leave only one of them there"
            raise DataError(message, path=folder)
        files[split] = path
    return {kind: {split: files[split] for split in SPLIT_WORDS if split in files} for kind, files in found.items()}


def _folder_source(folder: Path, kind: Format, files: dict[str, Path], options: ReadOptions) -> DataSource | None:
    if kind == "pecos":
        from labelwise.data.formats.pecos import PecosSource, find_pecos

        found = find_pecos(folder)
        return PecosSource(path=folder, files=found, options=options) if found else None
    if kind == "xc" and not files:
        return _xc_family(folder, options)
    return _source(folder, kind, files, folder, options) if files else None


def _xc_family(folder: Path, options: ReadOptions) -> DataSource | None:
    """The repository's raw texts in JSON, or its matrices in files of their own."""
    from labelwise.data.formats.xc import FamilyFiles, FamilySource, RawSource

    tags = {"train": "trn", "validation": "val", "test": "tst"}
    raw = {split: path for split, tag in tags.items() if (path := find_beside(folder, f"{tag}.json"))}
    if raw:
        return RawSource(path=folder, files=raw, options=options)
    family = {}
    for split, tag in tags.items():
        if (Y := find_beside(folder, f"{tag}_X_Y.txt")) is not None:
            X, texts = find_beside(folder, f"{tag}_X_Xf.txt"), find_beside(folder, f"{tag}_X.txt")
            if X is None and texts is None:
                message = f"there is neither {tag}_X_Xf.txt nor {tag}_X.txt beside it; one of them has to be there"
                raise DataError(message, path=Y)
            family[split] = FamilyFiles(Y, X, texts)
    return FamilySource(path=folder, files=family, options=options) if family else None


def _file_source(path: Path, kind: Format | None, options: ReadOptions) -> DataSource:
    name = plain_name(path)
    if kind is None:
        formats = _SUFFIX_FORMATS.get(name.rpartition(".")[2], ())
        kind = formats[0] if len(formats) == 1 else looks_like(path, options)
    if kind is None or kind == "pecos":
        message = (
            "cannot tell the format of this file; name it .jsonl, .csv, .tsv, .parquet, .txt or .svm, or say it "
            f"with --format ({', '.join(f for f in FORMATS if f != 'pecos')})"
        )
        raise DataError(message, path=path)
    split = split_of(name)
    # A stranger's labels.txt may lie beside any file; one beside a "train" or "test" belongs to it.
    beside = None if split is None else path.parent
    return _source(path, kind, {split or "train": path}, beside, options)


def _source(path: Path, kind: Format, files: dict[str, Path], beside: Path | None, options: ReadOptions) -> DataSource:
    if kind == "xc":
        from labelwise.data.formats.xc import HeaderSource

        return HeaderSource(path=path, files=files, options=options, beside=beside)
    if kind == "libsvm":
        from labelwise.data.formats.libsvm import LibsvmSource

        return LibsvmSource(path=path, files=files, options=options, beside=beside)
    if kind == "annif":
        from labelwise.data.formats.annif import AnnifSource

        return AnnifSource(path=path, files=files, options=options, beside=beside)
    from labelwise.data.formats.records import RecordSource

    if kind == "pecos":
        raise UsageError("the pecos format is a folder, not a file")
    return RecordSource(path=path, kind=kind, files=files, options=options, beside=beside)


def looks_like(path: Path, options: ReadOptions) -> Format | None:
    """The format of a .tsv or .txt file (or of one with any name), by its first lines."""
    block = next(read_blocks(path, encoding=options.encoding, bad=BadRows(skip=True)), None)
    if block is None:
        return "tsv" if plain_name(path).endswith(".tsv") else "libsvm"  # empty: its reader will say so
    lines = block.data[:1_000_000].decode("utf-8", "replace").split("\n")
    first = lines[0].strip()
    if re.fullmatch(r"\d+\s+\d+\s+\d+", first):
        return "xc"
    if first.startswith("{"):
        return "jsonl"
    if re.search(r"\t\s*<[^<>\t]*>(\s*<[^<>\t]*>)*\s*$", lines[0]):
        return "annif"
    header = {field.strip('"') for field in first.split("\t")}
    if plain_name(path).endswith(".tsv"):
        wanted = {options.labels_column, *options.text_columns}
        some_subjects = any(re.search(r"\t<[^<>\t]*>\s*$", line) for line in lines[:100])
        return "annif" if some_subjects and not wanted <= header else "tsv"
    if re.fullmatch(r"(\d+(,\d+)*)?(\s*\d+:\S+)*(\s*#.*)?", first):
        return "libsvm"
    return None
