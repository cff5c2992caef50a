import gzip
import json
import logging
import lzma
import os
import random
from pathlib import Path

import pytest
import scipy.sparse as sp

import labelwise
from labelwise.data import ReadOptions, load_dataset, load_splits
from labelwise.errors import DataError, LabelwiseError, UsageError
from tests.data.examples import LABELS, ROWS, TEST_ROWS, dense, write_jsonl, write_text, write_toy

REAL_DATA = Path(os.environ.get("LABELWISE_DATA", "no-data"))


def test_test_alone_has_the_columns_of_training(tmp_path):
    test = load_dataset(write_toy(tmp_path), "test")
    assert test.labels == [*LABELS, "blue"]
    assert dense(test.Y) == [[0, 0, 1, 1]]


def test_splits_share_one_label_list(tmp_path):
    splits = load_splits(write_toy(tmp_path))
    assert splits["train"].labels is splits["test"].labels
    assert splits["train"].labels == [*LABELS, "blue"]
    assert splits["train"].Y.shape == (3, 4)


def test_labels_txt_gives_the_order(tmp_path):
    write_text(write_toy(tmp_path) / "labels.txt", "blue\nnever\nflower\nred\nfruit\n")
    train = load_dataset(tmp_path)
    assert train.labels == ["blue", "never", "flower", "red", "fruit"]
    assert load_dataset(tmp_path, "test").labels == train.labels
    assert dense(train.Y)[0] == [0, 0, 0, 1, 1]


def test_labels_beyond_labels_txt_follow(tmp_path):
    write_text(write_toy(tmp_path) / "labels.txt", "red\n")
    assert load_dataset(tmp_path).labels == ["red", "fruit", "flower"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("red\nblue\nred\n", "line 3: the label 'red' stands on line 1"),
        ("red\n\nblue\n", "line 2: a label name is empty"),
    ],
)
def test_label_lists_that_cannot_be(tmp_path, content, message):
    write_text(write_toy(tmp_path) / "labels.txt", content)
    with pytest.raises(DataError, match=message):
        load_dataset(tmp_path)


def test_labels_of_a_model_come_first(tmp_path):
    test = load_dataset(write_toy(tmp_path), "test", labels=["flower", "other"])
    assert test.labels[:2] == ["flower", "other"]
    assert set(test.labels[2:]) == {"fruit", "red", "blue"}
    assert dense(test.Y)[0][0] == 1
    splits = load_splits(tmp_path, labels=["flower"])
    assert splits["train"].labels[0] == "flower"
    assert splits["train"].labels is splits["test"].labels


def test_unseen_labels_are_kept_and_reported(tmp_path, caplog):
    heard = []
    caplog.set_level(logging.INFO, logger="labelwise")
    write_toy(tmp_path)
    for load in (lambda **o: load_dataset(tmp_path, "test", **o), lambda **o: load_splits(tmp_path, **o)):
        heard.clear()
        load(on_event=lambda name, values: heard.append((name, dict(values))))
        (event,) = [values for name, values in heard if name == "unseen_labels"]
        assert event == {"split": "test", "labels": 1, "occurrences": 1, "path": str(tmp_path), "first": ["blue"]}
    assert "1 labels of the test split (1 of 2 occurrences)" in caplog.text


def test_bad_rows_are_logged(tmp_path, caplog):
    path = write_jsonl(tmp_path / "d.jsonl", [*ROWS, {"id": "x", "text": "", "labels": ["a"]}])
    load_dataset(path, skip_bad_rows=True)
    assert "dropped 1 bad row; the first:\n  line 4: the row has no text" in caplog.text


def test_progress_is_reported(tmp_path):
    heard = []
    load_dataset(write_toy(tmp_path), "test", on_event=lambda name, values: heard.append((name, values)))
    finished = [(values["task"], values["done"]) for name, values in heard if name == "progress" and values["finished"]]
    assert finished == [("scanning train for labels", 3), ("reading test", 1)]


