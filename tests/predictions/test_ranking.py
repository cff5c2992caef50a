"""Rankings by the kernel and by a sort agree."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.predictions.ranking import LONG_RANKING, rank_all, rank_best


@pytest.mark.parametrize("k", [1, 7, LONG_RANKING, LONG_RANKING + 1, 200])
def test_both_ways_of_ranking_agree(k):
    rng = np.random.default_rng(0)
    dense = rng.integers(-3, 4, size=(20, 150)) * (rng.random((20, 150)) < 0.8)
    matrix = sp.csr_array(dense.astype(np.float64))
    indptr, best = rank_best(matrix, k)
    everything = rank_all(matrix)
    for i in range(20):
        whole = everything[matrix.indptr[i] : matrix.indptr[i + 1]]
        np.testing.assert_array_equal(best[indptr[i] : indptr[i + 1]], whole[:k])
