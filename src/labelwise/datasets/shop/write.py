"""The generated shop as files, streamed block by block; the folder appears when it is complete."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from labelwise.datasets.shop.generate import ListingBlock, Shop, product_id
from labelwise.errors import UsageError
from labelwise.events import Task
from labelwise.storage import atomic_folder, check_writable
from labelwise.storage.paths import checked_path
from labelwise.types import OnEvent

GRAMMAR_VERSION = 1
"""Changes when the words or the way of drawing change, and with them the data of a seed."""
TAIL = 100
"""A label with fewer training documents than this belongs to the tail."""

_MARK = "shop.json"
"""The file by which a folder is known to be a written shop."""


@dataclass(frozen=True, kw_only=True)
class ShopCounts:
    """What is in a shop; shop.json keeps it."""

    n_train: int
    n_test: int
    n_queries: int
    n_pairs: int
    """(product, query) pairs in both splits."""
    labels_per_product: float
    wrong_clicks: int
    """About how many of the pairs are wrong on purpose: a query that belongs to another product."""
    n_unseen: int
    """Labels without a training document."""
    n_unused: int
    """Labels without any document."""
    tail_share: float
    """Share of the labels with fewer than 100 training documents."""


@dataclass(frozen=True, kw_only=True)
class ShopSummary(ShopCounts):
    """What `write_shop` wrote."""

    path: Path
    bytes_written: int


def write_shop(
    path: Path | str,
    n_products: int,
    n_queries: int,
    *,
    seed: int = 0,
    test_fraction: float = 0.1,
    on_event: OnEvent | None = None,
    overwrite: bool = False,
) -> ShopSummary:
    """Write the generated shop into a new folder, in memory that does not grow with `n_products`.

    The folder holds ``train.jsonl`` and ``test.jsonl`` (fields id, text, labels), ``labels.txt``, a ``README.md`` that
    says that the data are generated, and ``shop.json`` with parameters and counts. The documents are those of
    `generate_shop` with the same arguments. On an error or Ctrl-C nothing is left behind.

    Parameters
    ----------
    path
        The folder to make. It must not exist, or be empty.
    n_products, n_queries, seed, test_fraction, on_event
        As for `generate_shop`.
    overwrite
        Replace a folder that `write_shop` wrote before.

    Returns
    -------
    ShopSummary
        Counts of what was written.
    """
    path = checked_path(path)
    _check_destination(path, overwrite=overwrite)
    check_writable(path)
    shop = Shop(n_products, n_queries, seed=seed, test_fraction=test_fraction)
    with atomic_folder(path, overwrite=True) as aside:
        counts = _write_documents(aside, shop, on_event)
        _write_text(aside / "labels.txt", "".join(f"{query}\n" for query in shop.queries))
        parameters = {"n_products": n_products, "n_queries": n_queries, "seed": seed, "test_fraction": test_fraction}
        _write_text(aside / "README.md", _readme(parameters, counts))
        about = {"generated": True, "generator": "labelwise", "grammar_version": GRAMMAR_VERSION}
        _write_text(
            aside / _MARK, json.dumps({**about, "parameters": parameters, "counts": asdict(counts)}, indent=2) + "\n"
        )
        size = sum(file.stat().st_size for file in aside.iterdir())
    return ShopSummary(path=path, bytes_written=size, **asdict(counts))


def _write_documents(folder: Path, shop: Shop, on_event: OnEvent | None) -> ShopCounts:
    names = [json.dumps(query, ensure_ascii=False) for query in shop.queries]
    seen = np.zeros((2, len(names)), dtype=np.int64)  # documents of a label, in train and in test
    wrong_clicks = 0
    with (
        _open(folder / "train.jsonl") as train,
        _open(folder / "test.jsonl") as test,
        Task(on_event, "writing the generated shop", total=shop.n_products, unit="products") as task,
    ):
        for block in shop.blocks():
            lines = _lines(block, names)
            pair_is_test = np.repeat(block.is_test, np.diff(block.indptr))
            for split, file in enumerate((train, test)):
                file.writelines(lines[i] for i in np.flatnonzero(block.is_test == split))
                seen[split] += np.bincount(block.indices[pair_is_test == split], minlength=len(names))
            wrong_clicks += block.wrong_clicks
            task.advance(len(lines))
    return ShopCounts(
        n_train=shop.n_products - shop.n_test,
        n_test=shop.n_test,
        n_queries=len(names),
        n_pairs=int(seen.sum()),
        labels_per_product=round(float(seen.sum()) / shop.n_products, 4),
        wrong_clicks=wrong_clicks,
        n_unseen=int((seen[0] == 0).sum()),
        n_unused=int((seen.sum(axis=0) == 0).sum()),
        tail_share=round(float((seen[0] < TAIL).mean()), 6),
    )


def _lines(block: ListingBlock, names: Sequence[str]) -> list[str]:
    """The block's products as JSON lines; `names` are already encoded."""
    ends, indices = block.indptr.tolist(), block.indices.tolist()
    lines = []
    for i, text in enumerate(block.texts):
        labels = ", ".join([names[label] for label in indices[ends[i] : ends[i + 1]]])
        lines.append(f'{{"id": "{product_id(block.first + i)}", "text": {json.dumps(text)}, "labels": [{labels}]}}\n')
    return lines


def _readme(parameters: dict[str, float], counts: ShopCounts) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in parameters.items())
    return f"""# The shop: generated data

**These data are generated** by labelwise ({settings}; grammar version {GRAMMAR_VERSION}).
No real product, brand, shop, person, query or click is in them.

Documents are product listings; labels are search queries that led to the product. Some pairs are wrong on purpose
(about {counts.wrong_clicks:,} of {counts.n_pairs:,}), and not every query that fits a product is given.

| file | content |
|---|---|
| train.jsonl | {counts.n_train:,} products: id, text, labels |
| test.jsonl | {counts.n_test:,} products |
| labels.txt | {counts.n_queries:,} queries, one per line; {counts.n_unseen:,} of them have no training product |
| shop.json | the parameters and counts |

To make the same bytes again: `labelwise.datasets.shop.write_shop(path, {settings})`.
"""


def _check_destination(path: Path, *, overwrite: bool) -> None:
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file; give the path of a new folder")
    if path.exists() and any(path.iterdir()):
        if not overwrite:
            raise UsageError(f"{path} is not empty; choose another folder, or pass overwrite=True to replace a shop")
        if not (path / _MARK).exists():
            raise UsageError(
                f"{path} holds something other than a generated shop; empty it yourself, or choose another folder"
            )


def _open(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="\n")


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
