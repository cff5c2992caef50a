"""Checks of saved arrays against plain ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelwise.kernels.terms import add_terms
from labelwise.kernels.validate import TABLE_CROWDED, largest_bits, wrong_block, wrong_table
from tests.reference import validate as reference


@st.composite
def levels(draw):
    """Arrays of a level, right ones with up to two numbers changed."""
    child_indptr, row_indptr, entry_indptr = [0], [0], [0]
    features, ends, children = [], [], []
    for _ in range(draw(st.integers(1, 3))):
        n_children = draw(st.integers(1, 4))
        own = sorted(draw(st.sets(st.integers(0, 7), max_size=4)))
        sizes = [draw(st.integers(0, 3)) for _ in own]
        features += own
        ends += np.cumsum(sizes).tolist()
        children += [draw(st.integers(0, n_children - 1)) for _ in range(sum(sizes))]
        child_indptr.append(child_indptr[-1] + n_children)
        row_indptr.append(len(features))
        entry_indptr.append(len(children))
    arrays = [np.array(child_indptr), np.array(row_indptr), np.array(features, np.uint32), np.array(ends, np.uint32)]
    arrays += [np.array(entry_indptr), np.array(children, draw(st.sampled_from([np.uint8, np.uint16, np.uint32])))]
    for _ in range(draw(st.integers(0, 2))):
        array = arrays[draw(st.sampled_from([2, 3, 5]))]
        if len(array):
            array[draw(st.integers(0, len(array) - 1))] = draw(st.integers(0, 9))
    for array in arrays:
        array.flags.writeable = False
    return arrays


@given(levels(), st.integers(5, 9))
def test_wrong_block(arrays, n_features):
    assert wrong_block(*arrays, n_features) == reference.wrong_block(*arrays, n_features)


@given(st.sampled_from([(np.float16, np.uint16), (np.float32, np.uint32)]), st.data())
def test_largest_bits(types, data):
    floats, bits = types
    values = data.draw(hnp.arrays(floats, st.integers(0, 40)))
    largest = largest_bits(values.view(bits), bits(np.iinfo(bits).max >> 1))
    wanted = np.abs(values)
    assert (np.isinf(wanted) | np.isnan(wanted)).any() == (largest >= np.array(np.inf, floats).view(bits))
    if np.isfinite(wanted).all():
        assert np.array(largest, bits).view(floats) == wanted.max(initial=0)


@given(st.data(), st.lists(st.integers(1, 2**64 - 1), max_size=10, unique=True), st.integers(0, 10))
def test_wrong_table(data, hashes, longest):
    keys, values = np.zeros(16, np.uint64), np.full(16, -1, np.int32)
    add_terms(np.array(hashes, np.uint64), 0, keys, values)
    for array in (keys, values):
        if data.draw(st.booleans()):
            array[data.draw(st.integers(0, 15))] = data.draw(st.integers(0, 40))
    found = wrong_table(keys, values, 9, longest)
    assert found == reference.wrong_table(keys, values, 9, longest)


@pytest.mark.parametrize("capacity", [1, 2, 8])
def test_a_table_without_a_free_slot(capacity):
    keys, values = np.arange(1, capacity + 1, dtype=np.uint64), np.arange(capacity, dtype=np.int32)
    assert wrong_table(keys, values, capacity, 100)


def test_many_filled_slots_in_a_row():
    keys, values = np.zeros(16, np.uint64), np.full(16, -1, np.int32)
    add_terms(np.arange(14, 20, dtype=np.uint64), 0, keys, values)  # from slot 14 on, round the end
    assert wrong_table(keys, values, 6, 5) == 0
    assert wrong_table(keys, values, 6, 4) == TABLE_CROWDED
