import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelwise.kernels.split import draw_validation
from tests.reference.split import draw_validation as reference

ROWS = st.lists(st.sets(st.integers(0, 5), max_size=4), min_size=1, max_size=12)


@given(ROWS, st.integers(0, 12), st.integers(0, 99))
def test_agrees_with_the_reference(rows, wanted, seed):
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([label for row in rows for label in sorted(row)], dtype=np.int32)
    order = np.random.default_rng(seed).permutation(len(rows))
    indptr.flags.writeable = False
    aside = draw_validation(indptr, indices, np.bincount(indices, minlength=6), order, wanted)
    assert np.flatnonzero(aside).tolist() == reference(rows, order.tolist(), wanted)
