"""Makes all tables for several data sets in one command, with several jobs at a time.

    python benchmarks/paper/everything.py DATA… --encoders minilm,gte-small=DIR,mpnet=DIR --run-dir RUNS --output OUT

For each data set: every encoder is fine-tuned (ensemble.py --fit-only), then come the ensemble of nine, Table 5 with
its random seeds in parallel, and Table 3. Table 4 on the generated shop, Table 6 and the picture follow. Jobs start in
this order, at most --jobs at a time, each with its share of the threads. OUT gets NAME.json and NAME.log of each job.
everything.toml has further options for each data set. After an interruption run the command again: finished jobs are
skipped, others continue from the run directory. With --seconds the script stops in time, for rented machines. The exit
code is 1 if a job failed.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TABLES = ("ensemble", "table5", "table3", "table4", "table6")
SECONDS_TO_END = 10.0


@dataclass(frozen=True)
class Job:
    """A script with its arguments."""

    name: str
    script: str
    arguments: tuple[str, ...]
    after: tuple[str, ...] = ()
    """Jobs that must succeed before this job starts."""
    writes: bool = True
    """Whether the script takes --json."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--encoders", default="minilm,gte-small,mpnet", help="three of encoders.toml, or NAME=FOLDER")
    parser.add_argument("--run-dir", type=Path, required=True, help="folder with a run directory for each data set")
    parser.add_argument("--output", type=Path, required=True, help="folder for results and logs")
    parser.add_argument("--tables", default=",".join(TABLES), help="tables, by commas")
    parser.add_argument(
        "--recipes", type=Path, default=HERE / "everything.toml", help="TOML file with options for each data set"
    )
    parser.add_argument("--jobs", type=int, default=4, help="largest number of jobs at a time")
    parser.add_argument("--threads", type=int, help="threads of each job; its share of the cores if not given")
    parser.add_argument("--seeds", type=int, default=3, help="number of random seeds of Table 5")
    parser.add_argument("--seconds", type=float, help="stop after this time")
    options = parser.parse_args()
    unknown = set(options.tables.split(",")) - set(TABLES)
    if unknown:
        parser.error(f"--tables: there is no {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    if options.jobs < 1:
        parser.error(f"--jobs is {options.jobs}; it must be at least 1")
    try:
        recipes = tomllib.loads(options.recipes.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        parser.error(f"--recipes {options.recipes}: {error}")
    queue = Queue(list(plan(options, recipes)), options.output, options.jobs)
    sys.exit(0 if queue.run(options.seconds) else 1)


def plan(options: argparse.Namespace, recipes: dict[str, Any]) -> Iterator[Job]:
    """All jobs, in the order in which they should start."""
    tables, encoders = options.tables.split(","), options.encoders.split(",")
    threads = options.threads or max(1, (os.cpu_count() or 1) // options.jobs)
    ensembles = []

    def job(name: str, script: str, data: Path | None, *arguments: Any, **more: Any) -> Job:
        set_name = "shop" if data is None else data.name
        given = recipes.get("every", {}).get("options", "").split()
        given += recipes.get(set_name, {}).get(script, "").split()
        where = () if data is None else (str(data),)
        common = ("--threads", str(threads), "--run-dir", str(options.run_dir / set_name))
        return Job(name, script, (*where, *map(str, arguments), *given, *common), **more)

    for data in options.data if "ensemble" in tables else ():
        fits = []
        for encoder in encoders:
            fits.append(f"fit-{data.name}-{encoder.partition('=')[0]}")
            yield job(fits[-1], "ensemble", data, "--encoders", encoder, "--fit-only", writes=False)
        ensembles.append(f"ensemble-{data.name}")
        yield job(ensembles[-1], "ensemble", data, "--encoders", options.encoders, after=tuple(fits))
    for data in options.data if "table5" in tables else ():
        rows = ("--encoders", options.encoders, "--rows", "0,1,2")
        singles = [f"table5-{data.name}-seed-{seed}" for seed in range(options.seeds)]
        for seed, name in enumerate(singles if len(singles) > 1 else ()):
            yield job(name, "table5", data, *rows, "--seed", seed)
        after = tuple(singles) if len(singles) > 1 else ()
        yield job(f"table5-{data.name}", "table5", data, *rows, "--seeds", options.seeds, after=after)
    for data in options.data if "table3" in tables else ():
        arguments = ("--encoders", encoders[0], "--linear", "parabel", "--ensemble", "none")
        yield job(f"table3-{data.name}", "table3", data, *arguments)
    if "table4" in tables:
        yield job("table4", "table4", None, "--encoders", encoders[0])
    if "table6" in tables and ensembles:
        found = tuple(str(options.output / f"{name}.json") for name in ensembles)
        yield Job("table6", "table6", found, after=tuple(ensembles))
        picture = (*found, "--output", str(options.output / "ensemble.svg"))
        yield Job("picture", "picture", picture, after=tuple(ensembles), writes=False)


class Queue:
    """Runs several jobs at a time."""

    def __init__(self, jobs: Sequence[Job], output: Path, most: int) -> None:
        self.jobs, self.output, self.most = jobs, output, most
        self.running: dict[str, tuple[subprocess.Popen[bytes], float]] = {}
        self.ended: dict[str, str] = {}
        """Outcome of each job: found, done, failed, or the reason why it was not run."""

    def run(self, seconds: float | None = None) -> bool:
        """Run until all jobs have ended or the time is over; returns whether all succeeded."""
        self.output.mkdir(parents=True, exist_ok=True)
        end = float("inf") if seconds is None else time.monotonic() + seconds
        try:
            while len(self.ended) < len(self.jobs) and time.monotonic() < end:
                self._look()
                self._begin()
                time.sleep(0.2)
        finally:
            self._stop()
        for job in self.jobs:
            say(f"{job.name}: {self.ended.get(job.name, 'not run: the time was up')}")
        return all(self.ended.get(job.name) in ("found", "done") for job in self.jobs)

    def _begin(self) -> None:
        for job in self.jobs:
            if job.name in self.running or job.name in self.ended:
                continue
            broken = [name for name in job.after if self.ended.get(name, "found") not in ("found", "done")]
            if self._mark(job).is_file():
                self.ended[job.name] = "found"
            elif broken:
                self.ended[job.name] = f"not run: it needs {', '.join(broken)}"
            elif len(self.running) < self.most and all(name in self.ended for name in job.after):
                self._start(job)

    def _start(self, job: Job) -> None:
        command = [sys.executable, str(HERE / f"{job.script}.py"), *job.arguments]
        if job.writes:
            command += ["--json", str(self.output / f"{job.name}.json")]
        with (self.output / f"{job.name}.log").open("wb") as log:
            # A session of its own, so that its child processes are ended with it.
            process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
            )
        self.running[job.name] = (process, time.monotonic())
        say(f"{job.name}: begun")

    def _look(self) -> None:
        for job in self.jobs:
            process, begun = self.running.get(job.name, (None, 0.0))
            if process is None or process.poll() is None:
                continue
            del self.running[job.name]
            self.ended[job.name] = "done" if process.returncode == 0 else f"failed, see {job.name}.log"
            if process.returncode == 0:
                self._mark(job).touch()
            say(f"{job.name}: {self.ended[job.name]}, {time.monotonic() - begun:.0f} s")

    def _stop(self) -> None:
        """End running jobs: first by SIGTERM, so that run directories stay valid, then by SIGKILL."""
        for process, _ in self.running.values():
            os.killpg(process.pid, signal.SIGTERM)
        until = time.monotonic() + SECONDS_TO_END
        for name, (process, _) in self.running.items():
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            self.ended[name] = "stopped: the time was up"
        self.running.clear()

    def _mark(self, job: Job) -> Path:
        """The file that marks a finished job."""
        return self.output / f"{job.name}.done"


def say(line: str) -> None:
    print(f"# {line}", flush=True)


if __name__ == "__main__":
    main()