def test_a_missing_split_names_those_there_are(tmp_path):
    with pytest.raises(DataError, match="no split 'validation'; there are: train, test"):
        load_dataset(write_toy(tmp_path), "validation")


def test_a_single_file_answers_to_any_split(tmp_path):
    path = write_jsonl(tmp_path / "test.jsonl", TEST_ROWS)
    write_text(tmp_path / "labels.txt", "x\nblue\n")
    assert load_dataset(path).labels == ["x", "blue", "flower"]
    assert list(load_splits(path)) == ["test"]
    stranger = write_jsonl(tmp_path / "mine.jsonl", TEST_ROWS)
    assert load_dataset(stranger).labels == ["flower", "blue"]  # that labels.txt is not its own


def test_a_cut_archive_keeps_what_was_read(tmp_path):
    rng = random.Random(0)
    rows = [{"id": str(i), "text": f"{rng.getrandbits(400):x}", "labels": ["a"]} for i in range(3000)]
    packed = lzma.compress(write_jsonl(tmp_path / "x", rows).read_bytes())
    path = tmp_path / "train.jsonl.xz"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match="the archive is damaged after this line"):
        load_dataset(path)
    kept = load_dataset(path, skip_bad_rows=True)
    assert 0 < len(kept) < 3000
    assert kept.texts == [row["text"] for row in rows[: len(kept)]]


