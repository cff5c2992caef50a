"""make fuzz: every target is run, a failure is reported, and the server stands malformed requests."""

import random
from pathlib import Path

import pytest

from tests.programs import loaded

FUZZ = Path(__file__).parents[2] / "tools" / "fuzz"
pytestmark = pytest.mark.skipif(not FUZZ.is_dir(), reason="the tools are not beside the tests")


@pytest.fixture(scope="module")
def run_all():
    with loaded(FUZZ / "run_all.py") as module:
        yield module


@pytest.fixture(scope="module")
def http_bodies():
    with loaded(FUZZ / "http_bodies.py") as module:
        yield module


def test_every_program_is_a_target_or_a_part_of_one(run_all):
    there = {file.stem for file in FUZZ.glob("*.py")}
    assert there <= {*run_all.TARGETS, *run_all.NO_TARGETS}


def test_the_minutes_are_shared(run_all):
    found = run_all.shares(["model_folders", "presets"], 7)
    assert found == {"model_folders": 6, "presets": 1}
    assert sum(run_all.shares(list(run_all.TARGETS), 5).values()) == pytest.approx(5)


@pytest.mark.parametrize(("code", "says"), [(0, "good"), (1, "FAILED, exit code 1")])
def test_a_target_is_run_and_its_outcome_told(run_all, tmp_path, code, says):
    (tmp_path / "presets.py").write_text(
        "import json, sys\n"
        "options = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"
        "assert options['--minutes'] == '0.500' and options['--seed'] == '7' and options['--keep']\n"
        f"open(options['--json'], 'w').write(json.dumps({{'cases': 1234, 'failed': {code}}}))\n"
        f"sys.exit({code})\n"
    )
    outcome = run_all.run_target("presets", 0.5, 7, tmp_path, tmp_path)
    assert (outcome.code, outcome.cases, outcome.failed) == (code, 1234, code)
    assert says in run_all.table([outcome], 7)
    assert "1,234" in run_all.table([outcome], 7)


def test_a_target_that_dies_is_a_failure(run_all, tmp_path):
    outcome = run_all.run_target("none", 0.5, 7, tmp_path, tmp_path)
    assert outcome.code != 0
    assert "FAILED" in run_all.table([outcome], 7)


def test_malformed_requests(http_bodies):
    pytest.importorskip("fastapi")
    from served import ServerProcess

    with ServerProcess("--watch", "0", "--quiet", "--wait-ms", "0") as server:
        result = http_bodies.run(server, cases=300, minutes=None, seed=1, progress=lambda line: None)
    assert result.outcomes.total() == 300
    assert result.failures == []
    assert result.problems == []
    assert result.outcomes["answered"] > 10
    assert result.outcomes["refused"] > 100


def test_what_counts_as_an_answer(http_bodies):
    good = b"HTTP/1.1 200 OK\r\nx-content-type-options: nosniff\r\ncontent-length: 2\r\n\r\n{}"
    assert http_bodies.judge(good) == "answered"
    assert http_bodies.judge(good.replace(b"200", b"500")) == "status 500"
    assert http_bodies.judge(good.replace(b"200", b"400")) == "an error of another shape"
    assert http_bodies.judge(b"HTTP/1.1 200 OK\r\n\r\n") == "no security headers"
    assert http_bodies.judge(b"") == "closed"
    made = [http_bodies.request(random.Random(5)) for _ in range(2)]
    assert all(made)
