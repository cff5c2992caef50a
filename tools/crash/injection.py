"""Kill this process, or fail an operation, at the n-th operation on files below a folder.

Operations are those that Python's audit hooks report (open, rename, remove, mkdir, rmdir, chmod, listing, flock, mmap),
the native call that exchanges two folders, and every write and fsync of Python's own files. Writes of code that is not
written in Python (safetensors, pyarrow) are failed by a limit of the file size.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EVENTS = {
    "open",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.chmod",
    "os.listdir",
    "os.scandir",
    "os.truncate",
    "fcntl.flock",
    "mmap.__new__",
}
REMOVING = "removing: "
"""What the names of operations begin with whose failure may leave temporary files until the next save."""
ERRNOS = {
    "open": (errno.EMFILE, errno.ENOSPC, errno.EACCES),
    "write": (errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    "fsync": (errno.EIO, errno.ENOSPC, errno.EDQUOT),
    "mmap.__new__": (errno.ENOMEM, errno.EIO, errno.ENOMEM),
    "os.mkdir": (errno.ENOSPC, errno.EROFS, errno.EACCES),
}
OTHERS = (errno.EIO, errno.EROFS, errno.EACCES)


@dataclass
class Plan:
    """What happens, at which operation on a file below `root`."""

    root: Path
    kill_at: int | None = None
    fail_at: int | None = None
    variant: int = 0
    """Which of the errors that the operation can have."""
    file_size: int | None = None
    """The largest size of a file in bytes."""
    report: Path | None = None
    """Where the operations are written, a line each, at the end or before the process is killed."""


class Injection:
    """Counts the operations of this process from `start` on, which cannot be undone."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.root = plan, str(plan.root)
        self.seen: list[str] = []
        self.busy = threading.local()

    def start(self) -> None:
        """Watch from now on."""
        from labelwise.storage import leftovers, replacing, run_directory

        if self.plan.file_size is not None:
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.plan.file_size, hard))
        real_open, real_fsync, real_exchange = io.open, os.fsync, replacing.exchange
        point = self.point

        class File(io.FileIO):
            def write(self, data: Any) -> int:
                point("write", self.name)
                return super().write(data)

        def open_file(file: Any, mode: str = "r", buffering: int = -1, *more: Any, **options: Any) -> Any:
            if more or not set(mode) & set("wax+") or not isinstance(file, str | os.PathLike) or not self.below(file):
                return real_open(file, mode, buffering, *more, **options)
            raw = File(file, mode.replace("b", "").replace("t", ""), opener=options.pop("opener", None))
            if buffering == 0:
                return raw
            buffered: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, **options)

        def fsync(handle: Any) -> None:
            point("fsync", handle)
            real_fsync(handle)

        def exchange(one: Path, other: Path) -> bool:
            point("exchange", one, other)
            return real_exchange(one, other)

        real_remove = leftovers.remove

        def remove(path: Path) -> None:
            self.busy.removing = True
            try:
                real_remove(path)
            finally:
                self.busy.removing = False

        leftovers.remove = replacing.remove = run_directory.remove = remove
        builtins.open = io.open = open_file  # type: ignore[assignment]
        os.fsync, replacing.exchange = fsync, exchange
        sys.addaudithook(lambda event, arguments: self.point(event, *arguments[:2]) if event in EVENTS else None)

    def below(self, value: Any) -> bool:
        """Whether an argument of an operation is a path below the root, or an open file there."""
        if isinstance(value, int) and not isinstance(value, bool) and value > 2:
            try:
                value = os.readlink(f"/proc/self/fd/{value}")  # noqa: PTH115  # pathlib is watched too
            except OSError:
                return False
        if not isinstance(value, str | bytes | os.PathLike):
            return False
        return os.path.abspath(os.fsdecode(value)).startswith(self.root)  # noqa: PTH100  # keeps links

    def point(self, name: str, *values: Any) -> None:
        """One operation: count it, then kill or fail if it is the one."""
        if getattr(self.busy, "value", False):
            return
        self.busy.value = True
        try:
            if not any(map(self.below, values)):
                return
            self.seen.append(REMOVING * getattr(self.busy, "removing", False) + name)
            if len(self.seen) == self.plan.kill_at:
                self.tell()
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            self.busy.value = False
        if len(self.seen) == self.plan.fail_at:
            number = ERRNOS.get(name, OTHERS)[self.plan.variant % 3]
            where = next((os.fspath(value) for value in values if isinstance(value, str | os.PathLike)), None)
            raise OSError(number, os.strerror(number), where)

    def tell(self) -> None:
        """Write the operations that were seen."""
        if self.plan.report is not None:
            self.plan.report.write_text("\n".join(self.seen) + "\n")


@dataclass(frozen=True)
class Ended:
    """How a process ended, and what it printed."""

    code: int
    """Negative for a signal."""
    out: str
    err: str


def in_child(work: Callable[[], int], plan: Plan, *, kill_after: float | None = None) -> Ended:
    """Run in a forked process under a plan; what it prints must fit into pipes (64 kB)."""
    pipes = [os.pipe(), os.pipe()]
    child = os.fork()
    if child == 0:
        code = 70
        try:
            for number, (_, end) in enumerate(pipes, start=1):
                os.dup2(end, number)
            injection = Injection(plan)
            injection.start()
            if kill_after is not None:
                signal.setitimer(signal.ITIMER_REAL, kill_after)  # SIGALRM ends the process at once, like SIGKILL
            try:
                code = work()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                injection.plan.kill_at = injection.plan.fail_at = None
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.getrlimit(resource.RLIMIT_FSIZE)[1],) * 2)
                injection.tell()
                sys.stdout.flush()
                sys.stderr.flush()
        finally:
            os._exit(code)
    texts = []
    for read, end in pipes:
        os.close(end)
        with os.fdopen(read, errors="replace") as file:
            texts.append(file.read())
    return Ended(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), *texts)
