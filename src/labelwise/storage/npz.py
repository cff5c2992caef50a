"""Sparse matrices in the npz files that scipy writes, checked completely; nothing in a file is executed.

An npz file is a zip archive of arrays, each with a header. numpy believes the headers and makes room for what they say.
Here an array is read only if its header, its place in the archive and the size of the file agree.
"""

from __future__ import annotations

import ast
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.errors import DataError
from labelwise.storage.checks import is_below
from labelwise.types import Csr

MOST_HEADER_BYTES = 1 << 16
MOST_UNPACKED, UNPACKED_PER_BYTE = 1 << 26, 200
"""An archive may unpack to so many bytes, or to so many for each of its own."""
MOST_EMPTY_ROWS, ROWS_PER_ENTRY = 1 << 20, 100
"""A matrix may have so many rows, or so many for each of its entries."""
_DTYPE = re.compile(r"[<>|=][biufSU?][0-9]{0,4}")
_DAMAGE = (
    *(OSError, ValueError, EOFError, KeyError, IndexError, NotImplementedError, RuntimeError, OverflowError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)
"""What zipfile raises for archives that it cannot read."""


def load_npz(path: Path, dtype: npt.DTypeLike | None = np.float32, *, max_unpacked: int | None = None) -> Csr:
    """A sparse matrix that scipy saved, with sorted rows and without duplicate entries.

    Parameters
    ----------
    dtype
        The type of the values; the type that the file has, if None.
    max_unpacked
        Bytes that the file may unpack to; a multiple of its size if None.
    """
    arrays = read_npz(path, max_unpacked)
    try:
        matrix = _matrix(arrays, dtype)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError) as err:
        what = f"{err} is missing" if isinstance(err, KeyError) else str(err)
        raise DataError(f"not a sparse matrix ({what}); save it with scipy.sparse.save_npz", path=path) from err
    if not np.isfinite(matrix.data).all():
        raise DataError("some values are NaN or infinite; replace them before you save the matrix", path=path)
    return matrix


