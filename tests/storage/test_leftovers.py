"""Temporary files: their names, their locks, and which of them count as left behind."""

import multiprocessing
import os
import re
import signal

import pytest

from labelwise.storage import leftovers
from labelwise.storage.leftovers import (
    HeldElsewhereError,
    beside,
    hold,
    left_behind,
    release,
    temporary,
    temporary_paths,
)


def free(path, **options):
    (one,) = temporary_paths(path.parent)
    with left_behind(one, **options) as found:
        return found


def test_names_tell_destination_machine_and_state(tmp_path):
    path = beside(tmp_path / "my.model")
    assert re.fullmatch(r"\.my\.model\.[0-9a-f]{16}\.partial", path.name)
    path.mkdir()
    (tmp_path / ".other.0123456789abcdef.old").touch()
    for name in (".my.model.partial", "my.model.0123456789abcdef.partial", ".x.0123456789ABCDEF.partial"):
        (tmp_path / name).touch()  # somebody else's
    mine, other = temporary_paths(tmp_path)
    assert (mine.path, mine.name, mine.state, mine.is_ours) == (path, "my.model", "partial", True)
    assert (other.name, other.state, other.is_ours) == ("other", "old", False)
    assert temporary_paths(tmp_path, "other") == [other]
    assert temporary_paths(tmp_path / "nothing") == []


@pytest.mark.parametrize("folder", [True, False])
def test_what_is_being_written_is_held_and_goes_at_the_end(tmp_path, folder):
    with temporary(tmp_path / "x", folder=folder) as aside:
        assert aside.is_dir() is folder
        assert not free(aside, min_age_hours=0)
        with pytest.raises(HeldElsewhereError):
            hold(aside)
    assert list(tmp_path.iterdir()) == []


def write_for_ever(place, started):
    with temporary(place, folder=True) as aside:
        (aside / "file").touch()
        started.set()
        signal.pause()


def test_a_lock_ends_with_its_process(tmp_path):
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    worker = context.Process(target=write_for_ever, args=(tmp_path / "x", started))
    worker.start()
    assert started.wait(60)
    (one,) = temporary_paths(tmp_path)
    assert not free(one.path)
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(60)
    assert free(one.path)


def test_those_of_other_machines_must_be_old(tmp_path, monkeypatch):
    path = beside(tmp_path / "x")
    path.mkdir()
    (path / "file").touch()
    assert free(path)
    monkeypatch.setattr(leftovers, "this_system", lambda: "another")
    assert not free(path)
    assert free(path, min_age_hours=0)
    monkeypatch.setattr(leftovers.time, "time", lambda: path.stat().st_mtime + 25 * 3600)
    assert free(path)
    handle = hold(path)
    assert not free(path)  # old, but held
    release(handle)


def test_without_locks_only_the_age_tells(tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers, "fcntl", None)
    with temporary(tmp_path / "x", folder=True) as aside:
        assert not free(aside)
        assert free(aside, min_age_hours=0)


def test_a_cleaner_that_is_faster_does_not_disturb(tmp_path, monkeypatch):
    real, calls = hold, []

    def late(path):
        calls.append(path)
        if len(calls) == 1:  # somebody takes the new folder for a leftover before it is locked
            path.rmdir()
        if len(calls) == 2:
            raise HeldElsewhereError
        return real(path)

    monkeypatch.setattr(leftovers, "hold", late)
    with temporary(tmp_path / "x", folder=True) as aside:
        assert aside == calls[2]
        assert aside.is_dir()


def test_links_and_pipes_are_never_opened(tmp_path):
    target = tmp_path / "mine.txt"
    target.write_text("precious")
    for state in ("partial", "old"):
        beside(tmp_path / "x", state).symlink_to(target)
    os.mkfifo(beside(tmp_path / "y"))
    for one in temporary_paths(tmp_path):
        with left_behind(one):
            leftovers.remove(one.path)
    assert target.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [target]
