"""Engines: which one is in use, and that results come in the order of the items."""

from dataclasses import dataclass

import numpy as np
import pytest

import labelwise
from labelwise.engines import current_engine, engine, interface
from labelwise.errors import UsageError


@dataclass(frozen=True)
class Scaled:
    """Items times a factor."""

    by: int

    def __call__(self, item):
        return self.by * item


@pytest.mark.parametrize("threads", [1, 2, None])
def test_results_are_in_the_order_of_the_items(threads):
    told = []
    found = list(current_engine().map(Scaled(3), range(50), threads=threads, costs=[1.0] * 50, done=told.append))
    assert found == [3 * item for item in range(50)]
    assert sorted(told) == list(range(50))


def test_threads_are_the_default(monkeypatch):
    monkeypatch.delenv(interface.VARIABLE, raising=False)
    assert current_engine().name == "threads"
    with labelwise.engine() as chosen:
        assert current_engine() is chosen
        assert chosen.name == "threads"


def test_the_innermost_context_counts(monkeypatch):
    class Other(interface.Threads):
        name = "other"
        closed = False

        def close(self):
            self.closed = True

    other = Other()
    assert current_engine().name == "threads"
    monkeypatch.setattr(interface, "_make", lambda *_: other)
    with engine("other"):
        assert current_engine() is other
    assert other.closed
    assert current_engine().name == "threads"


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: engine("spark"), "there is no engine 'spark'; there are: threads, ray"),
        (lambda: engine("threads", address="auto"), "an address is for the engine ray"),
    ],
)
def test_what_is_not_there_is_refused(ask, sentence):
    with pytest.raises(UsageError, match=sentence), ask():
        pass


def test_the_environment_names_the_engine(monkeypatch):
    monkeypatch.setenv(interface.VARIABLE, "spark")
    with pytest.raises(UsageError, match="LABELWISE_ENGINE: there is no engine 'spark'"):
        current_engine()
    monkeypatch.setenv(interface.VARIABLE, "")
    assert current_engine().name == "threads"


def test_errors_of_the_work_arrive():
    def work(item):
        if item == 2:
            raise UsageError("two is too many")
        return np.int64(item)

    with pytest.raises(UsageError, match="two is too many"):
        list(current_engine().map(work, range(5), threads=2))
