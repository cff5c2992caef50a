"""A process that measures one system, so that CPU time and memory are those of this system alone.

``python -m labelwise.comparison.worker JOB.json`` reads its job from a file, writes events as lines of JSON to standard
output, and writes an `Outcome` into the folder of the job.
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
from labelwise.engines.allocator import limit_heap_growth
from labelwise.errors import LabelwiseError
from labelwise.types import OnEvent


@dataclass(frozen=True, kw_only=True)
class DataLocation:
    """Path and format of the data, for a process that reads them itself."""

    path: str
    split: str = "test"
    format: Format | None = None
    options: ReadOptions = field(default_factory=ReadOptions)
    max_docs: int | None = None

    def read(self, on_event: OnEvent | None = None) -> Splits:
        """Read the splits."""
        return Splits.read(
            self.path,
            split=self.split,
            format=self.format,
            options=self.options,
            max_docs=self.max_docs,
            on_event=on_event,
        )


def measure_in_process(
    system: System,
    source: DataLocation,
    folder: Path,
    *,
    top_k: int,
    run_dir: Path | None,
    keep_model: bool = True,
    on_event: OnEvent | None = None,
) -> None:
    """Run `measure_system` in a process of its own, and pass its events on."""
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
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8", errors="replace"
        ) as process,
    ):
        try:
            failure = _read_events(process, on_event)
        finally:
            if process.poll() is None:
                process.terminate()
        errors.seek(0)
        lines = errors.read().strip().splitlines()
    (folder / "job.json").unlink()
    if process.returncode != 0:
        raise LabelwiseError(failure or _exit_reason(process.returncode, lines))


def _read_events(process: subprocess.Popen[str], on_event: OnEvent | None) -> str | None:
    """Pass on the events of the process until it ends. Returns its error message, if it sent one."""
    failure = None
    for line in process.stdout or ():
        try:
            message = json.loads(line)
        except ValueError:  # output of another library
            continue
        if not isinstance(message, dict):
            continue
        if "error" in message:
            failure = str(message["error"])
        elif on_event is not None and "event" in message:
            on_event(message["event"], message["values"])
    process.wait()
    return failure


def _exit_reason(code: int, lines: list[str]) -> str:
    if code < 0:
        return f"its process was killed by signal {-code}" + (", perhaps for lack of memory" if code == -9 else "")
    return f"its process ended with code {code}" + (f": {lines[-1]}" if lines else "")


def run_job(job: Mapping[str, Any], on_event: OnEvent | None = None) -> None:
    """Measure the system of a job; the memory is that of this process."""
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
    if job["system"]["model"] is None:  # a model that was only loaded has no memory of training
        costs = replace(costs, peak_mib=_peak_mib())
    storage.write_json(folder / "costs.json", Costs(**asdict(costs)))


def _peak_mib() -> float | None:
    """Peak memory of this process; None on systems that do not report it."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20)


def _write_event(name: str, values: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps({"event": name, "values": dict(values)}, default=str) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the job of the file that the command line names."""
    limit_heap_growth()
    try:
        run_job(storage.read_json(Path(sys.argv[1])), _write_event)
    except LabelwiseError as error:
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        sys.exit(error.exit_code)
    except (MemoryError, RuntimeError) as error:  # such as torch's error when the memory of a GPU is full
        first = str(error).strip().partition("\n")[0]
        sys.stdout.write(json.dumps({"error": f"{type(error).__name__}: {first}"}) + "\n")
        raise


if __name__ == "__main__":
    main()
