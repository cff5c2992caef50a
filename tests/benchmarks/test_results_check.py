"""What documents state is compared with what comes out."""

from pathlib import Path

import pytest

from tests.programs import loaded

ROOT = Path(__file__).parents[2]
FILE = ROOT / "benchmarks" / "results_check.py"
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason="the benchmarks are not beside the tests")

PAGE = """
| set | P@1 P@3 P@5 |
|---|---|
| **shop** | 66.58 **43.67** 35.20 |
| other | 1 2 3 |

97.7 % of the labels are rare.
"""


@pytest.fixture(scope="module")
def checks():
    with loaded(FILE) as module:
        yield module


@pytest.fixture
def claim(checks, tmp_path):
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")

    def make(pattern, figures, **more):
        return checks.Claim("a claim", more.pop("document", "page.md"), pattern, lambda: figures, **more)

    return make


def test_figures_are_found_in_tables_and_sentences(checks):
    row = rf"^\| \*\*shop\*\* \| {checks.PRECISIONS} \|$"
    assert checks.find_figures(PAGE, row) == [(66.58, 43.67, 35.2)]
    assert checks.find_figures(PAGE, rf"^{checks.NUMBER} % of the labels") == [(97.7,)]
    assert checks.find_figures(PAGE, rf"\| {checks.PRECISIONS} \|") == [(66.58, 43.67, 35.2), (1, 2, 3)]
    assert checks.find_figures(PAGE, "nothing (like) it") == []


def test_what_is_written_must_come_out(checks, claim, tmp_path):
    row = rf"shop\*\* \| {checks.PRECISIONS} \|"
    for figures, state in (
        ((66.584, 43.67, 35.2), "ok"),
        ((66.58, 43.67, 35.22), "differs"),
        ((66.58, 43.67), "differs"),
    ):
        verdict = checks.check(claim(row, figures), tmp_path)
        assert (verdict.state, verdict.good) == (state, state == "ok")
    assert (
        "page.md says 66.58 43.67 35.20, but it is 66.58 43.67 35.22"
        in checks.check(claim(row, (66.58, 43.67, 35.22)), tmp_path).detail
    )


def test_a_document_that_changed_is_told(checks, claim, tmp_path):
    for gone in (claim("no such line ([0-9])", (1,)), claim("x", (1,), document="gone.md")):
        verdict = checks.check(gone, tmp_path)
        assert (verdict.state, verdict.good) == ("missing", False)


def test_missing_data_are_skipped_and_said(checks, claim, tmp_path):
    verdict = checks.check(claim(r"(97\.7)", (0,), needs="faraway"), tmp_path, tmp_path)
    assert (verdict.state, verdict.good) == ("skipped", True)
    assert verdict.detail == "the data set faraway is not there"
    (tmp_path / "faraway").mkdir()
    assert checks.check(claim(r"(97\.7)", (97.7,), needs="faraway"), tmp_path, tmp_path).state == "ok"


def test_every_claim_is_found_in_its_document(checks, tmp_path):
    for claim in checks.claims(tmp_path):
        text = (ROOT / claim.document).read_text(encoding="utf-8")
        assert checks.find_figures(text, claim.pattern), claim.name


def test_the_exit_code_tells(checks, tmp_path, capsys, monkeypatch):
    assert checks.main(["--data", str(tmp_path), "--only", "gutenberg"]) == 0
    assert "the data set gutenberg-lcsh is not there" in capsys.readouterr().out
    monkeypatch.setattr(checks, "claims", lambda data: [checks.Claim("w", "README.md", r"P@(\d)", lambda: (-1.0,))])
    assert checks.main([]) == 1
    assert "differs" in capsys.readouterr().out
