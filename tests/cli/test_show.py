"""Progress: bars on a terminal, lines elsewhere, nothing with --quiet."""

import io

import pytest
from rich.console import Console

from labelwise.cli import show as module
from labelwise.cli.show import Show
from labelwise.events import Task


def progress(show, *, terminal):
    show.console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
    with show, Task(show.on_event, "counting", total=30, unit="sheep") as task:
        task.advance(10)
        task.advance(20)
    return show.console.file.getvalue()


def test_bars_on_a_terminal():
    text = progress(Show(), terminal=True)
    assert "counting" in text
    assert "10 of 30 sheep" in text


def test_interrupted_work_is_not_done(monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0)
    show = Show()
    show.console = Console(file=io.StringIO(), width=100)

    def interrupted():
        with Task(show.on_event, "counting", total=30, unit="sheep") as task:
            task.advance(10)
            raise KeyboardInterrupt

    with show, pytest.raises(KeyboardInterrupt):
        interrupted()
    assert show.console.file.getvalue().endswith("counting: 10 of 30 sheep, 0 s, stopped\n")


def test_short_work_leaves_no_line_in_a_log():
    assert progress(Show(), terminal=False) == ""


def test_long_work_leaves_lines_in_a_log(monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0)
    assert progress(Show(), terminal=False) == "counting: 10 of 30 sheep, 0 s\ncounting: 30 of 30 sheep, 0 s, done\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_quiet(terminal):
    show = Show(quiet=True)
    assert progress(show, terminal=terminal) == ""
    show.remark("something")
    assert show.console.file.getvalue() == ""


def test_run_directory_events_are_told():
    show = Show()
    show.console = Console(file=io.StringIO(), width=200)
    show.on_event("waiting", {"stage": "tfidf", "reason": "another process is computing it"})
    show.on_event("stage", {"stage": "tfidf", "found": True, "seconds": 2.5})
    show.on_event("stage", {"stage": "tree", "found": False, "seconds": 2.5})
    assert show.console.file.getvalue().splitlines() == [
        "waiting for tfidf: another process is computing it",
        "tfidf: found in the run directory, computed before in 2.5 s",
    ]


def points(show, *, terminal):
    show.console = Console(file=io.StringIO(), force_terminal=terminal, width=200, color_system=None)
    with show:
        show.on_event("remark", {"text": "out of [memory]"})
        show.on_event("matcher", {"step": 0, "recall": 81.234})
        show.on_event("matcher", {"step": 20, "loss": 2.94938, "rate": 5.8333e-5})
        show.on_event("matcher", {"step": 1200, "recall": 90.0})
    return show.console.file.getvalue()


def test_points_of_the_training_curve_are_told_now_and_then(monkeypatch):
    told = points(Show(), terminal=False)
    assert told == "out of [memory]\nstep 0: 81.2 % of the held-out documents' clusters found\n"
    assert "step 1,200: 90.0 %" in points(Show(), terminal=True)  # seldom enough, and worth a line
    assert points(Show(quiet=True), terminal=False) == ""
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0)
    assert points(Show(), terminal=False).splitlines()[2:] == [
        "step 20: loss 2.949, learning rate 5.8e-05",
        "step 1,200: 90.0 % of the held-out documents' clusters found",
    ]
