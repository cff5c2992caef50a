"""The run directory: every stage's result, kept under a hash of what it depends on.

An identical later stage finds the result instead of computing it again: this is how ablations share work and how a
killed run resumes. Results are written aside and renamed, a stage is computed under a lock, so any number of
processes may use one directory.

::

    DIR/stages/tfidf-3f9c…/stage.json    what it is, when it was made, how long that took and in how much memory
    DIR/stages/tfidf-3f9c…/result        as the stage itself saves it
    DIR/runs/20261116-….json             the stages that one run used, and the command that began it
    DIR/scratch/matcher-77ab…            checkpoints of a stage that is not finished
    DIR/events.jsonl                     what happened, a line each
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from filelock import FileLock, Timeout

from labelwise import __version__
from labelwise.engines import cpu_seconds
from labelwise.engines.peak_memory import PeakMemory
from labelwise.errors import StorageError, UsageError
from labelwise.events import heard
from labelwise.storage import atomic_folder, read_json, write_json
from labelwise.storage.fingerprint import fingerprint
from labelwise.storage.leftovers import TemporaryPath, beside, left_behind, remove, size
from labelwise.storage.paths import checked_path
from labelwise.storage.replacing import clean, clean_beside, clean_folder
from labelwise.storage.write_errors import told_as_storage_error
from labelwise.types import OnEvent

T = TypeVar("T")
logger = logging.getLogger(__name__)

_STAGE = "stage.json"


@dataclasses.dataclass(frozen=True)
class StageRecord:
    """A stage's result as it lies in a run directory."""

    name: str
    folder: Path
    seconds: float
    """Wall time of computing it."""
    cpu_seconds: float
    created: str
    n_bytes: int
    n_runs: int
    """How many recorded runs used it."""
    last_used: str
    """Start of the latest run that used it."""
    peak_bytes: int | None = None
    """Most memory of the process while it was computed; None where that was not recorded."""
    gpu_peak_bytes: int | None = None
    """Most memory of the GPU, from the start of that process on."""


