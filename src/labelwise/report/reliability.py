"""The reliability diagram: what probabilities promise against what comes true."""

from pathlib import Path
from typing import Any

import numpy as np

from labelwise.errors import UsageError, need
from labelwise.metrics.calibration import calibration_error, reliability_curve
from labelwise.metrics.relevance import Scored
from labelwise.types import Csr, Floats, Ints

# Two of Okabe and Ito's colours, told apart by people with any kind of colour vision; greys for the rest.
CURVE_COLOUR, GAP_COLOUR = "#0072B2", "#E69F00"
INK, FAINT = "#222222", "#707070"
BINS = 15


def plot_reliability(Y: Csr, Y_pred: Scored, path: Path | str, *, title: str) -> Path:
    """Draw the share of right predictions over their probability, and how many there are, in bins of equal width.

    Parameters
    ----------
    Y
        (n_docs, n_labels) true labels.
    Y_pred
        (n_docs, n_labels) probabilities; every stored one counts.
    path
        Picture to write: .png or .svg.
    title
        Name of the model or of the data.

    Returns
    -------
    path
        Where the picture is. The error that it tells is `labelwise.metrics.calibration_error`, whose bins hold
        equally many predictions.
    """
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg"):
        raise UsageError(f"cannot draw a {path.suffix or 'file without suffix'}; name it .png or .svg")
    probability, right, count = reliability_curve(Y, Y_pred, BINS, equal_mass=False)
    if count.size == 0:
        raise UsageError("nothing is predicted, so there is nothing to draw")
    error = calibration_error(Y, Y_pred)
    figure_module = need("matplotlib.figure", extra="plot", purpose="pictures")
    figure = figure_module.Figure(figsize=(5.6, 6.8), dpi=160, layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3.6, 1])
    _draw_curve(upper, probability, right, count)
    _draw_counts(lower, probability, count)
    upper.set_title(title, loc="left", fontsize=13, fontweight="bold", color=INK, pad=10)
    corner = {"transform": upper.transAxes, "ha": "left", "va": "top"}
    upper.text(0.03, 0.97, f"calibration error {error:.1f} %", fontsize=11.5, color=INK, **corner)
    upper.text(0.03, 0.905, f"of {int(count.sum()):,} predictions", fontsize=9.5, color=FAINT, **corner)
    # No date and no random ids in an SVG: the same data make the same file.
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {"Software": None}
    matplotlib = need("matplotlib", extra="plot", purpose="pictures")
    with matplotlib.rc_context({"svg.hashsalt": "labelwise", "svg.fonttype": "path"}):
        figure.savefig(path, metadata=metadata)
    return path


def _draw_curve(axes: Any, probability: Floats, right: Floats, count: Ints) -> None:
    """The curve with two standard errors, the diagonal, and the gap between them."""
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1, label="as promised")
    axes.fill_between(probability, probability, right, color=GAP_COLOUR, alpha=0.35, linewidth=0, zorder=0)
    # One imagined right and one wrong prediction, so that a bin of one is not sure of itself.
    share = (right * count + 1) / (count + 2)
    spread = 2 * np.sqrt(share * (1 - share) / (count + 2))
    low, high = np.maximum(share - spread, 0), np.minimum(share + spread, 1)
    bars = np.maximum([right - low, high - right], 0)
    axes.errorbar(
        probability,
        right,
        yerr=bars,
        color=CURVE_COLOUR,
        linewidth=1.6,
        elinewidth=1.0,
        marker="o",
        markersize=5,
        label="as it was",
    )
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("share that is right", fontsize=10.5, color=INK)
    axes.legend(loc="lower right", frameon=False, fontsize=9.5, labelcolor=INK)
    _tidy(axes)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(need("matplotlib.ticker", extra="plot", purpose="pictures").MultipleLocator(0.2))
        axis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")


def _draw_counts(axes: Any, probability: Floats, count: Ints) -> None:
    """How many predictions each bin holds."""
    edges = np.linspace(0, 1, BINS + 1)
    left = edges[np.searchsorted(edges[1:-1], probability)]
    axes.bar(left, count, width=1 / BINS, align="edge", color=CURVE_COLOUR, alpha=0.85, edgecolor="white")
    axes.set_yscale("log")
    axes.set_ylim(0.6, float(count.max()) * 2)
    axes.set_xlabel("predicted probability", fontsize=10.5, color=INK)
    axes.set_ylabel("predictions", fontsize=10.5, color=INK)
    _tidy(axes)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _tidy(axes: Any) -> None:
    axes.tick_params(labelsize=9.5, colors=INK, which="major", length=4)
    axes.tick_params(which="minor", length=2, color=FAINT)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
