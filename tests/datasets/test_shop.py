"""The generated shop: the same each time, shaped like real product-to-query data, and never half-written."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelwise.data.dataset import Dataset
from labelwise.datasets.shop import generate_shop, write_shop
from labelwise.datasets.shop.brands import N_BRANDS, brand_names
from labelwise.datasets.shop.catalog import read_catalog
from labelwise.datasets.shop.spelling import misspell
from labelwise.errors import UsageError


@pytest.fixture(scope="module")
def shop() -> dict[str, Dataset]:
    return generate_shop(20_000, 5_000)


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def labels_of(data: Dataset, row: int) -> list[str]:
    return [data.labels[label] for label in data.Y.indices[data.Y.indptr[row] : data.Y.indptr[row + 1]]]


def test_same_seed_same_shop() -> None:
    first, again, other = generate_shop(1_000, 500), generate_shop(1_000, 500), generate_shop(1_000, 500, seed=1)
    for split in ("train", "test"):
        assert first[split].texts == again[split].texts
        assert first[split].labels == again[split].labels
        assert (first[split].Y != again[split].Y).nnz == 0
    assert first["train"].texts != other["train"].texts
    assert first["train"].labels != other["train"].labels


def test_a_larger_shop_starts_with_the_same_products() -> None:
    small, large = generate_shop(9_000, 500), generate_shop(18_000, 500)
    known = {}
    for data in large.values():
        assert data.ids is not None
        known |= {name: (row, data) for row, name in enumerate(data.ids)}
    for data in small.values():
        assert data.ids is not None
        assert data.texts is not None
        for row in range(0, len(data), 7):
            there, bigger = known[data.ids[row]]
            assert bigger.texts is not None
            assert data.texts[row] == bigger.texts[there]
            assert labels_of(data, row) == labels_of(bigger, there)


def test_shapes_and_names(shop: dict[str, Dataset]) -> None:
    train, test = shop["train"], shop["test"]
    assert train.Y.shape == (18_000, 5_000)
    assert test.Y.shape == (2_000, 5_000)
    assert train.labels == test.labels == train.label_texts == sorted(set(train.labels))
    assert train.ids is not None
    assert test.ids is not None
    assert len({*train.ids, *test.ids}) == 20_000
    assert all(re.fullmatch(r"P\d{7}", name) for name in test.ids)
    for data in shop.values():
        assert data.Y.dtype == np.float32
        assert data.Y.has_canonical_format
        assert (data.Y.data == 1).all()
        assert np.diff(data.Y.indptr).min() >= 1


def test_sizes_are_obeyed() -> None:
    for n_products, n_queries, fraction, n_test in (
        (100, 100, 0.1, 10),
        (8_193, 1_000, 0.25, 2_048),
        (500, 120, 0.001, 1),
    ):
        shop = generate_shop(n_products, n_queries, test_fraction=fraction)
        assert shop["test"].Y.shape == (n_test, n_queries)
        assert shop["train"].Y.shape == (n_products - n_test, n_queries)


def test_most_labels_are_rare(shop: dict[str, Dataset]) -> None:
    counts = np.sort(np.asarray(shop["train"].Y.sum(axis=0)).ravel())[::-1]
    assert (counts >= 100).mean() < 0.04
    assert (counts == 0).mean() < 0.05
    assert counts[:50].sum() > 10 * counts[2_500:2_550].sum()
    per_product = shop["train"].Y.nnz / len(shop["train"])
    assert 3 < per_product < 6


def test_some_labels_are_seen_in_test_only() -> None:
    shop = generate_shop(10_000, 5_000)
    train, test = (np.asarray(shop[split].Y.sum(axis=0)).ravel() for split in ("train", "test"))
    assert 0 < ((train == 0) & (test > 0)).mean() < 0.05


def test_many_queries_share_no_word_with_the_listing(shop: dict[str, Dataset]) -> None:
    data = shop["test"]
    assert data.texts is not None
    pairs = [(text, query) for row, text in enumerate(data.texts) for query in labels_of(data, row)]
    apart = np.mean([not words(text) & words(query) for text, query in pairs])
    assert 0.15 < apart < 0.5


def test_some_queries_are_misspelt(shop: dict[str, Dataset]) -> None:
    wrong = {typo for kind in read_catalog() for typo in misspell(kind.name, 3)}
    assert len(wrong & set(shop["train"].labels)) > 50


def test_some_clicks_are_wrong(tmp_path: Path) -> None:
    summary = write_shop(tmp_path / "shop", 5_000, 1_000)
    assert 0.02 < summary.wrong_clicks / summary.n_pairs < 0.06


def test_listings_look_like_listings(shop: dict[str, Dataset]) -> None:
    texts = shop["train"].texts
    assert texts is not None
    lengths = np.array([len(re.findall(r"\w[\w.'+-]*", text)) for text in texts])
    assert np.percentile(lengths, 5) >= 7
    assert np.percentile(lengths, 95) <= 25
    assert not [text for text in texts if "  " in text or text != text.strip() or not text.isascii()]
    assert len(set(texts)) > 0.999 * len(texts)
    assert shop["test"].texts is not None
    assert len(set(texts) & set(shop["test"].texts)) <= 2


def test_no_word_twice_in_a_query(shop: dict[str, Dataset]) -> None:
    assert not [query for query in shop["train"].labels if len(set(query.split())) < len(query.split())]


def test_listings_predict_their_queries() -> None:
    """The nearest training listing by shared words gives a right first query often, but not always."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    shop = generate_shop(5_000, 1_000)
    train, test = shop["train"], shop["test"]
    tfidf = TfidfVectorizer(sublinear_tf=True)
    near = tfidf.fit_transform(train.texts)
    scores = (tfidf.transform(test.texts) @ near.T).toarray()  # (n_test, n_train)
    cut = np.partition(scores, -20, axis=1)[:, -20, None]
    best = np.argmax(np.where(scores >= cut, scores, 0) @ train.Y, axis=1)
    precision = np.mean(test.Y.toarray()[np.arange(len(test)), best])
    assert 0.6 < precision < 0.9