class RunDirectory:
    """Keeps and finds stage results; a context manager around one run.

    >>> with RunDirectory("runs/shop", purpose="demo") as run:
    ...     tfidf = run.stage("tfidf", inputs={"config": config, "texts": texts},
    ...                       compute=lambda: Tfidf(config).fit(texts), save=Tfidf.save, load=Tfidf.load)
    """

    def __init__(self, path: Path | str, *, purpose: str = "", on_event: OnEvent | None = None) -> None:
        self.path, self.purpose = checked_path(path), purpose
        self._listener = on_event
        self._run: dict[str, Any] | None = None
        self._held = ExitStack()

    # ------------------------------------------------------------------ one run

    def __enter__(self) -> Self:
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file; give a folder for the run directory")
        started = datetime.now(UTC)
        run_id = f"{started:%Y%m%d-%H%M%S-%f}-{os.getpid()}"
        self._run = {
            "id": run_id,
            "purpose": self.purpose,
            "labelwise": __version__,
            "started": started.isoformat(timespec="seconds"),
            "finished": None,
            "command": _command(),
            "folder": str(Path.cwd()),
            "stages": [],
        }
        with told_as_storage_error(self.path):
            clean_beside(self.path)  # a test whether it can be made may have been killed
            for part in ("stages", "runs", "locks"):
                (self.path / part).mkdir(parents=True, exist_ok=True)
            self._held.enter_context(FileLock(self.path / "locks" / f"{run_id}.lock"))
            clean_folder(self.path / "runs")  # records have the names of their runs, so that no later save cleans them
        try:
            self._record()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run = self._open()
        if kind is None:
            run["finished"] = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            self._record()
        except StorageError:
            if kind is None:  # otherwise the first error is the one to tell
                raise
        finally:
            self._close()

    def _close(self) -> None:
        self._held.close()
        with suppress(OSError):
            (self.path / "locks" / f"{self._open()['id']}.lock").unlink(missing_ok=True)
        self._run = None

    def stage(
        self,
        name: str,
        *,
        inputs: Mapping[str, Any],
        compute: Callable[[], T],
        save: Callable[[T, Path], None],
        load: Callable[[Path], T],
        version: int = 1,
    ) -> T:
        """The result of a stage: found if the same stage was finished before, computed and kept otherwise.

        Parameters
        ----------
        name
            What the stage is called, in one word.
        inputs
            All that the result depends on: configurations, arrays, texts, datasets (see `fingerprint`).
        compute, save, load
            How to make the result, write it to a path, and read it from there. What is returned was always loaded, so
            that a fresh result and a found one cannot differ.
        version
            Raised when the stage's algorithm changes, so that older results are not taken for new ones.
        """
        run = self._open()
        key = fingerprint({"stage": name, "version": version, "inputs": dict(inputs)})
        folder = self.path / "stages" / f"{name}-{key[:16]}"
        with self._lock(folder.name):
            value = self._find(folder, load)
            found = value is not None
            if value is None:
                wall, cpu = time.perf_counter(), cpu_seconds()
                with PeakMemory() as peak:
                    result = compute()
                wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
                with atomic_folder(folder, overwrite=True) as aside:
                    save(result, aside / "result")
                    created = datetime.now(UTC).isoformat(timespec="seconds")
                    description = {"name": name, "key": key, "seconds": wall, "cpu_seconds": cpu, "created": created}
                    memory = {"peak_bytes": peak.n_bytes, "gpu_peak_bytes": peak.gpu_bytes}
                    write_json(aside / _STAGE, {**description, **memory, "labelwise": __version__})
                value = load(folder / "result")
                if (self.path / "scratch").is_dir():  # the result stands, so nobody goes on from a checkpoint
                    shutil.rmtree(self.scratch(name, inputs), ignore_errors=True)
            if folder.name not in run["stages"]:
                run["stages"].append(folder.name)
            self._record()
        seconds = read_json(folder / _STAGE)["seconds"]
        self.on_event("stage", {"stage": name, "found": found, "seconds": seconds, "folder": str(folder)})
        return value

    def scratch(self, name: str, inputs: Mapping[str, Any]) -> Path:
        """A folder for files of a stage that is not finished, such as checkpoints."""
        self._open()
        return self.path / "scratch" / f"{name}-{fingerprint(dict(inputs))[:16]}"

    def on_event(self, name: str, values: Mapping[str, Any]) -> None:
        """Pass an event on to the listener and append it to events.jsonl (of progress, only its end)."""
        listener = heard(self._listener)
        if listener is not None:
            listener(name, values)
        if name != "progress" or values.get("finished"):
            line = {"time": round(time.time(), 3), "run": self._open()["id"], "event": name, **values}
            text = json.dumps(line, ensure_ascii=False, default=str) + "\n"
            file = self.path / "events.jsonl"
            with told_as_storage_error(file), file.open("ab", buffering=0) as log:
                log.write(text.encode("utf-8", "backslashreplace"))  # in one piece, since other processes write too

    def _find(self, folder: Path, load: Callable[[Path], T]) -> T | None:
        """A finished result; None where there is none or where it is damaged."""
        if not (folder / _STAGE).is_file():
            return None
        try:
            return load(folder / "result")
        except StorageError as error:
            logger.warning("%s cannot be used (%s); computing it again", folder, error)
            return None

    def _lock(self, name: str) -> AbstractContextManager[Any]:
        """An exclusive lock, which the system releases when the process ends."""
        file = self.path / "locks" / f"{name}.lock"
        with told_as_storage_error(file):
            lock = FileLock(file)
            try:
                held = lock.acquire(timeout=0)
            except Timeout:
                self.on_event("waiting", {"stage": name, "reason": "another process is computing it"})
                held = lock.acquire()
            while not file.exists():  # `prune` removed it at that moment, so that others would not see the lock
                lock.release()
                held = lock.acquire()
        return held

    def _open(self) -> dict[str, Any]:
        if self._run is None:
            raise UsageError('a run directory is used inside "with RunDirectory(path) as run:"')
        return self._run

    def _record(self) -> None:
        run = self._open()
        write_json(self.path / "runs" / f"{run['id']}.json", run)

    # ------------------------------------------------------------------ all runs

    def runs(self) -> list[dict[str, Any]]:
        """The recorded runs, oldest first."""
        self._must_exist()
        return [read_json(file) for file in self._entries("runs") if file.suffix == ".json" and _is_seen(file)]

    def stages(self) -> list[StageRecord]:
        """The finished results, oldest first."""
        users: dict[str, list[str]] = {}
        for run in self.runs():
            for folder in run["stages"]:
                users.setdefault(folder, []).append(run["started"])
        records = []
        for folder in self._entries("stages"):
            file = folder / _STAGE
            if not _is_seen(folder) or not file.is_file():
                continue
            about, used = read_json(file), users.get(folder.name, [])
            records.append(
                StageRecord(
                    name=about["name"],
                    folder=folder,
                    seconds=about["seconds"],
                    cpu_seconds=about["cpu_seconds"],
                    created=about["created"],
                    n_bytes=size(folder),
                    n_runs=len(used),
                    last_used=max(used, default=about["created"]),
                    peak_bytes=about.get("peak_bytes"),
                    gpu_peak_bytes=about.get("gpu_peak_bytes"),
                )
            )
        return sorted(records, key=lambda record: (record.created, record.folder.name))

    def prune(self, *, keep: int = 1, dry_run: bool = False) -> list[tuple[Path, int]]:
        """Remove what the latest `keep` runs do not use, and what killed processes left half-written.

        Results and runs in use by a living process stay, and checkpoints as long as a run that stays is not finished.
        Returns what was removed with the sizes in bytes.
        """
        if keep < 0:
            raise UsageError(f"keep is {keep}; give the number of runs whose results stay, 0 or more")
        runs = self.runs()
        latest = {run["id"] for run in runs[len(runs) - keep :]} if keep else set()
        kept = [run for run in runs if run["id"] in latest or self._alive(run["id"])]
        used = {folder for run in kept for folder in run["stages"]}
        removed = self._prune_stages(used, dry_run)
        left = clean(self.path, dry_run=dry_run)
        removed += [(one.path, n_bytes) for one, n_bytes in left if (one.path, n_bytes) not in removed]
        if all(run["finished"] for run in kept):  # no run is left that could go on from a checkpoint
            removed += self._remove_all([path for path in self._entries("scratch") if _is_seen(path)], dry_run)
        if not dry_run:
            for run in runs:
                if run not in kept:
                    (self.path / "runs" / f"{run['id']}.json").unlink(missing_ok=True)
            self._prune_locks()
        return removed

    def _prune_stages(self, used: set[str], dry_run: bool) -> list[tuple[Path, int]]:
        """Remove the results that are not used, and half-written ones."""
        removed: list[tuple[Path, int]] = []
        stages = self._entries("stages")
        unused = [(folder.name, folder) for folder in stages if _is_seen(folder) and folder.name not in used]
        with ExitStack() as held:
            for path in (one for one in stages if not _is_seen(one) and one.suffix == ".partial"):
                stage, token, _ = path.name[1:].rsplit(".", 2)
                one = TemporaryPath(path, stage, token, "partial")
                # The lock of the stage tells too whether somebody is at work, so that the age does not matter.
                if held.enter_context(left_behind(one, min_age_hours=0)):
                    unused.append((stage, path))
            for stage, folder in unused:
                with suppress(Timeout), FileLock(self.path / "locks" / f"{stage}.lock").acquire(timeout=0):
                    removed += self._remove_all([folder], dry_run)
        return removed

    def _remove_all(self, folders: Iterable[Path], dry_run: bool) -> list[tuple[Path, int]]:
        """Remove folders, each in one step: one that is half removed must not look like a result."""
        removed = []
        for folder in folders:
            removed.append((folder, size(folder)))
            if not dry_run:
                aside = folder if folder.name.endswith(".partial") else beside(folder)
                if aside != folder:
                    folder.rename(aside)
                remove(aside)
        return removed

    def _prune_locks(self) -> None:
        """Remove the lock files of results that are gone and of runs that ended; those that are held stay."""
        for file in self._entries("locks"):
            if file.suffix == ".lock" and not (self.path / "stages" / file.stem).exists():
                with suppress(Timeout, OSError), FileLock(file).acquire(timeout=0):
                    file.unlink()

    def _alive(self, name: str) -> bool:
        """Whether the process of this run still lives."""
        try:
            with FileLock(self.path / "locks" / f"{name}.lock").acquire(timeout=0):
                return False
        except Timeout:
            return True

    def _entries(self, part: str) -> list[Path]:
        """What lies in a folder of the run directory. A folder that cannot be listed is not taken for an empty one."""
        folder = self.path / part
        try:
            return sorted(folder.iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(
                f"{folder} cannot be read ({error.strerror}); make it readable, then try again"
            ) from error

    def _must_exist(self) -> None:
        if not (self.path / "runs").is_dir():
            raise UsageError(f"{self.path} is not a run directory; give the folder of run_dir or --run-dir")


def _is_seen(path: Path) -> bool:
    """Whether a name is no temporary one."""
    return not path.name.startswith(".")


def _command() -> list[str] | None:
    """The words after `labelwise` where that command began this process; None in other programs."""
    program = Path(sys.argv[0]) if sys.argv and sys.argv[0] else Path()
    ours = program.stem == "labelwise" or (program.stem == "__main__" and program.parent.name == "labelwise")
    return sys.argv[1:] if ours else None


def open_run(
    run_dir: Path | str | RunDirectory | None, on_event: OnEvent | None
) -> AbstractContextManager[RunDirectory | None]:
    """The run of a model's `fit`: none, one of its own, or one that is open already."""
    if run_dir is None or isinstance(run_dir, RunDirectory):
        return nullcontext(run_dir)
    return RunDirectory(run_dir, purpose="fit", on_event=on_event)
