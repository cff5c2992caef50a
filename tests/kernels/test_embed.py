"""Sums of documents against dense numpy."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelwise.kernels.embed import sum_rows
from tests.kernels.test_cluster import matrices
from tests.reference import cluster as reference


@given(matrices(), st.data())
def test_sum_rows(matrix, data):
    X, arrays = matrix
    Y = data.draw(hnp.arrays(np.float32, (len(X), data.draw(st.integers(1, 5))), elements=st.sampled_from([0, 1, 0.5])))
    labels = sp.csr_array(Y.T)
    indptr, indices, values = sum_rows(labels.indptr, labels.indices.view(np.uint32), labels.data, *arrays, X.shape[1])
    Z = sp.csr_array((values, indices, indptr), shape=(Y.shape[1], X.shape[1]))
    assert Z.has_canonical_format
    assert (Z.data != 0).all()
    np.testing.assert_allclose(Z.toarray(), reference.sum_rows(Y, X), atol=1e-5)


def test_sum_rows_grows_its_arrays():
    X = sp.csr_array(np.ones((2, 5000), np.float32))
    labels = sp.csr_array(np.ones((3, 2), np.float32))
    indptr, indices, values = sum_rows(
        labels.indptr, labels.indices.view(np.uint32), labels.data, X.indptr, X.indices.view(np.uint32), X.data, 5000
    )
    assert indptr.tolist() == [0, 5000, 10000, 15000]
    np.testing.assert_array_equal(indices, np.tile(np.arange(5000), 3))
    np.testing.assert_allclose(values, 5000**-0.5, rtol=1e-6)
