#!/usr/bin/env python3
"""Counts properties of the code that make it easy or hard to read, and exits with 1 if a limit is exceeded.

    python tools/structure.py             a line for each count, with its limit
    python tools/structure.py --list      also the place of each finding

Counted are: entries at the top of the package; public names; kind checks (code that asks which kind of model,
configuration or matcher it has); classes and modules that share a name; functions over 60 lines and with over 8
parameters; lines of Markdown pages over 120 characters; imports that point upwards (`tests/test_layers.py` has the
layers). `tests/test_structure.py` keeps the limits.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "labelwise"
sys.path.insert(0, str(ROOT))

MOST_LINES, MOST_PARAMETERS, WIDEST = 60, 8, 120
CLASSES = frozenset(
    (
        *("LinearTree", "LinearTreeConfig", "LinearTreeGrowth", "XTransformer", "XTransformerConfig"),
        *("XTransformerGrowth", "Ensemble", "EnsembleConfig", "ModelConfig", "SINGLE_CONFIGS", "MODEL_CONFIGS"),
        *("Matcher", "FineTunedMatcher", "FrozenMatcher", "ExportedMatcher", "SharedMatcherView"),
    )
)
"""The classes of models, configurations and matchers, and what belongs to one of them."""
KINDS = frozenset(("linear-tree", "x-transformer", "ensemble"))
"""What models and configurations call their kind."""
PARTS = frozenset(
    (
        *("matcher", "matcher_", "members", "members_", "models_", "trees", "trees_", "tree_", "labels_", "ranker_"),
        *("rule_", "weights_", "over_", "encoder", "encoder_", "history_", "label_head", "joint", "combine"),
        *("score_transform", "n_trees", "fine_tune"),
    )
)
"""Attributes that only some models, configurations or matchers have."""


ASKED = frozenset(("config", "model", "matcher", "member", "preset", "self", "settings"))
"""What code calls models, configurations and matchers."""


@dataclass(frozen=True)
class Figure:
    """A count, with the places of what was counted."""

    name: str
    places: list[str]
    total: int | None = None
    most: float | None = None
    """The limit: a count, or a share of the total where it is below 1; None where there is none."""

    @property
    def value(self) -> str:
        """The count as text, with the share if there is a total."""
        count = len(self.places)
        return f"{count}" if self.total is None else f"{count} of {self.total} ({100 * count / self.total:.1f} %)"

    @property
    def good(self) -> bool:
        """Whether the count is within the limit."""
        if self.most is None:
            return True
        whole = self.total if self.total is not None and self.most < 1 else 1
        return len(self.places) <= self.most * whole


def sources() -> list[Path]:
    """All Python files of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def place(path: Path, line: int | None = None) -> str:
    """A file of the repository, with a line number."""
    name = path.relative_to(ROOT).as_posix()
    return name if line is None else f"{name}:{line}"


def functions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All functions and methods."""
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield path, node


def module_functions() -> Iterator[tuple[Path, ast.FunctionDef]]:
    """All functions at the top level of modules."""
    for path in sources():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                yield path, node


def top_level_entries() -> Figure:
    """Files and packages in `src/labelwise`."""
    entries = sorted(entry.name for entry in PACKAGE.iterdir() if entry.name != "__pycache__")
    return Figure("entries at the top of the package", entries, most=28)


def public_names() -> Figure:
    """Names that `import labelwise` offers, without the version."""
    sys.path.insert(0, str(ROOT / "src"))
    import labelwise

    return Figure("public names", [name for name in labelwise.__all__ if name != "__version__"], most=36)


def kind_checks() -> Figure:
    """Places that ask what kind of model, configuration or matcher something is, where a method could answer."""
    found = []
    for path in sources():
        found += [place(path, line) for line in kind_questions(ast.parse(path.read_text(encoding="utf-8")))]
    return Figure("checks of the kind of a model, configuration or matcher", found, most=10)


def kind_questions(tree: ast.AST) -> Iterator[int]:
    """Lines that ask for the class or the kind of a model, a configuration or a matcher.

    These are `isinstance` and `issubclass` with one of `CLASSES`; comparisons with such a class or with one of `KINDS`;
    patterns of `match` with either; `hasattr` and `getattr` with one of `PARTS`; comparisons of the type of a thing
    that is called as in `ASKED`, whatever with; and the question whether there is an encoder, which tells linear models
    from others: `encoders()` as a condition, and `encoder` compared with None.
    """
    conditions = {id(node) for asked in ast.walk(tree) for node in asked_in(asked)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
            asked = node.func.id in ("isinstance", "issubclass") and named(node.args[1]) & CLASSES
            if asked or (node.func.id in ("hasattr", "getattr") and texts(node.args[1]) & PARTS):
                yield node.lineno
        elif id(node) in conditions and isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "encoders":
            yield node.lineno
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            plain = [side for side in sides if not isinstance(side, ast.Call)]
            asked = any(texts(side) & KINDS or named(side) & CLASSES for side in plain)
            if asked or any(map(is_type_of_model, sides)) or is_encoder_or_none(sides):
                yield node.lineno
        elif isinstance(node, ast.MatchClass | ast.MatchValue):
            found = node.cls if isinstance(node, ast.MatchClass) else node.value
            if named(found) & CLASSES or texts(found) & KINDS:
                yield found.lineno


def asked_in(node: ast.AST) -> list[ast.expr]:
    """The conditions of a statement or of an expression."""
    if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
        return [node.test]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [node.operand]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.comprehension):
        return node.ifs
    of_any = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("any", "all", "bool")
    return [getattr(one, "elt", one) for one in node.args] if of_any else []


def is_type_of_model(node: ast.AST) -> bool:
    """Whether an expression is the type of a model, a configuration or a matcher: `type(config)`."""
    if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "type":
        return False
    (asked,) = node.args
    return getattr(asked, "attr", getattr(asked, "id", "")) in ASKED


def is_encoder_or_none(sides: list[ast.expr]) -> bool:
    """Whether the sides of a comparison are the encoder of some model and None."""
    first, last = sides[0], sides[-1]
    of_model = isinstance(first, ast.Attribute) and first.attr == "encoder" and getattr(first.value, "id", "") != "self"
    return of_model and isinstance(last, ast.Constant) and last.value is None


def named(node: ast.AST) -> set[str]:
    """The names and attributes in an expression."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return names | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def texts(node: ast.AST) -> set[str]:
    """The strings in an expression."""
    return {part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)}


