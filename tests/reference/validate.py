"""Checks of saved arrays, written with loops and dictionaries."""

from labelwise.kernels.validate import (
    CHILD_TOO_LARGE,
    FEATURE_TOO_LARGE,
    ROWS_END,
    ROWS_FALL,
    TABLE_CROWDED,
    TABLE_FULL,
    TABLE_VALUES,
)


def wrong_block(child_indptr, row_indptr, row_feature, row_end, entry_indptr, entry_child, n_features):
    """The first wrong block, and its problem."""
    for parent in range(len(child_indptr) - 1):
        n_children, n_entries = (int(indptr[parent + 1] - indptr[parent]) for indptr in (child_indptr, entry_indptr))
        rows = slice(row_indptr[parent], row_indptr[parent + 1])
        features, ends = row_feature[rows].tolist(), row_end[rows].tolist()
        children = entry_child[entry_indptr[parent] : entry_indptr[parent + 1]].tolist()
        if features != sorted(set(features)) or ends != sorted(ends):
            return parent, ROWS_FALL
        if (ends[-1] if ends else 0) != n_entries:
            return parent, ROWS_END
        if any(feature >= n_features for feature in features):
            return parent, FEATURE_TOO_LARGE
        if any(child >= n_children for child in children):
            return parent, CHILD_TOO_LARGE
    return -1, 0


def wrong_table(keys, values, n_terms, longest):
    """What is wrong with a hash table, 0 for nothing; several problems are told in the order of the slots."""
    keys, values, seen, n_filled = keys.tolist(), values.tolist(), set(), 0
    capacity = len(keys)
    for slot, (key, value) in enumerate(zip(keys, values, strict=True)):
        if not key:
            continue
        if not 0 <= value < n_terms or value in seen:
            return TABLE_VALUES
        seen.add(value)
        n_filled += 1
        if 2 * n_filled > capacity:
            return TABLE_FULL
        run = 0  # filled slots before this one
        while run < capacity and keys[(slot - run - 1) % capacity]:
            run += 1
        if run > longest or (slot - key) % capacity > run:
            return TABLE_CROWDED
    return 0
