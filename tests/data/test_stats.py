import io
import json
import re

import pytest
from rich.console import Console

from labelwise.data import describe, load_splits, statistics_table
from labelwise.errors import UsageError
from tests.data.examples import write_jsonl, write_text, write_toy


@pytest.fixture
def splits(tmp_path):
    common = [{"text": f"word {i}", "labels": ["head"]} for i in range(101)]
    rare = [{"text": "word 0", "labels": ["head", "rare"]}, {"text": "a b c d e f", "labels": ["few"]}]
    write_jsonl(
        tmp_path / "train.jsonl", [*common, *rare, {"text": "x y z", "labels": ["few"]}, {"text": "n", "labels": []}]
    )
    write_jsonl(tmp_path / "validation.jsonl", [{"text": "v", "labels": ["few"]}])
    write_jsonl(
        tmp_path / "test.jsonl", [{"text": "word 7", "labels": ["head", "new"]}, {"text": "none", "labels": ["head"]}]
    )
    return load_splits(tmp_path, allow_unlabelled=True)


def test_numbers_by_eye(splits):
    stats = describe(splits)
    assert (stats.n_train, stats.n_validation, stats.n_test) == (105, 1, 2)
    assert (stats.train_words, stats.test_words) == (101 * 2 + 2 + 6 + 3 + 1, 3)
    assert (stats.n_labels, stats.n_labels_train) == (4, 3)
    assert stats.labels_per_document == pytest.approx(105 / 105)
    assert stats.documents_per_label == pytest.approx(105 / 4)
    assert (stats.n_head_labels, stats.head_share) == (1, 0.25)
    assert (stats.n_tail_labels, stats.n_single_labels) == (2, 1)
    assert (stats.n_unseen_labels, stats.unseen_share) == (1, pytest.approx(1 / 3))
    assert (stats.n_unlabelled_train, stats.n_unlabelled_test) == (1, 0)
    assert (stats.n_duplicates_train, stats.n_duplicates_test) == (1, 1)
    assert stats.word_percentiles["50"] == 2
    assert stats.word_percentiles["100"] == 6
    assert json.loads(json.dumps(stats.to_dict()))["n_features"] is None


def test_without_texts(tmp_path):
    write_text(tmp_path / "train.txt", "2 3 2\n0 1:1\n0 2:1\n")
    stats = describe(load_splits(tmp_path))
    assert (stats.n_features, stats.train_words, stats.n_duplicates_train) == (3, None, None)
    assert "features" in shown(stats)


def shown(stats) -> str:
    console = Console(width=100, file=io.StringIO())
    console.print(statistics_table(stats, title="my data"))
    return re.sub(" +", " ", console.file.getvalue())


def test_the_table_is_readable(splits):
    table = shown(describe(splits))
    for line in (
        "my data",
        "training documents 105 214 words, 2 each",
        "labels with > 100 documents 1 25.0% of the labels",
        "documents without labels 1 1 train, 0 test",
        "test texts found in training 1 50.0% of the test documents",
    ):
        assert line in table


def test_rows_of_one_document_and_one_label_each_are_told(tmp_path):
    pairs = [("mirror", "a"), ("mirror", "b"), ("mirror", "b"), ("mirror", "a"), ("mug", "c"), ("mug", "c")]
    rows = [{"text": text, "labels": [label]} for text, label in pairs]
    write_jsonl(tmp_path / "train.jsonl", rows)
    stats = describe(load_splits(tmp_path))
    assert (stats.n_duplicates_train, stats.n_split_documents) == (4, 2)
    assert "… with another label 2 give a row for a document, with all labels" in shown(stats)
    write_jsonl(tmp_path / "train.jsonl", [*rows, {"text": "lamp", "labels": ["a", "b"]}])
    stats = describe(load_splits(tmp_path))
    assert stats.n_split_documents == 0
    assert "with another label" not in shown(stats)
    few = [{"text": f"text {i}", "labels": ["a"]} for i in range(40)]
    write_jsonl(tmp_path / "train.jsonl", [*rows[:2], *few])
    stats = describe(load_splits(tmp_path))
    assert stats.n_split_documents == 1
    assert "with another label" not in shown(stats)  # it may be an accident


def test_training_has_to_be_there(tmp_path):
    splits = load_splits(write_toy(tmp_path))
    with pytest.raises(UsageError, match="the training split, which is not there; there are: test"):
        describe({"test": splits["test"]})
    with pytest.raises(UsageError, match="different label lists"):
        describe({"train": splits["train"], "test": splits["test"].with_labels(["more"])})
