"""Systems compared: means over seeds, results found again, files of predictions."""

import json
from statistics import fmean, stdev

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import RunDirectory, generate_shop, precision_at_k
from labelwise.comparison.contest import (
    EvalSettings,
    SystemResult,
    find_outcome,
    mean_costs,
    pooled,
    prediction_files,
    run_contest,
)
from labelwise.comparison.measure import Costs, measure_system
from labelwise.comparison.splits import Splits
from labelwise.comparison.system import System
from labelwise.comparison.worker import DataLocation
from labelwise.errors import DataError
from labelwise.metrics import compare, evaluate

Y = sp.csr_array(np.array([[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]]))

FIRST = sp.csr_array(np.array([[0.9, 0.8, 0, 0], [0.9, 0, 0.8, 0], [0, 0.9, 0, 0.8]]))

SECOND = sp.csr_array(np.array([[0.9, 0, 0.8, 0], [0, 0, 0.9, 0.8], [0.9, 0, 0, 0.8]]))


@pytest.fixture(scope="module")
def splits():
    train, test = generate_shop(400, 100).values()
    return Splits(name="shop", train=train, validation=None, test=test, generated=True)


def test_the_mean_of_two_evaluations_is_worked_out_by_hand():
    one, two = (evaluate(Y, part, ks=(1, 2), Y_train=Y, bootstrap=200) for part in (FIRST, SECOND))
    assert (one["P@1"], two["P@1"]) == pytest.approx((100 / 3, 100))
    mean = pooled([one, two])
    assert mean["P@1"] == pytest.approx(200 / 3)
    assert mean["P@2"] == pytest.approx(fmean([100 * 4 / 6, 100 * 4 / 6]))
    assert mean.buckets["tail"].scores["R@2"].value == pytest.approx(
        fmean(part.buckets["tail"].scores["R@2"].value for part in (one, two))
    )
    # A paired test of the mean sees the mean of what the seeds do with each document.
    assert compare(mean, one, metrics=["P@1"])["P@1"].difference == pytest.approx(200 / 3 - 100 / 3)
    assert pooled([one]) is one
    entry = SystemResult(name="x", kind="trained", evaluation=mean, seeds=({"P@1": 90.0}, {"P@1": 92.0}, {"P@1": 91.0}))
    assert entry.deviation("P@1") == pytest.approx(stdev([90, 92, 91])) == pytest.approx(1.0)


def test_costs_are_averaged_where_all_have_them():
    mean = mean_costs([Costs(train_s=1, model_mb=3), Costs(train_s=2), Costs(train_s=6, model_mb=5)])
    assert (mean.train_s, mean.model_mb, mean.peak_mib) == (3, None, None)


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
    with pytest.raises(DataError, match="no file of predictions"):
        prediction_files(tmp_path / "empty")
    with pytest.raises(DataError, match="no such folder"):
        prediction_files(tmp_path / "missing")


def test_the_first_may_fail(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "test"):
        (data / f"{split}.jsonl").write_text('{"text": "a b", "labels": ["x"]}\n{"text": "c", "labels": ["y"]}\n')
    (tmp_path / "bad.jsonl").write_text("nonsense\n")
    (tmp_path / "good.jsonl").write_text('{"labels": ["x"]}\n{"labels": ["x"]}\n')
    files = {name: tmp_path / f"{name}.jsonl" for name in ("bad", "good")}
    contest = run_contest([], DataLocation(path=str(data)), settings=EvalSettings(ks=(1,)), against=files)
    assert [entry.name for entry in contest.failed] == ["bad"]
    assert "bad.jsonl, line 1" in contest.failed[0].error
    good = contest.entries[1]
    assert (good.evaluation["P@1"], good.against_first) == (50, None)
    assert json.loads(json.dumps(contest.to_dict()))["systems"][1]["evaluation"]["scores"]["P@1"]["value"] == 50
