"""The help of a command: its options in groups, wrapped to the width of the terminal."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator
from itertools import groupby
from textwrap import wrap

from labelwise.cli.command import Command
from labelwise.cli.options import Option, options_of

INDENT = 24
WIDEST = 100


def help_of(name: str, command: type[Command]) -> str:
    """What ``labelwise COMMAND --help`` prints."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    return "".join(f"{line}\n" for line in _lines(name, command, max(width, 2 * INDENT)))


def usage_of(name: str, command: type[Command]) -> str:
    """The line that says how to call a command: ``labelwise train [OPTIONS] DATA MODEL``."""
    options = options_of(command)
    positional = [
        one.flag + (" …" if one.several else "") if one.required else f"[{one.flag}{' …' if one.several else ''}]"
        for one in options
        if one.is_positional
    ]
    needed = [one.usage for one in options if one.required and not one.is_positional]
    return " ".join(["labelwise", name, *needed, "[OPTIONS]", *positional])


def _lines(name: str, command: type[Command], width: int) -> Iterator[str]:
    yield from wrap(f"usage: {usage_of(name, command)}", width, subsequent_indent="  ")
    for paragraph in (inspect.getdoc(command) or "").split("\n\n"):
        yield ""
        if paragraph.startswith("Try it: "):  # a command is typed on one line
            yield from paragraph.splitlines()
        else:
            yield from wrap(paragraph, width)
    for group, options in groupby(options_of(command), key=lambda one: one.group):
        yield from ("", f"{group or 'arguments'}:")
        for option in options:
            yield from _described(option, width)
    yield from ("", "help:", "  -h, --help            Show this help.")


def _described(option: Option, width: int) -> Iterator[str]:
    head = f"  {option.usage}"
    note = option.note or ("(required)" if option.required and not option.is_positional else "")
    lines = wrap(f"{option.about} {note}", width - INDENT, break_on_hyphens=False)
    if len(head) < INDENT - 1 and lines:
        yield f"{head:<{INDENT}}{lines.pop(0)}"
    else:
        yield head
    for line in lines:
        yield " " * INDENT + line
