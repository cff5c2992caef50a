"""The site: complete, no dead links, nothing from other hosts, and its figures are those that the code draws."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import labelwise
from labelwise.cli import COMMANDS
from tests.docs.session import ROOT
from tests.programs import loaded

DOCS = ROOT / "docs"
SITE = ROOT / "zensical.toml"
pytestmark = pytest.mark.skipif(not SITE.is_file(), reason="the documentation is not beside the tests")


def tool(name):
    """A script of docs/.site as a module."""
    with loaded(DOCS / ".site" / f"{name}.py") as module:
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
    there = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert set(listed) <= there
    assert not {page for page in there - set(listed) if not page.startswith("results/")}  # new results come first


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_links_between_pages_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", sorted((DOCS / "results").glob("*.md")), ids=lambda page: page.stem)
def test_links_of_the_results_name_what_they_lead_to(page):
    assert re.findall(r"\[[\w/-]+\.md\]\(", page.read_text(encoding="utf-8")) == []


def test_every_public_name_is_in_the_reference():
    pages = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    shown = {name.rpartition(".")[2] for name in re.findall(r"(?m)^::: (labelwise\S+)", pages)}
    assert set(labelwise.__all__) - {"__version__"} <= shown


def test_every_name_in_the_reference_exists():
    for page in (DOCS / "reference").glob("*.md"):
        for name in re.findall(r"(?m)^::: (labelwise\S+)", page.read_text(encoding="utf-8")):
            module, _, last = name.rpartition(".")
            assert hasattr(import_module(module), last), f"{page.name}: {name}"


@pytest.mark.parametrize(
    "word",
    [
        *("docker", "notebook", "tensorboard", "cross-validation", "hierarchy", "delimiter", "excel", "fasttext"),
        *("NUMBA_CACHE_DIR", "stop words", "out of memory", "ECE"),
    ],
)
def test_what_users_search_for_is_on_some_page(word):
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
    assert word.casefold() in pages.casefold()


def test_the_figures_are_those_that_are_drawn():
    for name, draw in tool("figures").FIGURES.items():
        assert (DOCS / "images" / f"{name}.svg").read_text(encoding="utf-8") == draw(), f"run {name} again: figures.py"


def figures(text):
    """Numbers of at least two digits, as written, without commas."""
    return [
        found.replace(",", "") for found in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.])", text) if len(found) > 1
    ]


@pytest.mark.parametrize("page", ["performance.md", "howto/onnx.md", "howto/labels.md"])
def test_figures_are_quotations(page):
    """Every figure of these pages' tables is in the results, perhaps with more digits."""
    results = "".join(file.read_text(encoding="utf-8") for file in (DOCS / "results").glob("*.md"))
    known = {float(number) for number in figures(results)}
    rows = [line for line in (DOCS / page).read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert rows
    for number in figures("\n".join(rows)):
        digits = len(number.partition(".")[2])
        assert any(round(value, digits) == float(number) for value in known), number


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the built site."""
    pytest.importorskip("zensical", reason="zensical is not installed; make docs installs it")
    place = tmp_path_factory.mktemp("built").resolve()
    shutil.copytree(DOCS, place / "docs")
    shutil.copy(SITE, place)
    (place / "src").symlink_to(ROOT / "src")
    environment = {**os.environ, "PYTHONPATH": f"{DOCS / '.site'}{os.pathsep}{ROOT / 'src'}"}
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return place / "site"


def test_the_site_has_no_dead_links_and_nothing_from_other_hosts(built):
    assert list(tool("check").problems(built)) == []
    assert len(list(built.rglob("*.html"))) > 40
    models = (built / "reference/models.html").read_text(encoding="utf-8")
    for words in ("LinearTree", "label_names", "find them again"):
        assert words in models
    commands = (built / "reference/cli.html").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f'id="{name}"' in commands
    assert commands.count("--skip-bad-rows") == 1  # shared options are there once
    assert "<td>A folder of splits or a single file, in any format that labelwise reads.</td>" in commands
    results = (built / "results/paper.html").read_text(encoding="utf-8")
    assert "Table of 24 rows: set, system, P@1" in results  # folded
    for name in ("performance", "howto/migrating", "glossary"):
        assert "Table of" not in (built / f"{name}.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with api.sync_playwright() as playwright:
        if path is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("there is no Chromium; run: playwright install chromium")
        with playwright.chromium.launch(executable_path=path, args=["--no-sandbox"]) as browser:
            yield browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1400])
def test_pages_fit_any_screen_without_a_network(built, browser, width, scheme):
    wrong = []
    with browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme) as context:
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith("http") and wrong.append(asked.url))
        for name in ("index", "tutorials/tickets", "method", "performance", "reference/models", "reference/cli"):
            page.goto((built / f"{name}.html").as_uri())
            too_wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
            assert not too_wide, f"{name} is wider than {width}"
    assert wrong == []


_CUT = """[...document.querySelectorAll("table:not([class]) code")].map(code => [code.textContent, code])
    .filter(([name, code]) => /^[\\w.]+$/.test(name) && code.getClientRects().length > 1).map(([name]) => name)"""


@pytest.mark.parametrize("width", [390, 1400])
def test_no_name_in_a_table_is_cut_into_two(built, browser, width):
    with browser.new_context(viewport={"width": width, "height": 900}) as context:
        page = context.new_page()
        for name in ("howto/datasets", "results/paper", "reference/metrics", "reference/cli"):
            page.goto((built / f"{name}.html").as_uri())
            assert page.evaluate(_CUT) == [], name
            too_wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
            assert not too_wide, f"{name} is wider than {width}"


def test_a_copied_console_block_has_the_commands_only(built, browser):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto((built / "quickstart.html").as_uri())
        code = page.locator(".highlight:has(.gp) code").first
        assert "$ labelwise shop" in code.inner_text()
        code.evaluate("code => code.setAttribute('data-md-copying', '')")  # as the program of the page does to copy
        assert code.inner_text().strip() == "labelwise shop my-shop --products 3000 --queries 400"


def test_search_works_from_a_folder(built, browser):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto((built / "index.html").as_uri())
        page.wait_for_timeout(500)
        page.keyboard.press("Control+k")
        page.keyboard.type("threshold", delay=50)
        page.get_by_text("Choosing a threshold").first.wait_for(timeout=10_000)
        assert page.get_by_placeholder("Search").last.input_value() == "threshold"


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
    ("page", "message"),
    [
        ('<a href="c.html">', "a.html: c.html leads nowhere"),
        ('<a href="#z">', "a.html: #z leads to no such place"),
        ('<script src="https://cdn.org/a.js"></script>', "would be fetched from elsewhere"),
        ('<link rel="stylesheet" href="//fonts.org/a.css">', "would be fetched from elsewhere"),
        ('<p style="background: url(http://x.org/a.png)">', "would be fetched from elsewhere"),
        ('<img src="none.svg">', "a.html: none.svg leads nowhere"),
    ],
)
def test_bad_links_are_reported(site, page, message):
    (problem,) = site(a=page)
    assert message in problem
