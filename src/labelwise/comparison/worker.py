"""A process that measures one system and ends, so that CPU time and memory are that system's own.

``python -m labelwise.comparison.worker JOB.json`` is told by a file what to do, tells what it does in lines of JSON on
standard output, and leaves an `Outcome` in the job's folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from labelwise import storage
from labelwise.comparison.splits import Splits
from labelwise.comparison.system import System
from labelwise.data import Format, ReadOptions
from labelwise.engine.allocator import limit_heap_growth
from labelwise.errors import LabelwiseError
from labelwise.types import OnEvent


@dataclass(frozen=True, kw_only=True)
class DataLocation:
    """Where the data are and how they are read, for a process that has to read them again."""

    path: str
    split: str = "test"
    format: Format | None = None
    options: ReadOptions = field(default_factory=ReadOptions)
    max_docs: int | None = None

    def read(self, on_event: OnEvent | None = None) -> Splits:
        """The splits."""
        return Splits.read(
            self.path,
            split=self.split,
            format=self.format,
            options=self.options,
            max_docs=self.max_docs,
            on_event=on_event,
        )


def measure_alone(
    system: System,
    source: DataLocation,
    folder: Path,
    *,
    top_k: int,
    run_dir: Path | None,
    keep_model: bool = True,
    on_event: OnEvent | None = None,
) -> None:
    """`measure_system` in a process of its own; what it tells is passed on."""
    job = {
        "system": system.to_dict(),
        "source": asdict(source),
        "folder": str(folder),
        "run_dir": None if run_dir is None else str(run_dir),
        "top_k": top_k,
        "keep_model": keep_model,
    }
    folder.mkdir(parents=True, exist_ok=True)
    storage.write_json(folder / "job.json", job)
    code = str(Path(__file__).resolve().parents[2])
    others = os.environ.get("PYTHONPATH")
    environment = {**os.environ, "PYTHONPATH": code if not others else os.pathsep.join((code, others))}
    command = [sys.executable, "-m", "labelwise.comparison.worker", str(folder / "job.json")]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints,
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=complaints, encoding="utf-8", errors="replace"
        ) as process,
    ):
        try:
            failure = _listen(process, on_event)
        finally:
            if process.poll() is None:
                process.terminate()
        complaints.seek(0)
        lines = complaints.read().strip().splitlines()
    (folder / "job.json").unlink()
    if process.returncode != 0:
        raise LabelwiseError(failure or _ended(process.returncode, lines))


def _listen(process: subprocess.Popen[str], on_event: OnEvent | None) -> str | None:
    """Pass on what the process tells, until it ends; gives what went wrong, if it said so."""
    failure = None
    for line in process.stdout or ():
        try:
            told = json.loads(line)
        except ValueError:  # some library's own words
            continue
        if not isinstance(told, dict):
            continue
        if "error" in told:
            failure = str(told["error"])
        elif on_event is not None and "event" in told:
            on_event(told["event"], told["values"])
    process.wait()
    return failure


def _ended(code: int, lines: list[str]) -> str:
    if code < 0:
        return f"its process was killed by signal {-code}" + (", perhaps for want of memory" if code == -9 else "")
    return f"its process ended with code {code}" + (f": {lines[-1]}" if lines else "")


def run_job(job: Mapping[str, Any], on_event: OnEvent | None = None) -> None:
    """Do what a job says; memory is that of this process."""
    from labelwise.comparison.measure import Costs, measure_system

    source = DataLocation(**{**job["source"], "options": ReadOptions.of(job["source"]["options"])})
    folder = Path(job["folder"])
    costs = measure_system(
        System.from_dict(job["system"]),
        source.read(on_event),
        folder,
        top_k=job["top_k"],
        run_dir=None if job["run_dir"] is None else Path(job["run_dir"]),
        keep_model=job["keep_model"],
        on_event=on_event,
    )
    if job["system"]["model"] is None:  # a model that was only loaded says nothing of training
        costs = replace(costs, peak_mib=_peak_mib())
    storage.write_json(folder / "costs.json", Costs(**asdict(costs)))


def _peak_mib() -> float | None:
    """Most memory of this process since it began; None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20)


def _tell(name: str, values: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps({"event": name, "values": dict(values)}, default=str) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Do the job that the file named on the command line describes."""
    limit_heap_growth()
    try:
        run_job(storage.read_json(Path(sys.argv[1])), _tell)
    except LabelwiseError as error:
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        sys.exit(error.exit_code)
    except (MemoryError, RuntimeError) as error:  # torch's words when a GPU is full, and the like
        first = str(error).strip().partition("\n")[0]
        sys.stdout.write(json.dumps({"error": f"{type(error).__name__}: {first}"}) + "\n")
        raise


if __name__ == "__main__":
    main()
