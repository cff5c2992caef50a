"""Checks of what a saved folder holds: its files, its JSON and its arrays, before anything else reads them.

Checksums tell damage; they do not tell who wrote a folder. So whatever comes from a folder passes the checks of this
module: files are regular and lie inside the folder, JSON has the types that are asked for, arrays have the types, the
shapes and the ranges that the code relies on. What does not pass is a `StorageError` with the place and the reason.

`labelwise.rank.level_checks` has the checks of the weights, which are the largest arrays and need a kernel.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import stat
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from labelwise.config.settings import Range, described, fitting, shown
from labelwise.errors import StorageError
from labelwise.types import Csr

T = TypeVar("T")
Array = npt.NDArray[Any]
Shape = tuple[int | None, ...]
"""The length of an array in each dimension; None where any length will do."""
Length = Annotated[int, Range(at_least=0)]
"""The length of an array in one dimension."""

MOST_JSON_BYTES = 1 << 26
"""Size of the largest JSON file that is read."""
MOST_JSON_DEPTH = 64
"""Levels of tables and lists in a JSON file."""
MOST_FOLDERS = 16
"""Folders inside of each other, in the folder of a model."""
LARGEST_WEIGHT = 1e18
"""Largest weight, centroid or idf in absolute value: sums over a document then stay far below the largest float."""
LARGEST_FACTOR = 1e9
"""Largest number that all weights of a model are multiplied by: the constant feature, the length of embeddings."""
LARGEST_COLUMN = (1 << 31) - 1
"""Largest number of columns of a sparse matrix: its indices are 32-bit numbers."""
FeatureCount = Annotated[int, Range(at_least=0, at_most=LARGEST_COLUMN)]
"""A number of columns of a sparse matrix."""
Factor = Annotated[float, Range(at_least=0, at_most=LARGEST_FACTOR)]
"""A number that all weights of a model, or its inputs, are multiplied by."""
_PER_BLOCK = 1 << 16


def damaged(where: Path | str, what: str) -> StorageError:
    """The error that a folder holds something that labelwise does not write."""
    return StorageError(f"{where}: {what}; copy or make it again")


# ---------------------------------------------------------------------- files


def check_file(file: Path) -> None:
    """Refuse what is no regular file: a pipe would wait for ever, a device has no end."""
    try:
        mode = file.stat().st_mode
    except FileNotFoundError as err:
        raise StorageError(f"{file} does not exist; give a folder that labelwise saved") from err
    except (OSError, ValueError) as err:  # a name with a NUL byte is a ValueError
        raise StorageError(f"{file} cannot be read ({err}); copy or make it again") from err
    if not stat.S_ISREG(mode):
        raise damaged(file, "it is no regular file")


def check_folder(folder: Path) -> None:
    """Refuse a model folder with links that leave it, or with pipes, sockets and devices in it.

    The folder itself may be reached by a link. The cache of the Hugging Face hub, which keeps every file under `blobs`
    and links to it, is allowed.
    """
    root = Path(os.path.realpath(folder))
    caches = [place.parent.parent for place in (root, *root.parents) if place.parent.name == "snapshots"]
    allowed = [root, *(cache / "blobs" for cache in caches if cache.name.startswith("models--"))]
    waiting = [root]
    while waiting:
        place = waiting.pop()
        try:
            entries = list(os.scandir(place))
        except OSError as err:
            raise StorageError(f"{place} cannot be read ({err.strerror}); give a folder that labelwise saved") from err
        for entry in entries:
            path = Path(entry.path)
            if entry.is_symlink():
                _check_link(path, allowed)
            elif entry.is_dir():
                if len(path.parts) - len(root.parts) > MOST_FOLDERS:
                    raise damaged(root, "the folders in it are nested too deeply")
                waiting.append(path)
            elif not entry.is_file():
                raise damaged(path, "it is no regular file")


def _check_link(link: Path, allowed: list[Path]) -> None:
    target = Path(os.path.realpath(link))
    if not any(target.is_relative_to(root) for root in allowed):
        raise StorageError(f"{link} is a link that leaves the folder; copy the file to its place")
    if not target.is_file():
        raise damaged(link, "it is a link to something that is no regular file")


def file_bytes(file: Path, most: int) -> bytes:
    """The content of a regular file of at most so many bytes."""
    check_file(file)
    try:
        with file.open("rb") as handle:
            content = handle.read(most + 1)
    except OSError as err:
        raise StorageError(f"{file} cannot be read ({err.strerror}); copy or make it again") from err
    if len(content) > most:
        raise damaged(file, f"it has more than {most:,} bytes")
    return content


# ---------------------------------------------------------------------- JSON


def parse_json(content: bytes, where: Path | str) -> Any:
    """The value of a JSON text: no name twice in one table, and not nested too deeply."""
    try:
        value = json.loads(content.decode("utf-8"), object_pairs_hook=_distinct)
    except RecursionError as err:
        raise damaged(where, "its JSON is nested too deeply") from err
    except ValueError as err:
        raise StorageError(f"{where} cannot be read ({err}); copy or make it again") from err
    level = _nested([value])
    for _ in range(MOST_JSON_DEPTH):
        level = _nested(inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer))
    if level:
        raise damaged(where, f"its JSON is nested more than {MOST_JSON_DEPTH} levels deep")
    return value


def _nested(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice in one table")
    return found


class Entries:
    """A table of a JSON file, whose entries are asked for with their types."""

    def __init__(self, values: Any, where: Path | str) -> None:
        if not isinstance(values, dict):
            raise damaged(where, f"there is {shown(values)} where a table of entries belongs")
        self.values, self.where = values, where

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, kind: Any) -> Any:
        """An entry that must be there, in a type: see `typed`."""
        if name not in self.values:
            raise damaged(self.where, f"the entry {name!r} is missing")
        return typed(kind, self.values[name], f"{self.where}: {name}")

    def table(self, name: str) -> Entries:
        """An entry that must be a table."""
        return Entries(self.get(name, dict[str, Any]), f"{self.where}: {name}")


def typed(kind: Any, value: Any, where: Path | str) -> Any:
    """A value of a JSON file in the type that a dataclass or a function declares, or a `StorageError`.

    Known are lists, mappings, dataclasses (entries that they do not have are left out), and what settings can be:
    numbers with ranges, strings, choices and unions. A plain float may be infinite or no number, one with a range not.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _typed_dataclass(kind, value, where)
    if origin is list:
        if not isinstance(value, list):
            raise _wrong(where, value, "a list")
        return [typed(parts[0], one, f"{where}[{number}]") for number, one in enumerate(value)]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise _wrong(where, value, "a table of entries")
        return {_key(parts[0], key, where): typed(parts[1], one, f"{where}.{key}") for key, one in value.items()}
    if origin in (Union, UnionType) and type(None) in parts:
        others = [part for part in parts if part is not type(None)]
        return None if value is None else typed(reduce(or_, others), value, where)
    if kind is float and isinstance(value, float) and not math.isfinite(value):
        return value
    found, fits = fitting(Annotated[int, Range()] if kind is int else kind, value)
    if not fits:
        raise _wrong(where, value, described(kind))
    return found


