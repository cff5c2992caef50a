"""What the system refuses to write is told in one sentence, and before the work where that can be known."""

import errno
import os
import resource
import tempfile
from pathlib import Path

import numpy as np
import pytest

from labelwise import UsageError, storage
from labelwise.errors import StorageError
from labelwise.storage import write_errors
from labelwise.storage.write_errors import check_writable, told_as_storage_error


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, "free some space"), (errno.EROFS, "where you may write"), (errno.EMFILE, "ulimit -n")],
)
def test_errors_of_the_system_name_the_place_and_what_to_do(tmp_path, number, advice):
    place = tmp_path / "model"
    pattern = rf"model cannot be written \({os.strerror(number)}\): .*{advice}"
    with pytest.raises(StorageError, match=pattern), told_as_storage_error(place):
        raise OSError(number, os.strerror(number), str(tmp_path / ".model.0.partial" / "x"))


def test_the_outermost_folder_is_named(tmp_path):
    place = tmp_path / "model"
    with (
        pytest.raises(StorageError) as caught,
        storage.atomic_folder(place) as folder,
        storage.atomic_folder(folder / "part") as part,
        storage.atomic_file(part / "x"),
    ):
        raise OSError(errno.ENOSPC, "full")
    assert str(caught.value).startswith(f"{tmp_path / 'model'} cannot be written")
    assert "partial" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_errors_of_other_files_name_these(tmp_path):
    pattern = r"/elsewhere/source: Input/output error; .*model was not written"
    with pytest.raises(StorageError, match=pattern), told_as_storage_error(tmp_path / "model"):
        raise OSError(errno.EIO, os.strerror(errno.EIO), "/elsewhere/source")


@pytest.mark.parametrize("error", [BrokenPipeError(errno.EPIPE, "gone"), ValueError("a bug"), UsageError("wrong")])
def test_other_errors_stay_what_they_are(tmp_path, error):
    with pytest.raises(type(error)) as caught, told_as_storage_error(tmp_path):
        raise error
    assert caught.value is error


def test_errors_of_rust_are_told_by_their_number(tmp_path):
    with pytest.raises(StorageError, match="No space left"), told_as_storage_error(tmp_path / "x"):
        raise Exception("No space left on device (os error 28)")  # what tokenizers raises
    with pytest.raises(Exception, match="something else"), told_as_storage_error(tmp_path / "x"):
        raise Exception("something else")


def test_a_limit_of_the_file_size_is_told_and_keeps_what_was_there(tmp_path):
    storage.save(tmp_path / "x", kind="x", arrays={"n": np.arange(3)})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
        with pytest.raises(StorageError, match=r"x cannot be written \(File too large\).*ulimit -f"):
            storage.save(tmp_path / "x", kind="x", arrays={"n": np.arange(9000)})
        with pytest.raises(StorageError, match="File too large"):
            check_writable(tmp_path / "y")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert storage.load(tmp_path / "x", kind="x").arrays["n"].tolist() == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_destinations_are_tried_and_nothing_is_left(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    check_writable(tmp_path / "new" / "deep" / "model")
    check_writable(tmp_path / "folder")
    check_writable(tmp_path / "file", is_file=True)
    with pytest.raises(StorageError, match="is a file; choose another place"):
        check_writable(tmp_path / "file" / "x" / "y")
    with pytest.raises(UsageError, match="is a folder; give a file"):
        check_writable(tmp_path / "folder", is_file=True)
    with pytest.raises(StorageError, match="File name too long"):
        check_writable(tmp_path / ("x" * 250))
    for name in (".", "..", "/"):
        with pytest.raises(UsageError, match="name one in it"):
            check_writable(name)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


def test_the_root_of_a_mounted_file_system_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os.path, "ismount", lambda path: True)
    with pytest.raises(StorageError, match=r"root of a mounted file system.*name a folder in it"):
        check_writable(tmp_path / "volume")


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_what_the_probe_meets_is_told(tmp_path, monkeypatch, number):
    def full(self, *arguments, **options):
        raise OSError(number, os.strerror(number), str(self))

    monkeypatch.setattr(write_errors.Path, "open", full)
    with pytest.raises(StorageError, match=os.strerror(number)):
        check_writable(tmp_path / "model")


@pytest.fixture
def nobody():
    """Become another user for a while; a folder that this user can reach."""
    if os.geteuid() != 0:
        pytest.skip("needs to become another user")
    check_writable("here")  # imports what is needed, which the other user may not be able to read
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            os.seteuid(0)


def test_places_of_other_users_are_refused(nobody):
    os.seteuid(0)
    mine, sticky = nobody / "mine", nobody / "sticky"
    mine.mkdir(mode=0o755)
    (sticky / "model").mkdir(parents=True)
    sticky.chmod(0o1777)
    os.seteuid(65534)
    with pytest.raises(StorageError, match=r"m cannot be written \(Permission denied\): choose a place where you may"):
        check_writable(mine / "m")
    with pytest.raises(StorageError, match="belongs to another user"):
        check_writable(sticky / "model")
    check_writable(sticky / "new")
