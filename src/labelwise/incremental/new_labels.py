"""Labels to add, each with a name and optionally a text and examples: from Python or from a file of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelwise.data.files import read_lines
from labelwise.data.label_names import distinct
from labelwise.errors import DataError, UsageError
from labelwise.features.texts import is_collection
from labelwise.storage.paths import checked_path

KEYS = ("label", "text", "examples")


@dataclass(frozen=True)
class NewLabel:
    """A label to add to a model.

    Examples
    --------
    >>> from labelwise import LinearTree, NewLabel, add_labels
    >>> texts = ["red running shoe", "blue running shoe", "red coffee mug", "blue coffee mug"]
    >>> labels = [["shoe", "red"], ["shoe", "blue"], ["mug", "red"], ["mug", "blue"]]
    >>> model = LinearTree().fit(texts, labels)
    >>> grown = add_labels(model, [NewLabel("sport", text="running")])
    >>> [name for name, score in grown.predict(["running"], top_k=2)[0]]
    ['sport', 'shoe']
    """

    label: str
    """Its name."""
    text: str | None = None
    """Its meaning in words; its name if not given."""
    examples: Sequence[str] = ()
    """Texts of documents that have the label."""


def read_new_labels(path: Path | str) -> list[NewLabel]:
    """Labels from a file with a JSON object on each line: label, and optionally text and examples."""
    path = checked_path(path)
    found: list[NewLabel] = []
    lines: dict[str, int] = {}
    numbered = (
        (first + at, line)
        for first, block in read_lines(path)
        for at, line in enumerate(block)
        if line and line.strip()
    )
    for number, line in numbered:
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as err:
            raise DataError(f"this is not JSON ({err}); give one object on each line", path=path, line=number) from err
        try:
            new = _checked(values)
        except DataError as err:
            raise DataError(str(err), path=path, line=number) from err
        if new.label in lines:
            raise DataError(
                f"the label {new.label!r} is on line {lines[new.label]} already; give all its examples on one line",
                path=path,
                line=number,
            )
        lines[new.label] = number
        found.append(new)
    if not found:
        raise DataError('the file has no labels; give lines such as {"label": "cycling"}', path=path)
    return found


def new_labels(given: Iterable[Any], known: Sequence[str]) -> list[NewLabel]:
    """The labels that a caller gives, checked: names, dictionaries as in a file, or `NewLabel` objects."""
    if not is_collection(given):
        raise UsageError("give a list of labels: names, NewLabel objects, or dictionaries such as those of a file")
    found = [_checked({"label": one} if isinstance(one, str) else one) for one in given]
    if not found:
        raise UsageError("there is no label to add; give at least one")
    distinct([one.label for one in found])
    there = set(known)
    for one in found:
        if one.label in there:
            raise UsageError(
                f"the model has the label {one.label!r} already; leave it out, or give it further documents by update"
            )
    return found


def _checked(values: Any) -> NewLabel:
    if isinstance(values, NewLabel):
        values = {"label": values.label, "text": values.text, "examples": values.examples}
    if not isinstance(values, dict):
        raise DataError(f"this is {type(values).__name__}, not an object; give {{…}} with label, text and examples")
    unknown = sorted(map(str, values.keys() - set(KEYS)))
    if unknown:
        raise DataError(f"there is no field {unknown[0]!r} of a label; there are: {', '.join(KEYS)}")
    if "label" not in values:
        raise DataError("the label has no name; give it as label")
    text, examples = values.get("text"), values.get("examples")
    if text is not None and not isinstance(text, str):
        raise DataError(f"the text of {values['label']!r} is {type(text).__name__}, not a string")
    examples = () if examples is None else examples
    if isinstance(examples, dict) or not is_collection(examples):
        raise DataError(f"the examples of {values['label']!r} are {type(examples).__name__}; give a list of texts")
    examples = tuple(examples)
    for example in examples:
        if not isinstance(example, str):
            raise DataError(f"an example of {values['label']!r} is {type(example).__name__}; give texts")
    (name,) = distinct([values["label"]])
    return NewLabel(name, text or None, examples)
