"""`labelwise.show_progress`: work that is started from Python shows how far it is."""

import io
import logging

import pytest
from rich.console import Console

import labelwise
from labelwise import LinearTree, events, load_dataset
from labelwise.cli import progress as module
from labelwise.cli import show as lines
from labelwise.events import Task, heard


@pytest.fixture
def shown(monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BEFORE", 0.0)
    monkeypatch.setattr(lines, "SECONDS_BETWEEN_LINES", 0.0)

    def start(*, terminal=False):
        progress = labelwise.show_progress()
        progress.console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
        return progress

    yield start
    assert not events._listeners


def output(progress):
    return progress.console.file.getvalue()


def count():
    with Task(None, "counting", total=30, unit="sheep") as task:
        task.advance(10)
        task.advance(20)


def test_lines_in_a_log_and_nothing_after_the_end(shown):
    with shown() as progress:
        count()
    count()
    assert output(progress) == "counting: 10 of 30 sheep, 0 s\ncounting: 30 of 30 sheep, 0 s, done\n"


def test_bars_on_a_terminal_end_with_the_work(shown):
    progress = shown(terminal=True)
    with Task(None, "counting", total=30, unit="sheep") as task:
        task.advance(10)
        assert progress._bars is not None
    assert progress._bars is None
    progress.stop()
    assert "10 of 30 sheep" in output(progress)


def test_short_work_is_not_shown(shown, monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BEFORE", 60.0)
    for terminal in (False, True):
        with shown(terminal=terminal) as progress:
            count()
        assert output(progress) == ""


def test_models_reading_and_predictions_are_shown_with_their_remarks(shown, tmp_path):
    texts, labels = ["a red shoe", "a blue mug"] * 10, [["shoe"], ["mug"]] * 10
    (tmp_path / "data.jsonl").write_text('{"text": "a", "labels": ["b"]}\n' * 3, encoding="utf-8")
    with shown() as progress:
        LinearTree(hold_out=0.0).fit(texts, labels, run_dir=tmp_path / "run").predict(texts)
        labelwise.load_dataset(tmp_path / "data.jsonl")
    said = output(progress)
    assert said.count("hold_out is 0, so nothing is calibrated") == 1
    for task in ("tf-idf: ", "training the labels", "reading "):
        assert task in said


def test_a_listener_of_ones_own_comes_first(shown):
    heard_events = []
    with shown() as progress, Task(lambda name, values: heard_events.append(name), "counting") as task:
        task.advance()
    assert heard_events == ["progress", "progress"]
    assert output(progress) == ""
    assert heard(None) is None


def test_the_latest_listener_hears(shown):
    with shown() as first, shown() as second:
        count()
    assert (output(first), bool(output(second))) == ("", True)
    first.stop()  # again: nothing happens


def test_a_warning_is_shown_once(shown, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # those of pytest
    (tmp_path / "d.csv").write_text("text,labels\nred shoe,shoe\n,mug\nblue mug,mug\n")
    with shown() as progress:
        data = load_dataset(tmp_path / "d.csv", skip_bad_rows=True)
        LinearTree().fit(data.texts, data.Y, label_names=data.labels)
    assert output(progress).count("predictions are scores") == 1
    assert output(progress).count("dropped 1 bad row") == 1
    assert capfd.readouterr() == ("", "")
    LinearTree().fit(["red shoe", "blue mug"], [["shoe"], ["mug"]])
    assert capfd.readouterr().err.count("predictions are scores") == 1  # as before
