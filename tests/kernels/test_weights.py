"""Pruning and marking against dense numpy."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelwise.kernels.weights import mark_labels, prune_block
from tests.reference import weights as reference

WEIGHTS = st.sampled_from([0.0, 0.0, 0.05, -0.1, 0.1, 0.3, -0.7, 1.0])


@given(st.data(), st.integers(0, 6), st.integers(1, 5), st.booleans())
def test_prune_block(data, n_rows, n_labels, read_only):
    W = data.draw(hnp.arrays(np.float32, (n_rows, n_labels), elements=WEIGHTS))
    limits = data.draw(hnp.arrays(np.float32, n_labels, elements=st.sampled_from([0.0, 0.1, 0.5])))
    order = np.array(data.draw(st.permutations(range(n_rows))), np.int64)
    W.flags.writeable = not read_only
    rows, ends, children, values = prune_block(W, order, limits)
    wanted = np.where((np.abs(W) >= limits) & (W != 0), W, 0)
    assert rows.tolist() == [row for row in order if wanted[row].any()]
    entries = [(c, wanted[row, c]) for row in rows for c in np.flatnonzero(wanted[row])]
    assert list(zip(children.tolist(), values.tolist(), strict=True)) == entries
    assert ends.tolist() == np.cumsum([np.count_nonzero(wanted[row]) for row in rows]).tolist()
    assert (ends.dtype, children.dtype, values.dtype) == (np.uint32, np.uint32, np.float32)


def test_some_columns_of_a_wider_block():
    W = np.arange(12, dtype=np.float32).reshape(3, 4)
    rows, ends, children, values = prune_block(W[:, :3], np.array([2, 0, 1]), np.full(3, 2, np.float32))
    assert rows.tolist() == [2, 0, 1]
    assert ends.tolist() == [3, 4, 7]
    assert children.tolist() == [0, 1, 2, 2, 0, 1, 2]
    assert values.tolist() == [8, 9, 10, 2, 4, 5, 6]


@given(st.data(), st.integers(1, 6), st.integers(1, 8), st.integers(1, 3))
def test_mark_labels(data, n_docs, n_labels, n_parents):
    Y = data.draw(hnp.arrays(np.float32, (n_docs, n_labels), elements=st.sampled_from([0, 0, 1])))
    parents = data.draw(hnp.arrays(np.int32, n_labels, elements=st.integers(0, n_parents - 1)))
    rows = np.array(data.draw(st.lists(st.integers(0, n_docs - 1), unique=True)), np.int64)
    parent = data.draw(st.integers(0, n_parents - 1))
    own = np.flatnonzero(parents == parent)
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(own))] * 2)))  # some of the children
    places = np.array([np.count_nonzero(parents[:label] == parents[label]) for label in range(n_labels)], np.int32)
    signs = np.zeros((len(rows), last - first + 2), np.int8)  # filled up with columns that take no part
    signs[:, : last - first] = -1
    labels = sp.csr_array(Y)
    mark_labels(labels.indptr, labels.indices, rows, parents, places - np.int32(first), parent, signs)
    np.testing.assert_array_equal(signs[:, : last - first], reference.mark_labels(Y, rows, own[first:last]))
    assert not signs[:, last - first :].any()
