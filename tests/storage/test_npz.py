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
        ({"data": np.array([1, 2, np.nan, 4])}, "NaN or infinite"),
        ({"data": np.array([1e300, 2, 3, 4])}, "NaN or infinite"),
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


HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}"


def entry(content, name="data.npy"):
    """An npz file, in memory, with one entry."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        out.writestr(name, content)
    return buffer.getvalue()


def array_file(*, magic=b"\x93NUMPY", version=b"\1\0", header=HEADER, content=bytes(8), width=2):
    text = header.encode()
    return magic + version + len(text).to_bytes(width, "little") + text + content


@pytest.mark.parametrize(("version", "width"), [(b"\1\0", 2), (b"\2\0", 4), (b"\3\0", 4)])
def test_all_versions_of_headers_are_read(tmp_path, version, width):
    path = tmp_path / "m.npz"
    path.write_bytes(entry(array_file(version=version, width=width, content=np.array([2.5]).tobytes())))
    assert read_npz(path)["data"].tolist() == [2.5]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (array_file(magic=b"\x93NUMPX"), "data.npy is no array"),
        (array_file(version=b"\4\0", width=4), "data.npy is no array"),
        (array_file(version=b"\1\1"), "data.npy is no array"),
        (array_file(version=b"\0\1"), "data.npy is no array"),
        (array_file()[:6], "data.npy is no array"),
        (array_file()[:20], "data.npy has too long a header"),
        (array_file(content=bytes(7)), "data.npy has another size than its header says"),
        (array_file(content=bytes(9)), "data.npy has another size than its header says"),
        (array_file(header=HEADER.replace("'shape'", "'form'")), "data.npy has a header without type and shape"),
        (array_file(header=f"[{HEADER}]"), "data.npy has a header without type and shape"),
        (array_file(header=HEADER.replace("'<f8'", "8")), "data.npy holds something else than numbers"),
        (array_file(header=HEADER.replace("(1,)", "[1]")), "data.npy has a shape that is none"),
        (array_file(header=HEADER.replace("(1,)", "(1, 1.0)")), "data.npy has a shape that is none"),
        (array_file(header=HEADER.replace("(1,)", "(-1, -1)")), "data.npy has a shape that is none"),
        (array_file(header=HEADER.replace("(1,)", str((1,) * 9))), "data.npy has a shape that is none"),
        (array_file(header=HEADER.replace("<f8", "<f9")), "data.npy is of an unknown type"),
        (array_file(header=HEADER + " x"), "data.npy has a header that cannot be read"),
    ],
)
def test_each_fault_of_an_entry_has_its_sentence(tmp_path, content, message):
    path = tmp_path / "m.npz"
    path.write_bytes(entry(content))
    with pytest.raises(DataError, match=rf"not a whole npz file \({message}\); fetch it again, or save it with"):
        read_npz(path)


def test_arrays_of_eight_dimensions_and_none(tmp_path):
    arrays = {"deep": np.arange(2.0).reshape((2,) + (1,) * 7), "one": np.array(3), "none": np.zeros((0, 2))}
    np.savez(tmp_path / "m.npz", columns=np.arange(6).reshape(2, 3, order="F"), big=np.array([1, 2], ">i4"), **arrays)
    found = read_npz(tmp_path / "m.npz")
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].shape == array.shape
    assert found["columns"].tolist() == [[0, 2, 4], [1, 3, 5]]
    assert found["big"].tolist() == [1, 2]
    assert found["big"].dtype == np.int32
    assert found["deep"].flags.writeable  # scipy changes some arrays in place


class Short:
    """An entry's stream that gives one byte less than the archive says, or one more."""

    def __init__(self, stream, missing):
        self.stream, self.missing = stream, missing

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stream.close()

    def read(self, n):
        return self.stream.read(n)

    def readinto(self, buffer):
        return self.stream.readinto(buffer) - self.missing


@pytest.mark.parametrize("missing", [1, 0])
def test_an_entry_that_ends_too_early_or_too_late_is_cut_off(tmp_path, monkeypatch, missing):
    path = tmp_path / "m.npz"
    path.write_bytes(entry(array_file()))
    real = zipfile.ZipFile.open
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *arguments: Short(real(*arguments), missing))
    if missing:
        with pytest.raises(DataError, match="is cut off"):
            read_npz(path)
    else:
        assert read_npz(path)["data"].tolist() == [0]
        monkeypatch.setattr(Short, "read", lambda self, n: self.stream.read(n) or b"x")
        with pytest.raises(DataError, match="is cut off"):
            read_npz(path)


