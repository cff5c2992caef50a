"""What a forked process learns about its ancestors."""

import os

import pytest

from labelwise.engine.forks import ForkMark

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def in_child(ask):
    child = os.fork()
    if not child:
        os._exit(ask())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_know_what_was_used_before_the_fork():
    adapted = []
    mark = ForkMark(lambda: adapted.append(1))
    assert in_child(lambda: mark.inherited) == 0
    mark.use()
    mark.use()
    assert in_child(lambda: 10 * mark.inherited + len(adapted)) == 11
    assert not mark.inherited
    assert adapted == []
