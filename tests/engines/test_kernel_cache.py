"""The folder of compiled kernels: always one, never one that another user could write to."""

import logging
import os
import stat
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from labelwise.engines import kernel_cache
from labelwise.engines.kernel_cache import CacheFolders, KernelCache, choose_folders, njit

NOWHERE = Path("/proc/kernels")  # not even root can make folders there
needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc: no folder that root cannot write")
compiling = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"), reason="kernels run as plain Python"
)


def double(values):
    """A kernel of its own, in this file."""
    return 2 * values[0]


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path_factory):
    """No variable and no folder of the user that runs the tests."""
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "NUMBA_CACHE_LOCATOR_CLASSES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    return temporary


def test_a_writable_package_keeps_its_own_kernels(tmp_path):
    folders = choose_folders(tmp_path)
    assert folders == CacheFolders(tmp_path / "__pycache__", (), "beside the package")


def test_the_named_folder_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "named"))
    folders = choose_folders(tmp_path)
    assert folders.writable.parent == tmp_path / "named"
    assert (folders.read_only, folders.chosen_by) == ((), "NUMBA_CACHE_DIR")


@needs_proc
def test_a_named_folder_that_cannot_be_written_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc/nothing")
    assert choose_folders(tmp_path).chosen_by == "beside the package"


@needs_proc
def test_the_order_of_the_users_folders(tmp_path, monkeypatch, environment):
    assert choose_folders(NOWHERE).chosen_by == "the temporary folder"
    own = environment / f"labelwise-{os.getuid()}"
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folders = choose_folders(NOWHERE)
    assert folders.chosen_by == "the home folder"
    assert folders.writable.parent == tmp_path / "home" / ".cache" / "labelwise"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, as its specification says
    assert choose_folders(NOWHERE).chosen_by == "the home folder"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert choose_folders(NOWHERE).writable.parent == tmp_path / "xdg" / "labelwise"


@needs_proc
def test_a_folder_inside_that_others_can_write_to_is_passed_over(environment):
    inside = choose_folders(NOWHERE).writable
    inside.parent.chmod(0o755)
    inside.chmod(0o777)
    assert choose_folders(NOWHERE).writable is None


@needs_proc
def test_relative_folders_depend_on_where_a_process_runs_and_are_passed_over(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "home")
    assert choose_folders(NOWHERE).chosen_by == "the temporary folder"
    monkeypatch.setenv("NUMBA_CACHE_DIR", "relative")
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    choose_folders(NOWHERE)  # no error, though nobody can say where the folder would be


