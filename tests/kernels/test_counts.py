"""Counting, arranging and weighing against plain Python."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwise.kernels.counts import arrange, tally, weigh
from tests.reference import tokens as reference

DOCS = st.lists(st.lists(st.integers(1, 12), max_size=30), max_size=8)


def flat(docs):
    indptr = np.concatenate(([0], np.cumsum([len(doc) for doc in docs]))).astype(np.int64)
    return np.array([term for doc in docs for term in doc], np.uint64), indptr


def rows(indptr, *columns):
    return [list(zip(*(c[a:b].tolist() for c in columns), strict=True)) for a, b in pairwise(indptr)]


@given(DOCS)
def test_tally_counts(docs):
    hashes, indptr = flat(docs)
    pair_indptr, term, count, first = tally(hashes, indptr)
    got = [{int(hashes[first[t]]): c for t, c in row} for row in rows(pair_indptr, term, count)]
    assert got == [dict(Counter(doc)) for doc in docs]
    order = list(dict.fromkeys(hashes.tolist()))
    assert hashes[first].tolist() == order  # numbered by first appearance


def test_tally_grows_its_table():
    hashes = np.random.default_rng(0).integers(1, 2**63, 100_000).astype(np.uint64)
    hashes = np.concatenate((hashes, hashes))
    _, term, count, first = tally(hashes, np.array([0, 150_000, 200_000]))
    assert len(first) == len(np.unique(hashes))
    assert count.sum() == 200_000
    np.testing.assert_array_equal(hashes[first][term[:100_000]], hashes[:100_000])


@given(DOCS, st.randoms(use_true_random=False))
def test_arrange_sorts_and_drops(docs, random):
    hashes, indptr = flat(docs)
    pair_indptr, term, count, first = tally(hashes, indptr)
    columns = np.array(random.sample(range(3 * len(first)), len(first)), np.int64)
    dropped = np.array([random.random() < 0.3 for _ in first], bool)
    columns[dropped] = -1
    order = np.argsort(columns)[np.count_nonzero(dropped) :]
    n_kept = int((~dropped)[term].sum()) if len(term) else 0
    indices, data = np.empty(n_kept, np.int32), np.empty(n_kept, np.float32)
    got_indptr = arrange(pair_indptr, term, count, columns, order, indices, data)
    want = [sorted((int(columns[t]), c) for t, c in row if columns[t] >= 0) for row in rows(pair_indptr, term, count)]
    assert rows(got_indptr, indices, data) == want


NO_OPENING = np.empty(0, np.bool_)


@pytest.mark.parametrize("norm", [0, 1, 2])
@pytest.mark.parametrize("sublinear", [False, True])
@pytest.mark.parametrize("idf", [None, np.array([1.0, 2.5, 0.5], np.float32)])
@pytest.mark.parametrize("opening", [None, [False, True, True], [False, False, True], [True, True, True]])
def test_weigh(norm, sublinear, idf, opening):
    counted = [[(0, 1), (2, 100)], [], [(1, 63), (2, 64)]]
    indptr = np.array([0, 2, 2, 4])
    indices = np.array([0, 2, 1, 2], np.int32)
    data = np.array([1, 100, 63, 64], np.float32)
    given_opening = NO_OPENING if opening is None else np.array(opening)
    given_idf = np.empty(0, np.float32) if idf is None else idf
    weigh(indptr, indices, given_idf, given_opening, 0.7, sublinear, norm, data)
    want = reference.weigh(counted, idf, sublinear, norm, None if opening is None else given_opening, 0.7)
    np.testing.assert_allclose(data, [value for row in want for value in row], rtol=1e-6)