def read_npz(path: Path, max_unpacked: int | None = None) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an npz file."""
    if not path.is_file():
        raise DataError("there is no such file" if not path.exists() else "is not a file; give a file", path=path)
    size = path.stat().st_size
    if size == 0:
        raise DataError("the file is empty; it should hold a sparse matrix", path=path)
    most = max(MOST_UNPACKED, UNPACKED_PER_BYTE * size) if max_unpacked is None else max_unpacked
    left, arrays = most, {}
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                left -= entry.file_size
                if left < 0:
                    raise DataError(
                        f"unpacks to more than {most:,} bytes, from {size:,}; if that is meant, allow it with "
                        "--max-unpacked",
                        path=path,
                    )
                arrays[entry.filename.removesuffix(".npy")] = _read_array(archive, entry)
    except DataError:
        raise
    except _DAMAGE as err:
        message = f"not a whole npz file ({err}); fetch it again, or save it with scipy.sparse.save_npz"
        raise DataError(message, path=path) from err
    return arrays


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """One array of an archive; ValueError if its header does not fit its size."""
    with archive.open(entry) as stream:
        begin = stream.read(8)
        if begin[:6] != b"\x93NUMPY" or begin[6:] not in (b"\1\0", b"\2\0", b"\3\0"):
            raise ValueError(f"{entry.filename} is no array")
        width = 2 if begin[6] == 1 else 4
        length = int.from_bytes(stream.read(width), "little")
        if length > min(MOST_HEADER_BYTES, entry.file_size):
            raise ValueError(f"{entry.filename} has too long a header")
        dtype, shape, by_columns = _parsed_header(stream.read(length), entry.filename)
        n_bytes = math.prod(shape) * dtype.itemsize
        if n_bytes != entry.file_size - 8 - width - length:
            raise ValueError(f"{entry.filename} has another size than its header says")
        content = bytearray(n_bytes)  # scipy changes some arrays in place
        if stream.readinto(content) != n_bytes or stream.read(1):  # type: ignore[attr-defined]  # the checksum is compared at the end
            raise ValueError(f"{entry.filename} is cut off")
    array = np.frombuffer(content, dtype).reshape(shape, order="F" if by_columns else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _parsed_header(header: bytes, name: str) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Type, shape and order of an array, of the text of a Python dictionary."""
    try:
        about = ast.literal_eval(header.decode("latin1").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as err:
        raise ValueError(f"{name} has a header that cannot be read") from err
    if not isinstance(about, dict) or set(about) != {"descr", "fortran_order", "shape"}:
        raise ValueError(f"{name} has a header without type and shape")
    descr, shape = about["descr"], about["shape"]
    if not isinstance(descr, str) or not _DTYPE.fullmatch(descr):
        raise ValueError(f"{name} holds something else than numbers")
    if not isinstance(shape, tuple) or len(shape) > 8 or any(type(one) is not int or one < 0 for one in shape):
        raise ValueError(f"{name} has a shape that is none")
    try:
        dtype = np.dtype(descr)
    except TypeError as err:
        raise ValueError(f"{name} is of an unknown type") from err
    return dtype, shape, about["fortran_order"] is True


# ---------------------------------------------------------------------- matrices


def _matrix(arrays: Mapping[str, Any], dtype: npt.DTypeLike | None) -> Csr:
    """The matrix of saved arrays; ValueError if they do not make one."""
    if arrays["format"].size != 1 or arrays["shape"].shape != (2,) or arrays["shape"].dtype.kind not in "iu":
        raise ValueError("its format or its shape is none")
    kind = arrays["format"].reshape(-1)[0]
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    n_rows, n_columns = (int(n) for n in arrays["shape"])
    data = arrays["data"]
    if n_rows < 0 or n_columns < 0 or max(n_rows, n_columns) >= 1 << 31:
        raise ValueError(f"its shape is {n_rows} x {n_columns}")
    if kind != "csr" and n_rows > max(MOST_EMPTY_ROWS, ROWS_PER_ENTRY * data.size):
        raise ValueError(f"it has {n_rows:,} rows, nearly all of them empty")
    if data.dtype.kind not in "biuf":
        raise ValueError(f"its values are of type {data.dtype}")
    with np.errstate(over="ignore"):
        data = data.astype(dtype or (data.dtype if data.dtype.itemsize >= 4 else np.float32), copy=False)
    if kind == "coo":
        row = _indices("row", arrays["row"], n_rows, data)
        col = _indices("col", arrays["col"], n_columns, data)
        made: Csr = sp.coo_array((data, (row, col)), shape=(n_rows, n_columns)).tocsr()
        return made
    if kind in ("bsr", "dia"):
        return _rare(kind, arrays, data, (n_rows, n_columns))
    if kind not in ("csr", "csc"):
        raise ValueError(f"its format is {kind!r}; csr, csc, coo, bsr and dia can be read")
    outer, inner = (n_rows, n_columns) if kind == "csr" else (n_columns, n_rows)
    indptr, indices = arrays["indptr"], _indices("indices", arrays["indices"], inner, data)
    if indptr.dtype.kind not in "iu" or indptr.shape != (outer + 1,) or indptr[0] != 0 or indptr[-1] != data.size:
        raise ValueError("its indptr does not fit its shape")
    if (indptr[1:] < indptr[:-1]).any():
        raise ValueError("its indptr falls")
    parts = (data, indices, indptr.astype(np.int32 if data.size < 1 << 31 else np.int64, copy=False))
    if kind == "csr":
        made = sp.csr_array(parts, shape=(n_rows, n_columns))
    else:
        made = sp.csc_array(parts, shape=(n_rows, n_columns)).tocsr()
    made.sum_duplicates()
    return made


def _indices(name: str, numbers: Any, limit: int, data: Any) -> npt.NDArray[np.int32]:
    """Row or column numbers, one for each value."""
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or numbers.shape != data.shape:
        raise ValueError(f"its {name} are not whole numbers, one for each value")
    if not is_below(numbers, limit):
        raise ValueError(f"its {name} are out of range: they should be from 0 to {limit - 1}")
    found: npt.NDArray[np.int32] = numbers.astype(np.int32, copy=False)
    return found


def _rare(kind: str, arrays: Mapping[str, Any], data: Any, shape: tuple[int, int]) -> Csr:
    """A matrix of blocks or of diagonals, which scipy checks when it makes it."""
    if kind == "dia":
        offsets = arrays["offsets"]
        if data.ndim != 2 or offsets.dtype.kind != "i" or offsets.shape != data.shape[:1]:
            raise ValueError("its offsets do not fit its diagonals")
        made: Csr = sp.csr_array(sp.dia_array((data, offsets), shape=shape))
        return made
    indptr, indices = arrays["indptr"], arrays["indices"]
    if data.ndim != 3 or 0 in data.shape[1:] or {indptr.dtype.kind, indices.dtype.kind} != {"i"}:
        raise ValueError("its blocks do not fit its indices")
    blocks = sp.bsr_array((data, indices, indptr), shape=shape)
    blocks.check_format(full_check=True)
    made = sp.csr_array(blocks)
    made.sum_duplicates()
    return made
