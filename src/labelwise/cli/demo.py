"""labelwise demo"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from labelwise.cli.command import Command
from labelwise.cli.show import Show
from labelwise.config import TfidfConfig
from labelwise.data import describe, load_splits, statistics_table
from labelwise.data.shop import write_shop
from labelwise.data.stats import label_counts
from labelwise.errors import MissingExtraError
from labelwise.features.tfidf import Tfidf
from labelwise.run import RunDirectory


@dataclass(frozen=True, kw_only=True)
class Demo(Command):
    """See labelwise work, end to end, on generated data: products and the search queries that led to them.

    Try it: labelwise demo --products 100000 --queries 20000
    """

    directory: Annotated[Path, Positional, arg(metavar="DIRECTORY")] = Path("demo-run")
    """Where the data, the picture and the results go. What an earlier demo left there is found again."""
    products: int = 20_000
    """Products to generate."""
    queries: int = 5_000
    """Search queries, the labels, to generate."""
    seed: int = 0
    """Seed of the generator."""

    def run(self, out: Console, show: Show) -> None:
        """Generate, describe, draw, vectorise."""
        clock = _Clock()
        shop = self.directory / f"shop-{self.products}x{self.queries}-seed{self.seed}"
        if shop.is_dir():
            show.remark(f"{shop}: found")
        else:
            with clock.measure("generate the shop and write it"):
                write_shop(shop, self.products, self.queries, seed=self.seed, on_event=show.on_event)
        with clock.measure("read it"):
            splits = load_splits(shop, on_event=show.on_event)
        with clock.measure("count it"):
            statistics = describe(splits)
        out.print(statistics_table(statistics, title="the shop (generated data: no product, brand or query is real)"))

        train, test = splits["train"], splits["test"]
        picture = self.directory / "label-tail.png"
        try:
            from labelwise.report.tail import plot_tail

            with clock.measure("draw the label tail"):
                plot_tail(label_counts(train), picture, title="the shop", generated=True)
        except MissingExtraError as error:
            show.remark(f"no picture: {error}")

        texts, config = train.texts or [], TfidfConfig()
        with clock.measure("prepare tf-idf (compiled once, then cached)"):
            Tfidf(config).fit(texts[:50]).transform(texts[:1])
        with RunDirectory(self.directory / "run", purpose="demo", on_event=show.on_event) as run:
            with clock.measure(f"tf-idf of {len(texts):,} training texts, fitted and kept"):
                tfidf = run.stage(
                    "tfidf",
                    inputs={"config": config, "texts": texts},
                    compute=lambda: Tfidf(config).fit(texts, on_event=run.on_event),
                    save=Tfidf.save,
                    load=Tfidf.load,
                )
            with clock.measure("tf-idf of the training texts again, applied"):
                X = tfidf.transform(texts, on_event=run.on_event)
            with clock.measure(f"tf-idf of {len(test):,} test texts"):
                tfidf.transform(test.texts or [], on_event=run.on_event)
        one = median(_seconds(tfidf, text) for text in (test.texts or [])[:200])
        out.print(clock.table())
        size = f"{X.shape[0]:,} x {X.shape[1]:,}, {X.nnz / X.shape[0]:.1f} terms a text"
        out.print(f"features: {size}; a single text takes {1e6 * one:.0f} µs")

        example, words = test.take([0]), tfidf.feature_names()
        text = (example.texts or [""])[0]
        row = tfidf.transform([text])
        heaviest = sorted(zip(row.data, row.indices, strict=True), reverse=True)[:6]
        out.print(f"\na test product:   {text}", markup=False)
        out.print(f"led there:        {', '.join(example.labels[i] for i in example.Y.indices)}", markup=False)
        out.print(f"heaviest words:   {', '.join(f'{words[i]} {weight:.2f}' for weight, i in heaviest)}", markup=False)
        if picture.is_file():
            out.print(f"\nthe label tail as a picture: {picture}", markup=False)
        out.print(f"the data: {shop}   the kept results: labelwise runs {self.directory / 'run'}", markup=False)


class _Clock:
    """Wall and CPU seconds of each step."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float, float]] = []

    @contextmanager
    def measure(self, step: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.steps.append((step, time.perf_counter() - wall, time.process_time() - cpu))

    def table(self) -> Table:
        table = Table(title="time", title_style="bold")
        table.add_column("step")
        table.add_column("wall s", justify="right")
        table.add_column("cpu s", justify="right")
        for step, wall, cpu in self.steps:
            table.add_row(step, f"{wall:.2f}", f"{cpu:.2f}")
        return table


def _seconds(tfidf: Tfidf, text: str) -> float:
    start = time.perf_counter()
    tfidf.transform([text])
    return time.perf_counter() - start
