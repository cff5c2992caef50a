"""The recipes of CONTRIBUTING.md: applied to a copy of the package, their tests pass."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the repository is not beside the tests")
TEXT = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
MOST_PLACES = 2
BLOCK = re.compile(r'^```(diff|python) title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def recipes():
    """The blocks of each recipe, by its title: (diff or python, file, text)."""
    _, _, part = TEXT.partition("\n## Recipes\n")
    part = re.split(r"^## ", part, maxsplit=1, flags=re.MULTILINE)[0]
    sections = re.split(r"^### (.*)\n", part, flags=re.MULTILINE)[1:]
    return {title: BLOCK.findall(text) for title, text in zip(sections[::2], sections[1::2], strict=True)}


def changed(source, diff):
    """A file after a change: lines with a minus are replaced by lines with a plus, `...` separates places."""
    for place in re.split(r"^\.\.\.\n", diff, flags=re.MULTILINE):
        lines = place.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] in " -")
        after = "".join(line[1:] for line in lines if line[0] in " +")
        assert before.strip(), f"a change without a line that is there already:\n{place}"
        assert source.count(before) == 1, f"these lines are not there, or not once:\n{before}"
        source = source.replace(before, after)
    return source


def apply(blocks, root):
    """Change files of the package, and write new ones."""
    for kind, name, text in blocks:
        file = root / name
        if kind == "diff":
            file.write_text(changed(file.read_text(encoding="utf-8"), text), encoding="utf-8")
        elif name.startswith("src/"):
            assert not file.exists(), f"{name} is there already"
            file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("title", recipes())
def test_a_recipe_is_two_places_and_a_test(title):
    blocks = recipes()[title]
    places = {name for _, name, _ in blocks if name.startswith("src/")}
    tests = [name for kind, name, _ in blocks if kind == "python" and name.startswith("tests/")]
    assert 1 <= len(places) <= MOST_PLACES
    assert len(tests) == 1
    assert blocks[-1][1] == tests[0]


@pytest.mark.parametrize("title", recipes())
def test_a_recipe_works(title, tmp_path):
    blocks = recipes()[title]
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    apply(blocks, tmp_path)
    script = tmp_path / "test.py"
    script.write_text(blocks[-1][2], encoding="utf-8")
    paths = os.pathsep.join([str(tmp_path / "src"), str(ROOT)])
    # Kernels as plain Python: nothing has to be compiled for a few numbers.
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow  # mypy reads the package, numpy and scipy anew
def test_all_recipes_together_are_typed(tmp_path):
    pytest.importorskip("mypy", reason="the extra dev has mypy")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for blocks in recipes().values():
        apply(blocks, tmp_path)
    names = {name for blocks in recipes().values() for _, name, _ in blocks if name.startswith("src/labelwise/")}
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", *sorted(names)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout


def test_a_change_is_applied_at_its_places():
    source = "a = 1\nb = 2\nc = 3\n"
    assert changed(source, "-a = 1\n+a = 4\n...\n b = 2\n+d = 5\n") == "a = 4\nb = 2\nd = 5\nc = 3\n"
    with pytest.raises(AssertionError, match="not there"):
        changed(source, "-x = 1\n+x = 2\n")
    with pytest.raises(AssertionError, match="not once"):
        changed(source * 2, "-a = 1\n+a = 2\n")
    with pytest.raises(AssertionError, match="without a line"):
        changed(source, "+a = 1\n")
