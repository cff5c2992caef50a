"""Matrices that callers pass in: every damage is told before anything reads the matrix."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import Dataset, LinearTree, evaluate, precision_at_k
from labelwise.errors import DataError
from labelwise.features.matrices import checked_csr, feature_matrix, indicator_matrix
from labelwise.types import Csr

DENSE = np.array([[0.5, 0, 2], [0, 0, 0], [1, 3, 0]])
FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")


def fresh(form="csr", values=DENSE):
    return sp.csr_array(values).asformat(form)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, np.float32, np.float64, np.longdouble])
def test_every_format_and_type_gives_the_same_matrix(form, dtype):
    X = feature_matrix(fresh(form, DENSE.astype(dtype)))
    assert isinstance(X, sp.csr_array)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X.toarray(), DENSE.astype(dtype).astype(np.float32))
    np.testing.assert_array_equal(indicator_matrix(fresh(form, DENSE.astype(dtype))).toarray(), DENSE.astype(dtype) > 0)


def test_a_plain_matrix_is_not_copied():
    X = fresh().astype(np.float32)
    assert feature_matrix(X) is X


def test_unsorted_indices_and_stale_flags():
    X = fresh()
    assert X.has_canonical_format
    X.indices[:2], X.data[:2] = [2, 0], [2, 0.5]  # scipy still believes that the row is sorted
    np.testing.assert_array_equal(feature_matrix(X).toarray(), DENSE)
    assert X.indices[:2].tolist() == [2, 0]
    X.indices[:2] = [1, 1]
    assert feature_matrix(X).toarray()[0].tolist() == [0, 2.5, 0]


def test_labels_that_are_stored_twice_count_once():
    twice = sp.coo_array((np.ones(3), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert indicator_matrix(twice).toarray().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda X: X.indices.__setitem__(0, 10**6),
        lambda X: X.indices.__setitem__(-1, -3),
        lambda X: X.indptr.__setitem__(-1, 10**6),
        lambda X: X.indptr.__setitem__(0, 1),
        lambda X: X.indptr.__setitem__(0, -1),
        lambda X: X.indptr.__setitem__(1, 99),
        lambda X: setattr(X, "indptr", X.indptr[:-1]),
        lambda X: setattr(X, "indices", X.indices[:-1]),
        lambda X: setattr(X, "indices", X.indices.astype(float)),
        lambda X: setattr(X, "data", X.data[:-1]),
        lambda X: setattr(X, "indptr", X.indptr.tolist()),
        lambda X: setattr(X, "indices", np.full(X.indices.size, 2**64 - 1, np.uint64)),
    ],
)
@pytest.mark.parametrize("check", [feature_matrix, indicator_matrix])
def test_indices_out_of_range(form, damage, check):
    X = fresh(form)
    damage(X)
    with pytest.raises(DataError, match=r"is damaged: an index lies outside its shape \(3, 3\); build it again"):
        check(X)


def test_coordinates_and_lists_out_of_range():
    X = fresh("coo")
    X.col[0] = 3
    Z = fresh("lil")
    Z.rows[0] = [10**6, 7]
    for matrix in (X, Z):
        with pytest.raises(DataError, match="X is damaged"):
            feature_matrix(matrix)


@pytest.mark.parametrize("index_type", [np.int16, np.uint8, np.int64, np.uint64])
def test_indices_of_other_types(index_type):
    X = fresh()
    X.indices = X.indices.astype(index_type)
    np.testing.assert_array_equal(feature_matrix(X).toarray(), DENSE)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (DENSE, r"X is of class ndarray, not a sparse matrix .*csr_array\(X\)"),
        (None, "X is of class NoneType"),
        ([[1]], "X is of class list"),
        (fresh(values=DENSE.astype(complex)), "values of the type complex128; give real numbers"),
        (sp.csr_array(([1.0], [2**40], [0, 1]), shape=(1, 2**41)), "at most 2147483647 rows and columns"),
    ],
)
def test_what_is_no_matrix_of_numbers(matrix, message):
    with pytest.raises(DataError, match=message):
        feature_matrix(matrix)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_values_that_are_not_finite(value):
    X = fresh()
    X.data[3] = value
    with pytest.raises(DataError, match="X holds NaN or infinity in row 2, column 1; compute the features again"):
        feature_matrix(X)


def test_large_values_whose_sum_is_not_finite_in_32_bits():
    X = sp.csr_array(np.full((2, 3), 3e38, np.float32))
    assert feature_matrix(X) is X


@pytest.mark.parametrize(
    ("value", "message"),
    [(-1, "Y has the value -1.0 in row 2, column 0; give 1 where"), (np.nan, "Y holds NaN or infinity in row 2")],
)
def test_values_that_are_no_labels(value, message):
    Y = fresh()
    Y.data[2] = value
    with pytest.raises(DataError, match=message):
        indicator_matrix(Y)


def test_empty_matrices():
    for shape in ((0, 3), (3, 0), (0, 0)):
        csr, is_sorted = checked_csr(sp.csr_array(shape), "X")
        assert csr.shape == shape
        assert is_sorted


@pytest.mark.parametrize("offsets", [[0], [0, 0], [0.0, 1.0], [[0, 1]], [0, 1, 2]])
def test_diagonals_without_an_offset_each(offsets):
    X = sp.dia_array((np.ones((2, 3)), [0, 1]), shape=(3, 3))
    assert feature_matrix(X).nnz == 5
    X.offsets = np.array(offsets)  # scipy would read as many numbers as there are diagonals
    with pytest.raises(DataError, match="X is damaged"):
        feature_matrix(X)


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
def test_values_in_other_dimensions(form):
    X = fresh(form)
    X.data = X.data[:, None] if X.data.ndim == 1 else X.data[:, :, 0]
    with pytest.raises(DataError, match="X is damaged"):
        feature_matrix(X)


def test_masked_values_are_not_read():
    X = fresh()
    X.data = np.ma.masked_array(X.data, mask=[True, False, False, False])
    with pytest.raises(DataError, match="X has masked values; fill them, or leave these entries out"):
        feature_matrix(X)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [5e-324, 1e-60, 1e300])
def test_a_label_counts_however_small_or_large_its_value(value):
    Y = sp.csr_array(np.array([[value, 0], [0, 0], [value, value]]))
    assert indicator_matrix(Y).toarray().tolist() == [[1, 0], [0, 0], [1, 1]]


# ---------------------------------------------------------------------- values of label matrices

TEXTS = ["a red shoe", "a blue shoe", "a red mug"]
BINARY = Csr(np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]], np.float32))


def entries(tmp_path):
    """All places that take a label matrix."""
    from labelwise.sklearn import LinearTreeClassifier

    scores = Csr(BINARY * np.float32(0.5))
    return {
        "fit": lambda Y: LinearTree(threads=1).fit(TEXTS, Y),
        "Dataset": lambda Y: Dataset(Y=Y, labels=["a", "b", "c"], texts=TEXTS),
        "sklearn": lambda Y: LinearTreeClassifier(n_jobs=1).fit(TEXTS, Y),
        "evaluate": lambda Y: evaluate(Y, scores, threshold=0.1, bootstrap=0),
        "Y_train": lambda Y: evaluate(BINARY, scores, Y_train=Y, bootstrap=0),
        "precision": lambda Y: precision_at_k(Y, scores, 1),
    }


@pytest.mark.parametrize("entry", ["fit", "Dataset", "sklearn", "evaluate", "Y_train", "precision"])
def test_label_values_other_than_0_and_1_are_refused_or_said(entry, tmp_path, caplog):
    use = entries(tmp_path)[entry]
    with pytest.raises(DataError, match=r"has the value -1\.0 in row 0, column 0; give 1 where a document has a label"):
        use(Csr(BINARY * -1))
    assert not caplog.records
    use(Csr(BINARY * 2.5))
    said = [one.getMessage() for one in caplog.records if "not used as weights" in one.getMessage()]
    assert len(said) == 1
    assert "has the value 2.5 in row 0, column 0: such values are not used as weights, each counts as 1" in said[0]
    caplog.clear()
    for plain in (BINARY, BINARY.astype(bool), BINARY.astype(np.int64), sp.coo_array(BINARY)):
        use(plain)
    assert not [one for one in caplog.records if "weights" in one.getMessage()]


SMALL = np.array([[1.0, 0, 2], [0, 3, 0], [0, 0, 4], [5, 0, 0]])


def exchanged(matrix, **parts):
    """A matrix with other arrays."""
    for name, part in parts.items():
        setattr(matrix, name, part)
    return matrix


def with_lists(rows=None, values=None):
    """A matrix of lists whose first row has other columns or values."""
    matrix = sp.lil_array(SMALL)
    matrix.rows[0], matrix.data[0] = rows or matrix.rows[0], values or matrix.data[0]
    return matrix


def with_key(key, value=9.0):
    """A dictionary of keys with one more key."""
    matrix = sp.dok_array(SMALL)
    matrix._dict[key] = value
    return matrix


DIAGONAL = sp.dia_array(SMALL)
WRONG = {
    "lists with fewer values": lambda: with_lists(values=[1.0]),
    "lists with more values": lambda: with_lists(values=[1.0, 2.0, 3.0]),
    "lists with fractions": lambda: with_lists(rows=[0.7, 2.2]),
    "lists with strings": lambda: with_lists(values=["1", "2"]),
    "lists of another number": lambda: exchanged(sp.lil_array(SMALL), rows=sp.lil_array(SMALL).rows[:2]),
    "keys with fractions": lambda: with_key((0.5, 1.2)),
    "keys of three numbers": lambda: with_key((0, 1, 1)),
    "keys with strings as values": lambda: with_key((0, 1), "9"),
    "fewer offsets": lambda: exchanged(DIAGONAL.copy(), offsets=DIAGONAL.offsets[:-1]),
    "more offsets": lambda: exchanged(DIAGONAL.copy(), offsets=np.append(DIAGONAL.offsets, 9)),
    "offsets with fractions": lambda: exchanged(DIAGONAL.copy(), offsets=DIAGONAL.offsets * 1.5),
    "the same offset again": lambda: exchanged(DIAGONAL.copy(), offsets=np.zeros_like(DIAGONAL.offsets)),
    "one diagonal": lambda: exchanged(DIAGONAL.copy(), data=DIAGONAL.data[0]),
    "lists as diagonals": lambda: exchanged(DIAGONAL.copy(), data=DIAGONAL.data.tolist()),
    "blocks without rows": lambda: exchanged(sp.bsr_array(SMALL, blocksize=(2, 3)), data=np.ones((2, 0, 3))),
    "no blocks": lambda: exchanged(sp.bsr_array(SMALL, blocksize=(2, 3)), data=np.ones(2)),
    "no coordinates": lambda: exchanged(sp.coo_array(SMALL), coords=None),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("read", [feature_matrix, indicator_matrix])
def test_parts_that_do_not_fit_are_refused_before_scipy_reads_them(name, read):
    with pytest.raises(DataError, match=r"is damaged: .*; build it again"):
        read(WRONG[name]())


def test_masked_values_are_not_taken_for_values():
    matrix = sp.csr_array(SMALL)
    matrix.data = np.ma.masked_array(matrix.data, matrix.data == 3)
    with pytest.raises(DataError, match="X has masked values; fill them"):
        feature_matrix(matrix)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_all_forms_of_a_sound_matrix_are_read(form):
    assert feature_matrix(sp.csr_array(SMALL).asformat(form)).toarray().tolist() == SMALL.tolist()
