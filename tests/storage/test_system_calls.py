"""What storage asks of the system: which files are synced, which errors are passed on, which descriptors stay open."""

import ctypes
import errno
import os
from pathlib import Path

import pytest

from labelwise.errors import StorageError, UsageError
from labelwise.storage import leftovers, replacing
from labelwise.storage.leftovers import HeldElsewhereError, TemporaryPath, beside, hold, left_behind, temporary_paths
from labelwise.storage.replacing import atomic_file, atomic_folder, exchange, fsync, read_whole

OPEN_FILES = Path("/proc/self/fd")


def error_of(number, *more):
    return OSError(number, os.strerror(number), *more)


def n_open():
    return len(list(OPEN_FILES.iterdir()))


@pytest.fixture
def closes():
    """At the end no more descriptors are open than at the beginning."""
    if not OPEN_FILES.is_dir():
        pytest.skip("needs /proc")
    before = n_open()
    yield
    assert n_open() == before


@pytest.fixture
def synced(monkeypatch):
    """The files and folders that the system was asked to write to the disk, as they are called at the end."""
    identities, real = [], os.fsync

    def sync(handle):
        status = os.fstat(handle)
        identities.append((status.st_dev, status.st_ino))
        real(handle)

    monkeypatch.setattr(os, "fsync", sync)

    def names(folder):
        known = {(path.stat().st_dev, path.stat().st_ino): path.name for path in (folder, *folder.rglob("*"))}
        return [known.get(identity) for identity in identities]

    return names


# ---------------------------------------------------------------------- syncs


def test_a_file_is_synced_before_its_folder(tmp_path, synced, closes):
    with atomic_file(tmp_path / "x") as aside:
        aside.touch()
    assert synced(tmp_path) == ["x", tmp_path.name]


def test_new_folders_above_are_synced(tmp_path, synced):
    with atomic_file(tmp_path / "a" / "b" / "x"):
        pass
    assert synced(tmp_path) == ["a", tmp_path.name, "x", "b"]


def test_a_folder_is_synced_with_all_that_is_in_it(tmp_path, synced, closes):
    with atomic_folder(tmp_path / "x") as aside:
        (aside / "part").mkdir()
        (aside / "part" / "file").touch()
    assert sorted(synced(tmp_path)[:2]) == ["file", "part"]
    assert synced(tmp_path)[2:] == ["x", tmp_path.name]


@pytest.mark.parametrize(("exchanges", "most"), [(True, 2), (False, 3)])
def test_a_replacement_is_synced_before_the_old_folder_goes(tmp_path, monkeypatch, exchanges, most):
    if not exchanges:
        monkeypatch.setattr(replacing, "_exchange_call", lambda: None)
    with atomic_folder(tmp_path / "x") as aside:
        (aside / "old").touch()
    done, real = [], replacing.remove
    monkeypatch.setattr(replacing, "fsync", lambda path: done.append(path.name.split(".")[-1]))
    monkeypatch.setattr(replacing, "remove", lambda path: done.append("removed") or real(path))
    with atomic_folder(tmp_path / "x", overwrite=True) as aside:
        (aside / "new").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["x", "new"]
    assert done.count(tmp_path.name) == most
    if not exchanges:
        assert done == ["new", "partial", tmp_path.name, "removed", tmp_path.name, "removed", tmp_path.name]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_systems_that_sync_files_only(tmp_path, monkeypatch, closes, number):
    def refuse(handle):
        raise error_of(number)

    monkeypatch.setattr(os, "fsync", refuse)
    fsync(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=os.strerror(number)):
        fsync(tmp_path / "file")


def test_what_cannot_be_synced_is_an_error(tmp_path, monkeypatch, closes):
    def refuse(handle):
        raise error_of(errno.EIO)

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="Input/output error"):
        fsync(tmp_path)
    with pytest.raises(FileNotFoundError):
        fsync(tmp_path / "none")
    with pytest.raises(StorageError, match=r"x cannot be written \(Input/output error\)"), atomic_file(tmp_path / "x"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_opened_is_not_synced(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise error_of(errno.EACCES)

    monkeypatch.setattr(os, "open", refuse)
    fsync(tmp_path)


# ---------------------------------------------------------------------- renames


def refusing_rename(monkeypatch, *errors):
    """`Path.rename` that raises these errors at its first calls; None lets a call pass."""
    real, left, asked = Path.rename, list(errors), []

    def rename(self, target):
        asked.append((self.name.split(".")[-1], Path(target).name.split(".")[-1]))
        error = left.pop(0) if left else None
        if error is not None:
            raise error
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    return asked


def fill(place, text, *, overwrite=True):
    with atomic_folder(place, overwrite=overwrite) as aside:
        (aside / text).touch()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EEXIST, errno.ENOTEMPTY])
