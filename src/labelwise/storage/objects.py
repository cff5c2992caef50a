"""Safe files: safetensors and JSON, written whole or not at all, read by mapping. No pickle anywhere.

A saved object is a folder of two files. `arrays.safetensors` holds dense arrays and, as three arrays each, CSR
matrices. `config.json` tells what they are: the kind of object, its configuration, the format version, and size
and SHA-256 of the other file. Nothing in the folder is ever executed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from labelwise import __version__
from labelwise.config.settings import LONGEST_SHOWN, Range, Settings, shown
from labelwise.errors import StorageError, UsageError
from labelwise.storage.checks import (
    MOST_JSON_BYTES,
    Arrays,
    Entries,
    Length,
    check_file,
    checked_matrix,
    damaged,
    file_bytes,
    parse_json,
    typed,
)
from labelwise.storage.paths import checked_path
from labelwise.storage.replacing import atomic_file, atomic_folder
from labelwise.types import Csr

FORMAT_VERSION = 2
CONFIG = "config.json"
ARRAYS = "arrays.safetensors"
MOST_DIMENSIONS = 8
"""Dimensions of a saved array."""

_DTYPES = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "U16": np.uint16,
    "I16": np.int16,
    "F16": np.float16,
    "U32": np.uint32,
    "I32": np.int32,
    "F32": np.float32,
    "U64": np.uint64,
    "I64": np.int64,
    "F64": np.float64,
}

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Saved:
    """What a saved folder holds."""

    config: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]
    """Read-only, mapped from the file."""
    matrices: dict[str, Csr]
    """Read-only, mapped from the file; CSR arrays that fit each other."""
    path: Path
    """The folder."""

    @property
    def checked(self) -> Arrays:
        """The arrays, asked for with what must be true of them."""
        return Arrays(self.arrays, self.path)

    @property
    def entries(self) -> Entries:
        """The configuration, whose entries are asked for with their types."""
        return Entries(self.config, self.path / CONFIG)


# ---------------------------------------------------------------------- writing


def write_json(path: Path | str, value: Any) -> None:
    """Write JSON that people can read, whole or not at all."""
    with atomic_file(path) as aside:
        text = json.dumps(value, indent=2, ensure_ascii=False, default=_plain)
        aside.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")  # halves of characters


def save(
    path: Path | str,
    *,
    kind: str,
    config: Any = None,
    arrays: Mapping[str, npt.NDArray[Any]] | None = None,
    matrices: Mapping[str, Csr] | None = None,
) -> None:
    """Write a folder that `load` reads; an older one of the same name is replaced when the new one is complete.

    Parameters
    ----------
    kind
        What it is, checked by `load`.
    config
        A dataclass or a JSON-able value.
    arrays, matrices
        Dense arrays and CSR matrices by name.
    """
    from safetensors.numpy import save_file

    tensors = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
    shapes = {}
    for name, matrix in (matrices or {}).items():
        shapes[name] = list(matrix.shape)
        for part in ("indptr", "indices", "data"):
            tensors[f"{name}.{part}"] = np.ascontiguousarray(getattr(matrix, part))
    with atomic_folder(path, overwrite=True) as folder:
        save_file(tensors, folder / ARRAYS)
        files = {ARRAYS: {"bytes": (folder / ARRAYS).stat().st_size, "sha256": _sha256(folder / ARRAYS)}}
        write_description(folder, kind=kind, config=config, matrices=shapes, files=files)


def write_description(folder: Path, *, kind: str, config: Any, **more: Any) -> None:
    """Write the config.json that says what a folder holds."""
    about = {"format": "labelwise", "version": FORMAT_VERSION, "labelwise": __version__, "kind": kind}
    write_json(folder / CONFIG, {**about, "config": config, **more})


def to_json(value: Any) -> str:
    """JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    """What JSON does not know: dataclasses, numpy scalars, paths."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


# ---------------------------------------------------------------------- reading


def load(path: Path | str, *, kind: str, verify: bool = True) -> Saved:
    """Read a folder written by `save`.

    Parameters
    ----------
    kind
        What it must be.
    verify
        Read the arrays once to compare their checksum; without it only sizes are compared.
    """
    path = checked_path(path)
    description = Entries(read_description(path, kind=kind), path / CONFIG)
    file = path / ARRAYS
    if not file.exists():
        raise StorageError(f"{file} is missing; the folder is incomplete, copy or make it again")
    check_file(file)
    files = description.table("files") if "files" in description else Entries({}, path / CONFIG)
    expected = files.get(ARRAYS, dict[str, Any]) if ARRAYS in files else {}
    if file.stat().st_size != expected.get("bytes") or (verify and _sha256(file) != expected.get("sha256")):
        raise StorageError(f"{file} is damaged (its size or checksum is wrong); copy or make it again")
    arrays = map_arrays(file)
    matrices = {}
    shapes = description.get("matrices", dict[str, Any]) if "matrices" in description else {}
    for name, shape in shapes.items():
        if any(f"{name}.{part}" not in arrays for part in ("data", "indices", "indptr")):
            raise damaged(path, f"the matrix {name!r} is missing")
        data, indices, indptr = (arrays.pop(f"{name}.{part}") for part in ("data", "indices", "indptr"))
        matrices[name] = checked_matrix((data, indices, indptr), shape, f"{path}: the matrix {name!r}")
    config = Entries(description.values.get("config") or {}, f"{path / CONFIG}: config")
    return Saved(config.values, arrays, matrices, path)


def read_description(path: Path, *, kind: str | None = None) -> dict[str, Any]:
    """Read the config.json of a folder, which must hold a `kind` if one is given."""
    description: Any = read_json(path / CONFIG)
    if not isinstance(description, dict) or description.get("format") != "labelwise":
        raise StorageError(f"{path / CONFIG} was not written by labelwise; give a folder that labelwise saved")
    if typed(Annotated[int, Range(at_least=0)], description.get("version", 0), path / CONFIG) > FORMAT_VERSION:
        raise StorageError(
            f"{path} has format version {description['version']}, written by labelwise "
            f"{shown(description.get('labelwise', '?'))}; this is {__version__}, which reads versions up to "
            f"{FORMAT_VERSION}: run pip install --upgrade labelwise"
        )
    if kind is not None and description.get("kind") != kind:
        found = description.get("kind")
        found = found if isinstance(found, str) and len(found) <= LONGEST_SHOWN else shown(found)
        raise StorageError(f"{path} holds a saved {found}, not a {kind}; give the folder of a {kind}")
    return description


def read_json(path: Path) -> Any:
    """Read a JSON file, or say in one sentence why not."""
    return parse_json(file_bytes(path, MOST_JSON_BYTES), path)


def map_arrays(file: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a safetensors file as read-only views of the mapped file: nothing is copied."""
    wrong = StorageError(f"{file} is not a valid safetensors file; copy or make it again")
    check_file(file)
    whole = np.memmap(file, np.uint8, "r") if file.stat().st_size >= 8 else np.empty(0, np.uint8)
    if len(whole) < 8:
        raise wrong
    begin = 8 + int(whole[:8].view("<u8")[0])
    if begin > len(whole) or begin > MOST_JSON_BYTES:
        raise wrong
    header = parse_json(bytes(whole[8:begin]), f"{file} is not a valid safetensors file: its header")
    arrays: dict[str, npt.NDArray[Any]] = {}
    for name, entry in Entries(header, file).values.items():
        if name == "__metadata__":
            continue
        found = _mapped(whole[begin:], Entries(entry, f"{file}: {name}"))
        if found is None:
            raise wrong
        arrays[name] = found
    return arrays


