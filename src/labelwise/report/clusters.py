"""The label tree as the page shows it: nodes with documents, words and labels, few enough for a small page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.features.blocks import OPENING
from labelwise.features.tfidf import Tfidf
from labelwise.index import Tree
from labelwise.report.html import short
from labelwise.types import Csr, Floats, Ints

MAX_NODES = 1_200
MAX_LABELS = 12_000
"""Largest numbers of nodes and of label names in the page."""
N_WORDS = 8
N_TYPICAL = 6
"""Numbers of words and of labels that describe a node."""
MAX_WORD_DOCUMENTS = 20_000
"""Largest number of documents from which words are taken."""
MAX_NAME = 60
"""Longest label name in characters; longer ones are cut."""


@dataclass(frozen=True)
class TreeDrawing:
    """The tree as data for the program of the page."""

    nodes: list[dict[str, Any]]
    """The nodes, parents before children. p: parent, n: number of labels, d: number of documents, w: words, f: mean F1,
    t: typical labels, more: number of omitted children. Nodes without shown children also have l: their labels as
    [name, documents, F1], and rest: number of omitted labels."""
    remarks: list[str] = field(default_factory=list)
    """Sentences about what is omitted."""


def tree_drawing(
    tree: Tree,
    labels: list[str],
    *,
    Y: Csr | None = None,
    X: Csr | None = None,
    tfidf: Tfidf | None = None,
    f1: Floats | None = None,
) -> TreeDrawing:
    """The drawing of a tree.

    Parameters
    ----------
    labels
        (n_labels,) label names.
    Y
        (n_docs, n_labels) training labels, from which the numbers of documents and the order of labels follow.
    X, tfidf
        (n_docs, n_features) tf-idf of these documents, and the model that knows its columns; without them nodes have no
        words.
    f1
        (n_labels,) F1 of each label in percent, nan for labels that were not evaluated.
    """
    above = _ancestors(tree)
    counts = np.zeros(len(labels), np.int64) if Y is None else np.bincount(Y.indices, minlength=len(labels))
    documents = [np.zeros(tree.n_nodes(level), np.int64) for level in range(tree.depth)]
    if Y is not None:
        documents = [_count_documents(Y, nodes, tree.n_nodes(level)) for level, nodes in enumerate(above)]
    sizes = [np.bincount(nodes, minlength=tree.n_nodes(level)) for level, nodes in enumerate(above)]
    shown, remarks = _choose(tree, documents, sizes)
    words: list[list[list[str]]] = [[] for _ in shown]
    if Y is not None and X is not None and tfidf is not None:
        names = tfidf.feature_names()
        if tfidf.settings_.opening:  # words of the opening and of the text are the same words here
            names = [name.removeprefix(OPENING) for name in names]
        words[1:] = _words(Y, X, names, tree, above, shown)
    order = np.lexsort((np.arange(len(labels)), -counts))  # the most frequent labels first
    budget = _budget(np.concatenate([sizes[level][_childless(shown, tree, level)] for level in range(len(shown))]))

    nodes: list[dict[str, Any]] = []
    place: dict[tuple[int, int], int] = {}
    for level, kept in enumerate(shown):
        mine = _group(above[level][order], order, tree.n_nodes(level))
        leaves = set(_childless(shown, tree, level).tolist())
        for number, node in enumerate(kept.tolist()):
            inside = mine(node)
            place[level, node] = len(nodes)
            about: dict[str, Any] = {
                "p": place[level - 1, int(tree.parents[level - 1][node])] if level else -1,
                "n": int(sizes[level][node]),
                "d": int(documents[level][node]) if Y is not None else None,
                "w": words[level][number] if words[level] else [],
                "f": _mean(f1, inside),
                "t": [short(labels[i], MAX_NAME) for i in inside[:N_TYPICAL].tolist()],
            }
            if node in leaves:
                listed = inside[:budget].tolist()
                about["l"] = [
                    [short(labels[i], MAX_NAME), int(counts[i]) if Y is not None else None, _mean(f1, np.array([i]))]
                    for i in listed
                ]
                about["rest"] = len(inside) - len(listed)
            nodes.append(about)
    for level in range(len(shown) - 1):
        there = np.bincount(tree.parents[level][shown[level + 1]], minlength=tree.n_nodes(level))
        missing = tree.sizes(level) - there
        for node in shown[level][(there > 0)[shown[level]]].tolist():
            if missing[node]:
                nodes[place[level, node]]["more"] = int(missing[node])
    hidden = sum(node.get("rest", 0) for node in nodes)
    if hidden:
        remarks.append(
            f"Of each cluster only the {budget:,} most frequent labels are listed; {hidden:,} labels are omitted."
        )
    return TreeDrawing(nodes, remarks)


def _ancestors(tree: Tree) -> list[npt.NDArray[np.int64]]:
    """For each depth above the labels: (n_labels,) the ancestor of each label."""
    found = [tree.parents[-1].astype(np.int64)]
    for parents in reversed(tree.parents[:-1]):
        found.append(parents[found[-1]].astype(np.int64))
    return found[::-1]


def _gathered(Y: Csr, nodes: Ints, n_nodes: int) -> Csr:
    """(n_docs, n_nodes) number of labels of a node that a document has."""
    parts: tuple[Any, ...] = (np.ones(Y.nnz, np.float32), nodes[Y.indices], Y.indptr)
    matrix = sp.csr_array(parts, shape=(Y.shape[0], n_nodes))
    matrix.sum_duplicates()
    return matrix


def _count_documents(Y: Csr, nodes: Ints, n_nodes: int) -> npt.NDArray[np.int64]:
    return np.bincount(_gathered(Y, nodes, n_nodes).indices, minlength=n_nodes).astype(np.int64)


def _choose(
    tree: Tree, documents: list[npt.NDArray[np.int64]], sizes: list[npt.NDArray[np.int64]]
) -> tuple[list[npt.NDArray[np.int64]], list[str]]:
    """The nodes of each level that are shown: all up to the limit, then those with the most documents."""
    shown, left, remarks = [np.zeros(1, np.int64)], MAX_NODES - 1, []
    for level in range(1, tree.depth):
        if not left:
            remarks.append(f"{tree.depth - level} deeper levels of the tree are omitted.")
            break
        nodes = np.arange(tree.n_nodes(level))
        inside = nodes[np.isin(tree.parents[level - 1], shown[-1])]
        if len(inside) > left:
            best = np.lexsort((inside, -sizes[level][inside], -documents[level][inside]))[:left]
            remarks.append(
                f"Of {len(nodes):,} nodes at depth {level} the {left:,} with the most documents are shown; "
                f"{len(nodes) - left:,} are omitted."
            )
            inside = np.sort(inside[best])
        shown.append(inside)
        left -= len(inside)
    return shown, remarks


def _childless(shown: list[npt.NDArray[np.int64]], tree: Tree, level: int) -> npt.NDArray[np.int64]:
    """Shown nodes of a level that have no shown children and therefore list their labels."""
    if level == len(shown) - 1:
        return shown[level]
    return np.setdiff1d(shown[level], tree.parents[level][shown[level + 1]])


def _budget(sizes: npt.NDArray[np.int64]) -> int:
    """The largest number of labels per cluster with which all clusters together stay below the limit."""
    low, high = 3, max(int(sizes.max()), 3)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if int(np.minimum(sizes, middle).sum()) <= MAX_LABELS else (low, middle - 1)
    return low


def _group(nodes: Ints, members: Ints, n_nodes: int) -> Any:
    """A function that returns the members of a node, in their given order."""
    by_node = np.argsort(nodes, kind="stable")
    ends = np.concatenate(([0], np.cumsum(np.bincount(nodes, minlength=n_nodes))))
    return lambda node: members[by_node[ends[node] : ends[node + 1]]]


def _mean(f1: Floats | None, labels: Ints) -> float | None:
    """Mean F1 of the evaluated labels among `labels`."""
    if f1 is None:
        return None
    evaluated = f1[labels][~np.isnan(f1[labels])]
    return round(float(evaluated.mean()), 1) if evaluated.size else None


def _words(
    Y: Csr, X: Csr, names: list[str], tree: Tree, above: list[npt.NDArray[np.int64]], shown: list[npt.NDArray[np.int64]]
) -> list[list[list[str]]]:
    """For each level below the root, the terms that distinguish a node from its siblings.

    The gain of a term is its weight in the mean tf-idf of the node's documents minus that in the parent's, where both
    means are scaled to length one.
    """
    if Y.shape[0] > MAX_WORD_DOCUMENTS:
        rows = np.linspace(0, Y.shape[0] - 1, MAX_WORD_DOCUMENTS).astype(np.int64)
        Y, X = Csr(Y[rows]), Csr(X[rows])
    found = []
    usual = np.zeros(X.shape[1])
    before = sp.csr_array(X.sum(axis=0).reshape(1, -1))
    for level in range(1, len(shown)):
        sums = _gathered(Y, above[level], tree.n_nodes(level)).tocsc()[:, shown[level]].T.tocsr() @ X
        parents = np.searchsorted(shown[level - 1], tree.parents[level - 1][shown[level]])
        best: list[list[str]] = [[] for _ in parents]
        last = -1
        for i in np.argsort(parents, kind="stable").tolist():
            if parents[i] != last:
                last = int(parents[i])
                terms, weights = _unit_row(before, last)
                usual[:] = 0
                usual[terms] = weights
            terms, weights = _unit_row(sums, i)
            best[i] = _best_names(names, terms, weights - usual[terms])
        found.append(best)
        before = sums
    return found


def _unit_row(matrix: Csr, row: int) -> tuple[Ints, Floats]:
    """Columns and values of a row, scaled to length one."""
    here = slice(matrix.indptr[row], matrix.indptr[row + 1])
    values = matrix.data[here].astype(np.float64)
    return matrix.indices[here], values / (np.linalg.norm(values) or 1.0)


def _best_names(names: list[str], terms: Ints, gain: Floats) -> list[str]:
    """The terms with the highest gain, without terms that are part of a better one or contain it."""
    chosen: list[str] = []
    for i in np.lexsort((terms, -gain))[: 4 * N_WORDS].tolist():
        name = names[int(terms[i])]
        if gain[i] <= 0 or len(chosen) == N_WORDS:
            break
        if len(name) < 2 and name.isascii():  # single letters, such as units and initials, mean little
            continue
        if not any(f" {name} " in f" {other} " or f" {other} " in f" {name} " for other in chosen):
            chosen.append(name)
    return [short(name, MAX_NAME) for name in chosen]