def _typed_dataclass(kind: type[Any], value: Any, where: Path | str) -> Any:
    if not isinstance(value, dict):
        raise _wrong(where, value, "a table of entries")
    kinds, ready = get_type_hints(kind, include_extras=True), {}
    for field in dataclasses.fields(kind):
        if field.name in value:
            ready[field.name] = typed(kinds[field.name], value[field.name], f"{where}: {field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise damaged(where, f"the entry {field.name!r} is missing")
    return kind(**ready)


def _key(kind: Any, key: str, where: Path | str) -> Any:
    if kind is not int:
        return key
    if not key.isascii() or not key.isdecimal() or len(key) > 18:
        raise _wrong(where, key, "a whole number")
    return int(key)


def _wrong(where: Path | str, value: Any, wanted: str) -> StorageError:
    return damaged(where, f"there is {shown(value)} where {wanted} belongs")


# ---------------------------------------------------------------------- arrays


class Arrays:
    """The arrays of a saved folder, asked for with what must be true of them."""

    def __init__(self, arrays: Mapping[str, Array], where: Path | str) -> None:
        self.arrays, self.where = arrays, where

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def take(self, name: str, dtypes: Any, shape: Shape) -> Array:
        """An array that must be there, of one of some types and of a shape."""
        if name not in self.arrays:
            raise damaged(self.where, f"the array {name!r} is missing")
        array, known = self.arrays[name], dtypes if isinstance(dtypes, tuple) else (dtypes,)
        fits = array.ndim == len(shape) and all(
            wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
        )
        if not fits or array.dtype not in known:
            words = " or ".join(np.dtype(one).name for one in known)
            lengths = " x ".join("any" if one is None else str(one) for one in shape)
            raise self.wrong(name, f"is {array.dtype} of shape {array.shape}, where {words} of {lengths} belongs")
        return array

    def offsets(self, name: str, *, n: int | None = None, end: int) -> Array:
        """Where each of `n` (or any number of) parts begins and the last one ends: from 0 on, never falling."""
        array = self.take(name, np.int64, (None if n is None else n + 1,))
        if not is_offsets(array, end):
            raise self.wrong(name, f"does not rise from 0 to {end}")
        return array

    def below(self, name: str, dtypes: Any, shape: Shape, bound: int) -> Array:
        """An array of whole numbers from 0 to below a bound."""
        array = self.take(name, dtypes, shape)
        if not is_below(array, bound):
            raise self.wrong(name, f"has numbers outside of 0 to {bound - 1}")
        return array

    def permutation(self, name: str, dtypes: Any, n: int) -> Array:
        """Each of the numbers from 0 to `n` - 1 once."""
        array = self.below(name, dtypes, (n,), n)
        if n and np.bincount(array, minlength=n).max() > 1:
            raise self.wrong(name, "names a number twice")
        return array

    def finite(self, name: str, dtypes: Any, shape: Shape, largest: float = LARGEST_WEIGHT) -> Array:
        """Floating-point numbers that are neither infinite nor too large."""
        array = self.take(name, dtypes, shape)
        if not is_finite(array, largest):
            raise self.wrong(name, f"has numbers that are not finite, or above {largest:g}")
        return array

    def wrong(self, name: str, what: str) -> StorageError:
        """The error that an array is not what it must be."""
        return damaged(self.where, f"the array {name!r} {what}")


def is_offsets(array: Array, end: int) -> bool:
    """Whether an array begins at 0, never falls, and ends at `end`."""
    return bool(len(array) and array[0] == 0 and array[-1] == end and (array[1:] >= array[:-1]).all())


def is_below(array: Array, bound: int) -> bool:
    """Whether all numbers are from 0 to below a bound."""
    return not array.size or (int(array.min()) >= 0 and int(array.max()) < bound)


def is_finite(array: Array, largest: float) -> bool:
    """Whether all numbers are finite and at most so large, in absolute value; a NaN compares as false."""
    flat, largest = array.reshape(-1), min(largest, float(np.finfo(array.dtype).max))
    return all(
        bool((np.abs(flat[begin : begin + _PER_BLOCK]) <= largest).all()) for begin in range(0, len(flat), _PER_BLOCK)
    )


def checked_matrix(parts: tuple[Array, Array, Array], shape: Any, where: Path | str) -> Csr:
    """A CSR matrix of saved arrays: data, indices and indptr."""
    rows, columns = typed(tuple[Length, Length], shape, where)
    data, indices, indptr = parts
    right = (
        all(part.ndim == 1 for part in parts)
        and data.dtype.kind in "fiub"
        and indices.dtype == indptr.dtype
        and indices.dtype in (np.int32, np.int64)
        and len(indices) == len(data)
        and len(indptr) == rows + 1
        and is_offsets(indptr, len(indices))
        and is_below(indices, columns)
    )
    if not right:
        raise damaged(where, f"its arrays are no sparse matrix of {rows} x {columns}")
    return Csr(parts, shape=(rows, columns))
