"""A data set of the paper as a folder that every command reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from labelwise import __version__
from labelwise.data import convert
from labelwise.datasets.paper.download import Download, DownloadError
from labelwise.datasets.paper.prepare import prepare
from labelwise.datasets.paper.table import PaperSet, find_set
from labelwise.datasets.paper.unpack import sha256_of, unpack
from labelwise.errors import DataError, UsageError
from labelwise.storage import atomic_folder, check_writable, write_json
from labelwise.storage.leftovers import temporary
from labelwise.storage.paths import checked_path
from labelwise.types import OnEvent

SOURCE = "source.json"
"""The file by which a folder is known to hold a data set of the paper."""
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class PaperData:
    """What a folder holds; source.json keeps it."""

    name: str
    source: str
    """The address or the file that the archive came from."""
    sha256: str
    """Checksum of the archive."""
    n_bytes: int
    """Size of the archive."""
    format: Literal["jsonl", "pecos"]
    """jsonl where there are texts; pecos where there are features only."""
    documents: dict[str, int]
    """Documents by split."""
    n_labels: int
    licence: str
    citation: str
    splits: str
    notes: list[str]
    """What is different from the archive or from the published counts, a sentence each."""
    labelwise: str = __version__


def get_paper_set(
    name: str,
    folder: Path | str | None = None,
    *,
    file: Path | str | None = None,
    url: str | None = None,
    sha256: str | None = None,
    overwrite: bool = False,
    on_event: OnEvent | None = None,
) -> PaperData:
    """Fetch a data set of the paper, check and unpack the archive, and convert it.

    The folder appears when it is complete. What was fetched stays beside it, in ``FOLDER.download``, until then: the
    next call goes on with it. A folder that holds the data set already is left as it is; another archive than the one
    that it was made of is refused without ``overwrite``.

    Parameters
    ----------
    name
        A name of the table, such as "eurlex-4k".
    folder
        Where to write; a folder with the name of the data set if None.
    file
        The archive, if it was fetched by other means. Nothing is fetched then.
    url
        The address of a mirror.
    sha256
        The checksum that the archive must have. The table knows none where none was published.
    overwrite
        Replace a data set that was got before.
    """
    known = find_set(name)
    folder = checked_path(name if folder is None else folder)
    wanted = _checksum(sha256) or known.sha256 or None
    if file is not None and url is not None:
        raise UsageError("give a file or an address, not both")
    before = _there(folder, known, overwrite=overwrite)
    if before is not None and not overwrite:
        _check_sum(before.sha256, wanted, folder / SOURCE)
        if file is not None:
            _check_same(folder, before, _given(file), on_event)
        return before
    check_writable(folder)
    with _archive(known, folder, file, url, on_event) as (archive, source):
        n_bytes, found = archive.stat().st_size, sha256_of(archive, on_event)
        _check_sum(found, wanted, archive)
        facts = {"source": source, "sha256": found, "n_bytes": n_bytes}
        return _converted(known, folder, archive, on_event, before=before, **facts)


@contextmanager
def _archive(
    known: PaperSet, folder: Path, file: Path | str | None, url: str | None, on_event: OnEvent | None
) -> Iterator[tuple[Path, str]]:
    """The archive and where it came from; a fetched one is removed when it has been used, or is no good."""
    most = known.archive_gb * 10**9
    if file is not None:
        path = _given(file)
        yield path, path.name
        return
    download = Download(url or known.address, folder.with_name(f"{folder.name}.download"), most=most)
    with download.locked():
        try:
            archive = download.fetch(on_event, f"fetching {known.name}")
        except DownloadError as err:
            if not any(path.name != "lock" for path in download.folder.iterdir()):
                download.remove()
            again = f"labelwise get {known.name}{'' if folder.name == known.name else f' {folder}'}"
            raise DownloadError(
                f"{err}; run the command again later, name a mirror with --url, or fetch the file by other means and "
                f"run: {again} --from {known.name}.tar.gz"
            ) from err
        try:
            yield archive, download.state.url
        except DataError:
            download.remove()
            raise
        download.remove()


def _given(file: Path | str) -> Path:
    """The archive that was fetched by other means."""
    path = checked_path(file)
    if path.is_dir():
        raise UsageError(f"{path} is a folder; if the archive is unpacked there, labelwise train {path} reads it")
    if not path.is_file():
        raise DataError("there is no such file; give the archive that you fetched", path=path)
    return path


def _converted(
    known: PaperSet, folder: Path, archive: Path, on_event: OnEvent | None, *, before: PaperData | None, **facts: Any
) -> PaperData:
    """Unpack and convert an archive; the folder appears at the end."""
    with atomic_folder(folder, overwrite=True) as unfinished, temporary(folder, folder=True) as work:
        unpacked, ready, written = work / "unpacked", work / "ready", work / "written"
        unpacked.mkdir()
        ready.mkdir()
        unpack(archive, unpacked, most=known.unpacked_gb * 10**9, on_event=on_event)
        with _errors_of(archive):
            with_texts, notes = prepare(unpacked, ready, on_event)
            form: Literal["jsonl", "pecos"] = "jsonl" if with_texts else "pecos"
            done = convert(ready, written, form, format="pecos", on_event=on_event)
        for path in written.iterdir():
            path.rename(unfinished / path.name)
        if before is not None and before.sha256 != facts["sha256"]:
            notes.append("the archive is another one than before: its checksum is not the one that was recorded")
        notes += _differences(known, done.documents, done.n_labels)
        made = PaperData(
            name=known.name,
            format=form,
            documents=done.documents,
            n_labels=done.n_labels,
            licence=known.licence,
            citation=known.citation,
            splits=known.splits,
            notes=notes,
            **facts,
        )
        write_json(unfinished / SOURCE, asdict(made))
    return made


@contextmanager
def _errors_of(archive: Path) -> Iterator[None]:
    """Errors in unpacked files name the archive, since the files are gone when the error is read."""
    try:
        yield
    except DataError as err:
        inside = Path(err.path or "")
        where = f"{inside.name}: " if inside.is_file() else ""
        raise DataError(f"{where}{err.message}", path=archive) from err


def _differences(known: PaperSet, documents: dict[str, int], n_labels: int) -> list[str]:
    """Counts that are not those that were published."""
    published = {"training documents": known.train, "test documents": known.test, "labels": known.labels}
    found = {
        "training documents": documents.get("train", 0),
        "test documents": documents.get("test", 0),
        "labels": n_labels,
    }
    return [
        f"{found[what]:,} {what}, where {count:,} are published"
        for what, count in published.items()
        if found[what] != count
    ]


def _checksum(given: str | None) -> str | None:
    if given is None:
        return None
    plain = given.strip().lower().removeprefix("sha256:")
    if not _SHA256.fullmatch(plain):
        raise UsageError(f"sha256 is {given!r}; it must be 64 hexadecimal digits")
    return plain


def _check_sum(found: str, wanted: str | None, path: Path) -> None:
    if wanted is not None and found != wanted:
        raise DataError(f"the archive has the checksum {found}, not {wanted}; nothing of it was used", path=path)


def _check_same(folder: Path, before: PaperData, archive: Path, on_event: OnEvent | None) -> None:
    """Refuse an archive that is not the one that the folder was made of: the caller would go on with the old data."""
    if archive.stat().st_size != before.n_bytes or sha256_of(archive, on_event) != before.sha256:
        raise UsageError(
            f"{folder} holds {before.name} from another archive ({before.source}); "
            "choose another folder, or replace it with --overwrite"
        )


def _there(folder: Path, known: PaperSet, *, overwrite: bool) -> PaperData | None:
    """The data set that the folder holds; None if the folder is free."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    try:
        found = PaperData(**json.loads((folder / SOURCE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as err:
        raise UsageError(f"{folder} exists and holds something else; choose another folder") from err
    if found.name != known.name and not overwrite:
        raise UsageError(f"{folder} holds {found.name}; choose another folder, or replace it with --overwrite")
    return found
