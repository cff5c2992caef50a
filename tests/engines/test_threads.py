"""Threads: order, look-ahead, errors, and memory that is never exceeded."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from labelwise.engines.threads import MemoryBudget, available_cores, map_in_order


@pytest.mark.parametrize("threads", [None, 1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 30])
def test_results_come_in_order(threads, n):
    def late_first(i):
        time.sleep(0.002 * (i % 3 == 0))
        return i * i

    assert list(map_in_order(late_first, range(n), threads)) == [i * i for i in range(n)]


def test_one_item_or_one_thread_stays_in_the_calling_thread():
    here = threading.get_ident()
    assert list(map_in_order(lambda _: threading.get_ident(), [0], 4)) == [here]
    assert list(map_in_order(lambda _: threading.get_ident(), [0, 1, 2], 1)) == [here] * 3
    assert here not in list(map_in_order(lambda _: threading.get_ident(), [0, 1, 2], 2))


@pytest.mark.parametrize("threads", [1, 3])
def test_only_a_few_items_are_taken_ahead(threads):
    taken = []

    def source():
        for i in range(100):
            taken.append(i)
            yield i

    results = map_in_order(str, source(), threads)
    assert next(results) == "0"
    assert len(taken) <= threads + 2
    results.close()


def test_with_room_ahead_no_thread_waits_for_a_slow_one():
    done, all_others = [], threading.Event()

    def work(i):
        if i == 0:
            assert all_others.wait(10), "the others wait for the first"
        else:
            done.append(i)
            if len(done) == 19:
                all_others.set()
        return i

    assert list(map_in_order(work, range(20), 2, ahead=20)) == list(range(20))


@pytest.mark.parametrize("threads", [1, 2])
def test_errors_of_the_function_reach_the_caller(threads):
    def fail_at_3(i):
        if i == 3:
            raise ValueError("three is bad")
        return i

    seen = []
    with pytest.raises(ValueError, match="three is bad"):
        seen.extend(map_in_order(fail_at_3, range(50), threads))
    results = map_in_order(fail_at_3, range(50), threads)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three is bad"):
        next(results)
    assert list(results) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_errors_of_the_source_reach_the_caller(threads):
    def source():
        yield from range(5)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(map_in_order(str, source(), threads))


def test_there_is_a_core():
    assert available_cores() >= 1


class Meter:
    """Counts the bytes held at any time."""

    def __init__(self):
        self.lock, self.now, self.most, self.pieces, self.most_pieces = threading.Lock(), 0, 0, 0, 0

    def change(self, n_bytes):
        with self.lock:
            self.now += n_bytes
            self.pieces += 1 if n_bytes > 0 else -1
            self.most, self.most_pieces = max(self.most, self.now), max(self.most_pieces, self.pieces)


def held(budget, sizes, threads=6):
    meter = Meter()

    def work(size):
        with budget.hold(size):
            meter.change(size)
            time.sleep(0.001)
            meter.change(-size)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, sizes))
    return meter


def test_a_budget_is_never_exceeded():
    meter = held(MemoryBudget(100), [10, 60, 45, 30, 100, 5, 80] * 8)
    assert 0 < meter.most <= 100
    assert meter.now == 0


def test_pieces_run_side_by_side_where_there_is_room():
    both = threading.Barrier(2, timeout=10)
    budget = MemoryBudget(100)

    def work(size):
        with budget.hold(size):
            both.wait()  # gets no further unless the other one is inside too

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, [50, 50]))


def test_a_piece_larger_than_the_budget_runs_alone():
    meter = held(MemoryBudget(10), [25] * 10)
    assert (meter.most, meter.most_pieces) == (25, 1)
    meter = held(MemoryBudget(10), [25, 1, 3, 25, 5] * 6)
    assert meter.most == 25


def test_room_is_given_back_after_an_error():
    budget = MemoryBudget(10)
    with pytest.raises(ValueError, match="in the middle"), budget.hold(10):
        raise ValueError("in the middle")
    done = []
    with budget.hold(10):
        done.append(True)
    assert done
