"""npz files: scipy's own matrices come back, and what a header or an archive claims is believed only if it fits."""

import io
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.errors import DataError
from labelwise.storage.npz import load_npz, read_npz

MATRIX = sp.csr_array(np.array([[0, 1.5, 0, 2], [0, 0, 0, 0], [3, 0, -4, 0]]))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
def test_matrices_of_scipy_come_back(tmp_path, kind, compressed, make):
    sp.save_npz(tmp_path / "m.npz", make(MATRIX).asformat(kind), compressed=compressed)
    found = load_npz(tmp_path / "m.npz")
    assert found.dtype == np.float32
    assert found.has_sorted_indices
    np.testing.assert_array_equal(found.toarray(), MATRIX.toarray())
    assert load_npz(tmp_path / "m.npz", None).dtype == np.float64


def write(path, **changes):
    """A csr matrix with other arrays."""
    arrays = {"format": np.array(b"csr"), "shape": np.array(MATRIX.shape), "data": MATRIX.data}
    arrays |= {"indptr": MATRIX.indptr, "indices": MATRIX.indices}
    np.savez(path, **{name: array for name, array in {**arrays, **changes}.items() if array is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": np.array([0, 1, 2, 4])}, "out of range: they should be from 0 to 3"),
        ({"indices": np.array([0, 1, -1, 2])}, "out of range"),
        ({"indices": np.array([0.0, 1, 2, 3])}, "not whole numbers"),
        ({"indices": np.array([0])}, "one for each value"),
        ({"indptr": np.array([0, 5, 1, 4])}, "its indptr falls"),
        ({"indptr": np.array([0, 2, 4])}, "does not fit its shape"),
        ({"indptr": np.array([0, 2, 2, 2**40])}, "does not fit its shape"),
        ({"data": np.array([1, 2, np.nan, 4])}, "not finite"),
        ({"data": np.array([1e300, 2, 3, 4])}, "not finite"),
        ({"data": np.array([1j, 2, 3, 4])}, "holds something else than numbers"),
        ({"data": np.array(["a", "b", "c", "d"])}, "values are of type"),
        ({"data": None}, "'data' is missing"),
        ({"shape": np.array([3, 4, 5])}, "its format or its shape is none"),
        ({"shape": np.array([3, 2**40])}, "its shape is 3 x 1099511627776"),
        ({"shape": np.array([-3, 4])}, "its shape is -3 x 4"),
        ({"format": np.array(["csr", "csc"])}, "its format or its shape is none"),
        ({"format": np.array("xyz")}, "its format is 'xyz'"),
        (
            {"format": np.array(b"coo"), "shape": np.array([2**31 - 1, 4]), "row": np.zeros(4, int)},
            "nearly all of them",
        ),
        ({"format": np.array(b"bsr")}, "its blocks do not fit"),
        ({"format": np.array(b"dia"), "offsets": np.array([0])}, "its offsets do not fit"),
    ],
)
def test_arrays_that_make_no_matrix_are_refused(tmp_path, changes, message):
    write(tmp_path / "m.npz", **changes)
    with pytest.raises(DataError, match=message):
        load_npz(tmp_path / "m.npz")


def archive(path, header, content=b"", *, size=None):
    """An npz file with one array, whose header is a text."""
    text = header.encode()
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("data.npy", b"\x93NUMPY\1\0" + (size or len(text)).to_bytes(2, "little") + text + content)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f8', 'shape': (1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1L,)}",
        "[" * 5000,
        "__import__('os').system('true')",
        "",
    ],
)
def test_headers_that_do_not_fit_are_refused(tmp_path, header):
    archive(tmp_path / "m.npz", header, bytes(8))
    with pytest.raises(DataError, match="not a whole npz file"):
        read_npz(tmp_path / "m.npz")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "m.npz", "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("data.npy", bytes(1 << 27))
    with pytest.raises(DataError, match=r"unpacks to more than [0-9,]+ bytes, from .*--max-unpacked"):
        read_npz(tmp_path / "m.npz")


def test_damage_of_every_byte_gives_one_sentence(tmp_path):
    path = tmp_path / "m.npz"
    sp.save_npz(path, MATRIX)
    content = path.read_bytes()
    for at in range(0, len(content), 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            found = load_npz(path)
        except DataError:
            continue
        np.testing.assert_array_equal(found.toarray(), MATRIX.toarray())
    for end in (0, 1, 30, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:end])
        with pytest.raises(DataError):
            load_npz(path)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="is not a file"):
        load_npz(tmp_path)
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    (tmp_path / "m.npz").write_bytes(buffer.getvalue())
    with pytest.raises(DataError, match="not a whole npz file"):
        load_npz(tmp_path / "m.npz")
