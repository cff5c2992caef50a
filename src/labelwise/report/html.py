"""HTML that user data cannot break: every string is escaped unless it is `Html`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, TypeAlias

EMPTY = ("br", "img", "meta", "input", "col", "hr")
"""Elements without content."""


class Html(str):
    """A string of HTML, which is not escaped again."""


Child: TypeAlias = str | int | float | None


def text(value: Child) -> Html:
    """A value as HTML; an empty string for None."""
    if isinstance(value, Html):
        return value
    return Html("" if value is None else escape(str(value), quote=True))


def join(*children: Child, between: str = "") -> Html:
    """The children as HTML, one after another."""
    return Html(text(between).join(text(child) for child in children))


def tag(name: str, /, *children: Child, **attributes: Child) -> Html:
    """An element. Attributes that are None are left out; `class_` is class, and `data_x` is data-x."""
    parts = [
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    ]
    opened = f"<{name}{''.join(parts)}>"
    return Html(opened if name in EMPTY else f"{opened}{join(*children)}</{name}>")


def paragraph(sentence: Child, *, kind: str | None = None) -> Html:
    """A paragraph; `kind` is "note" for small print, "absent" for the reason why something is missing."""
    return tag("p", sentence, class_=kind)


def table(
    head: Sequence[str], rows: Iterable[Sequence[Child]], *, numbers: Iterable[int] = (), caption: str | None = None
) -> Html:
    """A table in a box that scrolls sideways on narrow screens; the columns `numbers` are aligned to the right."""
    right = set(numbers)

    def cells(kind: str, row: Sequence[Child]) -> Html:
        return join(*(tag(kind, cell, class_="number" if i in right else None) for i, cell in enumerate(row)))

    body = tag("tbody", *(tag("tr", cells("td", row)) for row in rows))
    top = tag("thead", tag("tr", cells("th", head))) if any(head) else Html()
    title = tag("caption", caption) if caption else Html()
    return tag("div", tag("table", title, top, body), class_="wide", tabindex="0")


def facts(rows: Iterable[tuple[str, Child]]) -> Html:
    """A list of names and values."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in rows), class_="facts")


def section(name: str, title: str, *children: Child) -> Html:
    """A section of the page with its heading; `name` is the target of links."""
    return tag("section", tag("h2", title), *children, id=name)


def json_script(name: str, value: Any) -> Html:
    """A value as JSON for the program of the page. No string in it can end the script element."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        plain = plain.replace(letter, f"\\u{ord(letter):04x}")
    return Html(f'<script type="application/json" id="{escape(name)}">{plain}</script>')


def short(words: str, max_length: int) -> str:
    """A text on one line of at most `max_length` characters; longer texts are cut, at a space if one is near."""
    words = " ".join(words.split())
    if len(words) <= max_length:
        return words
    cut = words[: max_length - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > 0.7 * max_length else cut) + "…"
