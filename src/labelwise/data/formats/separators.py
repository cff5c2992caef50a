"""What separates the labels in a string, found by looking at the strings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labelwise.data.options import BadRows

SEPARATORS = (";", "|", ",")
NONE = "none"
"""What a user says if a string is one label."""
CELLS_TO_TELL = 5
"""Different strings with a comma, at least, by which a comma is taken as part of names; or of each, so many rows."""


@dataclass(frozen=True, slots=True)
class Separator:
    """What separates labels, and how that is known."""

    text: str | None
    """None: a string is one label."""
    example: str | None = None
    """A string that shows it; None where nothing was guessed."""

    @classmethod
    def given(cls, text: str) -> Separator:
        """What a user says."""
        return cls(None if text == NONE else text)

    def say(self, bad: BadRows, path: Path) -> None:
        """Note what was found, with an example."""
        if self.text is not None or self.example is not None:
            bad.separator = self.text or NONE
        if self.example is None:
            return
        if self.text is None:
            bad.remark(
                f"{path}: {self.example!r} is read as one label, since its parts never stand alone; if a comma "
                "separates labels, pass --label-separator ,"
            )
            return
        parts = [part.strip() for part in self.example.split(self.text)]
        bad.remark(
            f"{path}: labels are separated by {self.text!r}: {self.example!r} is {len([p for p in parts if p])} "
            "labels; if that is wrong, pass --label-separator"
        )


def guess_separator(cells: Sequence[str]) -> Separator:
    """The first of ; | , that occurs in a string; a comma does not count where it seems to be part of names."""
    for separator in SEPARATORS:
        example = next((cell for cell in cells if separator in cell.strip().strip(separator)), None)
        if example is None and any(separator in cell for cell in cells):
            return Separator(separator)  # at ends only: nothing to be told
        if example is not None:
            one_name = separator == "," and _are_names(cells)
            return Separator(None if one_name else separator, " ".join(example.split())[:80])
    return Separator(None)


def _are_names(cells: Sequence[str]) -> bool:
    """Whether strings with a comma are single names, such as "Doe, John".

    They are if each has one comma, with a blank after it, and no part of any stands alone or on the other side of a
    comma, as labels in lists do. Fewer names than `CELLS_TO_TELL` must each be in so many rows, and in at most half of
    them all: labels in lists that are so frequent would stand alone somewhere.
    """
    times = Counter(cell.strip() for cell in cells if "," in cell)
    with_comma = set(times)
    repeated = bool(times) and min(times.values()) >= CELLS_TO_TELL and 2 * times.total() <= len(cells)
    if len(with_comma) < CELLS_TO_TELL and not repeated:
        return False
    if not all(cell.count(",") == 1 and ", " in cell and not cell.endswith(",") for cell in with_comma):
        return False
    alone = {cell.strip() for cell in cells if "," not in cell}
    pairs = [cell.split(", ", 1) for cell in with_comma]
    before, after = {first.strip() for first, _ in pairs}, {second.strip() for _, second in pairs}
    return not (before & after or before & alone or after & alone)
