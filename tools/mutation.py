#!/usr/bin/env python3
"""Mutation testing: changes the code in small ways, one at a time, and counts the changes that the tests notice.

    python tools/mutation.py [PART ...] [--sample 150] [--seed 0] [--workers 2] [--json OUT]

A part is a few modules with the tests that are about them (`PARTS`). For each part a random sample of all mutants is
tested: a mutant is one changed comparison, operator, number, condition, loop or statement. A mutant is killed if a test
fails or does not end. For each mutant that survives, the place, the code and the changed code are printed. The exit
code is 1 if less than `--least` percent of a part's mutants are killed.

No test can kill a mutant that does the same as the code, such as a buffer that is one entry longer than needed. Those
that are known are left out, and their number is printed: `mutation_equivalent.toml` lists them, each with the reason.

Kernels are run as plain Python, everything else with the compiled kernels. A process that has imported numpy, scipy,
numba and pytest is forked for each mutant, in a copy of the repository, so that a mutant costs its tests only. (mutmut
replaces functions by switches that numba cannot compile; cosmic-ray starts a new interpreter for each mutant.)
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = ROOT / "tools" / "mutation_equivalent.toml"
PRELOADED = ("numpy", "scipy.sparse", "numba", "pytest", "hypothesis", "hypothesis.extra.numpy", "safetensors", "rich")


@dataclass(frozen=True)
class Part:
    """Modules, and the tests that are about them."""

    modules: tuple[str, ...]
    """Patterns below `src/labelwise`."""
    tests: tuple[str, ...]
    plain: bool = False
    """Whether kernels run as plain Python."""


PARTS = {
    "storage": Part(("storage/*.py",), ("tests/storage", "tests/models/test_base.py")),
    "validation": Part(
        ("storage/checks.py", "rank/level_checks.py"),
        (
            *("tests/storage/test_check_limits.py", "tests/storage/test_checks.py", "tests/storage/test_objects.py"),
            *("tests/rank/test_level_checks.py", "tests/models/test_saved_labels.py"),
            "tests/models/test_model_folders.py",
        ),
    ),
    "metrics": Part(
        ("metrics/*.py",), ("tests/metrics/test_options.py", "tests/metrics/test_table.py", "tests/metrics")
    ),
    "metrics-kernels": Part(("kernels/metrics.py",), ("tests/kernels/test_metrics.py", "tests/metrics"), plain=True),
    "negatives": Part(("rank/negatives.py",), ("tests/rank/test_negatives.py",)),
    "solver": Part(
        ("kernels/solver.py",), ("tests/kernels/test_solver_steps.py", "tests/kernels/test_solver.py"), plain=True
    ),
    "beam": Part(("kernels/beam.py",), ("tests/kernels/test_beam.py",), plain=True),
}

SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
"""Each operator with the one that replaces it."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    part: str
    module: str
    place: int
    """The number of the changed node among the `sites` of the module."""
    variant: int
    """Which of the node's `changes`."""
    line: int
    before: str
    after: str
    text: str = ""
    """The line of the module on which the change begins, without indentation."""

    @property
    def source(self) -> str:
        """The changed module."""
        tree = ast.parse((ROOT / self.module).read_text(encoding="utf-8"))
        node = next(islice(sites(tree), self.place, None))
        new = next(islice(changes(node), self.variant, None))
        return ast.unparse(ast.fix_missing_locations(Change(node, new).visit(tree)))

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.before}  ->  {self.after}"


@dataclass(frozen=True)
class Equivalent:
    """Changes of one line of a module after which the code does the same, and why."""

    module: str
    """Below `src/labelwise`."""
    line: str
    """The line as it stands in the module, without indentation."""
    why: str
    changes: tuple[str, ...] = ()
    """Such as "6  ->  7"; all changes of the line if empty."""

    def covers(self, mutant: Mutant) -> bool:
        """Whether a mutant is one of them."""
        same = (f"src/labelwise/{self.module}", self.line) == (mutant.module, mutant.text)
        return same and (not self.changes or f"{mutant.before}  ->  {mutant.after}" in self.changes)


def equivalents() -> list[Equivalent]:
    """The changes that are known to change nothing."""
    with EQUIVALENT.open("rb") as file:
        entries = tomllib.load(file)["equivalent"]
    return [Equivalent(**{**entry, "changes": tuple(entry.get("changes", ()))}) for entry in entries]


# ---------------------------------------------------------------------------------------------------- making mutants