@needs_proc
def test_no_folder_at_all(monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/proc")
    assert choose_folders(NOWHERE) == CacheFolders(None, (), "no folder can be written")


@needs_proc
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give folders away")
def test_a_folder_of_another_user_is_never_taken(environment):
    own = environment / f"labelwise-{os.getuid()}"
    own.mkdir(mode=0o700)
    os.chown(own, 65534, 65534)
    assert choose_folders(NOWHERE).writable is None


@needs_proc
@pytest.mark.parametrize("rights", [0o777, 0o720, 0o702])
def test_a_folder_that_others_may_write_is_never_taken(rights, environment):
    own = environment / f"labelwise-{os.getuid()}"
    own.mkdir()
    own.chmod(rights)
    assert choose_folders(NOWHERE).writable is None


@needs_proc
def test_a_link_is_never_taken(environment, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (environment / f"labelwise-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    assert choose_folders(NOWHERE).writable is None


@needs_proc
def test_only_the_sticky_bit_keeps_others_from_exchanging_a_folder(environment):
    environment.chmod(0o777)
    assert choose_folders(NOWHERE).writable is None
    environment.chmod(0o1777)
    assert choose_folders(NOWHERE).chosen_by == "the temporary folder"


@needs_proc
def test_a_mounted_cache_folder_may_have_rights_for_all(tmp_path, monkeypatch):
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted").chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mounted"))
    assert choose_folders(NOWHERE).chosen_by == "XDG_CACHE_HOME"


# ---------------------------------------------------------------------- the kernels


def compiled(folders, monkeypatch):
    """The kernel with its code in these folders, and how often it was found there."""
    monkeypatch.setattr(kernel_cache, "cache_folders", lambda: folders)
    return njit(cache=True, nogil=True)(double)


@compiling
def test_code_is_kept_and_found_again(tmp_path, monkeypatch):
    folders = CacheFolders(tmp_path, (), "a test")
    values = np.array([3.5])
    first = compiled(folders, monkeypatch)
    assert first(values) == 7.0
    assert sum(first.stats.cache_misses.values()) == 1
    second = compiled(folders, monkeypatch)
    assert second(values) == 7.0
    assert sum(second.stats.cache_hits.values()) == 1


@compiling
def test_code_of_an_image_is_read_where_nothing_can_be_written(tmp_path, monkeypatch, caplog):
    assert compiled(CacheFolders(tmp_path, (), "the build"), monkeypatch)(np.array([1.0])) == 2.0
    reader = compiled(CacheFolders(None, (tmp_path,), "the image"), monkeypatch)
    before = sorted(tmp_path.iterdir())
    kernel_cache._say_no_folder.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert reader(np.array([4.0])) == 8.0
        assert not caplog.records
        assert reader(np.array([4])) == 8  # other types, which the image does not hold
        assert reader(np.array([4], np.int32)) == 8
    assert sum(reader.stats.cache_hits.values()) == 1
    assert len([one for one in caplog.records if "set NUMBA_CACHE_DIR" in one.getMessage()]) == 1
    assert sorted(tmp_path.iterdir()) == before
    kernel_cache._say_no_folder.cache_clear()


@compiling
def test_damaged_files_are_written_again(tmp_path, monkeypatch):
    folders = CacheFolders(tmp_path, (), "a test")
    values = np.array([3.5])
    compiled(folders, monkeypatch)(values)
    for file in tmp_path.iterdir():
        file.write_bytes(b"damaged")
    assert compiled(folders, monkeypatch)(values) == 7.0
    again = compiled(folders, monkeypatch)
    assert again(values) == 7.0
    assert sum(again.stats.cache_hits.values()) == 1


@compiling
def test_a_folder_that_vanishes_ends_no_work(tmp_path, monkeypatch):
    kernel = compiled(CacheFolders(tmp_path / "gone", (), "a test"), monkeypatch)
    assert kernel(np.array([3.5])) == 7.0


@compiling
def test_threads_that_compile_at_once_keep_the_code_of_all_types(tmp_path, monkeypatch):
    """Without the lock, two writers would give different codes the same file."""
    types = (np.float64, np.float32, np.int64, np.int32)
    kernels = [compiled(CacheFolders(tmp_path, (), "a test"), monkeypatch) for _ in types]
    threads = [
        threading.Thread(target=kernel, args=(np.array([3], one),)) for kernel, one in zip(kernels, types, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader = compiled(CacheFolders(tmp_path, (), "a test"), monkeypatch)
    assert [reader(np.array([3], one)) for one in types] == [6, 6, 6, 6]
    assert sum(reader.stats.cache_hits.values()) == len(types)


@compiling
def test_a_cache_can_be_switched_off_and_emptied(tmp_path, monkeypatch):
    kernel = compiled(CacheFolders(tmp_path, (), "a test"), monkeypatch)
    assert isinstance(kernel._cache, KernelCache)
    kernel._cache.disable()
    kernel(np.array([1.0]))
    assert list(tmp_path.iterdir()) == []
    kernel._cache.enable()
    kernel(np.array([1]))
    assert list(tmp_path.glob("*.nbi"))
    kernel._cache.flush()
    again = compiled(CacheFolders(tmp_path, (), "a test"), monkeypatch)
    assert again._cache.load_overload((), again.targetctx) is None
    assert again._cache.cache_path == str(tmp_path)


def test_the_choice_changes_nothing_in_numba(tmp_path):
    numba = sys.modules.get("numba") or pytest.importorskip("numba")
    before = numba.config.CACHE_DIR
    njit(cache=True)(double)
    assert before == numba.config.CACHE_DIR
