"""The long tail of labels, as in Figure 1 (left) of the X-Transformer paper."""

from pathlib import Path
from typing import Any

import numpy as np

from labelwise.data.stats import HEAD_DOCUMENTS, TAIL_DOCUMENTS
from labelwise.errors import UsageError, need
from labelwise.storage import atomic_file
from labelwise.types import Ints

# Two of Okabe and Ito's colours, which people with any kind of colour vision can distinguish; greys for the rest.
HEAD_COLOUR, TAIL_COLOUR = "#0072B2", "#E69F00"
INK, FAINT = "#222222", "#707070"


def plot_tail(counts: Ints, path: Path | str, *, title: str, generated: bool = False) -> Path:
    """Plot the number of training documents of each label, most frequent label first.

    Parameters
    ----------
    counts
        (n_labels,) training documents of each label, in any order.
    path
        File to write: .png or .svg.
    title
        Name of the data.
    generated
        Whether a program made the data; the title then says so.

    Returns
    -------
    path
        The written file.
    """
    path = Path(path)
    if path.suffix.lower() not in (".png", ".svg"):
        raise UsageError(f"cannot draw a {path.suffix or 'file without suffix'}; name it .png or .svg")
    counts = np.sort(np.asarray(counts))[::-1]
    if counts.size == 0 or counts[0] == 0:
        raise UsageError("no label has a training document, so there is nothing to draw")
    figure_module = need("matplotlib.figure", extra="plot", purpose="pictures")
    figure = figure_module.Figure(figsize=(7.2, 4.2), dpi=160, layout="constrained")
    axes = figure.add_subplot()
    _draw(axes, counts)
    _label(axes, counts, f"{title} (generated data)" if generated else title)
    # No date and no random ids in an SVG: the same data make the same file.
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {"Software": None}
    matplotlib = need("matplotlib", extra="plot", purpose="pictures")
    with matplotlib.rc_context({"svg.hashsalt": "labelwise", "svg.fonttype": "path"}), atomic_file(path) as aside:
        figure.savefig(aside, format=path.suffix[1:], metadata=metadata)
    return path


def _draw(axes: Any, counts: Ints) -> None:
    """Draw the curve, filled in two colours: labels of the head, and all others."""
    used = counts[counts > 0]
    ranks = np.arange(1, used.size + 1)
    n_head = int((used > HEAD_DOCUMENTS).sum())
    floor = 0.6
    # One step per label. The head ends where the next label begins, so that there is no gap between the colours.
    edges = np.append(ranks, used.size + 1)
    heights = np.append(used, used[-1])
    kept = _thin(heights)
    head, tail = kept[kept <= n_head], kept[kept >= n_head]
    axes.fill_between(edges[tail], floor, heights[tail], step="post", color=TAIL_COLOUR, alpha=0.35, linewidth=0)
    axes.plot(edges[tail], heights[tail], drawstyle="steps-post", color=TAIL_COLOUR, linewidth=1.6)
    if n_head:
        axes.fill_between(edges[head], floor, heights[head], step="post", color=HEAD_COLOUR, alpha=0.85, linewidth=0)
        axes.plot(edges[head], heights[head], drawstyle="steps-post", color=HEAD_COLOUR, linewidth=1.6)
    axes.axhline(HEAD_DOCUMENTS, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, max(used.size + 1, 10))
    axes.set_ylim(floor, max(float(used[0]), HEAD_DOCUMENTS) * 6)  # room for the words above the curve


def _thin(heights: Ints) -> Ints:
    """Indices of the steps that are drawn: those where the height changes, and the last one."""
    changes = np.flatnonzero(np.diff(heights)) + 1
    n_head = int((heights > HEAD_DOCUMENTS).sum())
    return np.unique(np.concatenate([[0], changes, [min(n_head, heights.size - 1)], [heights.size - 1]]))


def _label(axes: Any, counts: Ints, title: str) -> None:
    n_labels, n_used = counts.size, int((counts > 0).sum())
    n_head = int((counts > HEAD_DOCUMENTS).sum())
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", color=INK, pad=10)
    axes.set_xlabel("labels, most frequent first", fontsize=10.5, color=INK)
    axes.set_ylabel("training documents", fontsize=10.5, color=INK)
    axes.tick_params(labelsize=9.5, colors=INK, which="major", length=4)
    axes.tick_params(which="minor", length=2, color=FAINT)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
    share = f"{100 * n_head / n_labels:.1f} % of the labels have more than {HEAD_DOCUMENTS} documents"
    rare = int(((counts > 0) & (counts <= TAIL_DOCUMENTS)).sum())
    rest = f"of {n_labels:,} labels, {rare:,} have {TAIL_DOCUMENTS} or fewer" + (
        f" and {n_labels - n_used:,} none" if n_used < n_labels else ""
    )
    corner = {"transform": axes.transAxes, "ha": "right", "va": "top"}
    axes.text(0.985, 0.975, share, fontsize=11.5, color=INK, **corner)
    axes.text(0.985, 0.895, rest, fontsize=9.5, color=FAINT, **corner)
    if n_head >= 10:  # narrower regions have no room for words
        middle = float(np.sqrt(n_head + 1))
        axes.text(middle, 1.2, f"{n_head:,} labels", ha="center", va="center", fontsize=10.5, color="white")
    if n_used >= 3 * (n_head + 1):
        middle = float(np.sqrt((n_head + 1) * (n_used + 1)))
        axes.text(middle, 1.2, f"{n_used - n_head:,} labels", ha="center", va="center", fontsize=10.5, color=INK)
