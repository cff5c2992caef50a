"""Checks of the weights of a level that comes from a folder: the kernels of the search rely on all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwise.kernels.validate import (
    CHILD_TOO_LARGE,
    FEATURE_TOO_LARGE,
    ROWS_END,
    ROWS_FALL,
    largest_bits,
    wrong_block,
)
from labelwise.rank.quantized import unpack
from labelwise.rank.sparse_weights import LevelWeights, child_type
from labelwise.storage.checks import LARGEST_COLUMN, LARGEST_WEIGHT, Arrays, damaged, is_finite

_FLOATS = (np.float16, np.float32)
_PROBLEMS: Mapping[int, str] = {
    ROWS_FALL: "the features and the ends of its rows do not rise",
    ROWS_END: "its rows do not end with its entries",
    CHILD_TOO_LARGE: "it has weights of a child that there is not",
    FEATURE_TOO_LARGE: "it has weights of a feature that there is not",
}


def load_level(
    arrays: Arrays, prefix: str = "", *, n_features: int | None = None, n_dense: int | None = None
) -> LevelWeights:
    """The level that saved arrays hold, each array checked once: mapped as they are, or written out from 8 bits.

    Parameters
    ----------
    n_features
        Number of sparse features; if not given, any that a matrix can have.
    n_dense
        Number of dense features, the bias among them; if not given, any.
    """
    rounded = f"{prefix}entry_scale" in arrays
    level = _checked_level(arrays, prefix, rounded, None if n_dense is None else n_dense - rounded)
    parent, problem = wrong_block(
        level.child_indptr,
        level.row_indptr,
        level.row_feature,
        level.row_end,
        level.entry_indptr,
        level.entry_child,
        LARGEST_COLUMN if n_features is None else n_features,
    )
    if problem:
        raise damaged(arrays.where, f"block {parent} of the arrays '{prefix}…' is wrong: {_PROBLEMS[problem]}")
    if not rounded:
        for name, values in (("entry_value", level.entry_value), ("dense", level.dense)):
            if not are_weights(values):
                raise arrays.wrong(f"{prefix}{name}", f"has numbers that are not finite, or above {LARGEST_WEIGHT:g}")
        return level
    for name in ("entry_scale", "dense_scale", "bias"):
        arrays.finite(f"{prefix}{name}", np.float32, (level.n_children,))
    return unpack(arrays.arrays, prefix)


def _checked_level(arrays: Arrays, prefix: str, rounded: bool, n_dense: int | None) -> LevelWeights:
    """The arrays of a level with the right types and lengths."""
    child_ids = arrays.take(f"{prefix}child_ids", np.int32, (None,))
    child_indptr = arrays.offsets(f"{prefix}child_indptr", end=len(child_ids))
    n_parents, n_children = len(child_indptr) - 1, len(child_ids)
    arrays.permutation(f"{prefix}child_ids", np.int32, n_children)
    row_feature = arrays.take(f"{prefix}row_feature", np.uint32, (None,))
    row_end = arrays.take(f"{prefix}row_end", np.uint32, (len(row_feature),))
    row_indptr = arrays.offsets(f"{prefix}row_indptr", n=n_parents, end=len(row_feature))
    # Other types than the writer's would be right, too, but the kernels are compiled for each type, for many seconds.
    number = child_type(int(np.diff(child_indptr).max(initial=0)))
    entry_child = arrays.take(f"{prefix}entry_child", number, (None,))
    entry_indptr = arrays.offsets(f"{prefix}entry_indptr", n=n_parents, end=len(entry_child))
    entry_value = arrays.take(f"{prefix}entry_value", np.int8 if rounded else _FLOATS, (len(entry_child),))
    floats: Any = np.int8 if rounded else np.float32 if entry_value.dtype == np.float32 else _FLOATS
    level = LevelWeights(
        child_indptr=child_indptr,
        child_ids=child_ids,
        row_indptr=row_indptr,
        row_feature=row_feature,
        row_end=row_end,
        entry_indptr=entry_indptr,
        entry_child=entry_child,
        entry_value=entry_value,
        dense=arrays.take(f"{prefix}dense", floats, (n_children, n_dense)),
    )
    if n_parents < 1 or n_children < 1:
        raise arrays.wrong(f"{prefix}child_ids", "names no child")
    return level


def are_weights(values: npt.NDArray[Any]) -> bool:
    """Whether all of these 16- or 32-bit floats are finite and no larger than `LARGEST_WEIGHT`."""
    if not values.flags.c_contiguous:
        return is_finite(values, LARGEST_WEIGHT)
    bits: Any = np.uint16 if values.dtype == np.float16 else np.uint32
    largest = min(LARGEST_WEIGHT, float(np.finfo(values.dtype).max))
    limit = np.array([largest], values.dtype).view(bits)[0]
    return bool(largest_bits(values.reshape(-1).view(bits), bits(np.iinfo(bits).max >> 1)) <= limit)


def check_parents(level: LevelWeights, parents: npt.NDArray[np.int32], n_parents: int, where: Any) -> None:
    """Refuse a level whose blocks are other groups of nodes than those of the label tree.

    Parameters
    ----------
    parents : (n_children,) the parent of each node
    """
    sizes = np.diff(level.child_indptr)
    right = len(sizes) == n_parents and level.n_children == len(parents)
    blocks = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    if not right or not np.array_equal(parents[level.child_ids], blocks):
        raise damaged(where, "the label tree and the weights do not belong together")
