"""Comparisons of systems: results found again, files of predictions, systems that fail."""

import json

import pytest

from labelwise import generate_shop, precision_at_k
from labelwise.comparison.measure import measure_system
from labelwise.comparison.runner import EvalSettings, find_outcome, prediction_files, run_comparison
from labelwise.comparison.splits import Splits
from labelwise.comparison.system import System
from labelwise.comparison.worker import DataLocation
from labelwise.errors import DataError
from labelwise.storage.run_directory import RunDirectory


@pytest.fixture(scope="module")
def splits():
    train, test = generate_shop(400, 100).values()
    return Splits(name="shop", train=train, validation=None, test=test, generated=True)


def test_results_are_found_again(splits, tmp_path):
    calls = []

    def compute(folder):
        calls.append(folder)
        measure_system(system, splits, folder, top_k=5, run_dir=None)

    for preset, n_calls in (("default", 1), ("default", 1), ("xr-linear", 2)):
        system = System(name=preset, preset=preset)
        with RunDirectory(tmp_path / "run") as run:
            outcome = find_outcome(run, splits, {**system.identity(splits), "top_k": 5}, compute)
        assert len(calls) == n_calls
        assert 40 < precision_at_k(splits.test.Y, outcome.predictions, k=1) < 100

    def fail(folder):
        raise DataError("no")

    with RunDirectory(tmp_path / "run") as run, pytest.raises(DataError, match="no"):
        find_outcome(run, splits, {"any": "thing"}, fail)
    assert not list((tmp_path / "run" / "scratch").glob("system-*"))


def test_files_of_predictions(tmp_path):
    for name in ("a.jsonl", "b.csv.gz", "notes.txt"):
        (tmp_path / name).write_text("")
    assert list(prediction_files(tmp_path)) == ["a", "b"]
    assert list(prediction_files(tmp_path / "a.jsonl")) == ["a"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="has no file of predictions"):
        prediction_files(tmp_path / "empty")
    with pytest.raises(DataError, match="no such folder"):
        prediction_files(tmp_path / "missing")


def test_the_first_system_may_fail(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "test"):
        (data / f"{split}.jsonl").write_text('{"text": "a b", "labels": ["x"]}\n{"text": "c", "labels": ["y"]}\n')
    (tmp_path / "bad.jsonl").write_text("nonsense\n")
    (tmp_path / "good.jsonl").write_text('{"labels": ["x"]}\n{"labels": ["x"]}\n')
    files = {name: tmp_path / f"{name}.jsonl" for name in ("bad", "good")}
    comparison = run_comparison([], DataLocation(path=str(data)), settings=EvalSettings(ks=(1,)), against=files)
    assert [entry.name for entry in comparison.failed] == ["bad"]
    assert "bad.jsonl, line 1" in comparison.failed[0].error
    good = comparison.results[1]
    assert (good.evaluation["P@1"], good.against_first) == (50, None)
    assert json.loads(json.dumps(comparison.to_dict()))["systems"][1]["evaluation"]["scores"]["P@1"]["value"] == 50
