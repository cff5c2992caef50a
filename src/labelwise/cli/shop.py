"""labelwise shop"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console
from tyro.conf import Positional, arg

from labelwise.cli.command import Command
from labelwise.cli.show import Show
from labelwise.datasets.shop import write_shop


@dataclass(frozen=True, kw_only=True)
class GenerateShop(Command):
    """Generate a data set of products and the search queries that led to them. No product, brand or query is real.

    Try it: labelwise shop my-shop --products 20000 --queries 5000
    """

    destination: Annotated[Path, Positional, arg(metavar="DESTINATION")]
    """The folder to write: train.jsonl, test.jsonl, labels.txt, README.md."""
    products: int = 20_000
    """Number of products, training and test together."""
    queries: int = 5_000
    """Number of distinct search queries: the labels."""
    seed: int = 0
    """Random seed. The same seed and sizes give the same bytes."""
    test_fraction: float = 0.1
    """Share of the products in the test split."""
    overwrite: bool = False
    """Replace a shop at the destination."""

    def run(self, out: Console, show: Show) -> None:
        """Generate the shop and print what was written."""
        shop = write_shop(
            self.destination,
            self.products,
            self.queries,
            seed=self.seed,
            test_fraction=self.test_fraction,
            overwrite=self.overwrite,
            on_event=show.on_event,
        )
        out.print(
            f"{self.destination}: {shop.n_train:,} training and {shop.n_test:,} test products, "
            f"{self.queries:,} queries, all generated (seed {self.seed})",
            markup=False,
        )
