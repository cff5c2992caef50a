"""What a forked process learns about its ancestors, and when a process may fork."""

import os
import threading

import pytest

from labelwise.engines.forks import ForkGuard

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def in_child(ask):
    child = os.fork()
    if not child:
        os._exit(ask())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_know_what_was_used_before_the_fork():
    adapted = []
    guard = ForkGuard()
    assert in_child(lambda: guard.inherited) == 0
    guard.use(lambda: adapted.append(1))
    guard.use()
    assert in_child(lambda: 10 * guard.inherited + len(adapted)) == 11
    assert not guard.inherited
    assert adapted == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_waits_for_the_computations_of_other_threads():
    guard = ForkGuard()
    guard.use()
    inside, leave, left = threading.Event(), threading.Event(), []

    def compute():
        with guard.computing(), guard.computing():
            inside.set()
            leave.wait()
            left.append(1)

    thread = threading.Thread(target=compute)
    thread.start()
    inside.wait()
    threading.Timer(0.2, leave.set).start()
    assert in_child(lambda: len(left)) == 1
    thread.join()
    with guard.computing():  # the thread that forks may be in a computation itself
        assert in_child(lambda: len(left)) == 1


def test_a_fork_does_not_wait_for_ever(monkeypatch):
    monkeypatch.setattr("labelwise.engines.forks.LONGEST_WAIT", 0.1)
    guard = ForkGuard()
    leave = threading.Event()
    inside = threading.Event()

    def compute():
        with guard.computing():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=compute)
    thread.start()
    inside.wait()
    guard._before_fork()
    guard._in_parent()
    leave.set()
    thread.join()
    assert not guard._computing
