"""Runs fuzz cases in a pool of forked processes: a case that crashes or hangs ends its process and nothing else.

A target is a program with two functions. `make_case(seed)` makes a `Case`, usually files in `scratch()`; the same seed
makes the same case. `check(case)` reads the case as a user would and returns its outcome. `command` gives a target
its options:

    python tools/fuzz/presets.py --cases 5000 --seed 7       5,000 cases of the random seed 7
    python tools/fuzz/presets.py --minutes 10 --json f.json  as many as ten minutes allow, with a summary as JSON
    python tools/fuzz/presets.py --keep found                failing cases are copied to the folder found
    python tools/fuzz/presets.py --only 7000000012           one case, by the number that a summary gives it

Outcomes: `accepted` and `refused` (a LabelwiseError) are as they should be. All others are failures:
`foreign exception`, `crash` (the process died), `hang` (over the limit), `memory`, `escape` (see `Watch`) and `wrong`
(an answer that cannot be). The exit code is 1 if there is a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import mmap
import multiprocessing
import multiprocessing.connection
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GOOD = ("accepted", "refused")
SEEDS_PER_RUN = 1_000_000_000
"""The case of number n in a run with seed s has the seed s * SEEDS_PER_RUN + n."""
LIMIT_FOR_MAKING = 60.0
"""Seconds in which a case must be made, which counts for no limit."""
CLOCK_FACTOR = 5
"""A case hangs if it has computed for longer than the limit, or has taken this multiple of it by the clock."""
MOST_KEPT = 200
"""Failing cases that are copied to a folder, at most."""


@dataclass
class Case:
    """Input of one case."""

    seed: int
    path: Path | None = None
    """The file or folder of the case, which is kept if the case fails; None for all of `scratch()`."""
    note: str = ""
    """What was changed, in words."""
    data: Any = None
    """Whatever `check` needs besides."""


@dataclass
class Failure:
    """A case that is not as it should be."""

    seed: int
    outcome: str
    kind: str
    """What failures of one cause have in common: exception and place, or signal."""
    note: str = ""
    details: str = ""


@dataclass
class Counts:
    """The result of a run."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0
    slowest: tuple[float, int] = (0.0, 0)
    """CPU seconds and seed of the slowest case that was no hang."""
    peak_mb: float = 0.0
    """Most memory of a process, that of its imports included."""

    @property
    def cases(self) -> int:
        """All cases that were run."""
        return sum(self.outcomes.values())

    @property
    def failed(self) -> int:
        """Cases that are not as they should be."""
        return self.cases - sum(self.outcomes[name] for name in GOOD)

    def as_json(self) -> dict[str, Any]:
        """The summary."""
        kinds = Counter(f"{one.outcome}: {one.kind}" for one in self.failures)
        return {
            "cases": self.cases,
            "failed": self.failed,
            "outcomes": dict(self.outcomes),
            "kinds": dict(kinds.most_common()),
            "failures": [{"seed": one.seed, "outcome": one.outcome, "kind": one.kind} for one in self.failures],
            "seconds": round(self.seconds, 1),
            "slowest": {"seconds": round(self.slowest[0], 2), "seed": self.slowest[1]},
            "peak_mb": round(self.peak_mb),
        }


# ---------------------------------------------------------------------- what a check may use

_scratch: Path | None = None


def scratch() -> Path:
    """The folder of this process for the files of a case; it is emptied before each case."""
    assert _scratch is not None, "only inside of make_case and check"
    return _scratch


