"""Writing predictions, and what writing and reading share: formats by suffix."""

import csv
import gzip
import io
import json
import lzma
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, BinaryIO, Literal

from labelwise.errors import UsageError, need
from labelwise.storage import atomic_file

SUFFIXES = (".jsonl", ".csv", ".parquet")

Row = list[tuple[str, float]]
"""The labels and scores of one document, best first."""


def write_rows(path: Path, ids: Sequence[str], rows: Iterable[Row], *, calibrated: bool | None = None) -> None:
    """Write one document after the other in the format that the suffix of `path` names.

    Parameters
    ----------
    calibrated
        Whether the numbers are probabilities; None where that is not known.
    """
    kind = format_of(path, SUFFIXES)
    numbers = {True: "probability", False: "score", None: "score"}[calibrated]
    plural = {"probability": "probabilities", "score": "scores"}[numbers]
    said = {} if calibrated is None else {"numbers": plural}
    with atomic_file(path) as aside:
        if kind == ".parquet":
            _write_parquet(aside, ids, rows, plural)
            return
        with open_text(aside, path.suffix, "w") as file:
            if kind == ".jsonl":
                for name, row in zip(ids, rows, strict=True):
                    file.write(json.dumps({"id": name, "labels": row, **said}, ensure_ascii=False) + "\n")
                return
            # Quoting every text keeps a carriage return inside a name from ending the row.
            table = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
            file.write(f"id,rank,label,{numbers}\n")
            for name, row in zip(ids, rows, strict=True):
                table.writerows((name, rank, *entry) for rank, entry in enumerate(row, 1))
                if not row:
                    table.writerow((name, "", "", ""))


def _write_parquet(path: Path, ids: Sequence[str], rows: Iterable[Row], numbers: str) -> None:
    parquet = need("pyarrow.parquet", extra="parquet", purpose="parquet files")
    arrow = need("pyarrow", extra="parquet", purpose="parquet files")
    labels, scores = [], []
    for row in rows:
        labels.append([label for label, _ in row])
        scores.append([score for _, score in row])
    columns = {
        "id": arrow.array(list(ids), arrow.string()),
        "labels": arrow.array(labels, arrow.list_(arrow.string())),
        numbers: arrow.array(scores, arrow.list_(arrow.float64())),
    }
    parquet.write_table(arrow.table(columns), path)


class _SingleGzip(gzip.GzipFile):
    """A new gzip file without a name and a time in its header, which closes the file below it."""

    def __init__(self, raw: BinaryIO) -> None:
        super().__init__(filename="", fileobj=raw, mode="wb", mtime=0)
        self._raw = raw

    def close(self) -> None:
        """Write the end of the archive, and close the file."""
        try:
            super().close()
        finally:
            self._raw.close()


def format_of(path: Path, known: tuple[str, ...]) -> str:
    """The suffix that tells the format, without that of the compression."""
    suffixes = path.suffixes
    packed = len(suffixes) > 1 and suffixes[-1] in (".gz", ".xz")
    kind = suffixes[-2] if packed else suffixes[-1] if suffixes else ""
    if kind not in known or (packed and kind not in (".jsonl", ".csv")):
        raise UsageError(
            f"cannot tell the format of {path.name!r}; predictions are {', '.join(known)}, "
            "and the text formats also .gz or .xz"
        )
    return kind


def open_text(path: Path, suffix: str, mode: Literal["r", "w"]) -> IO[str]:
    """A text file in UTF-8 with untouched line ends, packed as `suffix` says."""
    if suffix == ".gz" and mode == "w":
        # No name and no time in the header: the same predictions make the same bytes.
        packed = _SingleGzip(path.open("wb"))
        return io.TextIOWrapper(packed, encoding="utf-8", newline="")
    if suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    if suffix == ".xz":
        return lzma.open(path, "wt" if mode == "w" else "rt", encoding="utf-8", newline="")
    return path.open(mode, encoding="utf-8", newline="")