def _mapped(content: npt.NDArray[np.uint8], entry: Entries) -> npt.NDArray[Any] | None:
    """One array of a safetensors file; None where type, shape and place do not fit each other or the file."""
    start, end = entry.get("data_offsets", tuple[Length, Length])
    dtype, shape = _DTYPES.get(entry.get("dtype", str)), entry.get("shape", list[Length])
    if dtype is None or len(shape) > MOST_DIMENSIONS or not start <= end <= len(content):
        return None
    itemsize = np.dtype(dtype).itemsize
    # An array off its alignment would be of another type for the kernels, which are compiled for each type.
    aligned = (content.ctypes.data + start) % itemsize == 0
    if not aligned or math.prod(shape) * itemsize != end - start:
        return None
    try:
        return np.asarray(content[start:end]).view(dtype).reshape(shape)
    except ValueError:  # no bytes, and a shape that numpy cannot have
        return None


def restore(cls: type[T], values: Mapping[str, Any], path: Path | str) -> T:
    """A configuration dataclass from its saved form, that of an earlier format version too (its `RENAMED`), checked."""
    config = _restored(cls, values, path)
    try:
        return config.validated() if isinstance(config, Settings) else config
    except UsageError as err:
        raise StorageError(f"{path} has settings that are wrong: {err}; copy or make it again") from err


def _restored(cls: type[T], values: Mapping[str, Any], path: Path | str) -> T:
    hints = get_type_hints(cls)
    kinds = {field.name: hints[field.name] for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    values = Entries(values, f"{path} has settings that are wrong").values
    values = _with_present_names(values, getattr(cls, "RENAMED", {}), set(kinds), path)
    unknown = sorted(set(values) - set(kinds))
    if unknown:
        raise StorageError(
            f"{path} has settings that labelwise {__version__} does not know ({shown(', '.join(unknown))[1:-1]}); "
            "a newer version wrote it (run pip install --upgrade labelwise), or it was changed: copy or make it again"
        )
    ready: dict[str, Any] = {}
    for name, value in values.items():
        kind: Any = kinds[name]
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            ready[name] = _restored(kind, value, f"{path}: {name}")
        else:
            ready[name] = tuple(value) if get_origin(kind) is tuple and isinstance(value, list) else value
    return cls(**ready)


def _with_present_names(
    values: Mapping[str, Any], renamed: Mapping[str, str | None], known: set[str], path: Path | str
) -> Mapping[str, Any]:
    """Settings as they are called today; those of an earlier version that are gone are left out."""
    present = {name: value for name, value in values.items() if name in known or name not in renamed}
    for name in (set(values) & set(renamed)) - known:
        setting = renamed[name]
        if setting is not None:
            *above, last = setting.split(".")
            place = present
            for part in above:
                place = Entries(place.setdefault(part, {}), f"{path}: {part}").values
            place[last] = values[name]
    return present


# ---------------------------------------------------------------------- the file system


def _sha256(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
