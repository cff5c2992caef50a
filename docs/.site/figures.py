"""Draws the figures of the method page into docs/images.

python docs/.site/figures.py docs/images
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

INK, GREY, LIGHT = "#1a202c", "#718096", "#cbd5e0"
BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"
PALE = {BLUE: "#e6f0fa", ORANGE: "#fdf3dc", GREEN: "#e3f4ee", RED: "#fbe8dd", GREY: "#f1f3f5"}


def page(width: int, height: int, about: str, parts: Sequence[str]) -> str:
    """An SVG file on a white card, readable on any background."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{about}"'
    card = '<rect width="100%" height="100%" rx="14" fill="#ffffff"/>'
    return "\n".join([f'{head} font-family="Helvetica, Arial, sans-serif">', card, *parts, "</svg>\n"])


def text(
    x: float, y: float, words: str, *, size: float = 15, fill: str = INK, anchor: str = "middle", **more: str
) -> str:
    """A line of text."""
    extra = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size:g}" fill="{fill}"{extra}>{words}</text>'


def box(x: float, y: float, width: float, height: float, colour: str, *, strong: bool = True) -> str:
    """A rounded box."""
    line = f'stroke="{colour}" stroke-width="{2.2 if strong else 1.2}"'
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="9" fill="{PALE[colour]}" {line}/>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1.4) -> str:
    """A straight line."""
    return f'<path d="M{x1:g} {y1:g} L{x2:g} {y2:g}" stroke="{colour}" stroke-width="{width:g}" fill="none"/>'


# ---------------------------------------------------------------------- the tree

CLUSTERS = (
    ("sleeping", ("air mat", "sleeping pad", "camp pillow")),
    ("babies", ("play mat", "crawling mat", "tummy time")),
    ("kitchen", ("oven dish", "cake tin", "whisk")),
    ("frames", ("picture frame", "poster frame", "family photos")),
)
BEST = {0: 0.31, 1: 0.88, 2: 0.02, 3: 0.04}
LABELS = {"play mat": 0.95, "tummy time": 0.62, "crawling mat": 0.35, "air mat": 0.12, "sleeping pad": 0.04}


def tree() -> str:
    """Labels in clusters, and a search with a beam of two."""
    width, parts = 1000, []
    parts += [box(360, 22, 280, 46, BLUE), text(500, 51, "“Red Cotton Play Mat, Foldable”", size=17)]
    for number, (name, labels) in enumerate(CLUSTERS):
        x, kept = 20 + number * 245, BEST[number] > 0.1
        parts.append(line(500, 68, x + 112, 128, ORANGE if kept else LIGHT, 3 if kept else 1.5))
        parts += [box(x, 130, 225, 58, ORANGE if kept else GREY, strong=kept)]
        parts += [
            text(x + 112, 155, name, size=17, font_weight="700"),
            text(x + 112, 177, f"cluster scores {BEST[number]}"),
        ]
        for row, label in enumerate(labels):
            y, score = 222 + row * 48, LABELS.get(label)
            colour = GREEN if score and score > 0.3 else GREY
            parts.append(line(x + 14, 188, x + 14, y + 18, ORANGE if kept else LIGHT, 1.4))
            parts.append(line(x + 14, y + 18, x + 28, y + 18, ORANGE if kept else LIGHT, 1.4))
            parts.append(box(x + 28, y, 197, 36, colour, strong=colour == GREEN))
            parts.append(text(x + 40, y + 24, label, anchor="start", fill=INK if kept else GREY))
            if kept:
                parts.append(
                    text(x + 215, y + 24, f"{score:.2f}" if score else "0.01", anchor="end", font_weight="700")
                )
    caption = "Two clusters are followed (a beam of two). The labels of the other two clusters are not scored."
    parts.append(text(500, 398, caption, size=16, fill=GREY))
    return page(
        width, 420, "A text goes down the label tree: the best clusters are followed, their labels scored", parts
    )


# ---------------------------------------------------------------------- negatives

KINDS = (
    (GREEN, "have the label", "positives", 4),
    (ORANGE, "have another label of its cluster", "teacher-forcing negatives (TFN)", 6),
    (BLUE, "sent to the cluster by the matcher", "matcher-aware negatives (MAN)", 4),
    (GREY, "all other documents", "left out", 9),
)


