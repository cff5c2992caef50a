"""Label names and descriptions, in the files that lie beside the documents."""

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labelwise.data.files import SUFFIXES, most_numbers, read_lines, reading
from labelwise.errors import DataError
from labelwise.features.texts import is_collection, type_and_value

log = logging.getLogger(__name__)


def find_beside(folder: Path, name: str) -> Path | None:
    """A file of that name in the folder, compressed or not."""
    for suffix in ("", *SUFFIXES):
        path = folder / (name + suffix)
        with reading(path):
            if path.is_file():
                return path
    return None


def label_list(folder: Path, *, max_unpacked: int | None = None) -> list[str] | None:
    """Names from labels.txt, or from labels.jsonl (a JSON string a line) where names hold line breaks."""
    plain = find_beside(folder, "labels.txt")
    if (path := find_beside(folder, "labels.jsonl")) is not None:
        if plain is not None:
            raise DataError(f"{plain.name} lies beside it, and only one can name the labels; remove one", path=path)
        names: list[str] = []
        for first, lines in read_lines(path, max_unpacked=max_unpacked):
            for line, raw in enumerate(lines, first):
                try:
                    name = json.loads(raw or "")
                except (ValueError, RecursionError):
                    name = None
                if not isinstance(name, str) or has_lone_surrogate(name):
                    raise DataError("every line holds one label name as a JSON string", path=path, line=line)
                names.append(name)
        return distinct_names(names, path)
    return None if plain is None else distinct_names(read_names(plain, max_unpacked=max_unpacked), plain)


def read_names(path: Path, **how: Any) -> list[str]:
    """Label names, one a line, in id order; `how` is as in `labelwise.data.files.read_blocks`."""
    names: list[str] = []
    for _, lines in read_lines(path, **how):
        names.extend(line for line in lines if line is not None)
    while names and not names[-1]:
        names.pop()
    return names


def distinct_names(names: Sequence[str], path: Path) -> list[str]:
    """Names that must identify labels by themselves; the same one twice is an error."""
    line_of: dict[str, int] = {}
    for line, name in enumerate(names, 1):
        if not name or name.isspace():
            raise DataError("a label name is empty; every line holds one name", path=path, line=line)
        if name in line_of:
            message = f"the label {name!r} stands on line {line_of[name]} already; remove one of them"
            raise DataError(message, path=path, line=line)
        line_of[name] = line
    return list(names)


def column_names(path: Path | None, n_labels: int, whose: Path, how: Mapping[str, Any]) -> list[str]:
    """Distinct names of the label columns from a file, or their numbers where there is none."""
    if n_labels > (most := most_numbers([whose])):
        message = f"has {n_labels:,} label columns, but a file of its size can tell of {most:,} at most; is it damaged?"
        raise DataError(message, path=whose)
    if path is None:
        return [str(i) for i in range(n_labels)]
    names = read_names(path, **how)
    if len(names) != n_labels:
        message = (
            f"there are {len(names)} names but {whose.name} has {n_labels} label columns; "
            "put the label file that belongs to it there, or remove it to use numbers"
        )
        raise DataError(message, path=path)
    return numbered_names(names)


def numbered_names(names: Sequence[str]) -> list[str]:
    """Distinct names for columns: a name that occurs again gets a number in brackets."""
    taken: dict[str, None] = {}
    met: dict[str, int] = {}
    for i, name in enumerate(names):
        name = str(i) if not name or name.isspace() else name
        met[name] = met.get(name, 0) + 1
        taken[unused_name(name, taken, start=met[name])] = None
    n_changed = sum(new != old for new, old in zip(taken, names, strict=True))
    if n_changed:
        log.warning("%d of %d label names were blank or not unique; numbers tell them apart", n_changed, len(names))
    return list(taken)


def unused_name(name: str, taken: Mapping[str, object], *, start: int = 2) -> str:
    """`name`, or with a number in brackets, from `start` on, if that name is taken."""
    free, n = name, max(start, 2)
    while free in taken:
        free, n = f"{name} ({n})", n + 1
    return free


def read_label_texts(folder: Path, *, max_unpacked: int | None = None) -> dict[str, str] | None:
    """Descriptions from label_texts.jsonl: objects with `label` and `text`."""
    path = find_beside(folder, "label_texts.jsonl")
    if path is None:
        return None
    texts: dict[str, str] = {}
    for first, lines in read_lines(path, max_unpacked=max_unpacked):
        for line, raw in enumerate(lines, first):
            if not raw:
                continue
            try:
                row = json.loads(raw)
            except (ValueError, RecursionError):
                row = None
            label, text = (row.get("label"), row.get("text")) if isinstance(row, dict) else (None, None)
            if not isinstance(label, str) or not isinstance(text, str):
                message = 'every line holds an object like {"label": "a name", "text": "its description"}'
                raise DataError(message, path=path, line=line)
            texts[label] = text
    return texts


def has_lone_surrogate(text: str) -> bool:
    """Whether `text` cannot be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def distinct(names: Any) -> list[str]:
    """Names that tell labels apart, as a saved model's must."""
    if isinstance(names, Mapping) or not is_collection(names):
        raise DataError(f"the label names are {type_and_value(names)}; give a list of strings")
    found = list(names)
    seen: set[str] = set()
    for name in found:
        check_name(name)
        if name in seen:
            raise DataError(f"the label name {name!r} is given twice; give every label a name of its own")
        seen.add(name)
    return found


def check_name(name: object) -> None:
    """Refuse what cannot be a label's name in a saved model."""
    if not isinstance(name, str):
        kind = type(name).__name__
        shown = type_and_value(name).removeprefix(f"{kind} (").removesuffix(")")
        raise DataError(f"the label {shown} is {kind}, not a string; give names, or a sparse 0/1 matrix")
    if not name or name.isspace():
        raise DataError("a label name is empty; give every label a name of its own")
    if not name.isascii() and has_lone_surrogate(name):
        raise DataError(f"the label name {name!r} holds half of a surrogate pair, which cannot be saved; mend the name")
