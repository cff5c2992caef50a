"""Folders are exchanged in one step or in steps that can be finished, and readers see one version."""

import errno
import os
import signal

import pytest

from labelwise import UsageError, storage
from labelwise.errors import StorageError
from labelwise.storage import leftovers, replacing
from labelwise.storage.leftovers import beside, temporary_paths
from labelwise.storage.replacing import atomic_file, atomic_folder, clean, exchange, present_place, read_whole


@pytest.fixture(params=["exchange", "steps"])
def way(request, monkeypatch):
    """Both ways of replacing a folder."""
    if request.param == "steps":
        monkeypatch.setattr(replacing, "_exchange_call", lambda: None)
    return request.param


def write(place, text, **options):
    with atomic_folder(place, overwrite=True, **options) as folder:
        for part in ("a", "b"):
            (folder / part).mkdir()
            (folder / part / "text").write_text(text)


def parts(folder):
    return {(folder / part / "text").read_text() for part in ("a", "b")}


def test_two_folders_change_places(tmp_path):
    write(tmp_path / "one", "1")
    write(tmp_path / "two", "2")
    if not exchange(tmp_path / "one", tmp_path / "two"):
        pytest.skip("this file system cannot exchange")
    assert (parts(tmp_path / "one"), parts(tmp_path / "two")) == ({"2"}, {"1"})
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "one", tmp_path / "none")


def test_a_folder_is_replaced(tmp_path, way):
    for text in ("old", "new"):
        write(tmp_path / "x", text)
        assert parts(tmp_path / "x") == {text}
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_link_and_a_file_are_replaced_and_the_target_stays(tmp_path, way):
    write(tmp_path / "target", "old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        write(tmp_path / name, "new")
        assert parts(tmp_path / name) == {"new"}
        assert not (tmp_path / name).is_symlink()
    assert parts(tmp_path / "target") == {"old"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "target"]


def test_what_came_meanwhile_is_not_overwritten_unasked(tmp_path):
    with pytest.raises(UsageError, match="exists already"), atomic_folder(tmp_path / "x"):
        write(tmp_path / "x", "theirs")
    assert parts(tmp_path / "x") == {"theirs"}
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_failed_save_leaves_no_new_folders(tmp_path):
    with pytest.raises(KeyError), atomic_file(tmp_path / "new" / "deep" / "x.json"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def killed_at(monkeypatch, number):
    """Kill this process before its `number`-th rename, exchange or fsync."""
    calls = []

    def counted(real):
        def call(*arguments, **options):
            calls.append(real)
            if len(calls) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call

    for name in ("rename", "fsync"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    monkeypatch.setattr(replacing, "exchange", counted(replacing.exchange))


@pytest.mark.parametrize("there", [True, False])
def test_a_kill_at_any_point_leaves_the_old_or_the_new_folder(tmp_path, way, there, monkeypatch):
    place = tmp_path / "x"
    for number in range(1, 40):
        if there:
            write(place, "old")
        child = os.fork()
        if child == 0:
            killed_at(monkeypatch, number)
            write(place, "new")
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found = present_place(place)
        if there or found.exists():
            assert read_whole(place, parts) in ({"old"}, {"new"})
        cleaned = list(clean(tmp_path))
        assert [path.name for path in tmp_path.iterdir()] in ([["x"]] if there else [["x"], []])
        if ended == 0:
            assert number > 5
            assert cleaned == []
            return
        with atomic_folder(place, overwrite=True) as aside:  # an empty folder, so that the next one begins anew
            pass
        place.rmdir()
        assert not aside.exists()
    raise AssertionError("more operations than expected")


def test_the_next_save_finishes_and_cleans(tmp_path):
    place = tmp_path / "x"
    write(place, "old")
    write(tmp_path / "new", "new")
    token = replacing.new_token()
    place.rename(beside(place, "old", token))
    (tmp_path / "new").rename(beside(place, "ready", token))
    write(beside(place), "half")
    assert not place.exists()
    assert read_whole(place, parts) == {"new"}
    replacing.clean_beside(place)
    assert parts(place) == {"new"}
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_deleted_folder_does_not_come_back(tmp_path):
    write(beside(tmp_path / "x", "old"), "old")  # its new one had its place, and was removed by the user
    with pytest.raises(FileNotFoundError):
        read_whole(tmp_path / "x", parts)


def test_nothing_in_use_is_touched(tmp_path):
    place = tmp_path / "x"
    with atomic_folder(place) as mine:
        (mine / "file").touch()
        with atomic_folder(place, overwrite=True) as theirs:
            assert (mine / "file").exists()
            (theirs / "text").write_text("theirs")
            assert list(clean(tmp_path)) == []
            assert len(temporary_paths(tmp_path)) == 2
        place.joinpath("text").unlink()  # an empty folder may be filled
    assert [path.name for path in place.iterdir()] == ["file"]


def test_errors_of_a_replacement_keep_the_old_folder(tmp_path, way, monkeypatch):
    write(tmp_path / "x", "old")

    def refuse(*paths):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    name = "exchange" if way == "exchange" else "_rename_both"
    with monkeypatch.context() as patch:
        patch.setattr(replacing, name, refuse)
        with pytest.raises(StorageError, match="x cannot be written"):
            write(tmp_path / "x", "new")
    assert parts(tmp_path / "x") == {"old"}
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_readers_see_one_version(tmp_path, way):
    place, seen = tmp_path / "x", []
    write(place, "0")

    def read(folder):
        first = (folder / "a" / "text").read_text()
        if len(seen) < 3:  # a save lands between two parts
            write(place, str(len(seen) + 1))
        second = (folder / "b" / "text").read_text()
        seen.append((first, second))
        return first, second

    assert read_whole(place, read) == ("3", "3")
    assert seen[:3] == [("0", "1"), ("1", "2"), ("2", "3")]  # what the reader refused


def test_a_reader_gives_up_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(replacing, "PATIENCE_SECONDS", 0)
    write(tmp_path / "x", "0")
    with pytest.raises(StorageError, match="replaced again and again"):
        read_whole(tmp_path / "x", lambda folder: write(folder, "1"))


def test_errors_of_a_reader_are_its_own(tmp_path):
    write(tmp_path / "x", "0")
    with pytest.raises(KeyError):
        read_whole(tmp_path / "x", lambda folder: {}["missing"])
    with pytest.raises(StorageError, match="does not exist"):
        storage.load(tmp_path / "none", kind="x")


def test_each_file_is_synced_once(tmp_path, monkeypatch):
    """Folders within a folder that is still being written need no sync of their own."""
    synced = []
    monkeypatch.setattr(replacing, "fsync", lambda path: synced.append(path.name.split(".")[-1]))
    with atomic_folder(tmp_path / "x") as outer, atomic_folder(outer / "y") as inner, atomic_file(inner / "z") as file:
        file.touch()
    assert sorted(synced) == sorted(["y", "z", "partial", tmp_path.name])


def test_what_a_part_could_not_remove_is_not_in_the_whole(tmp_path, monkeypatch):
    with atomic_folder(tmp_path / "x") as outer:
        write(outer / "part", "old")
        with monkeypatch.context() as patch:
            patch.setattr(leftovers, "remove", lambda path: None)
            write(outer / "part", "new")
        assert len(temporary_paths(outer)) == 1
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["part"]
    assert parts(tmp_path / "x" / "part") == {"new"}
