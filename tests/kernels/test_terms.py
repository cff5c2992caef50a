"""The hash table and the letters of terms against dictionaries and slices."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelwise.kernels.terms import add_terms, eight_letters, find_terms, gather_letters

HASHES = st.lists(st.integers(1, 2**64 - 1), max_size=60).map(lambda values: np.array(values, np.uint64))


@given(HASHES, HASHES)
def test_terms_are_numbered_and_found(entered, asked):
    keys, values = np.zeros(128, np.uint64), np.full(128, -1, np.int32)
    numbers = {}
    want = [numbers.setdefault(h, len(numbers)) for h in entered.tolist()]
    assert add_terms(entered, 0, keys, values).tolist() == want
    both = np.concatenate((asked, entered))
    assert find_terms(keys, values, both).tolist() == [numbers.get(h, -1) for h in both.tolist()]


def test_collisions_probe_on():
    keys, values = np.zeros(4, np.uint64), np.full(4, -1, np.int32)
    same_slot = np.array([3, 7, 11], np.uint64)
    assert add_terms(same_slot, 5, keys, values).tolist() == [5, 6, 7]
    assert find_terms(keys, values, same_slot[::-1].copy()).tolist() == [7, 6, 5]


@given(st.lists(st.binary(max_size=20), max_size=8), st.integers(0, 12))
def test_letters(terms, skip):
    letters = np.frombuffer(b"".join(terms), np.uint8)
    ends = np.cumsum([len(term) for term in terms], dtype=np.int64)
    starts = ends - np.array([len(term) for term in terms], np.int64)
    want = [int.from_bytes(term[skip : skip + 8].ljust(8, b"\0"), "big") for term in terms]
    assert eight_letters(letters, starts, ends, skip).tolist() == want
    assert bytes(gather_letters(letters, starts[::-1].copy(), ends[::-1].copy())) == b"".join(terms[::-1])
