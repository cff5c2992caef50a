from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelwise.data import load_dataset, load_splits
from labelwise.data.formats.pecos import load_npz
from labelwise.errors import DataError
from tests.data.examples import LABELS, Y_TRAIN, dense, write_text


def write_npz(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    sp.save_npz(path, sp.csr_matrix(np.array(rows, dtype=np.float32)))
    return path


@pytest.fixture
def folder(tmp_path):
    write_npz(tmp_path / "Y.trn.npz", Y_TRAIN)
    write_npz(tmp_path / "Y.tst.npz", [[0, 0, 1]])
    write_text(tmp_path / "train_raw_texts.txt", "red apple\nred rose\ngreen apple\n")
    write_text(tmp_path / "test_raw_texts.txt", "blue rose\n")
    write_text(tmp_path / "label_map.txt", "\n".join(LABELS) + "\n")
    return tmp_path


def test_a_folder_by_eye(folder):
    splits = load_splits(folder)
    assert list(splits) == ["train", "test"]
    assert dense(splits["train"].Y) == Y_TRAIN
    assert splits["train"].texts == ["red apple", "red rose", "green apple"]
    assert splits["train"].features is None
    assert splits["test"].labels == LABELS


def test_features_beside_or_instead_of_texts(folder):
    write_npz(folder / "X.trn.npz", [[0, 1], [2, 0], [0, 0]])
    assert dense(load_dataset(folder).features) == [[0, 1], [2, 0], [0, 0]]
    (folder / "train_raw_texts.txt").unlink()
    assert load_dataset(folder).texts is None


def test_names_of_pecos(tmp_path):
    write_npz(tmp_path / "Y.trn.npz", Y_TRAIN)
    write_text(tmp_path / "X.trn.txt", "a\nb\nc")
    write_text(tmp_path / "output-items.txt", "same\nsame\n\n")
    (tmp_path / "output-items.txt").write_text("same\nsame\nother")
    dataset = load_dataset(tmp_path)
    assert dataset.texts == ["a", "b", "c"]
    assert dataset.labels == ["same", "same (2)", "other"]


def test_numbers_where_there_are_no_names(folder):
    (folder / "label_map.txt").unlink()
    assert load_dataset(folder).labels == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("label_map.txt", "a\nb\n", "there are 2 names but Y.trn.npz has 3 label columns"),
        ("train_raw_texts.txt", "a\nb\n", "has 2 lines but the label matrix has 3 rows"),
        ("train_raw_texts.txt", "a\nb\nc\nd\n", r"has more lines than the label matrix has rows \(3\)"),
        ("train_raw_texts.txt", "a\n\nc\n", "line 2: the row has no text"),
        ("train_raw_texts.txt", "a\n" + "b" * 30 + "\nc\n", "line 2: the text has 30 characters"),
    ],
)
def test_what_does_not_fit(folder, file, content, message):
    write_text(folder / file, content)
    with pytest.raises(DataError, match=message):
        load_dataset(folder, max_text_chars=20)


def test_another_encoding_is_suggested(folder):
    (folder / "train_raw_texts.txt").write_bytes("a\ncafé\nc\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"line 2: not UTF-8 .*--encoding latin-1"):
        load_dataset(folder)
    assert load_dataset(folder, encoding="latin-1").texts == ["a", "café", "c"]
    kept = load_dataset(folder, skip_bad_rows=True)
    assert kept.texts == ["a", "c"]
    assert dense(kept.Y) == [Y_TRAIN[0], Y_TRAIN[2]]


def test_matrices_that_do_not_fit(folder):
    write_npz(folder / "X.trn.npz", [[0, 1]])
    with pytest.raises(DataError, match=r"X has 1 rows but Y.trn.npz has 3"):
        load_dataset(folder)
    write_npz(folder / "Y.tst.npz", [[1, 1]])
    with pytest.raises(DataError, match="Y has 2 columns, but the first split has 3"):
        load_dataset(folder, "test")


def test_neither_texts_nor_features(folder):
    (folder / "train_raw_texts.txt").unlink()
    with pytest.raises(DataError, match=r"neither train_raw_texts.txt nor X.trn.npz"):
        load_dataset(folder)


def test_pickles_are_refused(folder):
    np.savez(folder / "Y.trn.npz", data=np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="not a whole npz file"):
        load_dataset(folder)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array])
def test_kinds_of_sparse_matrices(tmp_path, make):
    sp.save_npz(tmp_path / "a.npz", make(np.array(Y_TRAIN)))
    assert dense(load_npz(tmp_path / "a.npz")) == Y_TRAIN


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indices": [0, 9, 1, 2, 0]}, "its indices are out of range: they should be from 0 to 2"),
        ({"indices": [0, -1, 1, 2, 0]}, "out of range"),
        ({"indptr": [0, 2, 4]}, "its indptr does not fit its shape"),
        ({"indptr": [0, 4, 2, 5]}, "its indptr falls"),
        ({"data": [1.0, 1.0]}, "one for each value"),
        ({"data": [np.nan, 1, 1, 1, 1]}, "some values are NaN or infinite"),
        ({"shape": [-3, 3]}, "its shape is -3 x 3"),
        ({"format": b"dia"}, "offsets"),
        ({"format": None}, "format"),
    ],
)
def test_arrays_that_make_no_matrix(tmp_path, change, message):
    Y = sp.csr_matrix(np.array(Y_TRAIN, dtype=np.float32))
    arrays = {"indices": Y.indices, "indptr": Y.indptr, "data": Y.data, "shape": Y.shape, "format": b"csr"}
    arrays = {name: value for name, value in (arrays | change).items() if value is not None}
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=message):
        load_npz(tmp_path / "a.npz")


@given(at=st.integers(0, 10_000), byte=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_file_is_refused_in_our_words(tmp_path_factory, at, byte, cut):
    path = write_npz(tmp_path_factory.mktemp("npz") / "a.npz", Y_TRAIN)
    data = bytearray(path.read_bytes())
    at %= len(data)
    data[at] = byte
    path.write_bytes(data[:at] if cut else data)
    with suppress(DataError):
        load_npz(path)
