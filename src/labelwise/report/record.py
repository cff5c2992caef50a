"""Runs as a run directory records them: stages with time and memory, the training curve, a timeline."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from labelwise.errors import UsageError
from labelwise.storage.run_directory import RunDirectory, StageRecord


@dataclass(frozen=True)
class RunRecord:
    """The runs of one process and command, which may fit several models."""

    runs: list[dict[str, Any]]
    stages: list[tuple[StageRecord, bool | None]]
    """The stages that the runs used, each with whether it was found instead of computed; None if not recorded."""
    events: list[dict[str, Any]]
    """The events of the runs, in order."""

    @property
    def command(self) -> list[str] | None:
        """The arguments of the `labelwise` command; None if the runs were started from Python."""
        return self.runs[-1].get("command")

    @property
    def folder(self) -> Path:
        """The working directory of the command."""
        return Path(self.runs[-1].get("folder", "."))

    @property
    def seconds(self) -> float | None:
        """Time of the runs, to the second; None if one did not finish."""
        if any(run["finished"] is None for run in self.runs):
            return None
        spans = (datetime.fromisoformat(run["finished"]) - datetime.fromisoformat(run["started"]) for run in self.runs)
        return sum(span.total_seconds() for span in spans)

    def curve(self) -> list[dict[str, float]]:
        """Points of the last fine-tuning: step with loss and learning rate, or with recall."""
        points: list[dict[str, float]] = []
        for event in self.events:
            if event["event"] == "matcher":
                if event["step"] == 0:
                    points = []
                points.append({key: event[key] for key in ("step", "loss", "rate", "recall") if key in event})
        return points

    def remarks(self) -> list[str]:
        """Remarks of the training."""
        return [str(event["text"]) for event in self.events if event["event"] == "remark"]

    def timeline(self) -> Iterator[tuple[float, str]]:
        """Seconds since the start, and what had finished then."""
        start = datetime.fromisoformat(self.runs[0]["started"]).timestamp()
        for event in self.events:
            if event["event"] == "progress":
                words = f"{event['task']}: {event['done']:,} {event['unit']}"
            elif event["event"] == "stage":
                words = f"stage {event['stage']}: {'found' if event['found'] else 'kept'}"
            elif event["event"] == "remark":
                words = str(event["text"])
            else:
                continue
            yield max(event["time"] - start, 0.0), words


def read_records(path: Path | str) -> list[RunRecord]:
    """The records of a run directory, oldest first.

    Raises
    ------
    UsageError
        If the folder is not a run directory, or no run was recorded in it.
    """
    directory = RunDirectory(path)
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in directory.runs():
        if run["stages"] or run["purpose"] != "report":
            groups.setdefault((run["id"].rpartition("-")[2], json.dumps(run.get("command"))), []).append(run)
    if not groups:
        raise UsageError(f"{path} is an empty run directory; train with --run-dir {path} first")
    stages = {stage.folder.name: stage for stage in directory.stages()}
    events = _events(Path(path) / "events.jsonl")
    records = []
    for runs in sorted(groups.values(), key=lambda runs: str(runs[-1]["id"])):
        own_events = [event for run in runs for event in events.get(run["id"], [])]
        found = _found(own_events)
        names = dict.fromkeys(name for run in runs for name in run["stages"])
        used = [(stages[name], found.get(name)) for name in names if name in stages]
        records.append(RunRecord(runs, used, own_events))
    return records


def _events(file: Path) -> Mapping[str, list[dict[str, Any]]]:
    """Events by run; half-written lines of killed processes are ignored."""
    found: dict[str, list[dict[str, Any]]] = {}
    if not file.is_file():
        return found
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                event = json.loads(line)
                found.setdefault(event["run"], []).append({**event, "event": event["event"]})
            except (ValueError, KeyError, TypeError):
                continue
    return found


def _found(events: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """Whether each stage was found, not computed, when it was first needed."""
    found: dict[str, bool] = {}
    for event in events:
        if event["event"] == "stage":
            found.setdefault(Path(event["folder"]).name, bool(event["found"]))
    return found
