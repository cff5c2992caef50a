"""All code of the documentation runs, and prints what the pages show."""

import shutil

import pytest

from tests.docs.blocks import RUN, Block, needed_modules, read_blocks
from tests.docs.session import ENVIRONMENT, ROOT, Session, alike, commands

DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "results")
"""Not docs/results: their measurements took hours and other data; make results-check computes some of them again."""
NOT_RUN = 12
"""Blocks that are never run, of all pages: few, and each with a reason."""


def runs():
    """Every page with code; pages with slow blocks a second time, for -m slow."""
    for page in PAGES:
        blocks = [block for block in read_blocks(page) if block.kind in RUN and block.not_run is None]
        name = str(page.relative_to(DOCS))
        if any(not block.slow and not block.hidden for block in blocks):
            yield pytest.param(page, False, id=name)
        if any(block.slow for block in blocks):
            yield pytest.param(page, True, id=f"{name}-slow", marks=pytest.mark.slow)


def run_page(page, folder, *, slow=False):
    session = Session(page, folder)
    try:
        for block in read_blocks(page):
            if block.not_run is None and (slow or not block.slow):
                session.run(block)
    finally:
        session.close()


@pytest.mark.filterwarnings("default")  # readers see warnings as warnings
@pytest.mark.skipif(not PAGES, reason="the documentation is not there")
@pytest.mark.skipif(shutil.which("bash") is None, reason="the commands are those of a shell")
@pytest.mark.parametrize(("page", "slow"), list(runs()))
def test_the_code_of_a_page_runs(page, slow, tmp_path, monkeypatch):
    for module in needed_modules(page):
        pytest.importorskip(module, reason=f"the page needs {module}; see Makefile for an environment with it")
    monkeypatch.chdir(tmp_path)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    run_page(page, tmp_path, slow=slow)


def test_few_blocks_are_not_run():
    skipped = [block for page in PAGES for block in read_blocks(page) if block.not_run is not None]
    assert len(skipped) <= NOT_RUN
    assert all(len(block.not_run.split()) > 2 for block in skipped)


# ---------------------------------------------------------------------- the runner itself


@pytest.fixture
def page(tmp_path):
    """Writes a page and reads its blocks."""

    def write(text):
        file = tmp_path / "page.md"
        file.write_text(text, encoding="utf-8")
        return file

    return write


def test_blocks_are_found_with_their_lines_and_marks(page):
    blocks = read_blocks(
        page(
            "# A\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n<!-- setup:sh\ntouch a\n-->\n"
            "<!-- slow -->\n<!-- times -->\n    ```sh\n    ls\n    ```\n<!-- not run: needs a GPU -->\n```sh\nx\n```\n"
            '```toml title="a.toml"\n```\n'
        )
    )
    assert blocks == [
        Block("python", "print(1)\n", 4, output="1\n"),
        Block("text", "1\n", 8),
        Block("sh", "touch a\n", 12, hidden=True),
        Block("sh", "ls\n", 17, slow=True, times=True),
        Block("sh", "x\n", 21, not_run="needs a GPU"),
        Block("toml", "", 24, title="a.toml"),
    ]


def test_code_in_an_unknown_language_is_refused(page):
    with pytest.raises(ValueError, match=r"page.md:2: a block of 'bash'"):
        read_blocks(page("```bash\nls\n```\n"))


def test_commands_have_their_outputs():
    text = "$ one \\\n  two\nsaid\nmore\n$ three\n"
    assert commands(text, prompted=True) == [(0, "one \\\n  two", "said\nmore\n"), (4, "three", None)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "page.md:2 shows"),
        ("```console\n$ echo a\nb\n```\n", "page.md:2 shows"),
        ("```sh\ntrue\nfalse\n```\n", "page.md:3: false ended with 1"),
        ("```sh\nlabelwise stats nowhere\n```\n", "page.md:2: labelwise stats nowhere ended with"),
    ],
)
def test_a_wrong_page_is_reported(page, tmp_path, monkeypatch, text, message):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    file = page(text)
    with pytest.raises(AssertionError, match=message):
        run_page(file, tmp_path / "work")


@pytest.mark.parametrize(
    ("want", "got", "times", "same"),
    [
        ("a  b\nc", "a b c\n", False, True),
        ("P@1 76.00", "P@1 76.01", False, True),
        ("P@1 76.00", "P@1 76.33", False, False),
        ("77.6 %", "77.7 %", False, True),
        ("77.6 %", "78.0 %", False, False),
        ("[('a', 0.93)]", "[('a', 0.935)]", False, True),
        ("[('a', 0.93)]", "[('b', 0.93)]", False, False),
        ("7 documents", "8 documents", False, False),
        ("| 0.51 s | 197 |", "| 12 s | 1,204 |", True, True),
        ("| 0.51 s | 197 |", "| 0.51 min | 197 |", True, False),
        ("one ... 1.50", "one two three 1.50", False, True),
        ("one ... 1.50", "one two three 1.60", False, False),
        ("┌────┐", "┌──┐", False, True),
        ("a.b (c)", "axb (c)", False, False),
    ],
)
def test_outputs_are_compared(want, got, times, same):
    assert alike(want, got, times=times) is same


def test_ellipsis_and_files_and_names(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = page(
        '```csv title="a.csv"\nx,y\n```\n```python\nfrom pathlib import Path\n\nn = 3\n```\n'
        '```python\nprint(Path("a.csv").read_text(), n)\n```\n\n```text\nx,...\n 3\n```\n'
        f"```console\n$ echo $COLUMNS a b  # why\n{ENVIRONMENT['COLUMNS']}...b\n```\n"
    )
    run_page(file, tmp_path)
