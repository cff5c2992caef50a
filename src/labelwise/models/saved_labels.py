"""The label names of a model folder: one a line in `labels.txt`, or JSON strings where names hold line breaks.

Where labels are URIs, `subjects.tsv` may have names for them: a URI in angle brackets, a tab, a name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from labelwise.data.label_names import distinct_names
from labelwise.storage.checks import damaged, file_bytes

PLAIN, QUOTED, SUBJECTS = "labels.txt", "labels.jsonl", "subjects.tsv"
MOST_BYTES = 1 << 31
"""Size of the largest file of names that is read."""


def read_labels(folder: Path, n_labels: int) -> list[str]:
    """The names, as many as the model has labels; all of them different, and none that cannot be written again."""
    file = folder / QUOTED if (folder / QUOTED).exists() else folder / PLAIN
    if file.name == QUOTED and (folder / PLAIN).exists():
        raise damaged(folder, f"it has both {PLAIN} and {QUOTED}, and only one can hold its label names")
    if not file.exists():
        raise damaged(folder, f"it lacks its {n_labels} label names")
    try:
        lines = file_bytes(file, MOST_BYTES).decode("utf-8").split("\n")
    except UnicodeDecodeError as err:
        raise damaged(file, f"it is not UTF-8 ({err.reason} at byte {err.start})") from err
    if lines and not lines[-1]:
        lines.pop()
    if file.name == PLAIN:
        lines = _without_returns(lines, file)
    if len(lines) != n_labels:
        raise damaged(folder, f"it lacks its {n_labels} label names: {file.name} has {len(lines)}")
    names = lines if file.name == PLAIN else [_unquoted(line, number, file) for number, line in enumerate(lines, 1)]
    return distinct_names(names, file)


def _without_returns(lines: list[str], file: Path) -> list[str]:
    """The lines of a file of plain names, which another program may have given the line ends of Windows.

    A model whose names hold carriage returns has its names in the other file, so that none of them belongs to a name.
    """
    if lines and all(line.endswith("\r") for line in lines):
        lines = [line[:-1] for line in lines]
    for number, line in enumerate(lines, 1):
        if "\r" in line:
            raise damaged(file, f"line {number} holds a carriage return, which no name in this file has")
    return lines


def write_subject_names(folder: Path, names: Mapping[str, str] | None) -> None:
    """Write the names of labels that are URIs, if there are any."""
    if names:
        with (folder / SUBJECTS).open("w", encoding="utf-8", newline="\n") as out:
            out.writelines(f"<{uri}>\t{' '.join(name.split())}\n" for uri, name in names.items())


def read_subject_names(folder: Path) -> dict[str, str] | None:
    """The names of labels that are URIs; None for a model without."""
    file = folder / SUBJECTS
    if not file.exists():
        return None
    try:
        lines = file_bytes(file, MOST_BYTES).decode("utf-8").split("\n")
    except UnicodeDecodeError as err:
        raise damaged(file, f"it is not UTF-8 ({err.reason} at byte {err.start})") from err
    names: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        uri, tab, name = line.partition("\t")
        if line and not (tab and name and uri.startswith("<") and uri.endswith(">")):
            raise damaged(file, f"line {number} is not <uri>, a tab and a name")
        if line:
            names[uri[1:-1]] = name
    return names or None


def _unquoted(line: str, number: int, file: Path) -> str:
    try:
        name = json.loads(line) if line.startswith('"') else None
        if isinstance(name, str) and name.encode("utf-8"):
            return name
    except ValueError:  # no JSON, or half of a surrogate pair
        pass
    raise damaged(file, f"line {number} holds no label name as a JSON string")
