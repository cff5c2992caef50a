import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.features.normalize import unit_length, unit_rows


def test_rows_of_length_one():
    E = np.array([[3.0, 4.0], [0.0, 0.0]], np.float16)
    assert unit_rows(E).tolist() == [pytest.approx([0.6, 0.8]), [0.0, 0.0]]
    assert unit_rows(E).dtype == np.float32


def test_sparse_rows_of_length_one():
    rows = unit_length(sp.csr_array(np.array([[3.0, 0.0, 4.0], [0.0, 0.0, 0.0]])))
    assert rows.toarray().tolist() == [pytest.approx([0.6, 0.0, 0.8]), [0.0, 0.0, 0.0]]
    assert rows.dtype == np.float32
