"""The site: complete, no dead links, nothing from elsewhere, and its figures are those that the code draws."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib

import pytest

import labelwise
from tests.docs.session import ROOT

DOCS = ROOT / "docs"
SITE = ROOT / "zensical.toml"
pytestmark = pytest.mark.skipif(not SITE.is_file(), reason="the documentation is not beside the tests")


def tool(name):
    """A script of docs/.site as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / ".site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def leaves(nav):
    for entry in nav:
        if isinstance(entry, str):
            yield entry
        else:
            for value in entry.values():
                yield from leaves([value] if isinstance(value, str) else value)


def test_every_page_is_in_the_navigation_once():
    listed = list(leaves(tomllib.loads(SITE.read_text(encoding="utf-8"))["project"]["nav"]))
    assert len(listed) == len(set(listed))
    assert set(listed) == {str(page.relative_to(DOCS).as_posix()) for page in DOCS.rglob("*.md")}


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_links_between_pages_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
        assert (page.parent / target).exists(), target


def test_every_public_name_is_in_the_reference():
    pages = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    shown = {name.rpartition(".")[2] for name in re.findall(r"(?m)^::: (labelwise\S+)", pages)}
    assert set(labelwise.__all__) - {"__version__"} <= shown


def test_every_name_in_the_reference_exists():
    for page in (DOCS / "reference").glob("*.md"):
        for name in re.findall(r"(?m)^::: (labelwise\S+)", page.read_text(encoding="utf-8")):
            module, _, last = name.rpartition(".")
            assert hasattr(importlib.import_module(module), last), f"{page.name}: {name}"


def test_the_figures_are_those_that_are_drawn():
    for name, draw in tool("figures").FIGURES.items():
        assert (DOCS / "images" / f"{name}.svg").read_text(encoding="utf-8") == draw(), f"run {name} again: figures.py"


def test_the_site_is_built_without_dead_links(tmp_path):
    pytest.importorskip("zensical", reason="zensical is not installed; make docs installs it")
    for name in ("docs", "src", "zensical.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    place = {**os.environ, "PYTHONPATH": f"{DOCS / '.site'}{os.pathsep}{ROOT / 'src'}"}
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=tmp_path, env=place, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tool("check").problems(tmp_path.resolve() / "site")) == []
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 40
    reference = (tmp_path / "site/reference/models.html").read_text(encoding="utf-8")
    for words in ("LinearTree", "label_names", "Keep the stages"):
        assert words in reference
    assert "labelwise train" in (tmp_path / "site/reference/cli.html").read_text(encoding="utf-8")


# ---------------------------------------------------------------------- the check itself


@pytest.fixture
def site(tmp_path):
    def write(**pages):
        for name, text in pages.items():
            (tmp_path / f"{name}.html").write_text(text)
        return list(tool("check").problems(tmp_path))

    return write


def test_good_links_pass(site):
    assert (
        site(a='<a href="b.html#x">b</a><a href="#y">y</a><i id="y"></i><a href="https://x.org">x</a>', b='<p id="x">')
        == []
    )


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ('<a href="c.html">', "a.html: c.html leads nowhere"),
        ('<a href="#z">', "a.html: #z leads to no such place"),
        ('<script src="https://cdn.org/a.js"></script>', "would be fetched from elsewhere"),
        ('<link rel="stylesheet" href="//fonts.org/a.css">', "would be fetched from elsewhere"),
        ('<p style="background: url(http://x.org/a.png)">', "would be fetched from elsewhere"),
        ('<img src="none.svg">', "a.html: none.svg leads nowhere"),
    ],
)
def test_bad_links_are_told(site, page, told):
    (problem,) = site(a=page)
    assert told in problem
