"""The columns that hold text, labels and ids, found by the names that were asked for."""

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from labelwise.data.options import BadRows, ReadOptions
from labelwise.errors import DataError

USUAL_IDS = (ReadOptions().id_column, "uid")
"""Columns of ids that a file may lack without a word, since nobody asked for them."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Names as the file has them."""

    text: list[str]
    labels: str | None
    """None where the documents may be without labels, and no column holds any."""
    id: str | None
    """None where the file has no ids."""


def find_columns(
    there: Collection[str],
    options: ReadOptions,
    path: Path,
    line: int | None = None,
    *,
    bad: BadRows | None = None,
    with_labels: bool = True,
) -> Columns:
    """The columns that were asked for; an error with the names of all columns if one is not there.

    A name is taken as it is first. Then blanks around it and the case of its letters do not count, and that is said
    (`bad.remark`). Where unlabelled records are allowed, the labels column may be missing.
    """
    found = _Finder(list(there), path, line, bad)
    text = found.several(options.text_column, "--text-column")
    must = with_labels and not options.allow_unlabelled
    labels = found.one(options.labels_column, "--labels-column", must=must) if with_labels else None
    own = options.id_column in USUAL_IDS
    ids = found.exact(options.id_column) if own else found.one(options.id_column, "--id-column", must=True)
    return Columns(text, labels, ids)


def text_columns(there: Collection[str], names: str) -> list[str] | None:
    """The columns that `names` means, which may be several, separated by commas; None if one is not there."""
    try:
        return _Finder(list(there), Path(), None, None).several(names, "")
    except DataError:
        return None


def has_columns(there: Sequence[str], options: ReadOptions, *, with_labels: bool = True) -> bool:
    """Whether the columns of text and labels are all there."""
    try:
        find_columns(there, options, Path(), with_labels=with_labels)
    except DataError:
        return False
    return True


class _Finder:
    """Finds columns by name."""

    def __init__(self, there: list[str], path: Path, line: int | None, bad: BadRows | None) -> None:
        self.there, self.path, self.line, self.bad = there, path, line, bad

    def exact(self, name: str) -> str | None:
        """The name itself if there is such a column."""
        return name if name in self.there else None

    def several(self, names: str, option: str) -> list[str]:
        """Columns separated by commas; a column's own name may hold commas and blanks."""
        parts, found, start = names.split(","), [], 0
        while start < len(parts):
            for end in range(len(parts), start, -1):
                name = ",".join(parts[start:end])
                if name in self.there:
                    found.append(name)
                    break
            else:
                end = start + 1
                if name.strip() and (one := self.one(name.strip(), option, must=True)) is not None:
                    found.append(one)
            start = end
        return found

    def one(self, name: str, option: str, *, must: bool) -> str | None:
        """A column that is called so, or nearly so."""
        if name in self.there:
            return name
        near = [one for one in self.there if one.strip().casefold() == name.strip().casefold()]
        if len(near) == 1:
            if self.bad is not None:
                self.bad.remark(f"{self.path}: the column {near[0]!r} is read for {name!r}")
            return near[0]
        if not must:
            return None
        columns = ", ".join(map(repr, self.there)) or "none"
        close = near or difflib.get_close_matches(name, self.there, 1)
        hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else "."
        message = f"there is no column {name!r}; there are: {columns}{hint} Name the right one with {option}"
        raise DataError(message, path=self.path, line=self.line)
