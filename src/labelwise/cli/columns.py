"""Options of reading that a model remembers from its training."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from labelwise.cli.settings import option
from labelwise.cli.show import Show
from labelwise.config.settings import shown
from labelwise.data import Format, ReadOptions
from labelwise.data.formats.columns import text_columns
from labelwise.data.load import columns_of
from labelwise.data.options import COLUMNS, Usual
from labelwise.models.base import Model


def as_trained(
    read: ReadOptions,
    model: Model,
    path: Path | None,
    show: Show,
    *,
    split: str = "test",
    format: Format | None = None,  # noqa: A002
    labels: bool = True,
) -> ReadOptions:
    """Options with the columns that the model was trained on, where the user names none and the file has them.

    A file that has the usual columns instead is read by these. `path` is None for standard input.
    """
    known = model.report_.columns
    if known is None:
        return read
    values = {name: value for name, value in asdict(known).items() if value is not None and _is_usual(read, name)}
    values = {name: value for name, value in values.items() if value != getattr(read, name)}
    if not labels:
        values = {name: value for name, value in values.items() if not name.startswith("label")}
    if path is not None and values:
        reading = {name: value for name, value in values.items() if name not in COLUMNS}
        peek = replace(read, **reading, allow_unlabelled=True)
        there = columns_of(path, split, format=format, options=peek)
        if there is None:
            return read
        for name in COLUMNS:
            if name in values and not _belongs(there, name, values[name], getattr(read, name)):
                del values[name]
    told = {name: value for name, value in values.items() if name in COLUMNS}
    if told:
        words = " ".join(f"{option(name)} {shown(value)}" for name, value in told.items())
        show.remark(f"columns are read as in the training of the model: {words}")
    return replace(read, **values)


def _is_usual(read: ReadOptions, name: str) -> bool:
    value: Any = getattr(read, name)
    return value is None or isinstance(value, Usual)


def _belongs(there: list[str], name: str, remembered: str, usual: str) -> bool:
    """Whether a remembered column should be read: it is there, or the usual one is not there either."""
    if name == "id_column":
        return remembered in there
    return text_columns(there, remembered) is not None or text_columns(there, usual) is None
