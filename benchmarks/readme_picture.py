"""Draws the picture of the README: P@1 against the CPU seconds of training, labelwise and other systems, on eurlex57k.

    python benchmarks/readme_picture.py          writes docs/images/accuracy.svg

Every figure is read from the tables of docs/results/linear.md, which say how each was measured; a test compares the
file with what the script draws. The SVG follows the light or dark scheme of its reader and has a background of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results" / "linear.md"
PICTURE = ROOT / "docs" / "images" / "accuracy.svg"

WIDTH, HEIGHT = 1000, 480
LEFT, RIGHT, TOP, BOTTOM = 80, 970, 92, 408
SECONDS, PRECISION = (5.0, 500.0), (89.5, 93.25)
"""What the axes show."""

STYLE = """<style>
  .card { fill: #ffffff; } .ink { fill: #1a202c; } .soft { fill: #5a6675; } .grid { stroke: #dde3ea; }
  .labelwise { fill: #0072b2; stroke: #0072b2; } .pecos { fill: #b35900; stroke: #b35900; }
  .omikuji { fill: #00775a; stroke: #00775a; } .napkinxc { fill: #a6397a; stroke: #a6397a; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #161b22; } .ink { fill: #e6edf3; } .soft { fill: #9aa7b5; } .grid { stroke: #2d3540; }
    .labelwise { fill: #58b4f5; stroke: #58b4f5; } .pecos { fill: #f0a24a; stroke: #f0a24a; }
    .omikuji { fill: #3fcf9f; stroke: #3fcf9f; } .napkinxc { fill: #f08cc4; stroke: #f08cc4; }
  }
  circle { stroke-width: 2.5; } text { stroke: none !important; } .hollow { fill: none !important; }
</style>"""


@dataclass(frozen=True)
class Point:
    """One trained model."""

    system: str
    """The class of its colour."""
    name: str
    seconds: float
    """CPU seconds of training, tf-idf not included."""
    precision: float
    """P@1 in per cent."""
    busy: bool = False
    """Whether the machine had other work, which makes CPU seconds longer."""
    place: str = "right"
    """Where the name stands: right, left, above or below of the point."""


def tables(page: str) -> Iterator[list[list[str]]]:
    """The cells of each table of a page, without the line below the head; an empty cell repeats the one above."""
    for block in re.findall(r"(?:^\|.*\n)+", page.replace("`", ""), re.MULTILINE):
        head, _, *rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in block.splitlines()]
        for above, row in pairwise(rows):
            row[0] = row[0] or above[0]
        yield [head, *rows]


def number(page: str, row: tuple[str, ...], column: str) -> float:
    """The first number of the first row that begins with these cells, in a table with that column (a pattern)."""
    for head, *rows in tables(page):
        places = [place for place, name in enumerate(head) if re.fullmatch(column, name)]
        for cells in rows:
            if places and tuple(cells[: len(row)]) == row:
                return float(cells[places[0]].split()[0])
    raise SystemExit(f"{RESULTS} has no table with a row {' | '.join(row)} and a column {column}")


SECONDS_COLUMN, PRECISION_COLUMN = r"train(ing)?,? CPU s", r"P@1 P@3 P@5"


def points(page: str) -> list[Point]:
    """All points of the picture."""

    def measured(system: str, name: str, *row: str, busy: bool = False, place: str = "right") -> Point:
        seconds, precision = (number(page, row, column) for column in (SECONDS_COLUMN, PRECISION_COLUMN))
        return Point(system, name, seconds, precision, busy, place)

    def with_matcher_negatives(system: str, name: str, column: str, place: str = "right") -> Point:
        seconds, precision = (number(page, ("eurlex57k",), pattern) for pattern in (rf"{column} TFN\+MAN", column))
        return Point(system, name, seconds, precision, place=place)

    return [
        measured("labelwise", "default", "eurlex57k", "labelwise"),
        with_matcher_negatives("labelwise", "tfn+man", "labelwise"),
        measured("labelwise", "parabel, 3 trees", "parabel (3 trees)", busy=True, place="above"),
        measured("labelwise", "dismec", "dismec", busy=True),
        measured("pecos", "PECOS XR-Linear", "eurlex57k", "PECOS", place="below"),
        with_matcher_negatives("pecos", "PECOS, TFN+MAN", "PECOS", place="above"),
        measured("napkinxc", "napkinXC PLT", "eurlex57k", "napkinXC PLT, l2"),
        measured("omikuji", "omikuji, 1 tree", "eurlex57k", "omikuji, 1 tree", place="left"),
        measured("omikuji", "omikuji, 3 trees", "omikuji 0.5.2, 3 trees", busy=True),
    ]


def across(seconds: float) -> float:
    """The place on the logarithmic axis."""
    low, high = (math.log(value) for value in SECONDS)
    return LEFT + (RIGHT - LEFT) * (math.log(seconds) - low) / (high - low)


def up(precision: float) -> float:
    """The place on the vertical axis."""
    low, high = PRECISION
    return BOTTOM - (BOTTOM - TOP) * (precision - low) / (high - low)


def text(x: float, y: float, words: str, style: str = "ink", *, anchor: str = "middle", size: int = 15) -> str:
    """A line of words."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}" font-size="{size}">{words}</text>'


def axes() -> Iterator[str]:
    """Lines with their numbers, and what they count."""
    for seconds in (5, 10, 20, 50, 100, 200, 500):
        x = across(seconds)
        yield f'<path d="M{x:.1f} {TOP} V{BOTTOM}" class="grid"/>'
        yield text(x, BOTTOM + 22, f"{seconds}", "soft")
    for percent in (90, 91, 92, 93):
        y = up(percent)
        yield f'<path d="M{LEFT} {y:.1f} H{RIGHT}" class="grid"/>'
        yield text(LEFT - 10, y + 5, f"{percent} %", "soft", anchor="end")
    yield text((LEFT + RIGHT) / 2, BOTTOM + 50, "CPU seconds of training, logarithmic; fewer are better", "soft")


def mark(point: Point) -> Iterator[str]:
    """A dot and its name."""
    x, y, own = across(point.seconds), up(point.precision), point.system == "labelwise"
    kind = f"{point.system} hollow" if point.busy else point.system
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{7 if own else 5.5}" class="{kind}"/>'
    dx, dy, anchor = {
        "right": (14, 5, "start"),
        "left": (-14, 5, "end"),
        "above": (0, -15, "middle"),
        "below": (0, 25, "middle"),
    }[point.place]
    words = f"<tspan font-weight='700'>labelwise {point.name}</tspan>" if own else point.name
    yield text(x + dx, y + dy, words, point.system, anchor=anchor)


def draw(page: str) -> str:
    """The SVG file."""
    about = "P@1 against CPU seconds of training on eurlex57k: labelwise, PECOS, napkinXC and omikuji"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{about}" '
        'font-family="Helvetica, Arial, sans-serif">'
    )
    titles = [
        text(LEFT, 36, "<tspan font-weight='700'>Correct first suggestions (P@1) and time of training</tspan>",
             anchor="start", size=19),
        text(LEFT, 62, "eurlex57k: 45,000 EU laws, 4,271 labels; the same tf-idf for all, 2 threads, no GPU", "soft",
             anchor="start"),
        text(RIGHT, 36, "hollow: measured on a busy machine", "soft", anchor="end"),
    ]  # fmt: skip
    dots = [line for point in points(page) for line in mark(point)]
    card = '<rect width="100%" height="100%" rx="14" class="card"/>'
    return "\n".join([head, STYLE, card, *titles, *axes(), *dots, "</svg>\n"])


if __name__ == "__main__":
    PICTURE.write_text(draw(RESULTS.read_text(encoding="utf-8")), encoding="utf-8")
    print(PICTURE)
