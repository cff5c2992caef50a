"""The fenced blocks of a page, in order.

Blocks of `python`, `sh` and `console` are run. In a `console` block, the lines after a `$ command` are its output. A
`text` block right after a `python` block is the output of that block. A block with a `title="NAME"` becomes a file of
that name. Four comments control the blocks:

    <!-- setup:python          a block that readers do not see (also setup:sh)
    ...
    -->
    <!-- slow -->              the next block is only run with -m slow
    <!-- times -->             the next block prints times and sizes, which differ from machine to machine
    <!-- not run: reason -->   the next block is never run

The comment <!-- needs annif -->, anywhere on a page, says that the page is only run if a module is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent

RUN = {"python", "sh", "console"}
SHOWN = {"", "text", "csv", "tsv", "toml", "json", "pycon", "http"}
FENCE = re.compile(r"( *)```(\w*) *(.*)")


@dataclass(frozen=True)
class Block:
    """One block, and how it is run."""

    kind: str
    text: str
    line: int
    """The line of the page where the text begins."""
    output: str | None = None
    """Its output, if the page shows the output."""
    title: str | None = None
    hidden: bool = False
    slow: bool = False
    times: bool = False
    not_run: str | None = None
    """The reason why it is not run."""


def read_blocks(page: Path) -> list[Block]:
    """The blocks of a page; ValueError for a block that is neither run nor known not to be."""
    found: list[Block] = []
    for block in _parse(page.read_text(encoding="utf-8").splitlines()):
        if block.kind not in RUN | SHOWN:
            raise ValueError(f"{page.name}:{block.line}: a block of {block.kind!r}; there are {sorted(RUN | SHOWN)}")
        if block.kind == "text" and found and found[-1].kind == "python" and block.line - _end(found[-1]) <= 3:
            found[-1] = replace(found[-1], output=block.text)
        found.append(block)
    return found


def needed_modules(page: Path) -> list[str]:
    """The modules that a page's code needs."""
    return re.findall(r"<!-- needs (\w+) -->", page.read_text(encoding="utf-8"))


def _end(block: Block) -> int:
    return block.line + block.text.count("\n")


def _parse(lines: list[str]) -> Iterator[Block]:
    marks: dict[str, bool | str] = {}
    rest = iter(enumerate(lines, 1))
    for number, line in rest:
        if hidden := re.fullmatch(r" *<!-- setup:(python|sh)", line):
            yield Block(hidden[1], _until(rest, "-->"), number + 1, hidden=True)
        elif mark := re.fullmatch(r" *<!-- (slow|times) -->", line):
            marks[mark[1]] = True
        elif reason := re.fullmatch(r" *<!-- not run: (.+) -->", line):
            marks["not_run"] = reason[1]
        elif fence := FENCE.fullmatch(line):
            title = re.search(r'title="([^"]+)"', fence[3])
            text = _until(rest, "```")
            yield Block(fence[2], text, number + 1, title=title and title[1], **marks)
            marks = {}


def _until(rest: Iterator[tuple[int, str]], end: str) -> str:
    taken = []
    for _, line in rest:
        if line.strip() == end:
            return dedent("".join(f"{one}\n" for one in taken))
        taken.append(line)
    raise ValueError(f"a block that does not end with {end}")
