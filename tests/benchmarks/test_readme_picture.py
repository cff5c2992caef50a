"""The picture of the README shows the figures of the results."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.programs import loaded

ROOT = Path(__file__).parents[2]
FILE = ROOT / "benchmarks" / "readme_picture.py"
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason="the benchmarks are not beside the tests")

PAGE = """
| set | system | training, CPU s |
|---|---|---|
| a | **mine** | **1.5** |
| | `theirs` | 20.25 |

| set | system | P@1 P@3 P@5 |
|---|---|---|
| a | **mine** | 90.5 80.1 70.2 |
"""


@pytest.fixture(scope="module")
def picture():
    with loaded(FILE) as module:
        yield module


def test_the_picture_is_the_one_that_the_results_give(picture):
    page = picture.RESULTS.read_text(encoding="utf-8")
    assert picture.PICTURE.read_text(encoding="utf-8") == picture.draw(page), f"run python {FILE.relative_to(ROOT)}"


def test_every_point_lies_inside_the_axes(picture):
    svg = ElementTree.fromstring(picture.PICTURE.read_text(encoding="utf-8"))
    dots = [(float(dot.get("cx")), float(dot.get("cy"))) for dot in svg.iter("{http://www.w3.org/2000/svg}circle")]
    assert len(dots) == len(picture.points(picture.RESULTS.read_text(encoding="utf-8"))) == 9
    assert all(picture.LEFT < x < picture.RIGHT and picture.TOP < y < picture.BOTTOM for x, y in dots)


def test_the_figures_are_read_from_tables(picture):
    assert picture.number(PAGE, ("a", "mine"), picture.SECONDS_COLUMN) == 1.5
    assert picture.number(PAGE, ("a", "theirs"), picture.SECONDS_COLUMN) == 20.25
    assert picture.number(PAGE, ("a", "mine"), picture.PRECISION_COLUMN) == 90.5
    with pytest.raises(SystemExit, match=re.escape("no table with a row a | others")):
        picture.number(PAGE, ("a", "others"), picture.SECONDS_COLUMN)
