"""What is printed: names with control characters are shown, and a terminal does not obey them."""

import io
import json

import pytest
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from labelwise import LinearTree
from labelwise.cli.console import SafeConsole
from labelwise.cli.show import Show
from labelwise.errors import UsageError
from tests.cli.test_show import progress

EVIL = "\x1b]0;PWN\x07\x1b[31mred\r\x9b2J\u202eexe.\x7f"
SHOWN = r"\u001b]0;PWN\u0007\u001b[31mred\r\u009b2J\u202eexe.\u007f"
OBEYED = tuple("\x07\r\x7f\x9b\u202e")


def printed(thing, *, terminal=True):
    console = SafeConsole(file=io.StringIO(), force_terminal=terminal, width=200, color_system=None)
    console.print(thing)
    return console.file.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_strings_tables_and_texts(terminal):
    assert printed(f":apple: [bold]{EVIL}[/]", terminal=terminal) == f":apple: [bold]{SHOWN}[/]\n"
    table = Table(title=Text(EVIL))
    table.add_column(Text(EVIL))
    table.add_row(Text(EVIL))
    for thing in (table, Text(EVIL)):
        text = printed(thing, terminal=terminal)
        assert "\x1b" not in text
        assert not set(OBEYED) & set(text)
        assert "\\u001b[31mred" in text


def test_colours_and_progress_bars_stay():
    console = SafeConsole(
        file=io.StringIO(), force_terminal=True, width=80, color_system="standard", legacy_windows=False
    )
    console.print(Text("red", style="red"))
    with Progress(console=console) as bars:
        bars.add_task("work", total=3)
    text = console.file.getvalue()
    assert "\x1b[31mred\x1b[0m" in text
    assert "\x1b[?25l" in text  # no cursor while the bar moves
    assert "\\u001b" not in text


def test_a_remark_moves_the_bars_out_of_the_way():
    show = Show()
    show.console = SafeConsole(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    with show:
        show.on_event("progress", {"task": "work", "done": 1, "total": 3, "unit": "", "finished": False})
        show._bars.refresh()
        before = len(show.console.file.getvalue())
        show.remark("something")
    text = show.console.file.getvalue()[before:]
    assert "\x1b[2K" in text.partition("something")[0]  # the line of the bar is erased first
    assert "work" in text.partition("something")[2]  # and drawn again below


def test_a_task_with_a_hostile_name(monkeypatch):
    show = Show()
    monkeypatch.setattr(
        "tests.cli.test_show.Task", lambda on_event, name, **more: Named(on_event, EVIL + "[/x]", **more)
    )
    assert "[/x]" in progress(show, terminal=True)


def Named(on_event, name, **more):
    from labelwise.events import Task

    return Task(on_event, name, **more)


def test_an_output_that_cannot_hold_a_letter():
    console = SafeConsole(file=io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    with pytest.raises(UsageError, match=r"the output is written as latin-1, which has no '\\u0142'; set PYTHONIO"):
        console.print("łódź")


@pytest.fixture(scope="module")
def evil_model(tmp_path_factory):
    texts = ["the cat sat", "a dog barks"] * 20
    folder = tmp_path_factory.mktemp("evil") / "model"
    LinearTree().fit(texts, [[EVIL, "=1+1"], ["dog [/b]"]] * 20).save(folder)
    return folder


@pytest.fixture
def evil_data(tmp_path):
    folder = tmp_path / "evil [b]"
    folder.mkdir()
    rows = [{"id": EVIL, "text": "the cat sat", "labels": [EVIL, "=1+1"]}, {"text": "a dog", "labels": ["dog [/b]"]}]
    for split in ("train", "test"):
        lines = [json.dumps({**row, "id": f"{row.get('id', '')}{n}"}) for n in range(5) for row in rows]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_every_command_that_prints_names(labelwise, evil_model, evil_data, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("the cat sat\n")
    new = tmp_path / "new.jsonl"
    new.write_text(json.dumps({"label": f"{EVIL} new [/b]", "text": "a bell"}) + "\n")
    grown = tmp_path / "grown"
    for arguments in (
        ("predict", evil_model, texts),
        ("predict", evil_model, texts, "--json"),
        ("explain", evil_model, f"the cat sat {EVIL}"),
        ("explain", evil_model, "the cat", "--json"),
        ("explain", evil_model, "the cat", "--label", EVIL + "x"),
        ("add-labels", evil_model, new, "--output", grown),
        ("remove-labels", grown, "--list"),
        ("stats", evil_data),
        ("evaluate", evil_model, evil_data, "--bootstrap", 0),
        ("stats", tmp_path / EVIL),
        ("train", tmp_path / EVIL, tmp_path / "m"),
        ("predict", tmp_path / EVIL, texts),
        ("convert", evil_data, tmp_path / "out", "--format", EVIL),
        (EVIL,),
    ):
        result = labelwise(*arguments)
        shown = result.out + result.err
        assert "Traceback" not in shown
        assert not {"\x1b", *OBEYED} & set(shown), arguments
    assert json.loads(labelwise("predict", evil_model, texts, "--json").out)["labels"][0][0] in (EVIL, "=1+1")


def test_files_are_exact_and_spreadsheets_on_request(labelwise, evil_model, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("the cat sat\n")
    exact, safe = tmp_path / "exact.csv", tmp_path / "safe.csv"
    assert labelwise("predict", evil_model, texts, "--output", exact).code == 0
    assert labelwise("predict", evil_model, texts, "--output", safe, "--spreadsheet-safe").code == 0
    assert f'"{EVIL}"' in exact.read_bytes().decode()
    assert '"=1+1"' in exact.read_text()
    assert '"\'=1+1"' in safe.read_text()
    for other in ((), ("--output", tmp_path / "x.jsonl")):
        result = labelwise("predict", evil_model, texts, "--spreadsheet-safe", *other)
        assert (result.code, "give --output FILE.csv" in result.err) == (2, True)