def test_label_texts(tmp_path):
    write_jsonl(write_toy(tmp_path) / "label_texts.jsonl", [{"label": "red", "text": "a colour"}])
    assert load_dataset(tmp_path).label_texts == ["fruit", "a colour", "flower"]
    write_jsonl(tmp_path / "label_texts.jsonl", [{"label": "red", "text": "a colour"}, {"label": "x"}])
    with pytest.raises(DataError, match="line 2: every line holds an object like"):
        load_dataset(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tetx_column": "a"}, "unknown reading option 'tetx_column'; there are: text_column, labels_column"),
        ({"encoding": "utf-99"}, "unknown encoding 'utf-99'; try utf-8"),
        ({"max_text_chars": 0}, "max_text_chars must be positive, not 0"),
        ({"label_separator": ""}, "label_separator is empty"),
        ({"text_column": " ,"}, "text_column is empty"),
        ({"libsvm_base": "two"}, "libsvm_base must be auto, zero or one, not 'two'"),
    ],
)
def test_options_that_make_no_sense(tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        load_dataset(write_toy(tmp_path), **options)


def test_every_option_is_documented():
    source = Path(labelwise.__file__).with_name("data").joinpath("options.py").read_text()
    for name in ReadOptions.__dataclass_fields__:
        after = source.split(f"    {name}: ", 1)[1].split("\n", 2)[1]
        assert after.strip().startswith('"""'), name


def test_loading_through_the_package(tmp_path):
    assert labelwise.load_dataset(write_toy(tmp_path)).labels == LABELS


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "n_docs", "n_labels"),
    [("usbills-4k", 5_596, 4_542), ("debdeps-15k", 10_022, 14_811), ("gutenberg-lcsh", 10_924, 12_482)],
)
def test_real_data(name, n_docs, n_labels):
    if not (REAL_DATA / name).is_dir():
        pytest.skip(f"LABELWISE_DATA names no folder with the data set {name}")
    test = load_dataset(REAL_DATA / name, "test")
    assert (len(test), test.n_labels) == (n_docs, n_labels)
    assert (test.label_texts is not None) == (name == "debdeps-15k")


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tsv", "parquet"])
def test_documents_to_be_labelled_need_no_labels_column(tmp_path, kind):
    path = tmp_path / f"new.{kind}"
    texts = ["first text", "second text"]
    if kind == "jsonl":
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    elif kind == "parquet":
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.table({"text": texts}), path)
    else:
        path.write_text("text\n" + "".join(f"{text}\n" for text in texts))
    dataset = load_dataset(path, allow_unlabelled=True)
    assert dataset.texts == texts
    assert dataset.Y.nnz == 0
    with pytest.raises(DataError, match="there is no column 'labels'"):
        load_dataset(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("train.txt", "1 5 2147483646\n0 1:1\n"),
        ("trn_X_Y.txt", "1 2147483646\n0:1\n"),
        ("train.svm", "2147483646 1:1\n"),
        ("trn.json", '{"uid": "a", "title": "b", "content": "c", "target_ind": [2147483646], "target_rel": [1]}\n'),
    ],
)
def test_few_bytes_tell_of_few_labels(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    (tmp_path / "trn_X.txt").write_text("one text\n")
    with pytest.raises(DataError, match=r"size can tell of 4,194,304"):
        load_splits(tmp_path)


def test_a_matrix_of_few_bytes_tells_of_few_labels(tmp_path):
    (tmp_path / "train_raw_texts.txt").write_text("one text\n")
    sp.save_npz(tmp_path / "Y.trn.npz", sp.csr_matrix(([1.0], [0], [0, 1]), shape=(1, 2**31 - 2)))
    with pytest.raises(DataError, match=r"Y.trn.npz: has 2,147,483,646 label columns, but a file of its size can tell"):
        load_splits(tmp_path)
    sp.save_npz(tmp_path / "Y.trn.npz", sp.coo_matrix(([1.0], ([0], [0])), shape=(2**31 - 2, 1)))
    with pytest.raises(DataError, match="it has 2,147,483,646 rows, nearly all of them empty"):
        load_splits(tmp_path)


@pytest.mark.parametrize("name", ["train.jsonl.gz", "labels.txt.gz"])
def test_unpacking_is_bounded(tmp_path, name):
    (tmp_path / "train.jsonl").write_text('{"text": "a", "labels": ["b"]}\n')
    if name.startswith("train"):
        (tmp_path / "train.jsonl").unlink()
    (tmp_path / name).write_bytes(gzip.compress(b'{"text": "a", "labels": ["b"]}\n' * 1_000_000, 1))
    with pytest.raises(DataError, match=rf"{name}: unpacks to more than [0-9,]+ bytes"):
        load_splits(tmp_path)


def test_pipes_and_closed_files(tmp_path):
    os.mkfifo(tmp_path / "train.jsonl")
    with pytest.raises(DataError, match="is a pipe or a device"):
        load_dataset(tmp_path / "train.jsonl")
    with pytest.raises(DataError, match="no data found here"):
        load_splits(tmp_path)


@pytest.mark.parametrize("cell", ["[{[]: 1}]", "[" * 5000 + "]", "[" + "9" * 5000 + "]", "[b'a']", "[1e999]", "[[1]]"])
def test_lists_in_cells_that_are_none(tmp_path, cell):
    (tmp_path / "train.csv").write_text(f'text,labels\na,"{cell}"\nb,c\n')
    read = load_splits(tmp_path, skip_bad_rows=True)["train"]
    assert read.texts[-1] == "b"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "base64"}, "unknown encoding 'base64'"),
        ({"encoding": "a\0b"}, "unknown encoding"),
        ({"encoding": 5}, "encoding is 5; it must be a string"),
        ({"max_text_chars": True}, "max_text_chars is True; it must be a whole number"),
        ({"max_unpacked": 0}, "max_unpacked must be positive"),
        ({"max_unpacked": "1"}, "max_unpacked is '1'; it must be a whole number or None"),
        ({"skip_bad_rows": "no"}, "skip_bad_rows is 'no'; it must be true or false"),
    ],
)
def test_reading_options_that_make_no_sense(options, message):
    with pytest.raises(UsageError, match=message):
        ReadOptions(**options)


@pytest.mark.parametrize("path", [None, 5, b"abc", ["a"], "a\0b", "x" * 5000, "\ud800"])
def test_paths_that_are_none(path):
    with pytest.raises(LabelwiseError):
        load_dataset(path)
