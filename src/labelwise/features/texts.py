"""Texts that callers pass in: a list of strings, or one sentence on what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from labelwise.config.settings import one_line
from labelwise.errors import DataError, UsageError

_LONGEST = 40
"""Characters of a wrong value that an error shows."""


def text_list(texts: Any) -> list[str]:
    """Texts as a list; anything in it that is not a string is refused, with its number."""
    check_list(texts)
    found = list(texts)
    check_all_texts(found)
    return found


def check_all_texts(texts: Sequence[object]) -> None:
    """Refuse texts that are not strings, with the number of the first."""
    if not set(map(type, texts)) <= {str}:  # subclasses of str are texts too
        for number, text in enumerate(texts):
            check_text(text, number)


def is_collection(value: object) -> bool:
    """Whether a value has items that are no letters: a list, an array, a generator."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes) and getattr(value, "ndim", 1) != 0


def listed(value: Any, name: str) -> list[Any]:
    """A collection as a list; a single value is refused, and one string above all."""
    if not is_collection(value):
        raise DataError(f"{name} is {type_and_value(value)}; give a list of strings")
    found: list[Any] = list(value)
    return found


def check_list(texts: Any) -> None:
    """Refuse what is no collection of texts: one string above all, whose letters would each be a text."""
    if isinstance(texts, str):
        raise UsageError("expected a list of texts, got one string; write [text] for a single one")
    if not is_collection(texts):
        raise DataError(f"the documents are {type_and_value(texts)}; give a list of strings, one for each document")


def check_text(text: object, number: int) -> None:
    """Refuse a text that is not a string."""
    if not isinstance(text, str):
        raise DataError(
            f"text number {number} (counted from 0) is {type_and_value(text)}, not a string; "
            "leave such rows out or convert them first"
        )


def type_and_value(value: object) -> str:
    """The type of a value, with the value itself where it is short."""
    text = one_line(value)
    if text is None:
        return type(value).__name__
    return f"{type(value).__name__} ({text if len(text) <= _LONGEST else text[: _LONGEST - 3] + '...'})"
