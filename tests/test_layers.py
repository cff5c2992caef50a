"""The layers of the package: an import points to a layer further down, never up, never to a neighbour in its layer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "labelwise"

LAYERS = (
    ("cli",),
    ("integrations",),
    ("comparison", "report", "serve", "sklearn", "tuning"),
    ("explanations", "incremental"),
    ("models",),
    ("match",),
    ("rank",),
    ("datasets", "index"),
    ("data", "metrics"),
    ("features", "predictions"),
    ("kernels", "storage"),
    ("config", "engines", "events"),
    ("errors", "types"),
)
"""The packages and modules of `labelwise`, the uppermost layer first.

A module may import its own package and all layers below, at the top of the file or inside of a function. Above all
layers are `labelwise/__init__.py`, which imports a public name when the name is first used, and `__main__.py`; other
modules import `labelwise` itself for `__version__` alone. Imports under `TYPE_CHECKING` do not count.
"""

EXCEPTIONS = {
    ("models/base.py", "integrations"): (
        "Hugging Face users expect save_pretrained, from_pretrained and push_to_hub as methods of a model; the code of "
        "the hub is imported when such a method is called"
    ),
}
"""(importing file, imported package) that point upwards all the same, with the reason."""

LEVELS = {name: level for level, layer in enumerate(reversed(LAYERS)) for name in layer}
TOP = len(LAYERS)


def is_for_types(node: ast.AST) -> bool:
    """Whether a statement is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in (
        node.test.id if isinstance(node.test, ast.Name) else getattr(node.test, "attr", "")
    )


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below a node, except for those under `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and is_for_types(child):
            for other in child.orelse:
                yield other
                yield from statements(other)
        else:
            yield child
            yield from statements(child)


def imported(node: ast.AST) -> list[str]:
    """The full names of the modules that a node imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"line {node.lineno}: write the whole name of the imported module"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
        return [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return []


def imports(package: Path = PACKAGE) -> Iterator[tuple[str, int, str]]:
    """File, line and imported entry of the package, for every import of one entry by another."""
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        own = relative.parts[0].removesuffix(".py")
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            targets = {name.removeprefix("labelwise").lstrip(".") for name in imported(node) if is_own(name)}
            for target in sorted({name.split(".")[0] for name in targets} - {own, "__version__"}):
                yield relative.as_posix(), getattr(node, "lineno", 0), target


def is_own(name: str) -> bool:
    """Whether a module is the package or one of its modules."""
    return name == "labelwise" or name.startswith("labelwise.")


def upward(package: Path = PACKAGE) -> Iterator[str]:
    """A sentence for every import that the layers do not allow."""
    for file, line, target in imports(package):
        own = file.split("/")[0].removesuffix(".py")
        level, target_level = LEVELS.get(own, TOP), LEVELS.get(target, TOP)
        if target_level < level or (file, target) in EXCEPTIONS:
            continue
        where = "its own layer" if target_level == level else "a layer above"
        what = f"labelwise.{target}" if target else "labelwise itself"
        yield f"src/labelwise/{file}:{line} imports {what}, which is in {where}"


def test_every_import_points_to_a_lower_layer():
    assert list(upward()) == []


def test_every_entry_of_the_package_is_in_one_layer():
    entries = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    named = [name for layer in LAYERS for name in layer]
    assert sorted(named) == sorted(entries - {"__init__", "__main__"})


def test_every_exception_is_needed():
    found = {(file, target) for file, _, target in imports()}
    assert set(EXCEPTIONS) <= found


@pytest.mark.parametrize(
    ("file", "code", "where"),
    [
        ("rank/search.py", "from labelwise.match.network import Network", "a layer above"),
        ("rank/search.py", "def f():\n    from labelwise import match", "a layer above"),
        ("rank/search.py", "import importlib\nimportlib.import_module('labelwise.match')", "a layer above"),
        ("rank/search.py", "import labelwise", "a layer above"),
        ("storage/objects.py", "import labelwise.kernels.beam", "its own layer"),
        ("errors.py", "from labelwise.types import Csr", "its own layer"),
        ("storage/objects.py", "from labelwise import __version__", None),
        ("match/network.py", "from labelwise.rank.search import BeamSearch", None),
        ("rank/search.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import labelwise.match", None),
        ("__init__.py", "from labelwise.cli import main", None),
    ],
)
def test_imports_that_the_layers_forbid_and_allow(tmp_path, file, code, where):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(code)
    found = list(upward(tmp_path))
    assert len(found) == (where is not None)
    assert where is None or found[0].endswith(f"which is in {where}")
