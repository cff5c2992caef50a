"""What a run directory tells of a run."""

import json

import pytest

from labelwise import UsageError, storage
from labelwise.report import write_report
from labelwise.report.record import read_records
from labelwise.storage.run_directory import RunDirectory
from tests.report.reading import read


def stage(run, name, n):
    return run.stage(
        name,
        inputs={"n": n},
        compute=lambda: n,
        save=lambda value, path: storage.write_json(path, value),
        load=storage.read_json,
    )


@pytest.fixture
def directory(tmp_path):
    """Two processes: the first fine-tunes and goes back once, the second finds a stage of it."""
    path = tmp_path / "run"
    with RunDirectory(path, purpose="fit") as run:
        stage(run, "tfidf", {"a": 1})
        for step, loss in ((20, 2.0), (40, 1.5), (20, 1.9), (60, 1.0)):
            run.on_event("matcher", {"step": step, "loss": loss, "rate": 1e-4 / step})
        run.on_event("matcher", {"step": 60, "recall": 71.5})
        run.on_event("remark", {"text": "the loss rose: going back to step 0 with 0.25 of the learning rate"})
    with RunDirectory(path, purpose="fit") as run:
        stage(run, "tfidf", {"a": 1})
        stage(run, "index", {"a": 2})
    files = sorted((path / "runs").glob("*.json"))
    second = json.loads(files[1].read_text())
    old, new = second["id"], second["id"] + "9"  # another process
    files[1].unlink()
    storage.write_json(path / "runs" / f"{new}.json", {**second, "id": new})
    log = path / "events.jsonl"
    log.write_text(log.read_text().replace(old, new) + '{"half a li', encoding="utf-8")
    return path


def test_runs_stages_and_events(directory):
    first, second = read_records(directory)
    assert [(stage.name, found) for stage, found in first.stages] == [("tfidf", False)]
    assert [(stage.name, found) for stage, found in second.stages] == [("tfidf", True), ("index", False)]
    assert [point["step"] for point in first.curve()] == [20, 40, 20, 60, 60]
    assert second.curve() == []
    assert first.seconds is not None
    assert [words for _, words in second.timeline()] == ["stage tfidf: found", "stage index: kept"]


def test_the_page_of_a_run_alone(directory, tmp_path):
    first, _ = read_records(directory)
    page = read(write_report(directory, tmp_path / "a.html", record=first))
    training = page.text("training")
    assert "went back 1 times" in training
    assert "the loss rose: going back to step 0" in training
    assert "The weights of step 60 were kept." in training
    charts = page.all("svg", role="img")
    assert [attributes["aria-label"] for attributes, _ in charts] == [
        "loss by step",
        "recall, % by step",
        "learning rate by step",
    ]
    # What was given up is drawn, but not as what was kept.
    kinds = [a["class"] for a, _ in page.all("path")]
    assert kinds == ["line faint dashed", "line one", "line one", "line faint dashed", "line one"]
    latest = read(write_report(directory, tmp_path / "b.html"))
    assert "found" in latest.text("time")
    assert "Nothing was fine-tuned" in latest.text("training")


def test_a_run_that_did_not_finish(tmp_path):
    with pytest.raises(KeyboardInterrupt), RunDirectory(tmp_path / "run"):
        raise KeyboardInterrupt
    page = read(write_report(tmp_path / "run", tmp_path / "a.html"))
    assert "did not finish" in page.text("time")
    assert "The run finished no stage." in page.text("time")


def test_an_empty_directory(tmp_path):
    (tmp_path / "runs").mkdir()
    with pytest.raises(UsageError, match="is an empty run directory; train with --run-dir"):
        read_records(tmp_path)
