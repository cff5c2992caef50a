"""Pruned weights as dense matrices, and pruning on those."""

import numpy as np


def prune(W, features, threshold, most=None):
    """W with zeros for what is dropped; of equal weights those of lower features stay."""
    kept = np.where(np.abs(W) >= np.float32(threshold), W, 0)
    if most is not None:
        for child in range(W.shape[1]):
            best = sorted(range(len(W)), key=lambda row: (-abs(kept[row, child]), features[row]))
            kept[best[most:], child] = 0
    return kept


def block_matrix(block, n_features):
    """(n_features, n_children) of a PrunedBlock, checked on the way: rows ascend, entries too, none is empty."""
    assert (np.diff(block.row_feature.astype(int)) > 0).all()
    W = np.zeros((n_features, len(block.dense)), block.entry_value.dtype)
    begin = 0
    for feature, end in zip(block.row_feature, block.row_end.tolist(), strict=True):
        children = block.entry_child[begin:end].astype(int)
        assert end > begin
        assert (np.diff(children) > 0).all()
        W[feature, children] = block.entry_value[begin:end]
        begin = end
    assert begin == len(block.entry_child) == len(block.entry_value)
    return W


def level_matrix(level, n_features):
    """(n_features + n_dense, n_children) of LevelWeights, columns by child id, rows of dense features last."""
    W = np.zeros((n_features + level.dense.shape[1], level.n_children), np.float32)
    for parent in range(level.n_parents):
        ids = level.child_ids[level.child_indptr[parent] : level.child_indptr[parent + 1]]
        rows = slice(level.row_indptr[parent], level.row_indptr[parent + 1])
        first, begin = level.entry_indptr[parent], 0
        for feature, end in zip(level.row_feature[rows], level.row_end[rows].tolist(), strict=True):
            entries = slice(first + begin, first + end)
            W[feature, ids[level.entry_child[entries]]] = level.entry_value[entries]
            begin = end
        assert first + begin == level.entry_indptr[parent + 1]
    W[n_features:, level.child_ids] = level.dense.T
    return W


def mark_labels(Y, rows, children):
    """(n_rows, n_children) 1 where a document has the label, -1 where not; Y dense."""
    return np.where(Y[rows][:, children] != 0, 1, -1)
