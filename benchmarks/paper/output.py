"""Output of the scripts: remarks, markdown, figures with intervals, JSON."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelwise import __version__
from labelwise.metrics import Comparison
from labelwise.storage import write_json

if TYPE_CHECKING:
    from common import Row


def say(line: str) -> None:
    """Print a remark to standard error; standard output has the results."""
    print(f"# {line}", file=sys.stderr, flush=True)


def print_event(name: str, values: Mapping[str, Any]) -> None:
    """Print remarks and long stages among the events of the library."""
    if name == "remark":
        say(str(values["text"]))
    elif name == "stage" and values["seconds"] > 2:
        say(f"{values['stage']}: {values['seconds']:.1f} s{', found' if values['found'] else ''}")


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [list(headings), ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figure(row: Row, metric: str) -> str:
    """A figure, and half the width of its interval."""
    if row.evaluation is None:
        return "not run"
    score = row.evaluation.scores[metric]
    if score.low is None or score.high is None:
        return f"{score.value:.2f}"
    return f"{score.value:.2f} ±{(score.high - score.low) / 2:.2f}"


def difference(found: Comparison | None, metric: str) -> str:
    """A difference, with its interval and p-value."""
    if found is None:
        return "not run"
    d = found[metric]
    return f"{d.difference:+.2f} ({d.low:+.2f} … {d.high:+.2f}; p {d.p_value:.3f})"


def machine() -> dict[str, Any]:
    """Versions and hardware, for the results file."""
    torch: Any = sys.modules.get("torch")
    gpu = torch.cuda.get_device_name() if torch is not None and torch.cuda.is_available() else None
    about = {"labelwise": __version__, "python": platform.python_version(), "cores": os.cpu_count(), "gpu": gpu}
    return {**about, "torch": None if torch is None else str(torch.__version__)}


def partial_file(file: Path) -> Path:
    """The file with finished rows while a script runs."""
    return file.with_name(f"{file.stem}.partial.json")


def finish(options: argparse.Namespace, results: Mapping[str, Any]) -> None:
    """Write the results into the file of --json."""
    if options.json is not None:
        write_json(options.json, results)
        partial_file(options.json).unlink(missing_ok=True)
        say(f"written: {options.json}")
