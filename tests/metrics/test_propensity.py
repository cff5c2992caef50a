"""Inverse propensities against numbers worked out by hand."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import metrics
from labelwise.errors import UsageError


def test_inverse_propensity_by_hand():
    Y_train = sp.csr_array(np.array([[1, 1, 0], [0, 1, 0], [0, 1, 0]] + [[0, 0, 0]] * 17, dtype=np.float32))
    c = np.log(20) - 1  # with a = b = 1 the weight is 1 + (ln 20 - 1) * 2 / (N_l + 1)
    expected = [1 + c * 2 / 2, 1 + c * 2 / 4, 1 + c * 2 / 1]
    np.testing.assert_allclose(metrics.inverse_propensity(Y_train, 1, 1), expected)
    np.testing.assert_allclose(metrics.inverse_propensity([1, 3, 0], 1, 1, n_docs=20), expected)
    with pytest.raises(UsageError, match="pass n_docs"):
        metrics.inverse_propensity([1, 3, 0])
    # The published form: p = 1 / (1 + C e^(-A ln(N_l + B))), C = (ln N - 1)(B + 1)^A
    published = 1 / (1 + c * 2.5**0.55 * np.exp(-0.55 * np.log(np.array([1, 3, 0]) + 1.5)))
    np.testing.assert_allclose(metrics.inverse_propensity(Y_train), 1 / published)
    assert metrics.inverse_propensity([0, 1], n_docs=1).tolist() == [1, 1]