@pytest.mark.parametrize("exchanges", [True, False])
def test_a_rename_onto_a_folder_may_be_refused_in_many_ways(tmp_path, monkeypatch, number, exchanges):
    if not exchanges:
        monkeypatch.setattr(replacing, "_exchange_call", lambda: None)
    fill(tmp_path / "x", "old")
    refusing_rename(monkeypatch, error_of(number))
    fill(tmp_path / "x", "new")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["new", "x"]


def test_a_rename_that_fails_for_another_reason_is_told(tmp_path, monkeypatch):
    fill(tmp_path / "x", "old")
    refusing_rename(monkeypatch, error_of(errno.EIO))
    with pytest.raises(StorageError, match="Input/output error"):
        fill(tmp_path / "x", "new")
    refusing_rename(monkeypatch, error_of(errno.EACCES))
    with pytest.raises(StorageError, match="Permission denied"):  # nothing there that could be exchanged
        fill(tmp_path / "y", "new")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["old", "x"]


def test_a_folder_that_came_meanwhile_is_told_by_its_name(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="x exists already; choose another place"), atomic_folder(tmp_path / "x"):
        fill(tmp_path / "x", "theirs", overwrite=False)


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """Two folders to be exchanged in steps: the complete one, and the old one under its name."""
    monkeypatch.setattr(replacing, "_exchange_call", lambda: None)
    (tmp_path / "x" / "old").mkdir(parents=True)
    (tmp_path / "aside" / "new").mkdir(parents=True)
    return tmp_path / "aside", tmp_path / "x"


def names_in(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_the_steps_are_three_renames(tmp_path, steps, monkeypatch):
    asked = refusing_rename(monkeypatch)
    replacing._take_place_in_steps(*steps)
    assert asked == [("aside", "ready"), ("x", "old"), ("ready", "x")]
    assert names_in(tmp_path) == ["new", "x"]


@pytest.mark.parametrize("number", [errno.ENOTEMPTY, errno.EEXIST])
def test_a_save_that_is_faster_is_replaced(tmp_path, steps, monkeypatch, number):
    # Another save takes the name between the second and the third rename: its folder is the old one now.
    asked = refusing_rename(monkeypatch, None, None, error_of(number), FileNotFoundError())
    replacing._take_place_in_steps(*steps)
    assert asked[2:] == [("ready", "x"), ("x", "old"), ("ready", "x")]
    assert names_in(tmp_path) == ["new", "x"]


def test_a_save_that_another_one_finishes(tmp_path, steps, monkeypatch):
    refusing_rename(monkeypatch, None, None, FileNotFoundError())
    replacing._rename_both(tmp_path / "none", steps[1], tmp_path / "old")
    assert (tmp_path / "old").is_dir()


def test_an_old_folder_comes_back_if_the_new_one_cannot_come(tmp_path, steps, monkeypatch):
    refusing_rename(monkeypatch, None, None, error_of(errno.EIO))
    with pytest.raises(OSError, match="Input/output error"):
        replacing._take_place_in_steps(*steps)
    assert names_in(tmp_path) == ["old", "x"]


# ---------------------------------------------------------------------- exchanges


def test_exchanges_answer_yes_or_no(tmp_path, monkeypatch):
    monkeypatch.setattr(replacing, "_exchange_call", lambda: lambda one, other: 0)
    assert exchange(tmp_path / "a", tmp_path / "b") is True
    monkeypatch.setattr(replacing, "_exchange_call", lambda: None)
    assert exchange(tmp_path / "a", tmp_path / "b") is False
    monkeypatch.setattr(replacing, "_exchange_call", lambda: lambda one, other: -1)
    for number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM):
        ctypes.set_errno(number)
        assert exchange(tmp_path / "a", tmp_path / "b") is False
    ctypes.set_errno(errno.EIO)
    with pytest.raises(OSError, match=r"Input/output error: '.*/b'") as caught:
        exchange(tmp_path / "a", tmp_path / "b")
    assert caught.value.errno == errno.EIO


