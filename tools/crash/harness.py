"""What the programs of this folder share: small data and models, the commands under test, and what must hold after."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from injection import Ended, Plan, in_child

os.environ["OMP_NUM_THREADS"] = "1"  # fine-tuning has the same bits for the same number of threads of torch only

from labelwise import load_model
from labelwise.cli import main as command_line
from labelwise.storage import replacing
from labelwise.storage.leftovers import folders_with_temporary_paths
from labelwise.storage.run_directory import RunDirectory

TIMES = {"seconds", "cpu_seconds", "trained", "created", "peak_bytes", "gpu_peak_bytes", "generated_at"}
"""Entries of JSON files that differ between two runs of the same command."""
NOT_COMPARED = {"README.md"}
"""Model cards tell the time of training."""

Content = dict[str, str] | None


def toy_data(n_docs: int, n_labels: int, seed: int) -> tuple[list[str], list[list[str]]]:
    """Texts with the words of their labels, and labels."""
    chance = random.Random(seed)
    words = [f"w{number}" for number in range(300)]
    texts, labels = [], []
    for _ in range(n_docs):
        own = chance.sample(range(n_labels), chance.randint(1, 4))
        known = [words[(label * 5 + at) % 300] for label in own for at in range(5)]
        texts.append(" ".join([*known, *chance.choices(words, k=10)]))
        labels.append([f"label {label}" for label in own])
    return texts, labels


@dataclass(frozen=True)
class Setting:
    """A command in a folder, with what is there before."""

    name: str
    arguments: tuple[str, ...]
    """BASE and WORK stand for the folder of the common data and for that of the case."""
    destination: str
    """What the command writes, in WORK."""
    before: tuple[tuple[str, str], ...] = ()
    """Folders and files of BASE that are copied to WORK, with their names there."""


TRAIN = ("train", "BASE/shop", "WORK/model", "--preset", "parabel", "--threads", "1")
XT = (
    "train",
    "BASE/shop",
    "WORK/model",
    "--preset",
    "x-transformer",
    "--encoder",
    "BASE/bert",
    "--max-length",
    "32",
    "--epochs",
    "1",
)
SETTINGS = (
    Setting("train", (*TRAIN, "--overwrite"), "model", (("other", "model"),)),
    Setting("train to a new place", TRAIN, "model"),
    Setting("train --run-dir", (*TRAIN, "--run-dir", "WORK/run", "--overwrite"), "model", (("other", "model"),)),
    Setting("convert", ("convert", "BASE/shop", "WORK/data", "--to", "csv", "--overwrite"), "data", (("old", "data"),)),
    Setting(
        "convert to parquet",
        ("convert", "BASE/shop", "WORK/data", "--to", "parquet", "--compression", "zst", "--overwrite"),
        "data",
        (("old", "data"),),
    ),
    Setting(
        "predict --output",
        ("predict", "BASE/model", "BASE/shop", "--output", "WORK/p.jsonl", "--threads", "1"),
        "p.jsonl",
        (("old.jsonl", "p.jsonl"),),
    ),
    Setting(
        "predict to xz",
        ("predict", "BASE/model", "BASE/shop", "--output", "WORK/p.csv.xz", "--threads", "1"),
        "p.csv.xz",
    ),
    Setting(
        "add-labels",
        ("add-labels", "WORK/model", "BASE/new.jsonl", "--data", "BASE/shop"),
        "model",
        (("model", "model"),),
    ),
    Setting("update", ("update", "WORK/model", "BASE/more.jsonl"), "model", (("model", "model"),)),
    Setting(
        "export",
        ("export", "BASE/model", "WORK/small", "--ranker", "int8", "--overwrite"),
        "small",
        (("other", "small"),),
    ),
    Setting("runs --prune", ("runs", "WORK/run", "--prune"), "run", (("run", "run"),)),
    Setting(
        "shop",
        ("shop", "WORK/shop", "--products", "300", "--queries", "110", "--overwrite"),
        "shop",
        (("shop", "shop"),),
    ),
    Setting("report", ("report", "BASE/run", "--output", "WORK/report.html", "--bootstrap", "0"), "report.html"),
    Setting("stats", ("stats", "BASE/shop", "--output", "WORK/stats.json", "--plot", "WORK/tail.png"), "stats.json"),
)
ENCODER = (
    Setting("x-transformer", (*XT, "--run-dir", "WORK/run", "--overwrite"), "model", (("other", "model"),)),
    Setting("export to onnx", ("export", "BASE/xt", "WORK/onnx", "--overwrite"), "onnx", (("other", "onnx"),)),
)
"""Settings that need torch."""


class Bench:
    """The common data in `base`, and a folder `work` for each case."""

    def __init__(self, folder: Path, settings: tuple[Setting, ...]) -> None:
        self.base, self.work = folder / "base", folder / "work"
        self.folder = folder
        self.base.mkdir()
        self.settings = {one.name: one for one in settings}
        with contextlib.redirect_stdout(io.StringIO()):
            self._make_base()
        self.old: dict[str, Content] = {}
        self.new: dict[str, Content] = {}
        self.points: dict[str, list[str]] = {}
        self.seconds: dict[str, float] = {}

    def _make_base(self) -> None:
        """Data and models that the settings need, by the commands themselves."""
        base = self.base
        words = " ".join(word for one in self.settings.values() for word in one.arguments)
        needed = set(re.findall(r"BASE/([a-z.]+)", words))
        needed |= {source for one in self.settings.values() for source, _ in one.before}
        run(["shop", str(base / "shop"), "--products", "300", "--queries", "100"])
        run(["convert", str(base / "shop"), str(base / "old"), "--to", "jsonl"])
        fast = ["--preset", "parabel", "--threads", "1"]
        for name, seed in (("model", "1"), ("other", "2")):
            if name in needed:
                run(["train", str(base / "shop"), str(base / name), *fast, "--seed", seed])
        for seed in ("1", "2", "3") if "run" in needed else ():
            place, kept = str(base / "unused"), ["--run-dir", str(base / "run"), "--overwrite"]
            run(["train", str(base / "shop"), place, *fast, "--seed", seed, *kept])
        (base / "old.jsonl").write_text('{"id": "0", "labels": []}\n')
        new = [{"label": "cycling", "examples": ["a bell", "mirror"]}, {"label": "sport", "text": "mirror"}]
        (base / "new.jsonl").write_text("".join(json.dumps(one) + "\n" for one in new))
        lines = (base / "shop" / "test.jsonl").read_text().splitlines(keepends=True)
        (base / "more.jsonl").write_text("".join(lines[:12]))
        if any(one in ENCODER for one in self.settings.values()):
            sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
            from tests.features.tiny import write_model

            write_model(base / "bert", "bert")
            if "export to onnx" in self.settings:
                xt = [word.replace("BASE", str(base)).replace("WORK/model", str(base / "xt")) for word in XT]
                ended = in_child(lambda: run(xt), Plan(self.work))
                if ended.code != 0:
                    raise SystemExit(ended.err)

    def prepare(self, name: str) -> None:
        """The folder of a case as it is before the command."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        for source, target in self.settings[name].before:
            if (self.base / source).is_dir():
                shutil.copytree(self.base / source, self.work / target)
            else:
                shutil.copy(self.base / source, self.work / target)

    def command(self, name: str, plan: Plan | None = None, kill_after: float | None = None) -> Ended:
        """Run the command in a process of its own."""
        arguments = self.settings[name].arguments
        words = [one.replace("BASE", str(self.base)).replace("WORK", str(self.work)) for one in arguments]
        return in_child(lambda: run(words), plan or Plan(self.work), kill_after=kill_after)

    def present(self, name: str) -> Content:
        """What readers find at the destination."""
        place = replacing.present_place(self.work / self.settings[name].destination)
        return stages_of(place) if name == "runs --prune" else content(place)

    def measure(self, name: str) -> None:
        """Run the command undisturbed: what it must give, and its operations."""
        self.prepare(name)
        self.old[name] = self.present(name)
        report, begin = self.folder / "points.txt", time.monotonic()
        ended = self.command(name, Plan(self.work, report=report))
        self.seconds[name] = time.monotonic() - begin
        if ended.code != 0:
            raise SystemExit(f"{name} fails undisturbed: {ended.err}")
        self.points[name] = report.read_text().split("\n")[:-1]
        self.new[name] = self.present(name)

    def problems_now(self, name: str) -> Iterator[str]:
        """What is wrong after the command was disturbed: the destination must be the old or the new one, whole."""
        found = self.present(name)
        if name == "runs --prune":
            assert found is not None
            changed = [stage for stage, sums in found.items() if (self.old[name] or {}).get(stage) != sums]
            if changed or not set(self.new[name] or ()) <= set(found):
                yield f"results of the run directory are damaged or gone: {changed}"
            return
        if found not in (self.old[name], self.new[name]):
            yield f"the destination is neither old nor new: {describe(found, self.old[name], self.new[name])}"
        place = replacing.present_place(self.work / self.settings[name].destination)
        if found and (place / "labels.txt").is_file() and (place / "config.json").is_file():
            load_model(place)

    def problems_after_repeat(self, name: str) -> Iterator[str]:
        """What is wrong once the command is repeated: the result must be that of an undisturbed command, and clean."""
        was_complete = self.present(name) == self.new[name]
        ended = self.command(name)
        if ended.code != 0 and not (was_complete and "exists already" in ended.err):
            yield f"repeated, the command fails: {ended.err[-500:]}"
            return
        found = self.present(name)
        if found != self.new[name]:
            yield f"repeated, the result is another one: {describe(found, self.new[name])}"
        left = self.leftovers()
        if left:
            yield f"leftovers after the repeated command: {left}"
        if (self.work / "run").is_dir():
            RunDirectory(self.work / "run").stages()

    def leftovers(self) -> list[str]:
        """Temporary files in the folder of the case."""
        return [
            str(one.path.relative_to(self.work))
            for _, found in folders_with_temporary_paths(self.work)
            for one in found
        ]


