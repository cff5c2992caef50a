import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.data import load_dataset, load_splits
from labelwise.errors import DataError
from tests.data.examples import Y_TRAIN, dense, write_text


def test_counted_from_one(tmp_path):
    write_text(tmp_path / "train.svm", "0,1 1:0.5 4:1\n1,2 2:2 # a remark\n\n0 3:0\n")
    write_text(tmp_path / "test.svm", "2 5:1\n")
    splits = load_splits(tmp_path)
    assert dense(splits["train"].Y) == Y_TRAIN
    assert dense(splits["train"].features) == [[0.5, 0, 0, 1, 0], [0, 2, 0, 0, 0], [0, 0, 0, 0, 0]]
    assert splits["test"].features.shape == (1, 5)
    assert splits["test"].labels == ["0", "1", "2"]


def test_counted_from_zero(tmp_path):
    path = write_text(tmp_path / "d.txt", "0 0:1 2:1\n")
    assert dense(load_dataset(path).features) == [[1, 0, 1]]
    with pytest.raises(DataError, match="line 1: feature 0 is out of range in a file counted from 1"):
        load_dataset(path, libsvm_base="one")
    shifted = write_text(tmp_path / "e.svm", "0 1:1\n")
    assert dense(load_dataset(shifted, libsvm_base="zero").features) == [[0, 1]]
    assert dense(load_dataset(shifted).features) == [[1]]


def test_label_names_beside(tmp_path):
    write_text(tmp_path / "labels.txt", "fruit\nred\n")
    path = write_text(tmp_path / "train.svm", "1 1:1\n2 1:1\n")
    with pytest.raises(DataError, match=r"line 2: a label is out of range: labels.txt names 2"):
        load_dataset(path)
    dataset = load_dataset(path, skip_bad_rows=True)
    assert dataset.labels == ["fruit", "red"]
    assert dense(dataset.Y) == [[0, 1]]


def test_what_is_wrong_is_named(tmp_path):
    with pytest.raises(DataError, match="line 2: what stands at position 3 is not a feature:value pair"):
        load_dataset(write_text(tmp_path / "a.svm", "0 1:1\n0 x\n"))
    with pytest.raises(DataError, match=r"line 1: label 99999999999 is out of range|numbers must be below"):
        load_dataset(write_text(tmp_path / "b.svm", "99999999999 1:1\n"))
    with pytest.raises(DataError, match="the file is empty"):
        load_dataset(write_text(tmp_path / "c.svm", ""))


@pytest.mark.rivals
@pytest.mark.parametrize("zero_based", [True, False])
def test_files_of_scikit_learn(tmp_path, zero_based):
    datasets = pytest.importorskip("sklearn.datasets")
    rng = np.random.default_rng(0)
    X = sp.random_array((20, 9), density=0.4, rng=rng, format="csr")
    Y = (rng.random((20, 5)) < 0.3).astype(int)
    datasets.dump_svmlight_file(sp.csr_matrix(X), Y, str(tmp_path / "d.svm"), zero_based=zero_based, multilabel=True)
    dataset = load_dataset(tmp_path / "d.svm", libsvm_base="zero" if zero_based else "one")
    rows = np.flatnonzero((np.diff(X.indptr) > 0) | (Y.sum(axis=1) > 0))
    np.testing.assert_allclose(dataset.features.toarray(), X.toarray()[rows], rtol=1e-6)
    np.testing.assert_array_equal(dataset.Y.toarray(), Y[rows])