class Function:
    """A function of a C library that keeps what it was called with."""

    def __init__(self):
        self.calls = []

    def __call__(self, *arguments):
        self.calls.append(arguments)
        return 7


@pytest.mark.parametrize(
    ("platform", "name", "arguments", "n_types"),
    [("linux", "renameat2", (-100, b"a", -100, b"b", 2), 5), ("darwin", "renamex_np", (b"a", b"b", 2), 3)],
)
def test_systems_exchange_by_their_own_calls(monkeypatch, platform, name, arguments, n_types):
    function = Function()
    monkeypatch.setattr(replacing.sys, "platform", platform)
    options = []
    library = type("Library", (), {name: function})()
    monkeypatch.setattr(replacing.ctypes, "CDLL", lambda path, **more: options.append((path, more)) or library)
    call = replacing._exchange_call.__wrapped__()
    assert call(b"a", b"b") == 7
    assert function.calls == [arguments]
    assert len(function.argtypes) == n_types
    assert options == [(None, {"use_errno": True})]


def test_systems_without_an_exchange(monkeypatch):
    monkeypatch.setattr(replacing.ctypes, "CDLL", lambda path, **more: object())
    assert replacing._exchange_call.__wrapped__() is None
    monkeypatch.setattr(replacing.sys, "platform", "win32")
    assert replacing._exchange_call.__wrapped__() is None


# ---------------------------------------------------------------------- readers


def test_readers_close_what_they_open(tmp_path, closes):
    (tmp_path / "x").mkdir()
    assert read_whole(tmp_path / "x", lambda place: place.name) == "x"
    assert read_whole(tmp_path / "none", lambda place: place.name) == "none"
    with pytest.raises(KeyError):
        read_whole(tmp_path / "x", lambda place: {}[0])


def test_a_folder_that_cannot_be_opened_is_told(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise error_of(errno.EMFILE)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StorageError, match=r"x cannot be read \(Too many open files\); try again"):
        read_whole(tmp_path / "x", lambda place: place)


# ---------------------------------------------------------------------- locks


def test_locks_are_descriptors_that_end(tmp_path, closes):
    (tmp_path / "x").mkdir()
    handle = hold(tmp_path / "x")
    with pytest.raises(HeldElsewhereError):
        hold(tmp_path / "x")
    leftovers.release(handle)
    leftovers.release(None)
    leftovers.release(hold(tmp_path / "x"))
    with pytest.raises(FileNotFoundError):
        hold(tmp_path / "none")
    with leftovers.temporary(tmp_path / "y", folder=False):
        pass
    assert names_in(tmp_path) == ["x"]


def test_file_systems_without_locks(tmp_path, monkeypatch, closes):
    def refuse(handle, how):
        raise error_of(errno.ENOLCK)

    monkeypatch.setattr(leftovers.fcntl, "flock", refuse)
    assert hold(tmp_path) is None