def negatives() -> str:
    """The documents that train the model of a label."""
    parts = [text(24, 40, "Documents that train the model of “play mat”", size=18, anchor="start", font_weight="700")]
    x = 24.0
    for colour, _, _, many in KINDS:
        wide = 36 * many + 18
        parts.append(box(x, 64, wide, 86, colour))
        for number in range(many):
            parts.append(f'<rect x="{x + 15 + 36 * number:g}" y="82" width="24" height="32" rx="3" fill="{colour}"/>')
            parts += [
                line(x + 19 + 36 * number, 90 + 8 * row, x + 35 + 36 * number, 90 + 8 * row, "#ffffff", 2)
                for row in range(3)
            ]
        parts.append(text(x + wide / 2, 139, f"{many} of 23", size=14))
        x += wide + 14
    for row, (colour, who, what, _) in enumerate(KINDS):
        y = 182 + 27 * row
        parts.append(f'<rect x="24" y="{y - 13}" width="16" height="16" rx="3" fill="{colour}"/>')
        parts.append(text(50, y, f"{who}: {what}", anchor="start", size=16))
    return page(
        1000, 288, "Positives, teacher-forcing negatives, matcher-aware negatives, and documents left out", parts
    )


# ---------------------------------------------------------------------- combining scores


def curve(power: int) -> Iterator[tuple[float, float]]:
    """Points of a curve: score, and its factor in the product."""
    for step in range(101):
        score = -1 + 0.025 * step
        yield score, math.exp(-(max(0.0, 1 - score) ** power))


def combine() -> str:
    """The factor of a score in the product along the path, for four powers."""
    left, top, wide, high = 90, 40, 560, 260
    parts = [line(left, top + high, left + wide, top + high, INK, 1.6), line(left, top, left, top + high, INK, 1.6)]
    for value in (0, 0.5, 1):
        y = top + high * (1 - value)
        parts += [line(left, y, left + wide, y, LIGHT, 1), text(left - 12, y + 5, f"{value:g}", anchor="end")]
    for value in (-1, -0.5, 0, 0.5, 1, 1.5):
        x = left + wide * (value + 1) / 2.5
        parts += [line(x, top + high, x, top + high + 6, INK), text(x, top + high + 24, f"{value:g}")]
    for power, colour in ((1, GREY), (2, BLUE), (3, RED), (4, GREEN)):
        points = " ".join(f"{left + wide * (s + 1) / 2.5:.1f},{top + high * (1 - f):.1f}" for s, f in curve(power))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{4 if power == 3 else 2.5}"/>'
        )
        y = top + 30 + 34 * power
        named = f"l{power}-hinge" + (" (the default)" if power == 3 else "")
        parts += [
            line(690, y - 5, 730, y - 5, colour, 4 if power == 3 else 2.5),
            text(742, y, named, anchor="start", size=17),
        ]
    parts += [text(left + wide / 2, top + high + 50, "score s of a cluster or a label", size=16)]
    parts += [text(690, top + 20, "exp(-max(0, 1 - s)^p)", size=18, anchor="start", font_weight="700")]
    return page(1000, 370, "What a score counts in the product along a path, for four powers", parts)


# ---------------------------------------------------------------------- the pipeline, for narrow screens

STEPS = (
    ("texts and labels", "titles, articles, bills, listings", GREY),
    ("features", "tf-idf: sparse X · encoder: dense E", BLUE),
    ("1 index", "embed every label, balanced label tree", ORANGE),
    ("2 match", "text → label clusters, neural or linear", ORANGE),
    ("3 rank", "one linear model for each label", ORANGE),
    ("answer", "names and probabilities", GREEN),
)


def pipeline_tall() -> str:
    """The steps from texts to an answer, one below the other."""
    width, height, gap, parts = 360, 62, 30, []
    for number, (name, about, colour) in enumerate(STEPS):
        y = 12 + number * (height + gap)
        parts += [box(20, y, width - 40, height, colour)]
        parts += [text(width / 2, y + 26, name, size=16, font_weight="bold"), text(width / 2, y + 47, about, size=14)]
        if number:
            tip = f"M{width / 2 - 6:g} {y - 9} L{width / 2 + 6:g} {y - 9} L{width / 2:g} {y - 1} Z"
            parts += [line(width / 2, y - gap + 1, width / 2, y - 8, INK), f'<path d="{tip}" fill="{INK}"/>']
    about = "From texts and labels over features, index, match and rank to named labels with probabilities"
    return page(width, 24 + len(STEPS) * (height + gap) - gap, about, parts)


FIGURES = {"pipeline-tall": pipeline_tall, "tree": tree, "negatives": negatives, "combine": combine}

if __name__ == "__main__":
    for name, draw in FIGURES.items():
        (Path(sys.argv[1]) / f"{name}.svg").write_text(draw(), encoding="utf-8")
