"""Every public name is on a page of the reference and has an example that runs."""

import doctest
import inspect
import re
import sys

import pytest

import labelwise
from tests.docs.session import ENVIRONMENT, ROOT

NAMES = [name for name in labelwise.__all__ if name != "__version__"]
REFERENCE = ROOT / "docs" / "reference"
NEEDS = {"Encoder": "torch", "XTransformer": "torch"}
"""Names whose example needs an optional package."""
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def example_of(name: str) -> doctest.DocTest:
    docstring = inspect.getdoc(getattr(labelwise, name)) or ""
    assert "\nExamples\n--------\n" in docstring, f"labelwise.{name} has no section Examples"
    return doctest.DocTestParser().get_doctest(docstring, {"__name__": "__main__"}, name, None, None)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name, tmp_path, monkeypatch):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.chdir(tmp_path)
    for variable, value in ENVIRONMENT.items():
        monkeypatch.setenv(variable, value)
    example = example_of(name)
    written: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(example, out=written.append)
    assert results.failed == 0, "".join(written)
    assert re.search(rf"^from labelwise import .*\b{name}\b", "".join(e.source for e in example.examples), re.M)


@pytest.mark.skipif(sys.flags.optimize > 1, reason="python -OO removes docstrings")
def test_an_example_with_another_output_fails():
    parser = doctest.DocTestParser()
    wrong = parser.get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert doctest.DocTestRunner(optionflags=FLAGS).run(wrong, out=lambda text: None).failed == 1


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the documentation is not there")
@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_is_on_one_page_of_the_reference_and_in_its_index(name):
    pages = [page.name for page in sorted(REFERENCE.glob("*.md")) if f"::: labelwise.{name}\n" in page.read_text()]
    assert len(pages) == 1, pages
    line = next(line for line in (REFERENCE / "index.md").read_text().splitlines() if f"`{name}`" in line)
    assert f"]({pages[0]})" in line
