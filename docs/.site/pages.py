"""Three extensions of Markdown for the site.

The comment <!-- commands --> is replaced by tables of each command's options, with the shared options once, at the end.
Links to files of the repository that are not pages become plain words, since the site may be used without the
repository. Long tables of figures are folded.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor

from labelwise.cli import COMMANDS, command_class
from labelwise.cli.help import usage_of
from labelwise.cli.options import OTHERS, Option, options_of

HERE = "<!-- commands -->"
SHARED = "reading data"
NOTE = "Also takes the [options for reading data](#reading-data)."
MAX_ROWS = 8
OUTSIDE = re.compile(
    r"(\.\./)+(README|CHANGELOG|CITATION|CONTRIBUTING|LICENSE|SECURITY|benchmarks|examples|src|tests|tools)\b"
)


def commands() -> Iterator[str]:
    """The lines of all commands, as Markdown."""
    shared: list[Option] = []
    for name, (_, about) in COMMANDS.items():
        command = command_class(name)
        options = options_of(command)
        shared = [one for one in options if one.group == SHARED] or shared
        yield from (f"## {name}", "", about, "", "```sh", usage_of(name, command), "```", "")
        prose, _, example = (inspect.getdoc(command) or "").partition("Try it: ")
        more = prose.strip().partition("\n\n")[2]  # below the first paragraph, which `about` replaces
        yield from (*more.splitlines(), "", "For example:", "", "```sh", *shell_lines(example), "```", "")
        for group, members in groupby(options, key=lambda one: one.group):
            if group != SHARED:
                yield from table(group, list(members))
        if any(one.group == SHARED for one in options):
            yield from (NOTE, "")
    yield from ("## Reading data", "", *table("", shared))


def shell_lines(example: str) -> Iterator[str]:
    """The commands of an example: "this, then", with another in the next line, are two."""
    yield from (line.removesuffix(", then") for line in example.strip().splitlines())


def table(group: str, options: list[Option]) -> Iterator[str]:
    """The options of a group as a table."""
    head = (group or "arguments").capitalize() if group != OTHERS else "Further options"
    notes = [one.note.strip("()").removeprefix("default: ") or ("required" if one.required else "") for one in options]
    last = "<th>Default</th>" if any(notes) else ""
    yield f"<table><thead><tr><th>{escape(head)}</th><th>Meaning</th>{last}</tr></thead><tbody>"
    for one, note in zip(options, notes, strict=True):
        metavar = one.metavar if one.takes_value and not one.is_positional else ""
        value = f" {escape(metavar)}".replace("|", "<wbr>|").rstrip()
        yield (
            f"<tr><td><code>{escape(one.flag).replace('|', '<wbr>|')}</code>{value}</td>"
            f"<td>{escape(one.about)}</td>{f'<td>{escape(note)}</td>' if last else ''}</tr>"
        )
    yield from ("</tbody></table>", "")


class Commands(Preprocessor):
    """Replaces the comment by the commands."""

    def run(self, lines: list[str]) -> list[str]:
        """The page with its commands."""
        return [new for line in lines for new in (commands() if line.strip() == HERE else (line,))]


class Outside(Treeprocessor):
    """Removes links to files that are not pages."""

    def run(self, root: Element) -> None:
        """Remove them in place."""
        for link in root.iter("a"):
            if OUTSIDE.match(link.get("href", "")):
                link.tag = "span"
                link.attrib.pop("href")


class Folded(Treeprocessor):
    """Folds tables with many rows of figures: a results page can be looked over, and a table is a click away."""

    def run(self, root: Element) -> None:
        """Put each such table into an element that opens."""
        for parent in list(root.iter()):
            for place, one in enumerate(list(parent)):
                rows = one.findall("tbody/tr") if one.tag == "table" else []
                if len(rows) <= MAX_ROWS or not figures(one):
                    continue
                heads = ["".join(cell.itertext()).strip() for cell in one.findall("thead/tr/th")]
                details = Element("details")
                summary = SubElement(details, "summary")
                summary.text = f"Table of {len(rows)} rows: {', '.join(filter(None, heads))}"
                details.append(one)
                details.tail, one.tail = one.tail, None
                parent[place] = details


def figures(found: Element) -> bool:
    """Whether most cells of a table begin with a figure."""
    cells = ["".join(cell.itertext()) for cell in found.iter("td")]
    return sum(bool(re.match(r"[+−±-]?\d", cell)) for cell in cells) > len(cells) / 2


class PagesExtension(Extension):
    """For Python-Markdown."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  # a name of Python-Markdown
        """Register them: before fences are parsed, and after links are made."""
        md.preprocessors.register(Commands(md), "commands", 28)
        md.treeprocessors.register(Outside(md), "outside", 15)
        md.treeprocessors.register(Folded(md), "folded", 14)


def makeExtension(**options: Any) -> PagesExtension:  # noqa: N802  # a name of Python-Markdown
    """The function that Python-Markdown calls."""
    return PagesExtension(**options)
