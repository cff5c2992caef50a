"""tools/mutation.py: which changes it makes, and that tests which see nothing let mutants survive."""

import ast
from pathlib import Path

import pytest

from tests.programs import loaded

TOOLS = Path(__file__).parents[2] / "tools"
pytestmark = pytest.mark.skipif(not TOOLS.is_dir(), reason="the tools are not beside the tests")
CODE = '''
def clipped(values: list[int | None], most: int = 3) -> "list | None":
    """Not changed: 1 < 2."""
    log.info("seen %d", 7)
    for value in values:
        if value > most and not value == 9:
            raise ValueError(value)
    return values
'''


@pytest.fixture(scope="module")
def mutation():
    with loaded(TOOLS / "mutation.py") as module:
        yield module


def all_changes(mutation, code):
    n_sites = len(list(mutation.sites(ast.parse(code))))
    for place in range(n_sites):
        for variant in range(len(list(mutation.changes(list(mutation.sites(ast.parse(code)))[place])))):
            tree = ast.parse(code)
            node = list(mutation.sites(tree))[place]
            new = list(mutation.changes(node))[variant]
            yield ast.unparse(ast.fix_missing_locations(mutation.Change(node, new).visit(tree)))


def test_each_change_is_another_program_and_none_is_missing(mutation):
    found = list(all_changes(mutation, CODE))
    assert len(set(found)) == len(found)
    assert ast.unparse(ast.parse(CODE)) not in found
    text = "\n".join(found)
    for wanted in (
        "most: int=4",
        "for value in ():",
        "if not (value > most and (not value == 9)):",
        "if value > most or not value == 9:",
        "if value >= most and (not value == 9):",
        "if value > most and value == 9:",
        "if value > most and (not value != 9):",
        "if value > most and (not value == 10):",
        "            pass",
        "return None",
    ):
        assert wanted in text, wanted
    assert len(found) == 10
    assert all("int | None" in one and "1 < 2" in one and "seen %d', 7" in one for one in found)


def test_every_part_has_modules_and_tests(mutation):
    package = mutation.ROOT / "src" / "labelwise"
    for name, part in mutation.PARTS.items():
        assert all(list(package.glob(pattern)) for pattern in part.modules), name
        assert all((mutation.ROOT / path).exists() for path in part.tests), name


def test_a_share_of_survivors_is_told(mutation, capsys):
    mutants = [mutation.Mutant("negatives", "m.py", place, 0, 1, "a < b", "a <= b") for place in range(4)]
    outcomes = dict(zip(mutants, (1, 1, None, 0), strict=True))
    assert mutation.report(["negatives"], outcomes, {"negatives": 4}) == {"negatives": 75.0}
    printed = capsys.readouterr().out
    assert "| negatives | 4 | 4 | 3 | 1 | 1 | 75.0 |" in printed
    assert "m.py:1: a < b  ->  a <= b" in printed
