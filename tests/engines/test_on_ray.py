"""Work on two simulated nodes of a Ray cluster: the same bytes as in threads, also where processes and nodes die."""

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from labelwise import LinearTree, generate_shop, load_model
from labelwise.engines import cpu_seconds, current_engine, engine
from labelwise.errors import DataError, UsageError

ray = pytest.importorskip("ray", reason="needs the extra ray")
on_ray = pytest.importorskip("labelwise.engines.on_ray")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="simulated nodes need Linux or macOS")


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one CPU each; the first one cannot go."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    try:
        with engine("ray", address=cluster.address):
            yield cluster
    finally:
        cluster.shutdown()


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over shared values, with a moment of work."""

    values: np.ndarray
    seconds: float = 0.0

    def __call__(self, item):
        time.sleep(self.seconds)
        return int(self.values[:item].sum())


@dataclass(frozen=True)
class Busy:
    """Uses the CPU for a while."""

    seconds: ClassVar[float] = 0.1

    def __call__(self, item):
        begin = time.process_time()
        while time.process_time() - begin < self.seconds:
            pass


@dataclass(frozen=True)
class Dying:
    """Kills its process at some items, the first time that they are tried."""

    folder: str
    at: tuple[int, ...]

    def __call__(self, item):
        tried = Path(self.folder) / str(item)
        if item in self.at and not tried.exists():
            tried.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item * item


@dataclass(frozen=True)
class Failing:
    """Fails at an item."""

    at: int

    def __call__(self, item):
        if item == self.at:
            raise DataError(f"item {item} is wrong; mend it", path="items.csv", line=item)
        return item


def digest(model, folder):
    """The bytes of all arrays of a model."""
    model.save(folder)
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*.safetensors")}


def test_a_cluster_that_is_not_there_is_refused():
    assert not ray.is_initialized()  # the first test of this file: later ones belong to a cluster
    with (
        pytest.raises(UsageError, match=r"the Ray cluster at 127.0.0.1:1 cannot be reached"),
        engine("ray", address="127.0.0.1:1"),
    ):
        pass


def test_models_and_predictions_are_the_same_bytes(cluster, tmp_path):
    train, test = generate_shop(2500, 600).values()

    def fitted():
        return LinearTree("parabel", n_trees=2).fit(train.texts, train.Y, label_names=train.labels)

    there = fitted()
    found = there.predict(test.texts, top_k=5)
    with engine("threads"):
        here = fitted()
        want = here.predict(test.texts, top_k=5)
    assert digest(there, tmp_path / "there") == digest(here, tmp_path / "here")
    assert list(found) == list(want)
    loaded = load_model(tmp_path / "there")  # its arrays are mapped
    assert list(loaded.predict(test.texts, top_k=5)) == list(want)


def test_results_are_in_the_order_of_the_items(cluster):
    work, told = Sums(np.arange(1000)), []
    for costs in (None, np.linspace(9, 1, 90).tolist()):
        found = list(current_engine().map(work, range(90), costs=costs, done=told.append))
        assert found == [item * (item - 1) // 2 for item in range(90)]
    assert sorted(told) == sorted([*range(90), *range(90)])
    assert list(current_engine().map(work, iter([7]))) == [21]  # in this process
    assert list(current_engine().map(work, [])) == []


def test_cpu_seconds_of_the_cluster_count(cluster):
    before = cpu_seconds()
    list(current_engine().map(Busy(), range(4), costs=[1.0] * 4))
    assert cpu_seconds() - before > 4 * Busy.seconds


def test_a_process_that_dies_is_replaced(cluster, tmp_path):
    found = list(current_engine().map(Dying(str(tmp_path), (3, 20)), range(30), costs=[1.0] * 30))
    assert found == [item * item for item in range(30)]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_node_that_goes_is_done_without(cluster):
    gone = cluster.add_node(num_cpus=2)
    timer = threading.Timer(1.0, lambda: cluster.remove_node(gone, allow_graceful=False))
    timer.start()
    found = list(current_engine().map(Sums(np.ones(100, np.int64), seconds=0.1), range(40), costs=[1.0] * 40))
    timer.join()
    assert found == list(range(40))


def test_errors_of_the_work_arrive_as_they_are(cluster):
    with pytest.raises(DataError, match=r"items.csv, line 7: item 7 is wrong; mend it") as failure:
        list(current_engine().map(Failing(7), range(20), costs=[1.0] * 20))
    assert type(failure.value) is DataError
    assert list(current_engine().map(Failing(99), range(20))) == list(range(20))


def test_shared_arrays_are_not_copied():
    values = np.arange(1000.0)
    content, arrays = on_ray._packed(Sums(values))
    assert len(content) < 1000
    for array in arrays:
        array.flags.writeable = False  # as Ray's store gives them
    opened = on_ray._unpacked(content, arrays)
    assert np.shares_memory(opened.values, arrays[0])
    assert opened.values.flags.writeable == values.flags.writeable  # the same type for numba
    np.testing.assert_array_equal(opened.values, values)


@pytest.mark.parametrize("n_batches", [1, 3, 8, 100])
def test_batches_have_about_equal_costs(n_batches):
    items, costs = list(range(40)), [float(1 + item % 5) for item in range(40)]
    batches = list(on_ray._batches(iter(items), costs, n_batches))
    assert [item for batch in batches for item in batch] == items
    assert len(batches) <= n_batches
    largest = max(sum(costs[item] for item in batch) for batch in batches)
    assert largest <= sum(costs) / n_batches + 2 * max(costs)


def test_items_without_costs_come_in_small_batches():
    assert list(on_ray._batches(iter(range(9)), None, 3)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]
