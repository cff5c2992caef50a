"""Two extensions of Markdown for the site.

The comment <!-- commands --> is replaced by the help of each command, with the shared options once, at the end. Links
to files of the repository that are not pages become plain words, since the site may be used without the repository.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from textwrap import fill
from typing import Any
from xml.etree.ElementTree import Element

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor

from labelwise.cli import COMMANDS, main

HERE = "<!-- commands -->"
SHARED = re.compile(r"(?m)^ read options\n -+\n(?:.+\n)+")
NOTE = "Also takes the [options for reading data](#reading-data)."
WIDTH = "88"
OUTSIDE = re.compile(
    r"(\.\./)+(README|CHANGELOG|CITATION|CONTRIBUTING|LICENSE|SECURITY|benchmarks|examples|src|tests|tools)\b"
)


def helps() -> dict[str, str]:
    """The help of each command, from another process: threads make the pages, and `main` must not run in threads."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def commands() -> Iterator[str]:
    """The lines of all commands, as Markdown."""
    shared = ""
    for name, text in helps().items():
        found = SHARED.search(text)
        shared = found[0] if found else shared
        yield from (f"## {name}", "", COMMANDS[name][1], *(("", NOTE) if found else ()), "")
        yield from ("```text", *SHARED.sub("", text).strip().splitlines(), "```", "")
    yield from ("## Reading data", "", "```text", *shared.strip().splitlines(), "```", "")


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


class PagesExtension(Extension):
    """For Python-Markdown."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  # a name of Python-Markdown
        """Register both: before fences are parsed, and after links are made."""
        md.preprocessors.register(Commands(md), "commands", 28)
        md.treeprocessors.register(Outside(md), "outside", 15)


def makeExtension(**options: Any) -> PagesExtension:  # noqa: N802  # a name of Python-Markdown
    """The function that Python-Markdown calls."""
    return PagesExtension(**options)


def printed(*arguments: str) -> str:
    """The output of the command line."""
    out = io.StringIO()
    with redirect_stdout(out), suppress(SystemExit):
        main(arguments)
    wrapped = (fill(line, int(WIDTH)) if line[:1].strip() else line.rstrip() for line in out.getvalue().splitlines())
    return "".join(f"{line}\n" for line in wrapped)


if __name__ == "__main__":
    os.environ["COLUMNS"] = WIDTH
    sys.stdout.write(json.dumps({name: printed(name, "--help") for name in COMMANDS}))
