"""Plots of a comparison: accuracy against training time, and accuracy by label frequency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labelwise.errors import UsageError, need
from labelwise.storage import atomic_file

# Okabe and Ito's colours, which people with any kind of colour vision can distinguish, and a marker for each.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000", "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK, FAINT = "#222222", "#707070"


@dataclass(frozen=True)
class PlotPoint:
    """A metric of a system, with its interval if there is one."""

    value: float
    low: float | None = None
    high: float | None = None


def plot_time(
    points: Mapping[str, tuple[float | None, PlotPoint]], path: Path | str, *, metric: str, title: str
) -> Path:
    """Plot accuracy against seconds of training.

    Parameters
    ----------
    points
        Seconds of training and accuracy of each system. Where the seconds are None, a horizontal line is drawn.
    path
        File to write: .png or .svg.
    metric
        Name of the accuracy, such as "P@5".
    title
        Name of the data.
    """
    path = _checked(path, points)
    figure, axes = _figure((7.2, 4.6))
    timed = {name: (seconds, point) for name, (seconds, point) in points.items() if seconds is not None}
    names: dict[str, tuple[float, float]] = {}
    for number, (name, (seconds, point)) in enumerate(points.items()):
        colour = COLOURS[number % len(COLOURS)]
        if seconds is None:
            axes.axhline(point.value, color=colour, linewidth=1.2, linestyle=(0, (4, 3)))
            corner = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "ha": "right"}
            axes.annotate(name, (1.0, point.value), xytext=(-2, 3), fontsize=9.5, color=colour, **corner)
            continue
        marker = MARKERS[number % len(MARKERS)]
        axes.errorbar(
            [max(seconds, 1e-3)], [point.value], yerr=_bars([point]), fmt=marker, color=colour, markersize=8, capsize=3
        )
        names[name] = (max(seconds, 1e-3), point.value)
    if timed:
        axes.set_xscale("log")
        ends = [max(seconds, 1e-3) for seconds, _ in timed.values()]
        axes.set_xlim(min(ends) / 1.6, max(ends) * 4)  # room for the names on the right
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.set_xlabel("training, seconds (log scale)", fontsize=10.5, color=INK)
    axes.set_ylabel(f"{metric}, %", fontsize=10.5, color=INK)
    _write_names(figure, axes, names)
    return _finish(figure, axes, path, title)


def _write_names(figure: Any, axes: Any, names: Mapping[str, tuple[float, float]]) -> None:
    """Write a name next to each point: on the right, or at another place that hides no other name and no point."""
    offsets = (
        (9, 4, "left"),
        (-9, 4, "right"),
        (9, -12, "left"),
        (-9, -12, "right"),
        (9, 18, "left"),
        (-9, 18, "right"),
    )
    figure.canvas.draw()  # sizes of texts are known only after this
    boxes: list[Any] = []
    points = [axes.transData.transform(place) for place in names.values()]
    for name, place in names.items():
        best: tuple[int, Any, Any] | None = None
        for x, y, side in offsets:
            text = axes.annotate(
                name, place, xytext=(x, y), textcoords="offset points", ha=side, fontsize=10, color=INK
            )
            box = text.get_window_extent().expanded(1.05, 1.1)
            hidden = sum(box.overlaps(other) for other in boxes) + sum(bool(box.contains(*point)) for point in points)
            text.remove()
            if best is None or hidden < best[0]:
                best = (hidden, (x, y, side), box)
        assert best is not None
        x, y, side = best[1]
        axes.annotate(name, place, xytext=(x, y), textcoords="offset points", ha=side, fontsize=10, color=INK)
        boxes.append(best[2])


def plot_frequency(
    points: Mapping[str, Sequence[PlotPoint]], buckets: Sequence[str], path: Path | str, *, metric: str, title: str
) -> Path:
    """Plot accuracy by label frequency, a group of bars for each bucket.

    Parameters
    ----------
    points
        The metric of each system in each bucket.
    buckets
        Text below each group.
    """
    path = _checked(path, points)
    figure, axes = _figure((max(7.2, 1.2 + 0.55 * len(points) * len(buckets)), 4.6))
    width = 0.8 / len(points)
    for number, (name, row) in enumerate(points.items()):
        place = [group + (number - (len(points) - 1) / 2) * width for group in range(len(buckets))]
        colour = COLOURS[number % len(COLOURS)]
        hatch = None if number < len(COLOURS) else "//"
        values = [point.value for point in row]
        axes.bar(place, values, width * 0.92, color=colour, label=name, hatch=hatch, edgecolor="white", linewidth=0.5)
        axes.errorbar(place, values, yerr=_bars(row), fmt="none", ecolor=INK, elinewidth=0.9, capsize=2)
    axes.set_xticks(range(len(buckets)), buckets)
    axes.set_ylabel(f"{metric} of these labels, %", fontsize=10.5, color=INK)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=9.5, labelcolor=INK)
    return _finish(figure, axes, path, title)


def _bars(points: Sequence[PlotPoint]) -> list[list[float]]:
    """Lengths of the error bars below and above."""
    low = [0.0 if point.low is None else max(point.value - point.low, 0.0) for point in points]
    high = [0.0 if point.high is None else max(point.high - point.value, 0.0) for point in points]
    return [low, high]


def _checked(path: Path | str, points: Mapping[str, Any]) -> Path:
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg"):
        raise UsageError(f"cannot draw a {path.suffix or 'file without suffix'}; name it .png or .svg")
    if not points:
        raise UsageError("no system has any metrics, so there is nothing to draw")
    return path


def _figure(size: tuple[float, float]) -> tuple[Any, Any]:
    module = need("matplotlib.figure", extra="plot", purpose="pictures")
    figure = module.Figure(figsize=size, dpi=160, layout="constrained")
    return figure, figure.add_subplot()


def _finish(figure: Any, axes: Any, path: Path, title: str) -> Path:
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", color=INK, pad=10)
    axes.tick_params(labelsize=9.5, colors=INK, which="major", length=4)
    axes.tick_params(which="minor", length=2, color=FAINT)
    axes.grid(axis="y", color=FAINT, alpha=0.2, linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
    # No date and no random ids in an SVG: the same data make the same file.
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {"Software": None}
    matplotlib = need("matplotlib", extra="plot", purpose="pictures")
    with matplotlib.rc_context({"svg.hashsalt": "labelwise", "svg.fonttype": "path"}), atomic_file(path) as aside:
        figure.savefig(aside, format=path.suffix[1:], metadata=metadata)
    return path
