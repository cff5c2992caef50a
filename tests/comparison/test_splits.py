"""The data of a comparison."""

import json

import pytest

from labelwise.comparison.splits import Splits
from labelwise.errors import DataError, UsageError


def write(folder, **splits):
    folder.mkdir()
    for split, rows in splits.items():
        lines = [json.dumps({"text": text, "labels": labels}) for text, labels in rows]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


TRAIN = [("a cat", ["cat"]), ("a dog", ["dog"]), ("cat and dog", ["cat", "dog"])]

TEST = [("an elm", ["elm"]), ("dogs", ["dog"])]


def test_labels_of_the_test_split_alone_are_not_trained(tmp_path):
    splits = Splits.read(write(tmp_path / "data", train=TRAIN, test=TEST))
    assert splits.train.labels == ["cat", "dog"]
    assert splits.test.labels == ["cat", "dog", "elm"]
    assert splits.Y_train.toarray().tolist() == [[1, 0, 0], [0, 1, 0], [1, 1, 0]]
    assert splits.validation is None
    (tmp_path / "data" / "labels.txt").write_text("dog\nelm\ncat\n")
    assert Splits.read(tmp_path / "data").train.labels == ["dog", "elm", "cat"]  # whoever lists them knows them


def test_a_few_documents_and_another_split(tmp_path):
    folder = write(tmp_path / "data", train=TRAIN, validation=TEST[1:], test=TEST)
    splits = Splits.read(folder, max_docs=1)
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [1, 1, 1]
    assert splits.train.labels == ["cat"]
    judged = Splits.read(folder, split="validation")
    assert judged.validation is None
    assert judged.test.texts == ["dogs"]
    assert judged.learnt != splits.learnt
    with pytest.raises(DataError, match="no split 'dev'; there are: train, validation, test"):
        Splits.read(folder, split="dev")
    with pytest.raises(UsageError, match="not evaluated on the documents"):
        Splits.read(folder, split="train")


def test_fingerprints_depend_on_the_right_parts(tmp_path):
    one = Splits.read(write(tmp_path / "one", train=TRAIN, test=TEST))
    two = Splits.read(write(tmp_path / "two", train=TRAIN, test=TEST[::-1]))
    assert (one.learnt == two.learnt, one.judged == two.judged) == (True, False)
