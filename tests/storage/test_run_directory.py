"""The run directory: found again, resumed, shared by processes, pruned."""

import errno
import json
import multiprocessing
import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
from filelock import FileLock

from labelwise import UsageError, storage
from labelwise.config import LinearTreeConfig, TfidfConfig
from labelwise.errors import StorageError
from labelwise.storage import check_writable
from labelwise.storage.leftovers import beside, hold, release
from labelwise.storage.run_directory import RunDirectory, open_run


@contextmanager
def holding(path):
    handle = hold(path)
    try:
        yield
    finally:
        release(handle)


def save(value, path):
    storage.save(path, kind="numbers", arrays={"n": value})


def load(path):
    return storage.load(path, kind="numbers").arrays["n"]


class Counter:
    """Computes a value and counts how often it had to."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return np.arange(5)


def stage(run, compute, name="numbers", **inputs):
    return run.stage(name, inputs=inputs, compute=compute, save=save, load=load)


def test_an_identical_stage_is_found_again(tmp_path):
    compute = Counter()
    for threads in (1, 2):
        with RunDirectory(tmp_path / "run") as run:
            value = stage(run, compute, config=LinearTreeConfig(threads=threads), texts=["a", "b"])
            assert value.tolist() == [0, 1, 2, 3, 4]
    assert compute.calls == 1
    with RunDirectory(tmp_path / "run") as run:
        stage(run, compute, config=TfidfConfig(min_df=2), texts=["a", "b"])
        stage(run, compute, config=TfidfConfig(), texts=["a", "c"])
        stage(run, compute, name="other", config=TfidfConfig(), texts=["a", "b"])
        run.stage("numbers", inputs={"config": TfidfConfig(), "texts": ["a", "b"]}, compute=compute, save=save,
                  load=load, version=2)  # fmt: skip
    assert compute.calls == 5


def test_a_failed_stage_leaves_nothing_and_is_computed_again(tmp_path):
    def fail():
        raise KeyboardInterrupt

    def half(value, path):
        Path(path).mkdir()
        raise OSError("disk full")

    with pytest.raises(KeyboardInterrupt), RunDirectory(tmp_path) as run:
        stage(run, fail, n=1)
    with pytest.raises(OSError, match="disk full"), RunDirectory(tmp_path) as run:
        run.stage("numbers", inputs={"n": 1}, compute=Counter(), save=half, load=load)
    assert not list((tmp_path / "stages").iterdir())
    compute = Counter()
    with RunDirectory(tmp_path) as run:
        stage(run, compute, n=1)
    assert compute.calls == 1
    assert [record["finished"] is None for record in RunDirectory(tmp_path).runs()] == [True, True, False]


def test_a_damaged_result_is_computed_again(tmp_path, caplog):
    compute = Counter()
    with RunDirectory(tmp_path) as run:
        stage(run, compute, n=1)
    file = next(tmp_path.glob("stages/*/result/arrays.safetensors"))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with RunDirectory(tmp_path) as run:
        assert stage(run, compute, n=1).tolist() == [0, 1, 2, 3, 4]
    assert compute.calls == 2
    assert "computing it again" in caplog.text


def test_checkpoints_of_a_finished_stage_are_removed(tmp_path):
    left = []

    def compute(fail=False):
        left.append(run.scratch("numbers", {"n": 1}))
        left[0].mkdir(parents=True, exist_ok=True)
        (left[0] / "checkpoint").write_text("half of it")
        if fail:
            raise KeyboardInterrupt
        return np.arange(5)

    with pytest.raises(KeyboardInterrupt), RunDirectory(tmp_path) as run:
        stage(run, lambda: compute(fail=True), n=1)
    assert (left[0] / "checkpoint").is_file()  # a later run goes on from there
    with RunDirectory(tmp_path) as run:
        other = run.scratch("numbers", {"n": 2})
        other.mkdir()
        stage(run, compute, n=1)
    assert list((tmp_path / "scratch").iterdir()) == [other]


def test_events_are_logged_and_passed_on(tmp_path):
    heard = []
    with RunDirectory(tmp_path, on_event=lambda name, values: heard.append(name)) as run:
        stage(run, Counter(), n=1)
        stage(run, Counter(), n=1)
        run.on_event("progress", {"done": 1, "finished": False})
        run.on_event("progress", {"done": 2, "finished": True, "label": "é"})
    assert "é" in (tmp_path / "events.jsonl").read_text(encoding="utf-8")  # for people who read it
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert heard == ["stage", "stage", "progress", "progress"]
    assert [(line["event"], line.get("found"), line.get("done")) for line in lines] == [
        ("stage", False, None),
        ("stage", True, None),
        ("progress", None, 2),
    ]


def test_listing_and_pruning(tmp_path):
    for n in (1, 2, 3):
        with RunDirectory(tmp_path, purpose=f"run {n}") as run:
            stage(run, Counter(), name="shared")
            stage(run, Counter(), n=n)
    directory = RunDirectory(tmp_path)
    records = directory.stages()
    assert sorted((record.name, record.n_runs) for record in records) == [
        ("numbers", 1), ("numbers", 1), ("numbers", 1), ("shared", 3),
    ]  # fmt: skip
    assert all(record.n_bytes > 100 and record.seconds >= 0 for record in records)
    (tmp_path / "stages" / ".numbers-0123.abc.partial").mkdir()  # as a killed process leaves it
    would = directory.prune(keep=2, dry_run=True)
    assert len(would) == 2
    assert len(directory.stages()) == 4
    assert [folder.name for folder, _ in directory.prune(keep=2)] == [folder.name for folder, _ in would]
    assert len(directory.stages()) == 3
    assert [run["purpose"] for run in directory.runs()] == ["run 2", "run 3"]
    directory.prune(keep=0)
    assert directory.stages() == directory.runs() == []


def test_a_living_run_is_not_pruned(tmp_path):
    with RunDirectory(tmp_path) as run:
        stage(run, Counter(), n=1)
        with RunDirectory(tmp_path) as later:
            stage(later, Counter(), n=2)
        assert RunDirectory(tmp_path).prune(keep=1) == []
    assert len(RunDirectory(tmp_path).prune(keep=1)) == 1


def slow_stage(path, started, calls):
    def compute():
        started.set()
        with Path(calls).open("a") as file:
            file.write("x")
        time.sleep(0.3)
        return np.arange(5)

    with RunDirectory(path) as run:
        stage(run, compute, n=1)


def test_processes_share_one_computation(tmp_path):
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    workers = [
        context.Process(target=slow_stage, args=(tmp_path / "run", started, tmp_path / "calls")) for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert (tmp_path / "calls").read_text() == "x"
    assert len(RunDirectory(tmp_path / "run").runs()) == 3


def forever(path, started):
    def save_slowly(value, folder):
        save(value, folder)
        started.set()
        time.sleep(60)

    with RunDirectory(path) as run:
        run.stage("numbers", inputs={"n": 1}, compute=Counter(), save=save_slowly, load=load)


def test_a_killed_process_frees_its_stage(tmp_path):
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    worker = context.Process(target=forever, args=(tmp_path, started))
    worker.start()
    assert started.wait(60)
    os.kill(worker.pid, signal.SIGKILL)
    worker.join(60)
    assert len(list((tmp_path / "stages").glob(".*.partial"))) == 1
    assert len(list((tmp_path / "runs").glob("*.json"))) == 1
    would_go = RunDirectory(tmp_path).prune(keep=1, dry_run=True)
    assert [path.name.endswith(".partial") for path, _ in would_go] == [True]
    compute = Counter()
    with RunDirectory(tmp_path) as run:  # the next save of the same stage takes away what the killed one left
        stage(run, compute, n=1)
    assert compute.calls == 1
    assert RunDirectory(tmp_path).prune(keep=1) == []
    assert [path.name for path in (tmp_path / "stages").iterdir()] == [RunDirectory(tmp_path).stages()[0].folder.name]


def test_prune_removes_what_killed_processes_left_everywhere(tmp_path):
    with RunDirectory(tmp_path) as run:
        stage(run, Counter(), n=1)
        name = run.stages()[0].folder.name
        mine = run.path / "locks" / f"{run._open()['id']}.lock"
        for path in ("runs/old.json", "stages/numbers-0123", "scratch/matcher-0123"):
            beside(tmp_path / path).mkdir(parents=True)
        held = beside(tmp_path / "stages" / "numbers-4567")
        held.mkdir()
        (tmp_path / "locks" / "20260101-000000-000000-1.lock").touch()
        (tmp_path / "locks" / "numbers-0123456789abcdef.lock").touch()
        (tmp_path / "scratch" / "matcher-0123456789abcdef" / "state").mkdir(parents=True)
        with holding(held):
            run.prune(keep=1)
        assert held.is_dir()
        held.rmdir()
        assert mine.exists()
        assert (tmp_path / "locks" / f"{name}.lock").exists()
        assert sorted(file.name for file in tmp_path.rglob("*.partial")) == []
        assert sorted(file.name for file in (tmp_path / "locks").iterdir()) == sorted([mine.name, f"{name}.lock"])
        assert (tmp_path / "scratch" / "matcher-0123456789abcdef").is_dir()  # a run to come may continue there
    assert not mine.exists()
    RunDirectory(tmp_path).prune(keep=0)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["events.jsonl"]
    assert not (tmp_path / "scratch" / "matcher-0123456789abcdef").exists()


def test_wrong_use_is_told(tmp_path):
    with pytest.raises(UsageError, match="is used inside"):
        stage(RunDirectory(tmp_path), Counter(), n=1)
    with pytest.raises(UsageError, match="is not a run directory"):
        RunDirectory(tmp_path / "nothing").stages()
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"), RunDirectory(tmp_path / "file"):
        pass
    with pytest.raises(UsageError, match="keep is -1"):
        RunDirectory(tmp_path).prune(keep=-1)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "x.json").write_text("{")
    with pytest.raises(StorageError, match="cannot be read"):
        RunDirectory(tmp_path).runs()


def test_memory_and_the_command_are_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/somewhere/bin/labelwise", "train", "data", "model"])
    with RunDirectory(tmp_path) as run:
        stage(run, Counter(), n=1)
    monkeypatch.setattr("sys.argv", ["/somewhere/my-script.py", "--password", "secret"])
    with RunDirectory(tmp_path) as run:
        stage(run, Counter(), n=1)
    first, second = RunDirectory(tmp_path).runs()
    assert first["command"] == ["train", "data", "model"]
    assert first["folder"] == str(Path.cwd())
    assert second["command"] is None  # another program's words are its own
    (record,) = RunDirectory(tmp_path).stages()
    assert record.peak_bytes is None or record.peak_bytes > 1 << 20
    assert record.gpu_peak_bytes is None


@pytest.mark.parametrize("part", ["runs", "stages", "locks"])
def test_a_folder_that_cannot_be_listed_is_not_taken_for_an_empty_one(tmp_path, monkeypatch, part):
    for n in (1, 2):
        with RunDirectory(tmp_path) as run:
            stage(run, Counter(), n=n)
    files = sorted(tmp_path.rglob("*.json"))
    listing = Path.iterdir

    def broken(folder):
        if folder == tmp_path / part:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
        return listing(folder)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "iterdir", broken)
        with pytest.raises(StorageError, match=f"{part} cannot be read"):
            RunDirectory(tmp_path).prune(keep=1)
    if part != "locks":
        assert sorted(tmp_path.rglob("*.json")) == files
    assert len(RunDirectory(tmp_path).runs()) == (1 if part == "locks" else 2)


def test_what_a_killed_test_of_the_destination_left_is_removed_by_the_next_run(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("labelwise.storage.write_errors.remove", lambda path: None)
        check_writable(tmp_path / "run" / "runs")
    assert len(list(tmp_path.iterdir())) == 1
    with RunDirectory(tmp_path / "run"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["/bin/labelwise", "train"], ["train"]),
        (["/bin/labelwise.exe", "train"], ["train"]),
        (["/lib/labelwise/__main__.py", "a", "b"], ["a", "b"]),
        (["/lib/other/__main__.py", "--password", "x"], None),
        (["/lib/labelwise/other.py", "--password", "x"], None),
        (["", "x"], None),
        ([], None),
    ],
)
def test_only_words_of_labelwise_are_recorded(tmp_path, monkeypatch, words, wanted):
    monkeypatch.setattr("sys.argv", words)
    with RunDirectory(tmp_path):
        pass
    assert RunDirectory(tmp_path).runs()[0]["command"] == wanted


def test_a_run_that_cannot_be_recorded_is_closed(tmp_path, monkeypatch):
    def refuse(path, value):
        raise StorageError("no")

    monkeypatch.setattr("labelwise.storage.run_directory.write_json", refuse)
    run = RunDirectory(tmp_path)
    with pytest.raises(StorageError, match="no"), run:
        raise AssertionError("the run did not begin")
    assert list((tmp_path / "locks").iterdir()) == []
    with pytest.raises(UsageError, match="is used inside"):
        run.scratch("x", {})


@pytest.mark.parametrize("error", [None, KeyError("of the block")])
def test_the_first_error_of_a_run_is_told(tmp_path, monkeypatch, error):
    def refuse(path, value):
        raise StorageError("the end cannot be recorded")

    def end():
        monkeypatch.setattr("labelwise.storage.run_directory.write_json", refuse)
        if error is not None:
            raise error

    with pytest.raises(StorageError if error is None else KeyError, match=r"recorded|block"), RunDirectory(tmp_path):
        end()
    assert list((tmp_path / "locks").iterdir()) == []  # closed all the same


def test_what_a_run_records(tmp_path):
    with RunDirectory(tmp_path, purpose="try") as run:
        open_record = json.loads(next((tmp_path / "runs").glob("*.json")).read_text())
        stage(run, Counter(), n=1)
        stage(run, Counter(), n=1)
        stage(run, Counter(), n=2)
    (record,) = run.runs()
    assert open_record["finished"] is None
    assert record["finished"] is not None
    assert record["purpose"] == "try"
    assert len(record["stages"]) == 2  # each once
    assert record["stages"][0].startswith("numbers-")
    assert len(record["stages"][0]) == len("numbers-") + 16
    with pytest.raises(UsageError, match='a run directory is used inside "with RunDirectory'):
        run.on_event("stage", {})


def test_a_stage_is_described_beside_its_result(tmp_path):
    events = []
    with RunDirectory(tmp_path, on_event=lambda name, values: events.append(dict(values))) as run:
        stage(run, lambda: time.sleep(0.02) or np.arange(3), n=1)
        stage(run, Counter(), n=1)
    (record,) = run.stages()
    about = json.loads((record.folder / "stage.json").read_text())
    assert about["seconds"] >= 0.02 > about["cpu_seconds"] >= 0
    assert about["seconds"] < 5
    assert about["key"].startswith(record.folder.name.removeprefix("numbers-"))
    assert (record.seconds, record.cpu_seconds, record.created) == (
        about["seconds"],
        about["cpu_seconds"],
        about["created"],
    )
    assert [(one["found"], one["seconds"]) for one in events] == [(False, about["seconds"]), (True, about["seconds"])]
    assert events[0]["folder"] == str(record.folder)
    assert record.last_used == run.runs()[0]["started"]


def test_results_are_listed_by_their_age(tmp_path):
    folders = []
    for n in (1, 2):
        with RunDirectory(tmp_path) as run:
            stage(run, Counter(), n=n)
            folders.append(tmp_path / "stages" / run._open()["stages"][0])
    for folder, created in zip(folders, ("2026-02-02", "2026-01-01"), strict=True):
        about = json.loads((folder / "stage.json").read_text())
        del about["peak_bytes"], about["gpu_peak_bytes"]  # as earlier versions wrote it
        (folder / "stage.json").write_text(json.dumps({**about, "created": created}))
    found = RunDirectory(tmp_path).stages()
    assert [record.folder for record in found] == folders[::-1]
    assert found[0].peak_bytes is found[0].gpu_peak_bytes is None
    for file in (tmp_path / "runs").iterdir():
        file.unlink()
    assert [(record.n_runs, record.last_used) for record in RunDirectory(tmp_path).stages()] == [
        (0, "2026-01-01"),
        (0, "2026-02-02"),
    ]


def test_a_held_stage_is_waited_for_and_told(tmp_path):
    heard = []
    with RunDirectory(tmp_path, on_event=lambda name, values: heard.append(name)) as run:
        stage(run, Counter(), n=1)
        name = run._open()["stages"][0]
        Timer(0.2, release, [hold(tmp_path / "locks" / f"{name}.lock")]).start()
        stage(run, Counter(), n=1)
    assert heard == ["stage", "waiting", "stage"]
    (waiting,) = (line for line in events_of(tmp_path) if line["event"] == "waiting")
    assert waiting["stage"] == name
    assert waiting["reason"] == "another process is computing it"


def events_of(path):
    return [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]


def test_a_lock_file_that_was_pruned_is_made_again(tmp_path, monkeypatch):
    real, calls = FileLock.acquire, []

    def acquire(self, *arguments, **options):
        held = real(self, *arguments, **options)
        if "numbers" in self.lock_file:
            calls.append(options)
            if len(calls) == 1:
                Path(self.lock_file).unlink()
        return held

    monkeypatch.setattr(FileLock, "acquire", acquire)
    with RunDirectory(tmp_path) as run:
        stage(run, Counter(), n=1)
        assert len(calls) == 2
        assert len(list((tmp_path / "locks").glob("numbers-*.lock"))) == 1


def test_pruning_tells_sizes_and_keeps_what_is_asked_for(tmp_path):
    for n in (1, 2, 3):
        with RunDirectory(tmp_path, purpose=str(n)) as run:
            stage(run, Counter(), n=n)
    sizes = {record.folder: record.n_bytes for record in run.stages()}
    assert run.prune(keep=3) == run.prune(keep=9) == []
    ((folder, n_bytes),) = run.prune(keep=2, dry_run=True)
    assert n_bytes == sizes[folder] > 0
    assert len(run.runs()) == 3
    assert run.prune(keep=2) == [(folder, n_bytes)]
    assert len(list((tmp_path / "locks").iterdir())) == 2
    assert [one["purpose"] for one in run.runs()] == ["2", "3"]
    removed = [path for path, _ in run.prune()]
    assert removed == [path for path in sizes if path != folder and not path.exists()]
    assert len(run.stages()) == len(removed) == 1


def test_checkpoints_of_an_unfinished_run_stay(tmp_path):
    def fail(run):
        run.scratch("numbers", {"n": 1}).mkdir(parents=True)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), RunDirectory(tmp_path) as run:
        fail(run)
    assert run.prune() == []
    with RunDirectory(tmp_path):
        pass
    ((path, _),) = run.prune()
    assert path.name.startswith("numbers-")
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_result_in_use_is_not_pruned(tmp_path):
    with RunDirectory(tmp_path) as run:
        stage(run, Counter(), n=1)
    (record,) = run.stages()
    lock = tmp_path / "locks" / f"{record.folder.name}.lock"
    with holding(lock):
        assert run.prune(keep=0) == []
        assert record.folder.is_dir()
        assert lock.exists()
    assert run.prune(keep=0) == [(record.folder, record.n_bytes)]
    assert not record.folder.exists()
    assert not lock.exists()


def test_open_run(tmp_path):
    with open_run(None, None) as run:
        assert run is None
    heard = []
    with open_run(tmp_path, lambda name, values: heard.append(name)) as run:
        assert run.purpose == "fit"
        stage(run, Counter(), n=1)
        with open_run(run, None) as same:
            assert same is run
        stage(run, Counter(), n=1)  # still open
    assert heard == ["stage", "stage"]
