"""labelwise demo"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from labelwise.cli.command import Command
from labelwise.cli.predict import readable
from labelwise.cli.show import Show
from labelwise.data import Dataset, describe, load_splits, split_validation, statistics_table
from labelwise.data.shop import write_shop
from labelwise.data.stats import label_counts
from labelwise.errors import DataError, MissingExtraError
from labelwise.metrics import Evaluation, evaluate
from labelwise.model import LinearTree
from labelwise.presets import load_preset


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
        """Generate, describe, draw, train, predict, measure."""
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
        picture = self._draw(splits["train"], clock, show)

        test = splits["test"]
        train, validation = split_validation(splits["train"], seed=self.seed)
        config = load_preset("parabel", seed=self.seed)
        with clock.measure("prepare (compiled once, then cached)"):
            few = train.take(range(min(100, len(train))))
            # With a run directory, as below: kernels are compiled for mapped arrays, and for no others.
            with TemporaryDirectory() as folder:
                LinearTree(config).fit(few.texts or [], few.Y, run_dir=folder).predict(few.texts or [], top_k=1)
        model = LinearTree(config)
        with clock.measure(f"train Parabel, {config.n_trees} trees, on {len(train):,} products"):
            model.fit(
                train.texts or [],
                train.Y,
                label_names=train.labels,
                run_dir=self.directory / "run",
                on_event=show.on_event,
            )
        try:
            with clock.measure(f"learn probabilities on {len(validation):,} more"):
                model.calibrate(validation, on_event=show.on_event)
        except DataError as error:  # a very small shop
            show.remark(f"scores, no probabilities: {error}")
        with clock.measure("save the model"):
            model.save(self.directory / "model")
        texts = test.texts or []
        with clock.measure(f"predict {len(test):,} test products"):
            found = model.predict(texts, top_k=5, ids=test.ids, on_event=show.on_event)
        with clock.measure("measure"):
            evaluation = evaluate(test.Y, found, Y_train=splits["train"].Y, seed=self.seed)
        one = median(_seconds(model, text) for text in texts[:200])
        out.print(clock.table())
        out.print(_short(evaluation))
        out.print(f"a single text takes {1e6 * one:.0f} µs from raw text to labels")

        for i, row in enumerate(found[:3]):
            truth = {test.labels[j] for j in test.Y[[i]].indices}
            out.print(f"\na test product:  {texts[i]}", markup=False)
            out.print(f"suggested:       {readable(row)}", markup=False)
            right = [label for label, _ in row if label in truth]
            out.print(f"led there:       {', '.join([*right, *sorted(truth.difference(right))])}", markup=False)
        if picture.is_file():
            out.print(f"\nthe label tail as a picture: {picture}", markup=False)
        out.print(f"the data: {shop}   the kept results: labelwise runs {self.directory / 'run'}", markup=False)
        out.print(f"try your own words: labelwise predict {self.directory / 'model'} -", markup=False)

    def _draw(self, train: Dataset, clock: _Clock, show: Show) -> Path:
        picture = self.directory / "label-tail.png"
        try:
            from labelwise.report.tail import plot_tail

            with clock.measure("draw the label tail"):
                plot_tail(label_counts(train), picture, title="the shop", generated=True)
        except MissingExtraError as error:
            show.remark(f"no picture: {error}")
        return picture


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


def _short(evaluation: Evaluation) -> Table:
    """The metrics that most papers give."""
    caption = f"percent, {evaluation.n_docs:,} documents, ± half the 95 % interval"
    table = Table(title="Parabel on the test products", title_style="bold", caption=caption)
    table.add_column("metric")
    for k in evaluation.ks:
        table.add_column(f"@{k}", justify="right")
    for metric in ("P", "nDCG", "PSP"):
        scores = [evaluation.scores[f"{metric}@{k}"] for k in evaluation.ks]
        table.add_row(metric, *(f"{s.value:.2f} ±{((s.high or 0) - (s.low or 0)) / 2:.2f}" for s in scores))
    return table


def _seconds(model: LinearTree, text: str) -> float:
    start = time.perf_counter()
    model.predict([text], top_k=5)
    return time.perf_counter() - start
