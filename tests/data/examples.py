"""Toy data with an answer known by eye, and how to compare data sets."""

import json
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from labelwise.data import Dataset

ROWS = [
    {"id": "a", "text": "red apple", "labels": ["fruit", "red"]},
    {"id": "b", "text": "red rose", "labels": ["red", "flower"]},
    {"id": "c", "text": "green apple", "labels": ["fruit"]},
]
TEST_ROWS = [{"id": "d", "text": "blue rose", "labels": ["flower", "blue"]}]
LABELS = ["fruit", "red", "flower"]
Y_TRAIN = [[1, 1, 0], [0, 1, 1], [1, 0, 0]]


def write_jsonl(path: Path, rows: list) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_toy(folder: Path) -> Path:
    write_jsonl(folder / "train.jsonl", ROWS)
    write_jsonl(folder / "test.jsonl", TEST_ROWS)
    return folder


def write_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
    return path


def dense(matrix: sp.csr_array) -> list:
    return matrix.toarray().tolist()


def assert_same(found: Dataset, wanted: Dataset, *, ids: bool = True, texts: bool = True) -> None:
    assert found.labels == wanted.labels
    assert found.Y.shape == wanted.Y.shape
    assert (found.Y != wanted.Y).nnz == 0
    assert found.label_texts == wanted.label_texts
    if texts:
        assert found.texts == wanted.texts
    if ids:
        assert found.ids == wanted.ids


def assert_same_matrix(found: sp.csr_array, wanted: sp.csr_array) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found.toarray(), wanted.toarray())
