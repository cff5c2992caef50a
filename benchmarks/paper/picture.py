"""Draws the results of ensemble.py: every member, group and the Ensemble over Parabel, one panel per data set.

    python benchmarks/paper/picture.py ensemble.json... --output picture.svg [--metric P@5]

Points are improvements over Parabel in percent, lines their 95 % intervals (paired bootstrap over test documents).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from common import run_script
from nine import LABEL_EMBEDDINGS

from labelwise.errors import DataError, need

COLOURS = {"members": "#8a94a6", "three trees": "#2f7fb5", "encoders": "#d9822b", "the Ensemble": "#1b7f4d"}
"""Colours of the kinds of rows."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, required=True, help="a file that ends in .svg, .png or .pdf")
    parser.add_argument("--metric", default="P@5", help="P@1, P@3, P@5 or PSP@5")
    options = parser.parse_args()
    panels = {path.stem: read(path, options.metric) for path in options.results}
    draw(list(panels.values()), options.metric, options.output)


def read(path: Path, metric: str) -> tuple[str, list[tuple[str, str, dict[str, float]]]]:
    """The data set, and name, kind and improvement of each row."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["table"] != "ensemble":
            raise KeyError("table")
        rows = [
            (row["name"], kind_of(row["name"]), row["over_parabel"][metric])
            for row in found["rows"]
            if row["over_parabel"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise DataError(f"these are not results of ensemble.py with {metric} over Parabel ({err})", path=path) from err
    return found["data"], rows


def kind_of(name: str) -> str:
    """The kind of a row, which decides its colour."""
    if name.startswith(LABEL_EMBEDDINGS):
        return "members"
    return next((kind for kind in ("three trees", "encoders") if name.startswith(kind)), "the Ensemble")


def draw(panels: list[tuple[str, list[tuple[str, str, dict[str, float]]]]], metric: str, file: Path) -> None:
    """Write the picture."""
    need("matplotlib", extra="plot", purpose="pictures")
    from matplotlib.figure import Figure

    n_points = max(len(rows) for _, rows in panels)
    n_columns = min(2, len(panels))
    n_lines = -(-len(panels) // n_columns)
    figure = Figure(figsize=(3.2 * n_columns + 1.6, n_lines * (0.2 * n_points + 0.8)), layout="constrained")
    axes: Any = figure.subplots(n_lines, n_columns, sharey=True, squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, (data, rows) in zip(axes.flat, panels, strict=False):
        for place, (_, kind, gain) in enumerate(rows):
            error = [[gain["percent"] - gain["low"]], [gain["high"] - gain["percent"]]]
            axis.errorbar(gain["percent"], place, xerr=error, fmt="o", ms=4, lw=1.2, color=COLOURS[kind])
        axis.set_title(data, fontsize=10)
        axis.grid(axis="x", color="#dddddd", lw=0.6)
        axis.set_axisbelow(True)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
        axis.tick_params(labelsize=8)
    axes[0, 0].set_yticks(range(len(panels[0][1])), [name for name, *_ in panels[0][1]])
    axes[0, 0].invert_yaxis()
    figure.supxlabel(f"{metric} over Parabel, % (95 % interval)", fontsize=9)
    figure.savefig(file)


if __name__ == "__main__":
    run_script(main)
