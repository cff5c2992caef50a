"""A level's weights with children added, removed or replaced: the models of labels that come and go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from labelwise.rank.sparse_weights import LevelWeights, PrunedBlock

Blocks: TypeAlias = Mapping[int, tuple[PrunedBlock, npt.NDArray[np.int32]]]
"""For some parents, the weights of their children, and the numbers of these children."""


def with_children(level: LevelWeights, added: Blocks) -> LevelWeights:
    """The level with further children of some parents, after the existing ones, whose weights stay as they are."""
    whole = {}
    for parent, (block, ids) in added.items():
        both = np.concatenate((level.child_ids[level.children(parent)], ids))
        whole[parent] = (PrunedBlock.beside([level.block(parent), _in_precision_of(level, block)]), both)
    return with_blocks(level, whole)


def without_children(level: LevelWeights, removed: npt.NDArray[np.bool_]) -> LevelWeights:
    """The level without some children; the others are renumbered in the same order.

    Parameters
    ----------
    removed : (n_children,) by the numbers of the children
    """
    number = np.cumsum(~removed).astype(np.int32) - 1
    changed = {}
    for parent in range(level.n_parents):
        ids, block = level.child_ids[level.children(parent)], level.block(parent)
        stay = ~removed[ids]
        changed[parent] = (block if stay.all() else block.columns(stay), number[ids[stay]])
    return with_blocks(level, changed)


def with_blocks(level: LevelWeights, changed: Blocks) -> LevelWeights:
    """The level with other blocks for some parents."""
    blocks, ids = [], []
    for parent in range(level.n_parents):
        if parent in changed:
            block, own = _in_precision_of(level, changed[parent][0]), changed[parent][1]
        else:
            block, own = level.block(parent), level.child_ids[level.children(parent)]
        blocks.append(block)
        ids.append(own)
    indptr = np.concatenate(([0], np.cumsum([len(own) for own in ids]))).astype(np.int64)
    return LevelWeights.join(blocks, indptr, np.concatenate(ids))


def _in_precision_of(level: LevelWeights, block: PrunedBlock) -> PrunedBlock:
    """The block in the floating-point types of the level."""
    dense: Any = block.dense.astype(level.dense.dtype, copy=False)
    return replace(block, entry_value=block.entry_value.astype(level.entry_value.dtype, copy=False), dense=dense)