class Watch:
    """Notes what the process opens, starts or connects to while the watch is on; audit hooks see all of it.

    Parameters
    ----------
    allowed
        Folders and files that may be opened, for reading and writing. Python's own folders, those of installed
        packages, the working tree, /proc, /sys and /dev/null may be read as well.
    """

    EVENTS = (
        *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn"),
        *("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"),
        *(
            "builtins.input",
            "pickle.find_class",
            "ctypes.dlopen",
            "os.remove",
            "os.rename",
            "os.rmdir",
            "shutil.rmtree",
        ),
    )
    _running: Watch | None = None
    _hooked = False

    def __init__(self, *allowed: Path | str, ignore: Sequence[str] = ()) -> None:
        self.allowed = tuple(os.path.realpath(path) for path in allowed)
        own = [sys.prefix, sys.base_prefix, sys.exec_prefix, ROOT, *(path for path in sys.path if path)]
        self.readable = (
            *(os.path.realpath(path) for path in own),
            "/proc",
            "/sys",
            "/dev/null",
            "/usr/lib",
            "/lib",
            "/etc",
        )
        self.ignore = ignore
        self.found: list[str] = []

    def __enter__(self) -> Watch:
        if not Watch._hooked:
            sys.addaudithook(Watch._hear)
            Watch._hooked = True
        Watch._running = self
        return self

    def __exit__(self, *_: object) -> None:
        Watch._running = None

    @staticmethod
    def _hear(event: str, arguments: tuple[Any, ...]) -> None:
        watch = Watch._running
        if watch is None:
            return
        if event == "open":
            Watch._running = None  # realpath is not to be heard
            try:
                watch._opened(*arguments[:3])
            finally:
                Watch._running = watch
        elif event in Watch.EVENTS and event not in watch.ignore:
            watch.found.append(f"{event} {str(arguments)[:200]}")

    def _opened(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int) or path is None:
            return
        real = os.path.realpath(os.fsdecode(path))
        if _inside(real, self.allowed):
            return
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) != 0
        cache = real.endswith((".nbi", ".nbc", ".pyc")) or "/__pycache__" in real
        if writes and not cache and real != "/dev/null":
            self.found.append(f"opened for writing {real}")
        elif not writes and not _inside(real, self.readable):
            self.found.append(f"opened {real}")


