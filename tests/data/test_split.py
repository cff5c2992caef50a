import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelwise.data import Dataset, split_validation
from labelwise.data.stats import label_counts
from labelwise.errors import DataError, UsageError


def make(rows, n_labels=6):
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([label for row in rows for label in sorted(row)], dtype=np.int32)
    Y = sp.csr_array((np.ones(indices.size, np.float32), indices, indptr), shape=(len(rows), n_labels))
    names = [str(i) for i in range(n_labels)]
    return Dataset(
        Y=Y, labels=names, texts=[f"text {i}" for i in range(len(rows))], ids=[str(i) for i in range(len(rows))]
    )


@given(
    st.lists(st.sets(st.integers(0, 5), max_size=3), min_size=2, max_size=30),
    st.floats(0.01, 0.99),
    st.integers(0, 5),
)
def test_no_label_loses_its_last_training_document(rows, fraction, seed):
    dataset = make(rows)
    try:
        train, validation = split_validation(dataset, fraction, seed)
    except DataError:
        assert all(any(sum(label in other for other in rows) == 1 for label in row) for row in rows)
        return
    assert ((label_counts(train) > 0) == (label_counts(dataset) > 0)).all()
    numbers = [int(doc_id) for doc_id in train.ids], [int(doc_id) for doc_id in validation.ids]
    assert sorted(numbers[0] + numbers[1]) == list(range(len(rows)))
    assert all(part == sorted(part) for part in numbers)
    assert len(validation) <= max(round(len(rows) * fraction), 1)


def test_the_fraction_is_met_and_the_seed_decides():
    dataset = make([{i % 6} for i in range(1000)])
    parts = [split_validation(dataset, 0.1, seed)[1].ids for seed in (0, 0, 1)]
    assert [len(part) for part in parts] == [100, 100, 100]
    assert parts[0] == parts[1] != parts[2]


def test_what_cannot_be_split():
    with pytest.raises(UsageError, match=r"fraction must lie between 0 and 1, not 1.0"):
        split_validation(make([{0}, {0}]), 1.0)
    with pytest.raises(DataError, match="there are 1 documents; at least two are needed"):
        split_validation(make([{0}]))
    with pytest.raises(DataError, match="every document is the only one with some label"):
        split_validation(make([{0}, {1}]))
