"""The report in a real Chromium: the tree map on a phone, the way around."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright import sync_api as api

from labelwise import LinearTree, generate_shop
from labelwise.report.write import PARTS, write_report


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder, shop = tmp_path_factory.mktemp("report"), generate_shop(900, 400)
    model = LinearTree(max_leaf=20).fit(
        shop["train"].texts, shop["train"].Y, label_names=shop["train"].labels, run_dir=folder / "run"
    )
    return write_report(folder / "run", folder / "report.html", model=model, data=shop, bootstrap=0)


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as playwright:
        names = ("chromium", "chromium-browser", "google-chrome")
        path = next(filter(None, map(shutil.which, names)), None)
        if path is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("there is no Chromium; run: playwright install chromium")
        with playwright.chromium.launch(executable_path=path, args=["--no-sandbox"]) as browser:
            yield browser


@pytest.mark.parametrize("width", [390, 1400])
def test_the_tree_map_has_names_that_fit(report, browser, width):
    with browser.new_context(viewport={"width": width, "height": 900}) as context:
        page = context.new_page()
        page.goto(report.as_uri())
        tiles = page.locator("#tree-map .tile").evaluate_all(
            "all => all.map(e => ({tiny: e.classList.contains('tiny'), name: e.firstChild.textContent,"
            " over: e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1}))"
        )
        assert len(tiles) > 8
        assert [tile for tile in tiles if tile["over"] and not tile["tiny"]] == []
        assert sum(tile["tiny"] for tile in tiles) <= len(tiles) / 10
        assert page.locator("#tree-legend .scale").count() == 1
        assert page.locator("#tree-detail details").get_attribute("open") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_links_stay_in_sight(report, browser):
    with browser.new_context(viewport={"width": 1400, "height": 900}) as context:
        page = context.new_page()
        page.goto(report.as_uri())
        page.evaluate("scrollTo({top: document.body.scrollHeight, behavior: 'instant'})")
        links = page.locator("nav.parts a")
        assert links.count() == len(PARTS)
        assert all(0 <= link.bounding_box()["y"] < 60 for link in links.all())