def _inside(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def in_child(function: Callable[[], None]) -> None:
    """Call a function in a forked process, so that this one starts no threads before its workers are forked."""
    child = multiprocessing.get_context("fork").Process(target=function)
    child.start()
    child.join()
    if child.exitcode:
        sys.exit(f"preparing ended with {child.exitcode}")


# ---------------------------------------------------------------------- the workers

_SLOT = struct.Struct("qqqqddqd")  # number, phase, accepted, refused, clock, CPU seconds, slowest seed and seconds
IDLE, MAKING, CHECKING = 0, 1, 2


class _Worker:
    """A forked process, and what the main process knows of it."""

    def __init__(self, target: _Target, place: Path, number: int) -> None:
        self.target, self.place, self.number = target, place / f"worker-{number}", number
        self.slot = mmap.mmap(-1, _SLOT.size)
        self.work: deque[tuple[int, int]] = deque()
        self.collected = (0, 0)
        """Accepted and refused cases that the run has counted already."""
        self.start()

    def start(self) -> None:
        """Fork."""
        shutil.rmtree(self.place, ignore_errors=True)
        (self.place / "case").mkdir(parents=True)
        self.slot[:] = bytes(_SLOT.size)
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        self.busy = False
        self.process = context.Process(target=_serve, args=(self.target, other, self.slot, self.place), daemon=True)
        self.process.start()
        other.close()

    def state(self) -> tuple[Any, ...]:
        """What the slot says."""
        return _SLOT.unpack(self.slot[:])

    def cpu(self) -> float:
        """CPU seconds of the process so far."""
        try:
            parts = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def hangs(self, limit_s: float) -> bool:
        """Whether the present case takes too long."""
        _, phase, _, _, clock, cpu, *_ = self.state()
        passed = time.monotonic() - clock
        if phase == CHECKING:
            return passed > CLOCK_FACTOR * limit_s or (passed > limit_s and self.cpu() - cpu > limit_s)
        return bool(phase == MAKING and passed > LIMIT_FOR_MAKING)

    def end(self, how: int = signal.SIGKILL) -> None:
        """Kill the process and collect it."""
        with contextlib.suppress(ProcessLookupError):
            assert self.process.pid is not None
            os.kill(self.process.pid, how)
        self.process.join()
        self.pipe.close()


@dataclass
class _Target:
    make_case: Callable[[int], Case]
    check: Callable[[Case], str]
    prepare: Callable[[], None] | None
    seed: int
    memory_mb: int | None


def _serve(target: _Target, pipe: Any, slot: mmap.mmap, place: Path) -> None:
    """The loop of a worker: ranges of case numbers come in, failures go out."""
    global _scratch
    _scratch = place / "case"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = place / "answers"
    answers.write_text("y\n" * 100)  # who asks a question on standard input gets consent
    log = place / "log"
    os.dup2(os.open(answers, os.O_RDONLY), 0)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
    os.dup2(1, 2)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    faulthandler.enable(open(2, "w", closefd=False))  # noqa: SIM115
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if target.prepare is not None:
        target.prepare()
    if target.memory_mb is not None:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        most = now + (target.memory_mb << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    report = _Report(slot)
    while True:
        begin, end = pipe.recv()
        for number in range(begin, end):
            _clear(_scratch)
            report.number = number
            report.tell(MAKING)
            failure, path = _one_case(target, target.seed * SEEDS_PER_RUN + number, report)
            report.tell(IDLE)
            if failure is not None:
                pipe.send((failure, path))
                pipe.recv()  # until the case is copied
        pipe.send(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


class _Report:
    """What a worker writes into its slot, which outlives it."""

    def __init__(self, slot: mmap.mmap) -> None:
        self.slot, self.number, self.accepted, self.refused = slot, 0, 0, 0
        self.slowest, self.began = (0.0, 0), 0.0

    def tell(self, phase: int) -> None:
        """Write the phase of the present case, and since when it lasts."""
        clock, self.began = time.monotonic(), time.process_time()
        counts = (self.number, phase, self.accepted, self.refused)
        self.slot[:] = _SLOT.pack(*counts, clock, self.began, self.slowest[1], self.slowest[0])

    def count(self, outcome: str, seed: int) -> None:
        """Count a case, which began with `tell`."""
        self.slowest = max(self.slowest, (time.process_time() - self.began, seed))
        self.accepted += outcome == "accepted"
        self.refused += outcome == "refused"


def _one_case(target: _Target, seed: int, report: _Report) -> tuple[Failure | None, str]:
    """Run a case: the failure, if it is one, and the path of its files."""
    from labelwise.errors import LabelwiseError

    made, path, note = False, "", ""
    try:
        case = target.make_case(seed)
        made, path, note = True, str(case.path or ""), case.note
        (scratch().parent / "note").write_text(f"{path}\n{note}")
        report.tell(CHECKING)
        outcome, _, kind = target.check(case).partition(": ")
        details = kind
    except LabelwiseError as err:
        outcome, kind, details = "refused", "", ""
        if not made or not str(err).strip():
            outcome, kind, details = "wrong", "an error in make_case, or without a message", traceback.format_exc()
    except MemoryError:
        outcome, kind, details = "memory", _where(), traceback.format_exc()
    except BaseException as err:  # a PanicException of Rust code is no Exception
        outcome, kind, details = "foreign exception", f"{type(err).__name__} {_where()}", traceback.format_exc()
    report.count(outcome, seed)
    return (None if outcome in GOOD else Failure(seed, outcome, kind, note, details)), path


def _where() -> str:
    """The last place in labelwise, and the last of all, of the exception that is being handled."""
    frames = traceback.extract_tb(sys.exc_info()[2])
    own = [frame for frame in frames if "/labelwise/" in frame.filename and "/tools/" not in frame.filename]
    places = [own[-1]] if own else []
    if frames and frames[-1] not in places:
        places.append(frames[-1])
    return " > ".join(f"{'/'.join(Path(one.filename).parts[-2:])}:{one.name}" for one in places)


def _clear(folder: Path) -> None:
    """Empty a folder, whatever rights its parts have."""
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)  # noqa: PTH108


# ---------------------------------------------------------------------- the main process


def run_cases(
    make_case: Callable[[int], Case],
    check: Callable[[Case], str],
    *,
    cases: int | None = 1000,
    minutes: float | None = None,
    seed: int = 0,
    limit_s: float = 5.0,
    workers: int = 2,
    memory_mb: int | None = None,
    prepare: Callable[[], None] | None = None,
    keep: Path | None = None,
    progress: bool = True,
) -> Counts:
    """Run cases until there are enough or the time is over.

    Parameters
    ----------
    make_case, check
        Called in a worker. `check` returns an outcome, with a colon and details if it is a failure
        ("escape: opened /etc/passwd"), or raises.
    cases, minutes
        Where the run ends; None for no limit of this sort.
    limit_s
        CPU seconds that a check may take.
    memory_mb
        How much address space a worker may take beyond that of its start.
    prepare
        Called once in each worker before its first case: what imports or compiles.
    keep
        Folder for failing cases.
    """
    target = _Target(make_case, check, prepare, seed, memory_mb)
    root = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    counts, began = Counts(), time.monotonic()
    ends = float("inf") if minutes is None else began + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=root) as place:
        pool = _Pool(target, Path(place), counts, keep, limit_s)
        pool.queue = _ranges(cases, ends, workers, counts, began)
        try:
            pool.run(workers, progress)
        finally:
            for worker in pool.workers:
                worker.end()
    counts.seconds = time.monotonic() - began
    counts.failures.sort(key=lambda one: one.seed)
    return counts


def _ranges(cases: int | None, ends: float, workers: int, counts: Counts, began: float) -> Iterator[tuple[int, int]]:
    """Ranges of case numbers that take about a second each."""
    number = 0
    while (cases is None or number < cases) and time.monotonic() < ends:
        rate = counts.cases / max(time.monotonic() - began, 0.1) / workers
        size = max(1, min(int(rate), 2000))
        if cases is not None:
            size = min(size, max(1, (cases - number) // workers), cases - number)
        yield number, number + size
        number += size


class _Pool:
    """The workers of a run."""

    def __init__(self, target: _Target, place: Path, counts: Counts, keep: Path | None, limit_s: float) -> None:
        self.target, self.place, self.counts, self.keep, self.limit_s = target, place, counts, keep, limit_s
        self.queue: Iterator[tuple[int, int]] = iter(())
        self.workers: list[_Worker] = []
        self.given: dict[int, tuple[int, int]] = {}
        self.told = 0.0

    def run(self, workers: int, progress: bool) -> None:
        """Give out ranges until none is left and all workers are idle."""
        self.workers = [_Worker(self.target, self.place, number) for number in range(workers)]
        for worker in self.workers:
            self._give(worker)
        while any(worker.busy for worker in self.workers):
            ready = multiprocessing.connection.wait([worker.pipe for worker in self.workers if worker.busy], 0.2)
            for worker in self.workers:
                if worker.pipe in ready:
                    self._hear(worker)
                elif worker.busy and worker.hangs(self.limit_s):
                    self._replace(worker, "hang")
            if progress and time.monotonic() - self.told > 5:
                self._tell()
        if progress:
            self._tell()
            print(file=sys.stderr)

    def _give(self, worker: _Worker) -> None:
        piece = worker.work.popleft() if worker.work else next(self.queue, None)
        worker.busy = piece is not None
        if piece is not None:
            self.given[worker.number] = piece
            with contextlib.suppress(BrokenPipeError):  # it died; its pipe says so when it is read
                worker.pipe.send(piece)

    def _hear(self, worker: _Worker) -> None:
        try:
            heard = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            worker.process.join()
            self._replace(worker, "crash")
            return
        if isinstance(heard, float):
            self.counts.peak_mb = max(self.counts.peak_mb, heard)
            self._collect(worker)
            self._give(worker)
            return
        failure, path = heard
        self._fail(failure, worker, path)
        worker.pipe.send(None)

    def _collect(self, worker: _Worker) -> None:
        """Take over the counts of a worker's range; its slot counts from its start, so only the difference."""
        _, _, accepted, refused, _, _, slow_seed, slow = worker.state()
        self.counts.outcomes["accepted"] += accepted - worker.collected[0]
        self.counts.outcomes["refused"] += refused - worker.collected[1]
        worker.collected = (accepted, refused)
        self.counts.slowest = max(self.counts.slowest, (slow, slow_seed))

    def _replace(self, worker: _Worker, outcome: str) -> None:
        """Count the case at which a worker died or hangs, and go on behind it with a new worker."""
        number, phase, *_ = worker.state()
        if outcome == "hang":
            with contextlib.suppress(ProcessLookupError):
                assert worker.process.pid is not None
                os.kill(worker.process.pid, signal.SIGABRT)  # faulthandler writes where it was
                worker.process.join(1.0)
        worker.end()
        code = worker.process.exitcode or 0
        log = worker.place / "log"
        details = log.read_text(errors="replace")[-4000:] if log.is_file() else ""
        if phase == IDLE:
            sys.exit(f"a worker ended between two cases, with {code}:\n{details}")
        note = (worker.place / "note").read_text().split("\n", 1) if (worker.place / "note").is_file() else ["", ""]
        frame = next((line.strip() for line in details.splitlines() if line.strip().startswith("File ")), "")
        own = next((line.strip() for line in details.splitlines() if "/labelwise/" in line), frame)
        kind = f"{signal.Signals(-code).name if code < 0 and outcome == 'crash' else ''} {Path(own).name}".strip()
        seed = self.target.seed * SEEDS_PER_RUN + number
        self._fail(Failure(seed, outcome, kind, note[-1], details), worker, note[0])
        self._collect(worker)
        worker.collected = (0, 0)
        end = self.given[worker.number][1]
        worker.start()
        if number + 1 < end:
            worker.work.appendleft((number + 1, end))
        self._give(worker)

    def _fail(self, failure: Failure, worker: _Worker, path: str) -> None:
        self.counts.outcomes[failure.outcome] += 1
        self.counts.failures.append(failure)
        if self.keep is None or len(self.counts.failures) > MOST_KEPT:
            return
        place = self.keep / f"{failure.seed}-{failure.outcome.replace(' ', '-')}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        source = Path(path) if path else worker.place / "case"
        with contextlib.suppress(OSError, shutil.Error):
            if source.is_dir():
                shutil.copytree(source, place / "case", symlinks=True, ignore=_special)
            else:
                shutil.copy2(source, place / source.name)
        (place / "failure.txt").write_text(f"{failure.outcome}: {failure.kind}\n{failure.note}\n\n{failure.details}\n")

    def _tell(self) -> None:
        self.told = time.monotonic()
        running = sum(sum(worker.state()[2:4]) - sum(worker.collected) for worker in self.workers)
        print(
            f"\r{self.counts.cases + running:,} cases, {self.counts.failed} failed", end="", file=sys.stderr, flush=True
        )


def _special(folder: str, names: list[str]) -> list[str]:
    """Pipes and devices, which cannot be copied."""
    return [name for name in names if not _is_plain(Path(folder) / name)]


def _is_plain(path: Path) -> bool:
    return path.is_symlink() or path.is_file() or path.is_dir()


# ---------------------------------------------------------------------- the command line of a target


def command(
    make_case: Callable[[int], Case],
    check: Callable[[Case], str],
    *,
    about: str,
    cases: int = 1000,
    limit_s: float = 5.0,
    memory_mb: int | None = None,
    prepare: Callable[[], None] | None = None,
    arguments: Sequence[str] | None = None,
) -> int:
    """The program of a target: read its options, run it, print a summary; 1 if a case failed."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--cases", type=int, help=f"number of cases; {cases} without --minutes")
    parser.add_argument("--minutes", type=float, help="how long to run")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the run")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--limit", type=float, default=limit_s, help="CPU seconds that a case may take")
    parser.add_argument("--memory", type=int, default=memory_mb, help="MB that a case may take")
    parser.add_argument("--json", type=Path, help="file for the summary")
    parser.add_argument("--keep", type=Path, help="folder for failing cases")
    parser.add_argument("--only", type=int, help="run one case, with this seed, and show what it does")
    options = parser.parse_args(arguments)
    most = cases if options.cases is None and options.minutes is None else options.cases
    if options.only is not None:
        return _only(make_case, check, prepare, options.only)
    counts = run_cases(
        make_case,
        check,
        cases=most,
        minutes=options.minutes,
        seed=options.seed,
        limit_s=options.limit,
        workers=options.workers,
        memory_mb=options.memory,
        prepare=prepare,
        keep=options.keep,
    )
    summary = counts.as_json()
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(summary, indent=2) + "\n")
    print(f"{counts.cases:,} cases in {counts.seconds:.0f} s, seed {options.seed}: ", end="")
    print(", ".join(f"{count:,} {name}" for name, count in counts.outcomes.most_common() if count))
    print(f"slowest case {counts.slowest[0]:.2f} CPU s, most memory of a process {counts.peak_mb:.0f} MB")
    for kind, count in summary["kinds"].items():
        first = next(one for one in counts.failures if f"{one.outcome}: {one.kind}" == kind)
        print(f"{count:6} × {kind}   --only {first.seed}   ({first.note})")
    return 1 if counts.failed else 0


def _only(
    make_case: Callable[[int], Case], check: Callable[[Case], str], prepare: Callable[[], None] | None, seed: int
) -> int:
    """Run one case in this process."""
    global _scratch
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        _scratch = Path(place)
        if prepare is not None:
            prepare()
        _clear(_scratch)
        case = make_case(seed)
        print(f"{case.path or ''}: {case.note}")
        outcome = check(case)
    print(outcome)
    return 0 if outcome in GOOD else 1
