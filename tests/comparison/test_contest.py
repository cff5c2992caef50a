"""Measuring systems, means over seeds, and finding results again."""

import json
from statistics import fmean, stdev

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import LinearTree, RunDirectory, generate_shop, load_model, precision_at_k
from labelwise.comparison.contest import (
    EvalSettings,
    SystemResult,
    find_outcome,
    mean_costs,
    pooled,
    prediction_files,
    run_contest,
)
from labelwise.comparison.measure import Clock, Costs, Outcome, measure_system
from labelwise.comparison.splits import Splits
from labelwise.comparison.system import System
from labelwise.comparison.worker import DataLocation, measure_alone
from labelwise.config.presets import load_linear_preset
from labelwise.errors import DataError, LabelwiseError, StorageError
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


def test_found_stages_count_as_if_they_were_computed(tmp_path):
    for name, seconds in (("a", 100.0), ("b", 1000.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stage.json").write_text(json.dumps({"seconds": seconds, "cpu_seconds": 2 * seconds}))
    heard = []
    clock = Clock(lambda name, values: heard.append(name))
    clock.on_event("stage", {"found": True, "folder": str(tmp_path / "a")})
    clock.on_event("stage", {"found": True, "folder": str(tmp_path / "a")})  # once is enough
    clock.on_event("stage", {"found": False, "folder": str(tmp_path / "b")})
    clock.on_event("stage", {"found": True, "folder": str(tmp_path / "b")})  # made just now
    costs = clock.costs()
    assert 100 <= costs.train_s < 105
    assert 200 <= costs.train_cpu_s < 205
    assert costs.found_s == 100
    assert heard == ["stage"] * 4


def test_measured_predictions_are_the_model_s_own(splits, tmp_path):
    system = System(name="default", preset="default")
    costs = measure_system(system, splits, tmp_path / "out", top_k=5, run_dir=None, keep_model=True)
    outcome = Outcome.load(tmp_path / "out", splits)
    own = LinearTree(load_linear_preset("default")).fit(splits.train.texts, splits.train.Y)
    wanted = own.predict(splits.test.texts, top_k=5)
    assert np.array_equal(outcome.predictions.matrix.toarray(), wanted.matrix.toarray())
    assert outcome.costs == costs
    assert load_model(outcome.model).labels_ == splits.train.labels
    assert costs.train_s > 0
    assert costs.train_cpu_s > 0
    assert costs.predict_ms > 0
    size = sum(file.stat().st_size for file in (tmp_path / "out" / "model").rglob("*") if file.is_file())
    assert costs.model_mb == pytest.approx(size / 1e6)
    assert costs.peak_mib is None
    fewer = Splits(name="x", train=splits.train, validation=None, test=splits.test.take([0, 1]))
    with pytest.raises(StorageError, match="predictions of other documents"):
        Outcome.load(tmp_path / "out", fewer)


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


def test_a_process_that_dies_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(LabelwiseError, match="its process ended with code 1"):
        measure_alone(
            System(name="default", preset="default"), DataLocation(path="x"), tmp_path / "o", top_k=5, run_dir=None
        )


def test_the_first_may_fail(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for split in ("train", "test"):
        (data / f"{split}.jsonl").write_text('{"text": "a b", "labels": ["x"]}\n{"text": "c", "labels": ["y"]}\n')
    (tmp_path / "bad.jsonl").write_text("nonsense\n")
    (tmp_path / "good.jsonl").write_text('{"labels": ["x"]}\n{"labels": ["x"]}\n')
    files = {name: tmp_path / f"{name}.jsonl" for name in ("bad", "good")}
    contest = run_contest([], DataLocation(path=str(data)), rules=EvalSettings(ks=(1,)), against=files)
    assert [entry.name for entry in contest.failed] == ["bad"]
    assert "bad.jsonl, line 1" in contest.failed[0].error
    good = contest.entries[1]
    assert (good.evaluation["P@1"], good.against_first) == (50, None)
    assert json.loads(json.dumps(contest.to_dict()))["systems"][1]["evaluation"]["scores"]["P@1"]["value"] == 50
