"""Weights in fewer bits, for folders that are to be small: 16, or 8 with a scale for every label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from labelwise.rank.sparse_weights import LevelWeights

Bits: TypeAlias = Literal["fp16", "int8"]
_LARGEST = 127
_HALF_MAX = np.finfo(np.float16).max


def pack(level: LevelWeights, bits: Bits, prefix: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a level by name, its weights in so many bits.

    With 8 bits the largest of a label's weights becomes 127, apart for those of sparse and of dense features; biases,
    of which there is one for each label, stay as they are.
    """
    if bits == "fp16":
        return replace(level, entry_value=_half(level.entry_value), dense=_half(level.dense)).to_arrays(prefix)
    place = _places(level)
    largest = np.zeros(level.n_children, np.float32)
    np.maximum.at(largest, place, np.abs(level.entry_value.astype(np.float32)))
    scale = _scale(largest)
    dense = level.dense[:, :-1].astype(np.float32)
    dense_scale = _scale(np.abs(dense).max(axis=1, initial=0))
    packed = level.to_arrays(prefix)
    packed |= {
        f"{prefix}entry_value": np.rint(level.entry_value / scale[place]).astype(np.int8),
        f"{prefix}entry_scale": scale,
        f"{prefix}dense": np.rint(dense / dense_scale[:, None]).astype(np.int8),
        f"{prefix}dense_scale": dense_scale,
        f"{prefix}bias": level.dense[:, -1].astype(np.float32),
    }
    return packed


def unpack(arrays: Mapping[str, npt.NDArray[Any]], prefix: str) -> LevelWeights:
    """The level that arrays hold: mapped as they are, or, with 8 bits, written out as 16-bit floats."""
    level = LevelWeights.from_arrays(arrays, prefix)
    if f"{prefix}entry_scale" not in arrays:
        return level
    dense = np.empty((level.n_children, level.dense.shape[1] + 1), np.float16)
    dense[:, :-1] = _half(level.dense * arrays[f"{prefix}dense_scale"][:, None])
    dense[:, -1] = _half(arrays[f"{prefix}bias"])
    values = level.entry_value * arrays[f"{prefix}entry_scale"][_places(level)]
    return replace(level, entry_value=_half(values), dense=dense)


def _places(level: LevelWeights) -> npt.NDArray[np.int64]:
    """(n_entries,) the child that each weight belongs to, counted through the level."""
    first = np.repeat(level.child_indptr[:-1], np.diff(level.entry_indptr))
    return first + level.entry_child


def _scale(largest: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return np.where(largest > 0, largest / np.float32(_LARGEST), np.float32(1))


def _half(values: npt.NDArray[Any]) -> npt.NDArray[np.float16]:
    return np.asarray(np.clip(values, -_HALF_MAX, _HALF_MAX), np.float16)
