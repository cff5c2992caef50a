import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from labelwise.kernels.isotonic import keep_order, pool_violators
from tests.reference import isotonic as reference

GROUPS = st.lists(st.integers(1, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=30)


def pooled(hits, counts):
    starts = np.full(hits.size, -1)
    return starts[: pool_violators(hits, counts, starts)]


def test_by_hand():
    hits, counts = np.array([0, 1, 0, 1, 1, 0, 1]), np.ones(7, dtype=np.int64)
    # 0 | 1 0 -> 1/2 | 1 1 0 -> 2/3 | 1
    assert pooled(hits, counts).tolist() == [0, 1, 3, 6]
    assert pooled(np.array([3, 2, 1]), np.array([3, 3, 3])).tolist() == [0]
    assert pooled(np.array([1, 2, 3]), np.array([2, 4, 6])).tolist() == [0]  # equal shares are one block
    assert pooled(np.array([], dtype=np.int64), np.array([], dtype=np.int64)).tolist() == []


@given(GROUPS, st.booleans())
def test_pool_violators(groups, locked):
    hits, counts = (np.array([group[part] for group in groups], dtype=np.int64) for part in (0, 1))
    if locked:
        hits.flags.writeable = counts.flags.writeable = False
    assert pooled(hits, counts).tolist() == reference.pool(hits.tolist(), counts.tolist())


@pytest.mark.rivals
@pytest.mark.parametrize("n", [1, 10, 1_000, 100_000])
def test_as_scikit_learn_says(n):
    rng = np.random.default_rng(n)
    counts = rng.integers(1, 5, size=n)
    hits = rng.binomial(counts, np.linspace(0.05, 0.9, n) ** 2)
    starts = pooled(hits, counts)
    sizes = np.diff(np.append(starts, n))
    ours = np.repeat(np.add.reduceat(hits, starts) / np.add.reduceat(counts, starts), sizes)
    theirs = IsotonicRegression().fit_transform(np.arange(n), hits / counts, sample_weight=counts)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from([3.0, 1.0, 0.5, 0.0, -1.0]), st.sampled_from([1e-7, 0.5, 0.97])), max_size=6)
    )
)
def test_keep_order(rows):
    rows = [[(score, np.float32(value)) for score, value in sorted(row, key=lambda e: -e[0])] for row in rows]
    indptr = np.cumsum([0, *map(len, rows)])
    # Positions run backwards, so that an index taken for a rank shows.
    ranked = np.arange(indptr[-1])[::-1].copy()
    scores = np.array([score for row in rows for score, _ in row], dtype=np.float64)[::-1].copy()
    values = np.array([value for row in rows for _, value in row], dtype=np.float32)[::-1].copy()
    keep_order(indptr, ranked, scores, values)
    assert values[ranked].tolist() == [value for row in reference.keep_order(rows) for value in row]