def test_files_hold_what_is_generated(tmp_path: Path) -> None:
    summary = write_shop(tmp_path / "deep" / "shop", 9_000, 700, seed=3, test_fraction=0.2)
    shop = generate_shop(9_000, 700, seed=3, test_fraction=0.2)
    for split, data in shop.items():
        with (summary.path / f"{split}.jsonl").open(encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        assert [row["id"] for row in rows] == data.ids
        assert [row["text"] for row in rows] == data.texts
        assert [row["labels"] for row in rows] == [labels_of(data, i) for i in range(len(data))]
    assert (summary.path / "labels.txt").read_text(encoding="utf-8").splitlines() == shop["train"].labels
    about = json.loads((summary.path / "shop.json").read_text(encoding="utf-8"))
    assert about["generated"] is True
    assert about["parameters"] == {"n_products": 9_000, "n_queries": 700, "seed": 3, "test_fraction": 0.2}
    assert about["counts"]["n_pairs"] == summary.n_pairs == sum(data.Y.nnz for data in shop.values())
    assert (summary.n_train, summary.n_test) == (7_200, 1_800)
    assert summary.bytes_written == sum(file.stat().st_size for file in summary.path.iterdir())
    assert "These data are generated" in (summary.path / "README.md").read_text(encoding="utf-8")


def test_same_bytes_twice(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_shop(tmp_path / name, 1_000, 500, seed=8)
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[Mapping[str, Any]] = []
    write_shop(tmp_path / "shop", 1_000, 500, on_event=lambda name, values: told.append(values))
    assert told[-1] == {
        "task": "writing the generated shop",
        "done": 1_000,
        "total": 1_000,
        "unit": "products",
        "finished": True,
    }


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_nothing_is_left_when_interrupted(tmp_path: Path, error: type[BaseException]) -> None:
    def stop(name: str, values: Mapping[str, Any]) -> None:
        raise error

    with pytest.raises(error):
        write_shop(tmp_path / "shop", 1_000, 500, on_event=stop)
    assert list(tmp_path.iterdir()) == []
    write_shop(tmp_path / "shop", 1_000, 500)
    before = (tmp_path / "shop" / "train.jsonl").read_bytes()
    with pytest.raises(error):
        write_shop(tmp_path / "shop", 2_000, 500, on_event=stop, overwrite=True)
    assert [file.name for file in tmp_path.iterdir()] == ["shop"]
    assert (tmp_path / "shop" / "train.jsonl").read_bytes() == before


def test_destination_must_be_free(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_shop(tmp_path / "empty", 200, 100)
    with pytest.raises(UsageError, match="not empty; choose another folder, or pass overwrite=True"):
        write_shop(tmp_path / "empty", 200, 100)
    assert write_shop(tmp_path / "empty", 300, 100, overwrite=True).n_test == 30
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("precious")
    with pytest.raises(UsageError, match="something other than a generated shop"):
        write_shop(tmp_path / "thesis", 200, 100, overwrite=True)
    with pytest.raises(UsageError, match="is a file; give the path of a new folder"):
        write_shop(tmp_path / "thesis" / "chapter.txt", 200, 100)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((99, 99), {}, "99 products are too few; ask for at least 100"),
        ((1_000, 99), {}, "99 queries are too few; ask for at least 100"),
        ((1_000, 1_001), {}, "at most as many queries as products"),
        ((1_000, 500), {"seed": -1}, "seed is -1; pass an integer from 0"),
        ((1_000, 500), {"test_fraction": 1.0}, "test_fraction is 1.0; pass a share between 0 and 1"),
        ((10**9, 10**8), {}, r"makes at most [\d,]+ queries"),
    ],
)
def test_bad_arguments(arguments: tuple[int, int], options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        generate_shop(*arguments, **options)


def test_brands_are_distinct() -> None:
    assert len(set(brand_names())) == N_BRANDS


def test_misspellings() -> None:
    assert misspell("running shoes", 3) == ["runing shoes", "runnign shoes", "runningshoes"]
    assert misspell("tv", 3) == []
