"""The table of the paper's data sets, sets.toml."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labelwise.errors import UsageError

TABLE = Path(__file__).with_name("sets.toml")


@dataclass(frozen=True, kw_only=True)
class PaperSet:
    """A data set of the table."""

    name: str
    about: str
    """What documents and labels are."""
    address: str
    """Where the archive lies."""
    archive: str
    """Who keeps it there."""
    splits: str
    """Where splits, texts and features come from."""
    train: int
    """Published number of training documents."""
    test: int
    """Published number of test documents."""
    labels: int
    """Published number of labels."""
    archive_gb: int
    """Limit of the download."""
    unpacked_gb: int
    """Limit of what the archive holds."""
    sha256: str
    """Published checksum of the archive; empty if none is known."""
    licence: str
    citation: str


@cache
def paper_sets() -> tuple[PaperSet, ...]:
    """All data sets of the table, in its order."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    shared = {"archive": table["archive"], "splits": table["splits"]}
    return tuple(
        PaperSet(name=name, address=table["address"].format(name=name), **shared, **values)
        for name, values in table["sets"].items()
    )


def find_set(name: str) -> PaperSet:
    """The data set of this name."""
    known = {one.name: one for one in paper_sets()}
    if name not in known:
        close = difflib.get_close_matches(name.lower(), known, 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UsageError(f"there is no data set {name!r}; {hint}there are: {', '.join(known)}")
    return known[name]
