import gzip
import json

import pytest

from labelwise.data import load_dataset, load_splits
from labelwise.errors import DataError
from tests.data.examples import Y_TRAIN, dense, write_jsonl, write_text

TRAIN = "3 4 3\n0,1 0:0.5 3:1\n1,2 1:2\n0\n"
X_TRAIN = [[0.5, 0, 0, 1], [0, 2, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("names", [("train.txt", "test.txt"), ("eurlex_train.txt", "eurlex_test.txt")])
def test_files_with_a_header(tmp_path, names):
    write_text(tmp_path / names[0], TRAIN)
    write_text(tmp_path / names[1], "1 4 3\n 2:1.5\n\n\n")
    splits = load_splits(tmp_path)
    assert dense(splits["train"].Y) == Y_TRAIN
    assert dense(splits["train"].features) == X_TRAIN
    assert splits["train"].labels == ["0", "1", "2"]
    assert dense(splits["test"].Y) == [[0, 0, 0]]
    assert splits["test"].texts is None


@pytest.mark.parametrize(
    ("content", "message", "n_kept"),
    [
        ("3 4 3\n0 0:1\n7 0:1\n1 1:1\n", "line 3: label 7 is out of range: the header says there are 3", 2),
        ("3 4 3\n0 0:1\n1 4:1\n1 1:1\n", "line 3: feature 4 is out of range: the header says there are 4", 2),
        ("3 4 3\n0 0:1\n1 1;1\n1 1:1\n", "line 3: what stands at position 3 is not a feature:value pair", 2),
        ("3 4 3\n0 0:1\nx 1:1\n1 1:1\n", "line 3: what stands at position 1 is not a label number", 2),
        ("3 4 3\n0 0:1\n1 1:abc\n1 1:1\n", "line 3: the value of the feature at position 3 is not a finite", 2),
        ("3 4 3\n0 0:1\n", "line 1: the header promises 3 rows but there are 1", 1),
        ("1 4 3\n0 0:1\n1 1:1\n", "line 1: the header promises 1 rows but there are 2", 2),
    ],
)
def test_lies_are_named_or_skipped(tmp_path, content, message, n_kept):
    write_text(tmp_path / "train.txt", content)
    with pytest.raises(DataError, match=message):
        load_dataset(tmp_path)
    assert len(load_dataset(tmp_path, skip_bad_rows=True)) == n_kept


@pytest.mark.parametrize(
    ("header", "message"), [("3 4\n", "three|3 whole numbers"), ("3 4 99999999999\n", "header"), ("", "empty")]
)
def test_headers_that_are_none(tmp_path, header, message):
    write_text(tmp_path / "train.txt", header)
    with pytest.raises(DataError, match=message):
        load_dataset(tmp_path, format="xc")


def test_splits_that_disagree(tmp_path):
    write_text(tmp_path / "train.txt", TRAIN)
    write_text(tmp_path / "test.txt", "1 5 3\n0 1:1\n")
    with pytest.raises(DataError, match=r"promises 5 features and 3 labels, that of train.txt 4 and 3"):
        load_splits(tmp_path)


@pytest.fixture
def family(tmp_path):
    write_text(tmp_path / "trn_X_Xf.txt", "3 4\n0:0.5 3:1\n1:2\n\n")
    write_text(tmp_path / "trn_X_Y.txt", "3 3\n0:1 1:1\n1:1 2:1\n0:1\n")
    write_text(tmp_path / "tst_X_Xf.txt", "1 4\n2:1\n")
    write_text(tmp_path / "tst_X_Y.txt", "1 3\n\n")
    write_text(tmp_path / "Xf.txt", "a\nb\nc\nd\n")
    write_text(tmp_path / "Y.txt", "fruit\nred\nflower\n")
    write_text(tmp_path / "lbl_X_Xf.txt", "3 4\n0:1\n1:1\n2:1\n")
    return tmp_path


def test_the_family_of_matrices(family):
    splits = load_splits(family)
    assert dense(splits["train"].Y) == Y_TRAIN
    assert dense(splits["train"].features) == X_TRAIN
    assert splits["train"].labels == ["fruit", "red", "flower"]
    assert dense(splits["test"].Y) == [[0, 0, 0]]
    write_text(family / "trn_X.txt", "red apple\nred rose\ngreen apple\n")
    assert load_dataset(family).texts == ["red apple", "red rose", "green apple"]


def test_bad_rows_of_the_family(family):
    write_text(family / "trn_X_Y.txt", "3 3\n0:1 1:1\n9:1\n0:1\n")
    with pytest.raises(DataError, match=r"trn_X_Y.txt, line 3: label 9 is out of range"):
        load_dataset(family)
    kept = load_dataset(family, skip_bad_rows=True)
    assert dense(kept.Y) == [Y_TRAIN[0], Y_TRAIN[2]]
    assert dense(kept.features) == [X_TRAIN[0], X_TRAIN[2]]
    write_text(family / "trn_X_Xf.txt", "1 4\n0:1\n")
    with pytest.raises(DataError, match=r"has 1 rows but trn_X_Y.txt has 3"):
        load_dataset(family, skip_bad_rows=True)
    (family / "trn_X_Xf.txt").unlink()
    with pytest.raises(DataError, match=r"neither trn_X_Xf.txt nor trn_X.txt"):
        load_dataset(family)


@pytest.fixture
def raw(tmp_path):
    rows = [
        {"uid": "a", "title": "red apple", "content": "sweet", "target_ind": [0, 1], "target_rel": [1.0, 1.0]},
        {"uid": "b", "title": "red rose", "content": "", "target_ind": [1, 2]},
        {"uid": "c", "title": "green apple", "content": "sour", "target_ind": [0]},
    ]
    packed = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    (tmp_path / "trn.json.gz").write_bytes(packed)
    write_jsonl(tmp_path / "tst.json", [{"uid": "d", "title": "nothing", "content": "", "target_ind": []}])
    labels = [
        {"uid": "1", "title": "fruit", "content": "grows"},
        {"uid": "2", "title": "red"},
        {"uid": "3", "title": ""},
    ]
    write_jsonl(tmp_path / "lbl.json", labels)
    return tmp_path


def test_raw_texts(raw):
    splits = load_splits(raw)
    assert dense(splits["train"].Y) == Y_TRAIN
    assert splits["train"].texts == ["red apple sweet", "red rose", "green apple sour"]
    assert splits["train"].ids == ["a", "b", "c"]
    assert splits["train"].labels == ["fruit", "red", "3"]
    assert splits["train"].label_texts == ["fruit grows", "red", "3"]
    assert dense(splits["test"].Y) == [[0, 0, 0]]
    assert load_dataset(raw, text_column="title").texts == ["red apple", "red rose", "green apple"]


def test_raw_texts_without_label_names(raw):
    (raw / "lbl.json").unlink()
    assert load_dataset(raw, "test").labels == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("target", "message"),
    [([3], "label 3 is out of range: there are 3 labels"), ([-1], "not a column number"), (["0"], "not a column")],
)
def test_raw_labels_out_of_range(raw, target, message):
    write_jsonl(raw / "tst.json", [{"uid": "d", "title": "t", "target_ind": target}])
    with pytest.raises(DataError, match=f"line 1: .*{message}"):
        load_dataset(raw, "test")
