"""labelwise demo"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional, arg

from labelwise.cli.command import Command
from labelwise.cli.predict import readable
from labelwise.cli.show import Show
from labelwise.config.presets import load_linear_preset, load_preset
from labelwise.data import Dataset, describe, load_splits, split_validation, statistics_table
from labelwise.data.stats import label_counts
from labelwise.datasets.shop import write_shop
from labelwise.engines import cpu_seconds
from labelwise.engines.allocator import limit_heap_growth
from labelwise.errors import DataError, MissingExtraError, UsageError
from labelwise.metrics import Evaluation, evaluate
from labelwise.models.base import Model
from labelwise.models.linear_tree import LinearTree
from labelwise.predictions import Predictions

FINE_TUNING: dict[str, Any] = {
    "encoder": {"max_length": 32},
    "matcher": {"steps": 40, "batch_size": 32},
    "dense_weight": 1.0,  # fixed instead of chosen, which saves two thirds of the time
}
"""Settings of X-Transformer that train in seconds: about a third of an epoch, on titles."""
N_EXAMPLES = 3
"""Number of test products whose labels are shown."""


@dataclass(frozen=True, kw_only=True)
class Demo(Command):
    """Run labelwise end to end on generated data: products and the search queries that led to them.

    Try it: labelwise demo my-demo --products 10000 --queries 2000
    """

    directory: Annotated[Path, Positional, arg(metavar="DIRECTORY")] = Path("demo-run")
    """Folder for data, plot, models and results. Results of an earlier demo in it are reused."""
    products: int = 4_000
    """Number of products to generate."""
    queries: int = 1_000
    """Number of search queries, the labels, to generate."""
    encoder: str = "minilm"
    """Encoder of X-Transformer: minilm, a folder, or a name on the hub."""
    seed: int = 0
    """Random seed of the generator."""

    def run(self, out: Console, show: Show) -> None:
        """Generate, describe, plot, train, predict, evaluate."""
        limit_heap_growth()
        clock = _DemoClock()
        shop = self.directory / f"shop-{self.products}x{self.queries}-seed{self.seed}"
        if shop.is_dir():
            show.remark(f"{shop}: found")
        else:
            with clock.measure("generate and write the shop"):
                write_shop(shop, self.products, self.queries, seed=self.seed, on_event=show.on_event)
        with clock.measure("read the shop"):
            splits = load_splits(shop, on_event=show.on_event)
        with clock.measure("describe the shop"):
            statistics = describe(splits)
        out.print(statistics_table(statistics, title="the shop (generated data: no product, brand or query is real)"))
        plot = self._plot(splits["train"], clock, show)

        test = splits["test"]
        texts = test.texts or []
        train, validation = split_validation(splits["train"], seed=self.seed)
        models: dict[str, Model] = {"Parabel": self._parabel(train, validation, clock, show)}
        neural = self._transformer(train, validation, clock, show)
        if neural is not None:
            models["X-Transformer"] = neural
        predictions: dict[str, Predictions] = {}
        evaluations: dict[str, Evaluation] = {}
        for name, model in models.items():
            with clock.measure(f"predict {len(test):,} test products: {name}"):
                predictions[name] = model.predict(texts, top_k=5, ids=test.ids, on_event=show.on_event)
        with clock.measure("evaluate"):
            for name in models:
                evaluations[name] = evaluate(test.Y, predictions[name], Y_train=splits["train"].Y, seed=self.seed)
        out.print(clock.table())
        out.print(_short_table(evaluations))
        for name, model in models.items():
            one = median(_seconds(model, text) for text in texts[: 200 if name == "Parabel" else 20])
            out.print(f"a single text takes {_short_time(one)} from raw text to labels: {name}")

        for i in range(min(N_EXAMPLES, len(test))):
            truth = {test.labels[j] for j in test.Y[[i]].indices}
            out.print(f"\na test product:  {texts[i]}", markup=False)
            correct: dict[str, None] = {}
            for name in models:
                row = predictions[name][i]
                model_name = f"  ({name})" if len(models) > 1 else ""
                out.print(f"suggested:       {readable(row)}{model_name}", markup=False)
                correct |= dict.fromkeys(label for label, _ in row if label in truth)
            out.print(f"led there:       {', '.join([*correct, *sorted(truth.difference(correct))])}", markup=False)
        if plot.is_file():
            out.print(f"\nplot of the label tail: {plot}", markup=False)
        out.print(f"the data: {shop}   the stored results: labelwise runs {self.directory / 'run'}", markup=False)
        out.print(f"try your own words: labelwise predict {self.directory / 'model'} -", markup=False)

    def _parabel(self, train: Dataset, validation: Dataset, clock: _DemoClock, show: Show) -> LinearTree:
        config = load_linear_preset("parabel", seed=self.seed)
        with clock.measure("compile kernels (once, then cached)"):
            sample = train.take(range(min(100, len(train))))
            # With a run directory, as below: kernels are compiled for mapped arrays, and for no others.
            with TemporaryDirectory() as folder:
                LinearTree(config).fit(sample.texts or [], sample.Y, run_dir=folder).predict(sample.texts or [], 1)
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
            with clock.measure(f"calibrate Parabel on {len(validation):,} further products"):
                model.calibrate(validation, on_event=show.on_event)
        except DataError as error:  # a very small shop
            show.remark(f"scores, no probabilities: {error}")
        with clock.measure("save Parabel"):
            model.save(self.directory / "model")
        return model

    def _transformer(self, train: Dataset, validation: Dataset, clock: _DemoClock, show: Show) -> Model | None:
        """X-Transformer, trained on the same products; None, with a remark on what to install, without an encoder."""
        try:
            from labelwise.features.pretrained import find_encoder
            from labelwise.models.xtransformer import XTransformer

            find_encoder(self.encoder)
        except (MissingExtraError, UsageError) as error:
            show.remark(f"no X-Transformer, Parabel alone: {error}")
            return None
        settings = {**FINE_TUNING, "encoder": {**FINE_TUNING["encoder"], "name": self.encoder}}
        config = load_preset("x-transformer", seed=self.seed, **settings)
        steps = FINE_TUNING["matcher"]["steps"]
        with clock.measure(f"train X-Transformer, {steps} steps of fine-tuning, calibrated"):
            model = XTransformer(config).fit(
                train.texts or [],
                train.Y,
                label_names=train.labels,
                validation=validation,
                run_dir=self.directory / "run",
                on_event=show.on_event,
            )
        with clock.measure("save X-Transformer"):
            model.save(self.directory / "x-transformer")
        return model

    def _plot(self, train: Dataset, clock: _DemoClock, show: Show) -> Path:
        plot = self.directory / "label-tail.png"
        try:
            from labelwise.report.tail import plot_tail

            with clock.measure("plot the label tail"):
                plot_tail(label_counts(train), plot, title="the shop", generated=True)
        except MissingExtraError as error:
            show.remark(f"no plot: {error}")
        return plot


class _DemoClock:
    """Wall and CPU seconds of each step."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float, float]] = []

    @contextmanager
    def measure(self, step: str) -> Iterator[None]:
        wall, cpu = time.perf_counter(), cpu_seconds()
        yield
        self.steps.append((step, time.perf_counter() - wall, cpu_seconds() - cpu))

    def table(self) -> Table:
        table = Table(title="time", title_style="bold")
        table.add_column("step")
        table.add_column("wall s", justify="right")
        table.add_column("cpu s", justify="right")
        for step, wall, cpu in self.steps:
            table.add_row(step, f"{wall:.2f}", f"{cpu:.2f}")
        return table


def _short_table(evaluations: Mapping[str, Evaluation]) -> Table:
    """A table of the metrics that most papers report."""
    first = next(iter(evaluations.values()))
    caption = f"percent, {first.n_docs:,} documents, ± half the 95 % interval"
    title = f"{' and '.join(evaluations)} on the test products"
    table = Table(title=title, title_style="bold", caption=caption)
    table.add_column("metric")
    if len(evaluations) > 1:
        table.add_column("model")
    for k in first.ks:
        table.add_column(f"@{k}", justify="right")
    for metric in ("P", "nDCG", "PSP"):
        for name, evaluation in evaluations.items():
            scores = [evaluation.scores[f"{metric}@{k}"] for k in evaluation.ks]
            cells = [f"{s.value:.2f} ±{((s.high or 0) - (s.low or 0)) / 2:.2f}" for s in scores]
            table.add_row(metric, *([name] if len(evaluations) > 1 else []), *cells)
    return table


def _seconds(model: Model, text: str) -> float:
    start = time.perf_counter()
    model.predict([text], top_k=5)
    return time.perf_counter() - start


def _short_time(seconds: float) -> str:
    return f"{1e6 * seconds:.0f} µs" if seconds < 1e-3 else f"{1e3 * seconds:.1f} ms"
