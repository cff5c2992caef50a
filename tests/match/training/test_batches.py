"""Every epoch sees every document, within the room there is, and always the same way."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwise.match.training.batches import Packed, Padded, Schedule, cut, in_order, make_buckets, round_up

LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=120).map(np.array)


def same(first, second):
    return len(first) == len(second) and all(
        a.shape == b.shape and np.array_equal(a.rows, b.rows) for a, b in zip(first, second, strict=True)
    )


@given(lengths=LENGTHS, batch_size=st.integers(1, 40), seed=st.integers(0, 3))
def test_packed_batches_have_every_document_once_and_fit(lengths, batch_size, seed):
    plan = Packed(lengths, batch_size, seed)
    for number in (0, 3):
        batches = plan.epoch(number)
        assert np.array_equal(np.sort(np.concatenate([batch.rows for batch in batches])), np.arange(len(lengths)))
        for batch in batches:
            assert batch.shape == plan.shape
            assert 0 < len(batch.rows) <= batch.shape.most_rows == 2 * batch_size
            assert lengths[batch.rows].sum() <= batch.shape.width
        for batch, after in pairwise(batches):  # none is cut before it must be
            full = lengths[batch.rows].sum() + lengths[after.rows[0]] > plan.shape.width
            assert full or len(batch.rows) == 2 * batch_size
    assert plan.shape.width % 64 == 0
    assert plan.shape.width < max(batch_size * lengths.mean(), lengths.max()) + 64


@given(lengths=LENGTHS, batch_size=st.integers(1, 40), seed=st.integers(0, 3))
def test_padded_batches_have_every_document_and_fillers_that_fit(lengths, batch_size, seed):
    batch_size = min(batch_size, len(lengths))
    plan = Padded(lengths, batch_size, seed)
    for number in (0, 3):
        batches = plan.epoch(number)
        counts = np.bincount(np.concatenate([batch.rows for batch in batches]), minlength=len(lengths))
        assert counts.min() >= 1
        assert counts.sum() - len(lengths) < batch_size  # fewer fillers than would make another batch
        for batch in batches:
            assert len(batch.rows) == batch_size
            assert lengths[batch.rows].max() <= batch.shape.width
            if batch.shape.kind == "full":
                assert (lengths[batch.rows] == batch.shape.width).all()


@given(lengths=LENGTHS, batch_size=st.integers(1, 40))
def test_buckets_hold_every_document_once(lengths, batch_size):
    buckets = make_buckets(lengths, batch_size)
    assert np.array_equal(np.sort(np.concatenate([bucket.rows for bucket in buckets])), np.arange(len(lengths)))
    widths = [bucket.shape.width for bucket in buckets]
    assert widths == sorted(widths)
    assert all(lengths[bucket.rows].max() <= bucket.shape.width for bucket in buckets)


@pytest.mark.parametrize("kind", [Packed, Padded])
def test_a_plan_depends_on_seed_and_epoch_alone(kind):
    lengths = np.random.default_rng(0).integers(3, 60, 200)
    assert same(kind(lengths, 16, 7).epoch(2), kind(lengths, 16, 7).epoch(2))
    assert not same(kind(lengths, 16, 7).epoch(2), kind(lengths, 16, 7).epoch(3))
    assert not same(kind(lengths, 16, 7).epoch(2), kind(lengths, 16, 8).epoch(2))


@pytest.mark.parametrize("kind", [Packed, Padded])
def test_a_schedule_gives_the_batch_of_any_step(kind):
    lengths = np.random.default_rng(0).integers(3, 60, 50)
    plan = kind(lengths, 8, 0)
    expected = [batch for number in range(9) for batch in plan.epoch(number)]
    schedule = Schedule(plan)
    assert schedule.steps_per_epoch == len(plan.epoch(0))
    steps = [*range(40), 0, 39, 20, 1, len(expected) - 1, 3, *np.random.default_rng(1).integers(0, len(expected), 30)]
    for step in steps:
        assert same([schedule.batch(step)], [expected[step]]), step
    assert same([Schedule(plan).batch(45)], [expected[45]])  # as after a checkpoint


def test_a_text_too_long_has_a_run_of_its_own():
    lengths = np.array([5, 50, 5, 5, 5, 5])
    runs = cut(np.arange(6), lengths, 10, 3)
    assert [run.tolist() for run in runs] == [[0], [1], [2, 3], [4, 5]]
    assert [run.tolist() for run in cut(np.arange(6), lengths, 1000, 4)] == [[0, 1, 2, 3], [4, 5]]


@given(length=st.integers(0, 600), more=st.integers(0, 300))
def test_widths_are_few_and_little_wider(length, more):
    most = max(length + more, 1)
    width = round_up(length, most)
    assert max(length, 1) <= width <= most
    assert width == most or width % 8 == 0
    assert width - length <= max(8, length / 4)
    assert len({round_up(length, 512) for length in range(513)}) <= 24


@given(
    lengths=st.lists(st.integers(0, 300), min_size=0, max_size=120).map(lambda x: np.array(x, np.int64)),
    most_tokens=st.integers(1, 2000),
)
def test_inference_sees_every_document_longest_first(lengths, most_tokens):
    batches = list(in_order(lengths, most_tokens))
    rows = np.concatenate([np.empty(0, np.int64), *(batch.rows for batch in batches)])
    assert np.array_equal(np.sort(rows), np.arange(len(lengths)))
    assert (np.diff(lengths[rows]) <= 0).all()
    for batch in batches:
        assert lengths[batch.rows].max() <= batch.shape.width
        assert len(batch.rows) == 1 or len(batch.rows) * batch.shape.width <= most_tokens
        assert (batch.shape.kind == "full") == (lengths[batch.rows] == batch.shape.width).all()
