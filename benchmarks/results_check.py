"""Computes cheap figures of the README and of docs/results again, and compares them with what the pages say.

    python benchmarks/results_check.py [--data FOLDER] [--only WORD] [--list]        (make results-check)

A claim names a document, a pattern that finds the figures in it, and what computes them, so that neither can change
without the other. Accuracy only, no times: the same data and seed give the same model on every machine, up to the last
digit. FOLDER has the real data sets; the default is the folder that the variable LABELWISE_DATA names. Claims about
data sets that are not there are skipped and reported. The exit code is 1 if a figure differs, or if a claim's pattern
is not found in its document.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]  # where labelwise is not installed, and for tests

from settings import data_folder  # noqa: E402

NUMBER = r"\**(\d+(?:\.\d+)?)\**"
PRECISIONS = rf"{NUMBER} {NUMBER} {NUMBER}"
"""P@1 P@3 P@5 in one cell of a table, bold or not."""


@dataclass(frozen=True)
class Claim:
    """Figures that a document states, and what makes them."""

    name: str
    document: str
    pattern: str
    """A regular expression with a group for each figure."""
    compute: Callable[[], Sequence[float]]
    needs: str | None = None
    """The data set it is about; None if it is generated."""
    tolerance: float = 0.011
    """How far apart figures may be: they are rounded to two digits, and machines differ in the last bit."""


@dataclass(frozen=True)
class Verdict:
    """What came of a claim."""

    claim: Claim
    state: str
    """ok, differs, missing or skipped"""
    detail: str

    @property
    def good(self) -> bool:
        return self.state in ("ok", "skipped")


def find_figures(text: str, pattern: str) -> list[tuple[float, ...]]:
    """The figures of every place where the pattern fits."""
    found = re.findall(pattern, text, re.MULTILINE)
    return [tuple(float(part) for part in ((one,) if isinstance(one, str) else one)) for one in found]


def check(claim: Claim, root: Path = ROOT, data: Path | None = None) -> Verdict:
    """Compare what a document says with what comes out."""
    file = root / claim.document
    places = find_figures(file.read_text(encoding="utf-8"), claim.pattern) if file.is_file() else []
    if not places:
        return Verdict(claim, "missing", f"{claim.document} does not say it; change the claim with the document")
    if claim.needs is not None and (data is None or not (data / claim.needs).is_dir()):
        return Verdict(claim, "skipped", f"the data set {claim.needs} is not there")
    try:
        computed = tuple(claim.compute())
    except ImportError as error:
        return Verdict(claim, "skipped", f"{error.name} is not installed")
    for stated in places:
        if len(stated) != len(computed):
            return Verdict(claim, "differs", f"{len(stated)} figures are written, {len(computed)} come out")
        if any(abs(a - b) > claim.tolerance for a, b in zip(stated, computed, strict=True)):
            return Verdict(claim, "differs", f"{claim.document} says {_line(stated)}, but it is {_line(computed)}")
    return Verdict(claim, "ok", _line(computed))


def _line(figures: Sequence[float]) -> str:
    return " ".join(f"{figure:.2f}" for figure in figures)


# ---------------------------------------------------------------------- what is computed


@cache
def accuracy(preset: str, data: Path, *, sklearn: bool = False) -> tuple[float, ...]:
    """P@1, P@3, P@5 and PSP@5 of a linear preset on the test split, as benchmarks/accuracy.py measures them.

    With `sklearn` on scikit-learn's tf-idf, as benchmarks/linear.py does.
    """
    from labelwise.comparison.splits import Splits
    from labelwise.config.presets import load_linear_preset
    from labelwise.data import ReadOptions
    from labelwise.metrics import inverse_propensity, precision_at_k, psp_at_k
    from labelwise.models.linear_tree import LinearTree

    splits = Splits.read(data, options=ReadOptions())
    train, test = splits.train, splits.test
    documents, judged = _sklearn_features(train.texts, test.texts) if sklearn else (train.texts, test.texts)
    model = LinearTree(load_linear_preset(preset, calibrate=False)).fit(documents, train.Y, label_names=train.labels)
    found = model.predict(judged, top_k=5).with_labels(test.labels)
    weights = inverse_propensity(splits.Y_train)
    return (*(precision_at_k(test.Y, found, k=k) for k in (1, 3, 5)), psp_at_k(test.Y, found, weights, k=5))


def _sklearn_features(train: list[str], test: list[str]) -> tuple[Any, Any]:
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(sublinear_tf=True, token_pattern=r"(?u)\b\w+\b", dtype=np.float32)
    return vectorizer.fit_transform(train), vectorizer.transform(test)


@cache
def shop_accuracy(preset: str, products: int, queries: int) -> tuple[float, ...]:
    """The same on the generated shop."""
    from labelwise.datasets.shop import write_shop

    with TemporaryDirectory() as folder:
        write_shop(Path(folder) / "shop", products, queries)
        return accuracy(preset, Path(folder) / "shop", sklearn=True)


@cache
def shop_tail(products: int, queries: int) -> tuple[float, ...]:
    """Percent of the queries with under a hundred training products."""
    from labelwise import generate_shop
    from labelwise.data.stats import label_counts

    counts = label_counts(generate_shop(products, queries)["train"])
    return (100 * float((counts < 100).mean()),)


def claims(data: Path) -> list[Claim]:
    """All of them; add one with every cheap figure that a document quotes."""
    found = [
        Claim(
            f"Parabel on {name}, README",
            "README.md",
            rf"^\| {name}: [^|\n]*\| {PRECISIONS} \|",
            lambda name=name: accuracy("parabel", data / name)[:3],
            name,
        )
        for name in ("gutenberg-lcsh", "debdeps-15k", "usbills-4k")
    ]
    found += [
        Claim(
            f"Parabel on {name}, beside the nine",
            "docs/results/ensemble.md",
            rf"^\| `parabel` \|(?:[^|\n]*\|){{{column}}} {PRECISIONS} \|",
            lambda name=name: accuracy("parabel", data / name)[:3],
            name,
        )
        for column, name in ((1, "usbills-4k"), (2, "debdeps-15k"), (3, "gutenberg-lcsh"))
    ]
    found += [
        Claim(
            f"Parabel on {name}",
            "docs/results/matcher.md",
            rf"^\| {name} \| `parabel`[^|\n]*\| {PRECISIONS} \| {NUMBER} \|",
            lambda name=name: accuracy("parabel", data / name),
            name,
        )
        for name in ("gutenberg-lcsh", "debdeps-15k", "usbills-4k")
    ]
    # These were measured on scikit-learn's features: ours differ in the last bit, figures by some hundredths.
    found += [
        Claim(
            f"the default on {name}",
            "docs/results/linear.md",
            rf"^\| {name} \| default \|[^|\n]*\|[^|\n]*\|[^|\n]*\| {PRECISIONS} \| {NUMBER} \|",
            lambda name=name: accuracy("default", data / name, sklearn=True),
            name,
        )
        for name in ("debdeps-15k", "usbills-4k")
    ]
    found += [
        Claim(
            "the default on eurlex57k",
            "docs/performance.md",
            rf"^\| \*\*labelwise\*\* \|(?:[^|\n]*\|){{4}} {PRECISIONS} \|$",
            lambda: accuracy("default", data / "eurlex57k", sklearn=True)[:3],
            "eurlex57k",
        ),
        Claim(
            "the default on the shop of 50,000 products",
            "docs/results/linear.md",
            rf"^\| shop \(generated\) \| \*\*labelwise\*\* \|(?:[^|\n]*\|)*? {PRECISIONS} \| {NUMBER} \|$",
            lambda: shop_accuracy("default", 50_000, 10_000),
        ),
        Claim(
            "the shop's tail at 20,000 products",
            "docs/results/foundation.md",
            rf"\({NUMBER} % at 20,000 × 5,000",
            lambda: shop_tail(20_000, 5_000),
            tolerance=0.051,
        ),
    ]
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of the real data sets")
    parser.add_argument("--only", default="", help="claims whose name has this word")
    parser.add_argument("--list", action="store_true", help="name the claims, compute nothing")
    options = parser.parse_args(arguments)
    verdicts = []
    for claim in claims(options.data):
        if options.only not in claim.name:
            continue
        if options.list:
            print(f"{claim.document}: {claim.name}")
            continue
        begin = time.perf_counter()
        verdict = check(claim, ROOT, options.data)
        verdicts.append(verdict)
        print(f"{verdict.state:8}{claim.name}: {verdict.detail} ({time.perf_counter() - begin:.1f} s)", flush=True)
    counts = {state: sum(v.state == state for v in verdicts) for state in ("ok", "differs", "missing", "skipped")}
    if not options.list:
        print(", ".join(f"{count} {state}" for state, count in counts.items() if count) or "no claim has that name")
    return 0 if all(verdict.good for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
