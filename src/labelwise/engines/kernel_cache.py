"""How kernels are compiled, and the folder where the compiled code is kept.

numba's own choice of a folder fails where neither the package nor the home folder can be written. `njit` chooses once
for all kernels, never takes a folder that another user could write to, reads kernels that an image was built with from
folders that cannot be written, and compiles in memory where there is no folder at all.

numba reads compiled code with pickle, so the folder must be trusted like the code of the package itself.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).resolve().parents[1] / "kernels"
_NO_FOLDER = (
    "no folder for compiled kernels can be written, so they are compiled again in each process, which takes up to a "
    "minute; set NUMBA_CACHE_DIR to a folder that can be written, or run labelwise warm-up as a user who may write to "
    "the package's folder"
)
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CacheFolders:
    """Where compiled kernels are read and written."""

    writable: Path | None
    """The folder that new code is written to; None where there is none."""
    read_only: tuple[Path, ...]
    """Folders that are read first and cannot be written."""
    chosen_by: str
    """Why it is this folder: the name of an environment variable, or in words."""

    @property
    def all(self) -> tuple[Path, ...]:
        """All folders, in the order in which they are read."""
        return (*self.read_only, *([self.writable] if self.writable else []))


@cache
def cache_folders() -> CacheFolders:
    """The folders of this process: chosen once, when the first kernel is imported."""
    return choose_folders()


def choose_folders(package: Path = KERNELS) -> CacheFolders:
    """NUMBA_CACHE_DIR if set, beside the package if writable, else a folder of the user's, else none.

    The first two are trusted as the user's own words and as the package's own folder, whoever owns them. The others
    are taken only if they belong to this user and nobody else can write to them.
    """
    name = f"kernels_{hashlib.sha1(str(package).encode(), usedforsecurity=False).hexdigest()}"
    named = os.environ.get("NUMBA_CACHE_DIR")
    trusted: list[tuple[Path, str]] = []
    if named:
        with suppress(OSError):  # a relative path where the working folder has been removed
            trusted.append((Path(named).absolute() / name, "NUMBA_CACHE_DIR"))
    trusted.append((package / "__pycache__", "beside the package"))
    read_only: list[Path] = []
    for folder, reason in trusted:
        if is_writable(folder):
            return CacheFolders(folder, tuple(read_only), reason)
        if folder.is_dir():
            read_only.append(folder)
    for parent, reason in _own_folders():
        folder = parent / name
        is_private = _is_private(parent, named=reason == "XDG_CACHE_HOME") and _is_private(folder, named=False)
        if is_private and is_writable(folder):
            return CacheFolders(folder, tuple(read_only), reason)
    return CacheFolders(None, tuple(read_only), "no folder can be written")


def is_writable(folder: Path) -> bool:
    """Whether files can be written into the folder, which is made if there is none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _own_folders() -> Iterator[tuple[Path, str]]:
    """Folders in which a user keeps what can be made again."""
    xdg = os.environ.get("XDG_CACHE_HOME")
    if xdg and Path(xdg).is_absolute():
        yield Path(xdg) / "labelwise", "XDG_CACHE_HOME"
    with suppress(RuntimeError, OSError):
        home = Path.home()
        if home.is_absolute() and home.is_dir():  # root could make a home folder that is missing on purpose
            yield home / ".cache" / "labelwise", "the home folder"
    with suppress(OSError):
        temporary = Path(tempfile.gettempdir()).absolute()
        if temporary != Path.cwd():  # Python's last resort
            yield temporary / f"labelwise-{getattr(os, 'getuid', lambda: 'kernels')()}", "the temporary folder"


def _is_private(folder: Path, *, named: bool) -> bool:
    """Make the folder if there is none; whether it belongs to this user and only this user can write to it.

    Parameters
    ----------
    named
        Whether the user has named the folder above for this purpose; containers mount it with rights for all.
    """
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found, above = folder.lstat(), folder.parent.stat()
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        return False
    if not hasattr(os, "geteuid"):  # Windows: the folders above belong to the user
        return True
    # In a folder that others can write to, only the sticky bit keeps them from putting another one in its place.
    replaceable = not named and above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022 and not replaceable


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit`, with compiled code kept in the folders of `cache_folders`.

    Kernels are never called through C function pointers, so that numba need not compile a way in for these.
    """
    import numba

    kept = options.pop("cache", False)

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(no_cfunc_wrapper=True, **options)(function)
        if kept and hasattr(kernel, "enable_caching"):  # not with NUMBA_DISABLE_JIT
            if os.environ.get("NUMBA_CACHE_LOCATOR_CLASSES"):
                kernel.enable_caching()  # the user has a place of their own
            else:
                kernel._cache = KernelCache(function, cache_folders())
        return kernel

    return decorate


class KernelCache:
    """The compiled code of one kernel in several folders, of which one may be written: what numba asks of a cache."""

    def __init__(self, function: Callable[..., Any], folders: CacheFolders) -> None:
        self._places = [(folder, _numba_cache(function, folder)) for folder in folders.all]
        self._writable = folders.writable is not None

    @property
    def cache_path(self) -> str | None:
        """The folder that is written, or the last one that is read."""
        return str(self._places[-1][0]) if self._places else None

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled code for a signature, None if there is none; a damaged file counts as none."""
        for folder, place in self._places:
            with suppress(Exception), locked(folder, exclusive=False):
                found = place.load_overload(sig, target_context)
                if found is not None:
                    return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code where that is possible; no failure of the folder may end the work."""
        if not self._writable:
            _say_no_folder()
            return
        folder, place = self._places[-1]
        with suppress(OSError), locked(folder, exclusive=True):
            try:
                place.save_overload(sig, data)
            except OSError:
                raise
            except Exception:  # a damaged index
                place.flush()
                place.save_overload(sig, data)

    def has(self, sig: Any, codegen: Any) -> bool:
        """Whether there is compiled code for a signature; the code is not read."""
        for folder, place in self._places:
            with suppress(Exception), locked(folder, exclusive=False):
                if place._index_key(sig, codegen) in place._cache_file._load_index():
                    return True
        return False

    def enable(self) -> None:
        """Use the files again."""
        for _, place in self._places:
            place.enable()

    def disable(self) -> None:
        """Use no files."""
        for _, place in self._places:
            place.disable()

    def flush(self) -> None:
        """Forget the code in the folder that is written."""
        if self._writable:
            self._places[-1][1].flush()


@cache
def _say_no_folder() -> None:
    """The remark that nothing is kept, once in a process."""
    logger.warning(_NO_FOLDER)


class _Locator:
    """Tells numba the folder of a kernel's files, and what the source is known by: its content."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def from_function(self, function: Callable[..., Any], file: str) -> _Locator:
        """What numba calls on a class."""
        self._py_file, self._line = file, function.__code__.co_firstlineno
        return self

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return _content_hash(self._py_file)

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)


@cache
def _content_hash(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _numba_cache(function: Callable[..., Any], folder: Path) -> Any:
    """numba's own reader and writer of a kernel's files, in that folder."""
    caching = importlib.import_module("numba.core.caching")
    locators = {"_locator_classes": [_Locator(folder)]}
    impl = type("Impl", (caching.CompileResultCacheImpl,), locators)
    return type("FileCache", (caching.FunctionCache,), {"_impl_class": impl})(function)


@contextmanager
def locked(folder: Path, *, exclusive: bool) -> Iterator[None]:
    """Hold the lock of the folder: numba numbers its files, and two writers at once would choose the same number."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)