def run(words: list[str]) -> int:
    """A command of labelwise in this process; its exit code."""
    try:
        with contextlib.suppress(ValueError):
            command_line([*words, "--quiet"])
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    return 0


def content(place: Path) -> Content:
    """The files of a folder with checksums, of JSON without times; None where there is nothing."""
    if not place.exists():
        return None
    files = [place] if place.is_file() else sorted(file for file in place.rglob("*") if file.is_file())
    found = {}
    for file in files:
        data = file.read_bytes()
        if file.name in NOT_COMPARED or file.name.endswith(".lock"):
            continue
        if file.suffix == ".json":
            data = json.dumps(_without_times(json.loads(data))).encode()
        if file.suffix == ".html":
            data = re.sub(rb"\d", b"0", data)[:200]
        found[str(file.relative_to(place))] = hashlib.sha256(data).hexdigest()[:16]
    return found


def stages_of(directory: Path) -> Content:
    """The results of a run directory with checksums of their files."""
    return {
        stage.name: hashlib.sha256(repr(content(stage)).encode()).hexdigest()[:16]
        for stage in (directory / "stages").glob("[!.]*")
    }


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_times(one) for name, one in value.items() if name not in TIMES}
    return [_without_times(one) for one in value] if isinstance(value, list) else value


def describe(found: Content, *expected: Content) -> str:
    """How contents differ, in a few words."""
    if found is None:
        return "nothing is there"
    lines = []
    for one in expected:
        differing = sorted(name for name in {*found, *(one or {})} if found.get(name) != (one or {}).get(name))
        lines.append(f"{len(differing)} differ: {differing[:4]}")
    return "; ".join(lines)


def summary(rows: dict[str, dict[str, int]], failures: list[str], as_json: bool) -> int:
    """Print the counts of each command and the failures; the exit code."""
    if as_json:
        print(json.dumps({"commands": rows, "failures": failures}, indent=1))
    else:
        for name, row in rows.items():
            print(f"{name:<22}" + "  ".join(f"{key} {value}" for key, value in row.items()))
        for failure in failures[:50]:
            print(f"FAILED {failure}")
        print(f"{len(failures)} failures")
    return 1 if failures else 0
