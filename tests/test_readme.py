"""What the README shows must run."""

import re
from pathlib import Path

import pytest

from labelwise.cli import COMMANDS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8") if (ROOT / "README.md").is_file() else ""


def test_the_first_example_prints_a_metric(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    assert len(blocks[0].strip().splitlines()) <= 8
    exec(compile(blocks[0], "README.md", "exec"), {})
    precision, suggestions = capsys.readouterr().out.splitlines()
    assert 60 < float(precision) < 100
    assert suggestions.startswith("[('")


def test_every_command_shown_exists():
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    shown = set(re.findall(r"^labelwise ([\w-]+)", "\n".join(blocks), re.MULTILINE))
    assert shown
    assert shown <= set(COMMANDS)


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page):
    file = ROOT / page
    for target in re.findall(r"\]\((?!http)([^)#]+)", file.read_text(encoding="utf-8")):
        assert (file.parent / target).exists(), target
