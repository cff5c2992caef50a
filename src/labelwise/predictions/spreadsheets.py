"""Predictions that a spreadsheet shows as text: a label may begin like a formula, and formulas can start programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from labelwise.predictions.result import Predictions

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What spreadsheets compute when a cell begins with it; they ignore white space before it."""


def safe_for_spreadsheets(predictions: Predictions) -> Predictions:
    """The same predictions with an apostrophe before labels and ids that begin like a formula."""
    ids = None if predictions.ids is None else _texts(predictions.ids)
    return replace(predictions, labels=_texts(predictions.labels), ids=ids)


def _texts(names: Sequence[str]) -> list[str]:
    return [f"'{name}" if name.startswith(FORMULA_STARTS) or _begins_late(name) else name for name in names]


def _begins_late(name: str) -> bool:
    return name[:1].isspace() and name.lstrip().startswith(FORMULA_STARTS)
