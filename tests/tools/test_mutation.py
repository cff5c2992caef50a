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
    assert list(all_changes(mutation, "def none(a=1e18):\n    return None")) == []
    assert all("int | None" in one and "1 < 2" in one and "seen %d', 7" in one for one in found)


def test_every_part_has_modules_and_tests(mutation):
    package = mutation.ROOT / "src" / "labelwise"
    for name, part in mutation.PARTS.items():
        assert all(list(package.glob(pattern)) for pattern in part.modules), name
        assert all((mutation.ROOT / path).exists() for path in part.tests), name


def test_a_share_of_survivors_is_told(mutation, capsys):
    mutants = [mutation.Mutant("negatives", "m.py", place, 0, 1, "a < b", "a <= b") for place in range(4)]
    outcomes = dict(zip(mutants, (1, 1, None, 0), strict=True))
    assert mutation.report(["negatives"], outcomes, {"negatives": 7}, {"negatives": 3}) == {"negatives": 75.0}
    printed = capsys.readouterr().out
    assert "| negatives | 7 | 3 | 4 | 3 | 1 | 1 | 75.0 |" in printed
    assert "m.py:1: a < b  ->  a <= b" in printed


def test_an_equivalent_change_is_left_out_by_its_line(mutation):
    mutants = [mutation.Mutant("beam", "src/labelwise/m.py", 0, 0, 1, "6", "7", line) for line in ("a = 6", "b = 6")]
    some = [mutation.Equivalent("m.py", "a = 6", "a buffer", changes) for changes in ((), ("6  ->  7",), ("5  ->  6",))]
    assert [[one.covers(mutant) for mutant in mutants] for one in some] == [[True, False], [True, False], [False] * 2]


def test_every_equivalent_change_stands_in_the_code_and_has_a_reason(mutation):
    known = mutation.equivalents()
    assert len(set(known)) == len(known)
    found = {}
    for one in known:
        file = mutation.ROOT / "src" / "labelwise" / one.module
        mutants = found.setdefault(one.module, mutation.mutants_of("any", file))
        own = {f"{mutant.before}  ->  {mutant.after}" for mutant in mutants if one.covers(mutant)}
        assert own, f"{one.module} has no line {one.line!r} that can be changed"
        assert own >= set(one.changes), one
        assert len(one.why) > 10, one
