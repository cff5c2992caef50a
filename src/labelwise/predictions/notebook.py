"""Small tables in HTML, as notebooks show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

LONGEST = 120
"""Characters of a cell, at most."""


def html_table(head: Sequence[object], rows: Iterable[Sequence[object]], caption: str) -> str:
    """A table in HTML; what is in the cells is shown as it is written, never as HTML."""
    lines = [f"<thead>{_row(head, 'th')}</thead>", "<tbody>", *(_row(row, "td") for row in rows), "</tbody>"]
    return f"<table><caption>{escape(caption)}</caption>{''.join(lines)}</table>"


def _row(cells: Sequence[object], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(_short(str(cell)))}</{tag}>' for cell in cells)}</tr>"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