def test_the_bound_of_unpacked_bytes(tmp_path):
    path = tmp_path / "m.npz"
    np.savez_compressed(path, data=np.zeros(1000))
    with zipfile.ZipFile(path) as opened:
        size = sum(one.file_size for one in opened.infolist())
    assert read_npz(path, size)["data"].shape == (1000,)
    with pytest.raises(DataError, match=rf"unpacks to more than {size - 1:,} bytes, from {path.stat().st_size:,};"):
        read_npz(path, size - 1)
    with pytest.raises(DataError, match="'format' is missing"):  # what unpacks to so little is always read
        load_npz(path)


def test_files_that_are_none(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        read_npz(tmp_path / "none")
    (tmp_path / "empty").touch()
    with pytest.raises(DataError, match="the file is empty; it should hold a sparse matrix"):
        read_npz(tmp_path / "empty")


def test_duplicates_are_summed_and_rows_sorted(tmp_path):
    path = tmp_path / "m.npz"
    write(path, data=np.array([1.0, 2, 3, 4]), indices=np.array([3, 0, 0, 1]), indptr=np.array([0, 3, 3, 4]))
    found = load_npz(path)
    assert found.indices.tolist() == [0, 3, 1]
    assert found.data.tolist() == [5, 1, 4]
    assert found.indptr.dtype == np.int32
    blocks = {"data": np.ones((2, 1, 2)), "indices": np.array([1, 1]), "indptr": np.array([0, 2])}
    write(path, format=np.array(b"bsr"), shape=np.array([1, 4]), **blocks)
    found = load_npz(path)
    assert (found.indices.tolist(), found.data.tolist()) == ([2, 3], [2, 2])
    write(path, format=np.array(b"coo"), row=np.array([0, 0, 2, 0]), col=np.array([1, 1, 3, 0]), data=np.ones(4))
    assert load_npz(path).toarray().tolist() == [[1, 2, 0, 0], [0] * 4, [0, 0, 0, 1]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": np.array([3.0, 4.0])}, "its format or its shape is none"),
        ({"shape": np.array([3, -4])}, "its shape is 3 x -4"),
        ({"shape": np.array([3, 2**31])}, "its shape is 3 x 2147483648"),
        (
            {"format": np.array(b"csc"), "shape": np.array([2**21, 3])},
            "it has 2,097,152 rows, nearly all of",
        ),
        ({"data": np.array([True, True, True, True]), "indices": np.ones((4, 1), int)}, "one for each value"),
        ({"indptr": np.array([0.0, 2, 2, 4])}, "its indptr does not fit its shape"),
        ({"indptr": np.array([1, 2, 2, 4])}, "its indptr does not fit its shape"),
        ({"indptr": np.array([0, 2, 2, 3])}, "its indptr does not fit its shape"),
        ({"indptr": np.array([0, 2, 2, 2, 4])}, "its indptr does not fit its shape"),
        ({"format": np.array(b"coo"), "row": np.array([0, 0, 1, 3]), "col": np.zeros(4, int)}, "its row are out of"),
        ({"format": np.array(b"coo"), "row": np.zeros(4, int), "col": np.array([0, 0, 1, 4])}, "its col are out of"),
        ({"format": np.array(b"dia"), "data": np.ones((1, 3)), "offsets": np.array([0.0])}, "its offsets do not fit"),
        ({"format": np.array(b"dia"), "data": np.ones((1, 3)), "offsets": np.array([0, 1])}, "its offsets do not fit"),
        ({"format": np.array(b"bsr"), "data": np.ones((4, 1, 0))}, "its blocks do not fit"),
        ({"format": np.array(b"bsr"), "data": np.ones((4, 1, 1)), "indices": np.zeros(4)}, "its blocks do not fit"),
        (
            {"format": np.array(b"bsr"), "data": np.ones((4, 1, 1)), "indices": np.array([0, 1, 2, 9])},
            "index values must",
        ),
    ],
)
def test_more_arrays_that_make_no_matrix(tmp_path, changes, message):
    write(tmp_path / "m.npz", **changes)
    with pytest.raises(DataError, match=message):
        load_npz(tmp_path / "m.npz")


def test_types_of_values(tmp_path):
    path = tmp_path / "m.npz"
    for dtype, wanted in (
        (np.bool_, np.float32),
        (np.float16, np.float32),
        (np.int8, np.float32),
        (np.int64, np.int64),
        (np.int32, np.int32),
    ):
        write(path, data=np.array([1, 1, 0, 1], dtype))
        assert load_npz(path, None).dtype == wanted
        assert load_npz(path).dtype == np.float32
    write(path, shape=np.array(MATRIX.shape, np.uint8), format=np.array("csr"))
    np.testing.assert_array_equal(load_npz(path).toarray(), MATRIX.toarray())
    empty = {"data": np.zeros(0), "indices": np.zeros(0, int), "indptr": np.zeros(1, int), "shape": np.array([0, 0])}
    write(path, **empty)
    assert load_npz(path).shape == (0, 0)
