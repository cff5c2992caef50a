"""The README is short, and what it shows is true."""

import re
import shlex
from pathlib import Path

import pytest

from labelwise.cli import COMMANDS, main
from tests.docs.blocks import read_blocks
from tests.docs.session import alike

ROOT = Path(__file__).parents[1]
FILE = ROOT / "README.md"
README = FILE.read_text(encoding="utf-8") if FILE.is_file() else ""
FIRST_SCREEN = 40
"""Lines."""


def test_it_is_short():
    lines = README.splitlines()
    assert len(lines) <= 100
    assert max(map(len, lines)) <= 120


def test_the_first_screen_has_picture_installation_example_and_output():
    screen = "\n".join(README.splitlines()[:FIRST_SCREEN])
    places = [screen.find(part) for part in ("![", "pip install", "```python", "```text")]
    assert places == sorted(places)
    assert places[0] > 0


def test_the_first_example_prints_what_is_shown(capsys):
    block = next(block for block in read_blocks(FILE) if block.kind == "python")
    assert len(block.text.splitlines()) <= 8
    exec(compile(block.text, "README.md", "exec"), {})
    assert alike(block.output, capsys.readouterr().out)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """The file my.csv in an empty folder."""
    kinds = (
        ("printer out of paper on floor", "printer; office"),
        ("no network in room", "network"),
        ("slow laptop", "pc"),
    )
    rows = "".join(f"{kinds[i % 3][0]} {i},{kinds[i % 3][1]}\n" for i in range(90))
    (tmp_path / "my.csv").write_text(f"title,tags\n{rows}")
    monkeypatch.chdir(tmp_path)


def test_from_a_csv_file_to_tags_on_the_command_line(table, capsys):
    block = next(block for block in read_blocks(FILE) if block.kind == "sh" and "my.csv" in block.text)
    for line in block.text.splitlines():
        name, *arguments = shlex.split(line, comments=True)[1:]
        if name != "serve":
            with pytest.raises(SystemExit) as ended:
                main([name, *arguments])
            assert ended.value.code == 0, capsys.readouterr().err
    assert capsys.readouterr().out.splitlines()[-1].startswith(("printer", "office"))


def test_from_a_csv_file_to_tags_with_pandas(table, capsys):
    pytest.importorskip("pandas")
    block = next(block for block in read_blocks(FILE) if block.kind == "python" and "my.csv" in block.text)
    exec(compile(block.text, "README.md", "exec"), {})
    assert re.match(r"\[\('(printer|office)', 0\.", capsys.readouterr().out)


def test_every_command_shown_exists():
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    shown = set(re.findall(r"^labelwise ([\w-]+)", "\n".join(blocks), re.MULTILINE))
    assert shown
    assert shown <= set(COMMANDS)


def test_figures_are_quotations():
    """Every figure of the table and of the speed stands in the results, and in bold or not."""
    results = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "results").glob("*.md"))
    precisions = re.findall(r"\d+\.\d+ \d+\.\d+ \d+\.\d+", README)
    assert len(precisions) == 12
    assert [one for one in precisions if one not in results] == []
    (ours, theirs) = re.search(r"([\d.]+) CPU seconds, PECOS XR-Linear ([\d.]+)", README).groups()
    for seconds in (ours, theirs):
        assert any(round(float(one), 1) == float(seconds) for one in re.findall(r"\d+\.\d{3}", results))


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page):
    file = ROOT / page
    for target in re.findall(r"\]\((?!http)([^)#]+)", file.read_text(encoding="utf-8")):
        assert (file.parent / target).exists(), target