def repeated_classes() -> Figure:
    """Classes with the name of another class."""
    places = defaultdict(list)
    for path in sources():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(place(path, node.lineno))
    return Figure(
        "class names used more than once", [f"{k}: {', '.join(v)}" for k, v in places.items() if len(v) > 1], most=0
    )


def repeated_modules() -> Figure:
    """More than two files with the same name, and functions with the name of a package."""
    places = defaultdict(list)
    for path in sources():
        if path.stem not in ("__init__", "__main__"):
            places[path.stem].append(place(path))
    found = [f"{name}: {', '.join(where)}" for name, where in places.items() if len(where) > 2]
    packages = {path.parent.name for path in PACKAGE.rglob("__init__.py")}
    found += [
        f"{place(path)}: a function with the name of a package"
        for path, node in module_functions()
        if node.name in packages
    ]
    return Figure("file names used more than twice, and functions named like a package", found, most=0)


def long_functions() -> Figure:
    """Functions that are longer than a screen."""
    every = list(functions())
    found = [
        f"{place(path, node.lineno)} {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for path, node in every
        if node.end_lineno is not None and node.end_lineno - node.lineno + 1 > MOST_LINES
    ]
    return Figure(f"functions over {MOST_LINES} lines", found, total=len(every), most=0.01)


def wide_functions() -> Figure:
    """Functions with too many parameters."""
    every, found = list(functions()), []
    for path, node in every:
        arguments = node.args
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        n_parameters = len([name for name in names if name not in ("self", "cls")])
        if n_parameters > MOST_PARAMETERS:
            found.append(f"{place(path, node.lineno)} {node.name}: {n_parameters} parameters")
    return Figure(f"functions with over {MOST_PARAMETERS} parameters", found, total=len(every), most=0.01)


def wide_lines() -> Figure:
    """Lines of Markdown that are too long."""
    found = []
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")]):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if len(line) > WIDEST:
                found.append(f"{place(path, number)}: {len(line)}")
    return Figure(f"lines of pages over {WIDEST} characters", found, most=0)


def upward_imports() -> Figure:
    """Imports that `tests/test_layers.py` does not allow."""
    from tests.test_layers import upward

    return Figure("imports that point upwards", list(upward()), most=0)


FIGURES: tuple[Callable[[], Figure], ...] = (
    top_level_entries,
    public_names,
    kind_checks,
    repeated_classes,
    repeated_modules,
    long_functions,
    wide_functions,
    wide_lines,
    upward_imports,
)


def main() -> int:
    """Print all counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="also print the place of each finding")
    options = parser.parse_args()
    good = True
    for count in FIGURES:
        figure = count()
        good = good and figure.good
        limit = (
            ""
            if figure.most is None
            else f" (limit {figure.most:.0%})"
            if 0 < figure.most < 1
            else f" (limit {figure.most:g})"
        )
        print(f"{'ok ' if figure.good else 'BAD'}  {figure.name}: {figure.value}{limit}")
        if options.list and (not figure.good or figure.most == 0 or figure.total is not None):
            print("".join(f"       {found}\n" for found in figure.places), end="")
    return int(not good)


if __name__ == "__main__":
    raise SystemExit(main())
