"""Small charts as SVG, drawn without a library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from labelwise.report.html import Html, tag

Point: TypeAlias = tuple[float, float]

WIDTH, HEIGHT = 440, 270
LEFT, RIGHT, TOP, BOTTOM = 54, 22, 12, 42
TICKS = 5


@dataclass(frozen=True)
class Scale:
    """An axis: its range, its name, and whether it is logarithmic or in percent."""

    low: float
    high: float
    name: str
    log: bool = False
    percent: bool = False

    @classmethod
    def around(cls, values: Sequence[float], name: str, *, from_zero: bool = False, percent: bool = False) -> Scale:
        """A linear scale that contains the values, with round ends."""
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        low = min(low, 0.0) if from_zero else low
        if high <= low:
            high = low + (abs(low) or 1.0)
        step = _step(high - low)
        return cls(math.floor(low / step) * step, math.ceil(high / step) * step, name, percent=percent)

    def share(self, value: float) -> float:
        """The position of a value between the ends, from 0 to 1."""
        if self.log:
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values between the ends."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            return [10.0**power for power in range(first, last + 1)]
        step = _step(self.high - self.low)
        first = math.ceil(self.low / step - 1e-9)
        return [n * step for n in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def tick_label(self, value: float) -> str:
        """The text of a tick."""
        if self.percent:
            return f"{100 * value:.0f} %"
        if self.log or abs(value) >= 1000:
            return f"{value:,.0f}"
        return f"{value:.4g}" if abs(value) >= 1e-3 or not value else f"{value:.0e}".replace("e-0", "e-")


def _step(span: float) -> float:
    """A round distance between ticks: 1, 2 or 5 times a power of ten."""
    rough = span / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= rough * 0.999)


class Chart:
    """Axes with lines, points and bars. Colours come from the style of the page."""

    def __init__(self, x: Scale, y: Scale, *, height: int = HEIGHT) -> None:
        self.x, self.y, self.height = x, y, height
        self._parts: list[Html] = []

    def place(self, point: Point) -> Point:
        """The coordinates of a data point in the picture."""
        across = LEFT + self.x.share(point[0]) * (WIDTH - LEFT - RIGHT)
        down = self.height - BOTTOM - self.y.share(point[1]) * (self.height - TOP - BOTTOM)
        return round(across, 1), round(down, 1)

    def line(self, points: Sequence[Point], kind: str, *, floor: float | None = None, steps: bool = False) -> None:
        """Draw a line through the points, filled down to `floor` if given, as steps if `steps` is true."""
        if not points:
            return
        placed = [self.place(point) for point in points]
        if steps:
            placed = [at for a, b in pairwise(placed) for at in (a, (b[0], a[1]))] + placed[-1:]
        path = "M" + "L".join(f"{a:g} {b:g}" for a, b in placed)
        if floor is not None:
            bottom = self.place((points[0][0], floor))[1]
            area = f"{path}L{placed[-1][0]:g} {bottom:g}L{placed[0][0]:g} {bottom:g}Z"
            self._parts.append(tag("path", d=area, class_=f"area {kind}"))
        self._parts.append(tag("path", d=path, class_=f"line {kind}"))

    def points(self, points: Sequence[Point], kind: str, tooltips: Sequence[str]) -> None:
        """Draw marks with tooltips."""
        for point, words in zip(points, tooltips, strict=True):
            across, down = self.place(point)
            self._parts.append(tag("circle", tag("title", words), cx=across, cy=down, r=3.6, class_=f"mark {kind}"))

    def upright(self, x: float, low: float, high: float, kind: str, tooltip: str | None = None) -> None:
        """Draw a vertical line: an interval, or a position on the x axis."""
        (across, bottom), (_, top) = self.place((x, low)), self.place((x, high))
        words = tag("title", tooltip) if tooltip else None
        self._parts.append(tag("line", words, x1=across, x2=across, y1=bottom, y2=top, class_=f"line {kind}"))

    def bar(self, left: float, right: float, high: float, kind: str, tooltip: str) -> None:
        """Draw a bar from the x axis to `high`."""
        (a, top), (b, bottom) = self.place((left, high)), self.place((right, self.y.low))
        box = {"x": a, "y": top, "width": round(max(b - a - 1, 1), 1), "height": round(max(bottom - top, 0), 1)}
        self._parts.append(tag("rect", tag("title", tooltip), class_=f"bar {kind}", **box))

    def render(self, description: str) -> Html:
        """The chart as SVG; `description` is its text for screen readers."""
        bottom, axes = self.height - BOTTOM, []
        for value in self.x.ticks():
            across = self.place((value, self.y.low))[0]
            axes.append(tag("line", x1=across, x2=across, y1=TOP, y2=bottom, class_="grid"))
            label = self.x.tick_label(value)
            axes.append(tag("text", label, x=across, y=bottom + 16, text_anchor="middle", class_="tick"))
        for value in self.y.ticks():
            down = self.place((self.x.low, value))[1]
            axes.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=down, y2=down, class_="grid"))
            label = self.y.tick_label(value)
            axes.append(tag("text", label, x=LEFT - 6, y=down + 4, text_anchor="end", class_="tick"))
        middle = (LEFT + WIDTH - RIGHT) / 2
        axes.append(tag("text", self.x.name, x=middle, y=self.height - 8, text_anchor="middle", class_="axis"))
        x, centre = 13, (TOP + bottom) / 2
        rotation = f"rotate(-90 {x} {centre:g})"
        axes.append(tag("text", self.y.name, x=x, y=centre, transform=rotation, text_anchor="middle", class_="axis"))
        view = f"0 0 {WIDTH} {self.height}"
        return tag("svg", *axes, *self._parts, viewBox=view, role="img", aria_label=description, class_="chart")


def figure(picture: Html, caption: str) -> Html:
    """A picture with its caption."""
    return tag("figure", picture, tag("figcaption", caption))