def changes(node: ast.AST) -> Iterator[ast.AST | None]:
    """What may stand in place of a node; None removes a statement."""
    match node:
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                swapped = [*node.ops[:place], SWAPS[type(operator)](), *node.ops[place + 1 :]]
                yield ast.Compare(node.left, swapped, node.comparators)
        case ast.BinOp() if type(node.op) in SWAPS:
            yield ast.BinOp(node.left, SWAPS[type(node.op)](), node.right)
        case ast.AugAssign() if type(node.op) in SWAPS:
            yield ast.AugAssign(node.target, SWAPS[type(node.op)](), node.value)
            yield None
        case ast.BoolOp():
            yield ast.BoolOp(SWAPS[type(node.op)](), node.values)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()) if node.value + 1 != node.value:
            yield ast.Constant(node.value + 1)
        case ast.If() | ast.While():
            yield type(node)(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.IfExp():
            yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.For():
            yield ast.For(node.target, ast.Tuple([], ast.Load()), node.body, node.orelse)
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Return(value=ast.expr()) if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield ast.Return(ast.Constant(None))
        case ast.Raise() | ast.Expr(value=ast.Call()):
            yield None


class Change(ast.NodeTransformer):
    """Replaces one node of a tree."""

    def __init__(self, old: ast.AST, new: ast.AST | None) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        """The node, or what replaces it."""
        if node is self.old:
            return ast.copy_location(self.new or ast.Pass(), node)
        return self.generic_visit(node)


def sites(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that may change: code, without annotations, decorators and what only type checkers read."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _unseen(child):
                continue
            yield child
            yield from sites(child)


def _unseen(node: ast.AST) -> bool:
    """Whether a change of a node cannot or need not be seen: types, names of a module, log messages."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.AnnAssign) and isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias":
        return True
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith(("log.", "warnings."))


def mutants_of(part: str, module: Path) -> list[Mutant]:
    """All mutants of a module."""
    name, found = str(module.relative_to(ROOT)), []
    code = module.read_text(encoding="utf-8")
    lines = ["", *(line.strip() for line in code.splitlines())]
    for place, node in enumerate(sites(ast.parse(code))):
        for variant, new in enumerate(changes(node)):
            after = "nothing" if new is None else _first_line(ast.copy_location(new, node))
            at = getattr(node, "lineno", 0)
            found.append(Mutant(part, name, place, variant, at, _first_line(node), after, lines[at]))
    return found


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).splitlines()[0][:100]


# --------------------------------------------------------------------------------------------------- testing mutants


class Copy:
    """A copy of the repository in which one mutant at a time is tested."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("src", "tests", "tools"):
            shutil.copytree(ROOT / name, folder / name, symlinks=True)  # keeps the times that numba's cache compares
        shutil.copy2(ROOT / "pyproject.toml", folder)

    def start(self, part: Part, mutant: Mutant | None) -> int:
        """Begin the tests of a mutant, or of the code as it is, in a child process; its process id."""
        if mutant is not None:
            target = self.folder / mutant.module
            target.unlink()
            target.write_text(mutant.source, encoding="utf-8")
        child = os.fork()
        if child == 0:
            _run_tests(self.folder, part)
        return child

    def restore(self, mutant: Mutant) -> None:
        """The module as it was."""
        target = self.folder / mutant.module
        target.unlink()
        shutil.copy2(ROOT / mutant.module, target)


def _run_tests(folder: Path, part: Part) -> None:
    """In a child process: run the tests and leave with pytest's exit code."""
    os.setsid()
    os.chdir(folder)
    sys.path[:0] = [str(folder / "src"), str(folder)]
    os.environ["PYTHONPATH"] = str(folder / "src")
    output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if part.plain:
        importlib.import_module("numba").config.DISABLE_JIT = 1
    pytest = importlib.import_module("pytest")
    options = ["-x", "-q", "-n0", "-p", "no:cacheprovider"]
    for known in ("ignore:overflow:RuntimeWarning", "ignore::pytest.PytestAssertRewriteWarning"):
        options += ["-W", known]
    code = 2
    try:  # the child leaves by os._exit, so that nothing of the parent process runs a second time
        code = int(pytest.main([*options, "-m", "not gpu and not slow and not data", *part.tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait(child: int, limit_s: float) -> int | None:
    """The exit code of a child process, or None where the child did not end in time."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def run_all(mutants: list[Mutant], limits: dict[str, float], copies: list[Copy], show: Callable[[int], None]) -> dict:
    """The outcome of each mutant: its exit code, or None where its tests did not end."""
    outcomes: dict[Mutant, int | None] = {}
    running: dict[int, tuple[Copy, Mutant, float]] = {}
    waiting, free = list(reversed(mutants)), list(copies)
    while waiting or running:
        while waiting and free:
            copy, mutant = free.pop(), waiting.pop()
            running[copy.start(PARTS[mutant.part], mutant)] = (copy, mutant, time.monotonic() + limits[mutant.part])
        for child, (copy, mutant, end) in list(running.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if not ended and time.monotonic() < end:
                continue
            if not ended:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
            outcomes[mutant] = os.waitstatus_to_exitcode(status) if ended else None
            del running[child]
            copy.restore(mutant)
            free.append(copy)
            show(len(outcomes))
        time.sleep(0.02)
    return outcomes


def limits_of(names: list[str], copy: Copy) -> dict[str, float]:
    """How long the tests of a mutant may take: several times as long as those of the code as it is."""
    limits = {}
    for name in names:
        start = time.monotonic()
        code = wait(copy.start(PARTS[name], None), 900)
        seconds = time.monotonic() - start
        if code != 0:
            output = (copy.folder / "output.txt").read_text(encoding="utf-8")[-2000:]
            sys.exit(f"{output}\nthe tests of {name} fail without any change (exit code {code})")
        limits[name] = 10 + 5 * seconds
        print(f"{name}: its tests take {seconds:.1f} s", file=sys.stderr, flush=True)
    return limits


def report(
    names: list[str], outcomes: dict[Mutant, int | None], totals: dict[str, int], left_out: dict[str, int]
) -> dict[str, float]:
    """Print a table and the survivors; the percentage of killed mutants of each part."""
    print(
        "\n| part | mutants | left out | tested | killed | of these by time | survived | killed % |"
        "\n|---|---|---|---|---|---|---|---|"
    )
    shares = {}
    for name in names:
        found = [code for mutant, code in outcomes.items() if mutant.part == name]
        survived, endless = found.count(0), found.count(None)
        shares[name] = 100 * (len(found) - survived) / max(len(found), 1)
        killed = len(found) - survived
        counts = (totals[name], left_out[name], len(found), killed, endless, survived)
        print(f"| {name} | {' | '.join(map(str, counts))} | {shares[name]:.1f} |")
    print("\nSurvivors:")
    for mutant, code in outcomes.items():
        if code == 0:
            print(f"  {mutant}")
    return shares


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--sample", type=int, default=150, help="mutants of each part; 0 tests all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--least", type=float, default=85.0, help="percentage of a part's mutants that must be killed")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    names = args.parts or list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"there is no part {unknown[0]}; there are: {', '.join(PARTS)}")
    for module in PRELOADED:
        importlib.import_module(module)
    every = {name: _mutants(name) for name in names}
    known = equivalents()
    tested = {name: [one for one in every[name] if not any(same.covers(one) for same in known)] for name in names}
    sampled = [mutant for name in names for mutant in _sample(tested[name], args.sample, args.seed)]
    with tempfile.TemporaryDirectory() as folder:
        copies = [Copy(Path(folder) / str(number)) for number in range(args.workers)]
        limits = limits_of(names, copies[0])

        def show(done: int) -> None:
            print(f"\r{done} of {len(sampled)} mutants", end="", file=sys.stderr, flush=True)

        outcomes = run_all(sampled, limits, copies, show)
    totals = {name: len(every[name]) for name in names}
    shares = report(names, outcomes, totals, {name: totals[name] - len(tested[name]) for name in names})
    if args.json:
        rows = [{**asdict(mutant), "exit_code": code} for mutant, code in outcomes.items()]
        args.json.write_text(json.dumps({"seed": args.seed, "killed %": shares, "mutants": rows}, indent=1))
    return int(min(shares.values()) < args.least)


def _mutants(name: str) -> list[Mutant]:
    package = ROOT / "src" / "labelwise"
    modules = sorted({path for pattern in PARTS[name].modules for path in package.glob(pattern)})
    return [mutant for module in modules for mutant in mutants_of(name, module)]


def _sample(mutants: list[Mutant], size: int, seed: int) -> list[Mutant]:
    return mutants if not 0 < size < len(mutants) else random.Random(seed).sample(mutants, size)


if __name__ == "__main__":
    sys.exit(main())