def test_what_may_not_be_opened_is_not_held(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise error_of(errno.EACCES)

    monkeypatch.setattr(os, "open", refuse)
    assert hold(tmp_path) is None


def test_a_temporary_file_that_cannot_be_locked_is_removed(tmp_path, monkeypatch):
    def refuse(path):
        raise error_of(errno.EMFILE)

    monkeypatch.setattr(leftovers, "hold", refuse)
    with pytest.raises(OSError, match="Too many open files"), leftovers.temporary(tmp_path / "x", folder=True):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_file_that_vanishes_while_it_is_locked_is_made_again(tmp_path, monkeypatch, closes):
    real, seen = hold, []

    def late(path):
        seen.append(path)
        if len(seen) == 1:  # removed before it was opened
            path.unlink()
        if len(seen) == 2:  # removed after it was locked
            handle = real(path)
            path.unlink()
            return handle
        return real(path)

    monkeypatch.setattr(leftovers, "hold", late)
    with leftovers.temporary(tmp_path / "x", folder=False) as aside:
        assert aside == seen[2]
        assert list(tmp_path.iterdir()) == [aside]


# ---------------------------------------------------------------------- leftovers


def test_sizes_are_those_of_files(tmp_path):
    folder = tmp_path / "x"
    (folder / "deep").mkdir(parents=True)
    (folder / "a").write_bytes(bytes(10))
    (folder / "deep" / "b").write_bytes(bytes(5))
    (folder / "link").symlink_to(folder / "a")
    assert leftovers.size(folder) == 15
    assert leftovers.size(folder / "a") == 10
    assert leftovers.size(folder / "none") == 0


def test_the_age_is_that_of_the_latest_change(tmp_path, monkeypatch):
    path = tmp_path / ".x.0123456789abcdef.partial"
    (path / "deep").mkdir(parents=True)
    (path / "deep" / "file").touch()
    latest = max(status.st_ctime for status in (one.lstat() for one in (path, *path.rglob("*"))))
    (one,) = temporary_paths(tmp_path)
    assert not one.is_ours
    for hours, min_age, wanted in ((23.9, 24, False), (24.1, 24, True), (2, 3, False), (4, 3, True)):
        monkeypatch.setattr(leftovers.time, "time", lambda hours=hours: latest + hours * 3600)
        with left_behind(one, min_age_hours=min_age) as free:
            assert free is wanted
    with left_behind(TemporaryPath(tmp_path / "none", "x", "0" * 16, "partial"), min_age_hours=0) as free:
        assert free is False


def test_the_system_is_told_by_its_start_or_by_its_name(monkeypatch, tmp_path):
    names = {leftovers.this_system.__wrapped__()}
    monkeypatch.setattr(leftovers, "_BOOT_ID", tmp_path / "none")
    names.add(leftovers.this_system.__wrapped__())
    assert len(names) == 2
    assert all(len(name) == 6 and int(name, 16) >= 0 for name in names)
    assert len({leftovers.new_token() for _ in range(20)}) == 20


def test_temporary_paths_are_found_in_all_folders_but_not_in_each_other(tmp_path):
    inner = beside(tmp_path / "b" / "y")
    outer = beside(tmp_path / "a" / "x")
    for path in (inner, outer, beside(outer / "z")):
        path.mkdir(parents=True)
    found = list(leftovers.folders_with_temporary_paths(tmp_path))
    assert [(at, [one.path for one in here]) for at, here in found] == [
        (tmp_path / "a", [outer]),
        (tmp_path / "b", [inner]),
    ]


def test_cleaning_tells_what_it_would_remove(tmp_path):
    path = beside(tmp_path / "a" / "x")
    path.mkdir(parents=True)
    (path / "file").write_bytes(bytes(7))
    (beside(tmp_path / "a" / "held")).touch()
    (held,) = temporary_paths(tmp_path / "a", "held")
    handle = hold(held.path)
    ((one, n_bytes),) = replacing.clean(tmp_path, dry_run=True)
    assert (one.path, n_bytes) == (path, 7)
    assert path.is_dir()
    assert [(one.path, n_bytes) for one, n_bytes in replacing.clean(tmp_path)] == [(path, 7)]
    assert not path.exists()
    leftovers.release(handle)
    assert replacing.clean_folder(tmp_path) == []
    assert len(replacing.clean_folder(tmp_path / "a")) == 1


def test_cleaning_finishes_a_killed_save_unless_it_only_looks(tmp_path):
    token = leftovers.new_token()
    ready, old = beside(tmp_path / "x", "ready", token), beside(tmp_path / "x", "old", token)
    ready.mkdir()
    old.mkdir()
    (ready / "new").touch()
    would = replacing.clean_folder(tmp_path, dry_run=True)
    assert ([one.path for one, _ in would], ready.is_dir()) == ([old], True)
    assert [one.path for one, _ in replacing.clean_folder(tmp_path)] == [old]
    assert names_in(tmp_path) == ["new", "x"]


def test_those_of_other_machines_stay_until_they_are_old(tmp_path):
    path = tmp_path / ".x.000000ffffffffff.partial"
    path.mkdir()
    assert replacing.clean_folder(tmp_path) == []
    assert list(replacing.clean(tmp_path)) == []
    replacing.clean_beside(tmp_path / "x")
    assert path.is_dir()
    assert len(list(replacing.clean(tmp_path, min_age_hours=0))) == 1
    assert not path.exists()
