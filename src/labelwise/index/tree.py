"""The label tree, stored as one array of parents per level."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwise import storage
from labelwise.errors import DataError, StorageError, UsageError

KIND = "tree"


@dataclass(frozen=True, eq=False)
class Tree:
    """The label tree: a root, levels of nodes below it, and the labels as the last level.

    Depth 0 is the root alone, depth `depth` holds the labels, depth `depth - 1` the clusters. Every node has at least
    one child. A tree of depth 1 has the root as its only cluster: one model for each label against all documents.

    >>> tree = Tree((np.array([0, 0]), np.array([0, 1, 1, 0])))  # two clusters, four labels
    >>> tree.path(2)
    (0, 1, 2)
    """

    parents: tuple[npt.NDArray[np.int32], ...]
    """`parents[t][i]` is the parent, at depth t, of node i at depth t + 1; `parents[0]` is all zeros."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", _checked(self.parents))

    @property
    def depth(self) -> int:
        """Number of steps from the root to a label."""
        return len(self.parents)

    @property
    def n_labels(self) -> int:
        """Number of nodes at the last level."""
        return len(self.parents[-1])

    @property
    def n_clusters(self) -> int:
        """Number of nodes just above the labels."""
        return self.n_nodes(self.depth - 1)

    @property
    def clusters(self) -> npt.NDArray[np.int32]:
        """(n_labels,) the cluster of each label."""
        return self.parents[-1]

    def n_nodes(self, level: int) -> int:
        """Number of nodes at this depth; 1 at depth 0, `n_labels` at depth `depth`."""
        if not 0 <= level <= self.depth:
            raise UsageError(f"the tree has levels 0 to {self.depth}, not {level}")
        return 1 if level == 0 else len(self.parents[level - 1])

    def sizes(self, level: int) -> npt.NDArray[np.int64]:
        """(n_nodes(level),) number of children of each node at this depth; the last such level is `depth - 1` or -1."""
        level = self._inner(level)
        return np.bincount(self.parents[level], minlength=self.n_nodes(level)).astype(np.int64)

    def children(self, level: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """The children of each node at this depth, grouped.

        Returns
        -------
        indptr
            (n_nodes(level) + 1,) where the children of a node begin and end.
        ids
            (n_nodes(level + 1),) nodes at the next depth, ascending within a parent.
        """
        level = self._inner(level)
        indptr = np.zeros(self.n_nodes(level) + 1, np.int64)
        np.cumsum(self.sizes(level), out=indptr[1:])
        return indptr, np.argsort(self.parents[level], kind="stable").astype(np.int32)

    def path(self, label: int) -> tuple[int, ...]:
        """Nodes from the root down to the label, one per depth: (0, …, cluster, label)."""
        if not 0 <= label < self.n_labels:
            raise UsageError(f"there is no label {label}: the tree has labels 0 to {self.n_labels - 1}")
        nodes = [int(label)]
        for parents in reversed(self.parents):
            nodes.append(int(parents[nodes[-1]]))
        return tuple(reversed(nodes))

    def collapse(self, *levels: int) -> Tree:
        """The tree without the nodes at these depths; the parents of removed nodes become those of their children.

        The root (0) and the labels (`depth`) stay. Collapsing all depths but the last two makes the tree flat.
        """
        for level in levels:
            if not 0 < level < self.depth:
                raise UsageError(f"only levels 1 to {self.depth - 1} can be collapsed, not {level}")
        return self._keep([level for level in range(self.depth) if level not in levels])

    def with_branching(self, branching: int) -> Tree:
        """The tree with the same clusters and as few levels as `branching`, the most children of an inner node, allows.

        Levels are only removed, never added: a node that has more children already keeps them. A binary tree over 64
        clusters becomes 4-16-64 with 4, 4-64 with 16 and one flat level with 64.
        """
        if branching < 2:
            raise UsageError(f"branching is {branching}; it must be at least 2")
        level = self.depth - 1
        keep = [level]
        while level > 0:
            reach: npt.NDArray[np.int32] = np.arange(
                self.n_nodes(level), dtype=np.int32
            )  # ancestor, at depth `above`, of each node at depth `level`
            above = level
            while above > 0:
                reach = self.parents[above - 1][reach]
                if above < level and np.bincount(reach).max() > branching:
                    break
                above -= 1
            level = above
            keep.append(level)
        return self._keep(keep[::-1])

    def _keep(self, levels: list[int]) -> Tree:
        """The tree with the nodes of these depths (ascending, 0 among them) and the labels."""
        parents = []
        for above, below in zip(levels, [*levels[1:], self.depth], strict=True):
            reach = self.parents[below - 1]
            for level in range(below - 2, above - 1, -1):
                reach = self.parents[level][reach]
            parents.append(reach)
        return Tree(tuple(parents))

    def _inner(self, level: int) -> int:
        if not -self.depth <= level < self.depth:
            raise UsageError(f"the levels that have children are 0 to {self.depth - 1}, not {level}")
        return level % self.depth

    def save(self, path: Path | str) -> None:
        """Write the tree into a folder."""
        storage.save(path, kind=KIND, arrays={f"parents.{t}": array for t, array in enumerate(self.parents)})

    @classmethod
    def load(cls, path: Path | str, *, verify: bool = True) -> Tree:
        """Read a tree that `save` wrote; the arrays are mapped into memory, not copied."""
        arrays = storage.load(path, kind=KIND, verify=verify).arrays
        try:
            return cls(tuple(arrays[f"parents.{t}"] for t in range(len(arrays))))
        except (KeyError, DataError) as err:
            raise StorageError(f"{path} is not a valid tree ({err}); copy or build the tree again") from err


def _checked(parents: tuple[npt.NDArray[Any], ...]) -> tuple[npt.NDArray[np.int32], ...]:
    """The arrays as int32, or an error that says which level is wrong and how."""
    checked: list[npt.NDArray[np.int32]] = []
    n_above = 1
    if not parents:
        raise DataError("a tree needs at least one level: give the parents of the labels")
    for level, given in enumerate(parents):
        array = np.asarray(given)
        if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
            raise DataError(f"parents[{level}] must be a row of integers, not {array.dtype} of shape {array.shape}")
        if not len(array):
            raise DataError(f"parents[{level}] is empty; every level needs at least one node")
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= n_above:
            wrong = low if low < 0 else high
            raise DataError(f"parents[{level}] names node {wrong}, but depth {level} has nodes 0 to {n_above - 1}")
        childless = np.flatnonzero(np.bincount(array, minlength=n_above) == 0)
        if len(childless):
            raise DataError(
                f"node {childless[0]} at depth {level} has no children in parents[{level}]; leave such nodes out "
                "and renumber the rest"
            )
        checked.append(np.ascontiguousarray(array, np.int32))
        n_above = len(array)
    return tuple(checked)
