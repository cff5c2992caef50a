"""Children added to and removed from a level, against dense matrices."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelwise.rank.level_columns import with_children, without_children
from tests.rank.test_sparse_weights import WEIGHTS, levels, prune
from tests.reference.weights import block_matrix, level_matrix


@given(levels(), st.booleans(), st.data())
def test_children_are_added_and_removed(made, packed, data):
    level, wanted = made
    if packed:  # as an exported model is
        level = replace(level, dense=level.dense.astype(np.float16))
        wanted[-1, level.child_ids] = level.dense[:, 0]
    n_features, number = len(wanted) - 1, level.n_children
    added, columns = {}, [wanted]
    for parent in sorted(data.draw(st.sets(st.integers(0, level.n_parents - 1)))):
        shape = (n_features + 1, data.draw(st.integers(1, 3)))
        W = data.draw(hnp.arrays(np.float32, shape, elements=WEIGHTS))
        half = level.entry_value.dtype == np.float16
        block = prune(W, np.arange(n_features, dtype=np.uint32), half=half, n_dense=1)
        added[parent] = (block, np.arange(number, number + shape[1], dtype=np.int32))
        columns.append(np.vstack((block_matrix(block, n_features), block.dense.T.astype(level.dense.dtype))))
        number += shape[1]
    grown = with_children(level, added)
    np.testing.assert_array_equal(level_matrix(grown, n_features), np.hstack(columns))
    gone = np.array(data.draw(st.lists(st.booleans(), min_size=number, max_size=number)))
    some = without_children(grown, gone)
    np.testing.assert_array_equal(level_matrix(some, n_features), np.hstack(columns)[:, ~gone])
    back = without_children(grown, np.arange(number) >= level.n_children)
    for name, array in level.to_arrays("").items():
        np.testing.assert_array_equal(back.to_arrays("")[name], array)
        assert back.to_arrays("")[name].dtype == array.dtype
