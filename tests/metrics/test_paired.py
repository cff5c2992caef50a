"""Differences of two systems on the same documents, with their p-values."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.errors import DataError, UsageError
from labelwise.metrics import compare, evaluate
from tests.metrics.examples import hand_worked


def test_equal_systems_do_not_differ(evaluations):
    same = compare(evaluations[0], evaluations[0], resamples=100)
    for name, found in same.differences.items():
        assert (found.difference, found.low, found.high, found.p_value) == (0, 0, 0, 1), name


def test_clearly_different_systems_differ(evaluations):
    good, bad = evaluations
    found = compare(good, bad, resamples=400)
    assert set(found.differences) == {name for name in good.scores if not name.startswith(("macro", "coverage"))}
    for name in ("P@1", "R@5", "nDCG@5", "PSP@5", "micro-F1@3"):
        assert found[name].first == pytest.approx(good[name])
        assert found[name].difference == pytest.approx(good[name] - bad[name], rel=1e-5)
        assert 0 < found[name].low < found[name].difference < found[name].high
        assert found[name].p_value == pytest.approx(1 / 401)
    back = compare(bad, good, metrics=["P@1"], resamples=400)
    assert list(back.differences) == ["P@1"]
    assert back["P@1"].high == pytest.approx(-found["P@1"].low, abs=0.3)


def test_buckets_are_compared_too(evaluations):
    good, bad = evaluations
    found = compare(good, bad, bucket="torso", metrics=["R@5"], resamples=50)["R@5"]
    expected = [evaluation.buckets["torso"].scores["R@5"].value for evaluation in evaluations]
    assert [found.first, found.second] == pytest.approx(expected)
    with pytest.raises(UsageError, match="no bucket 'neck' in both evaluations; the first has head, torso, tail"):
        compare(good, bad, bucket="neck")


def test_p_values_are_uniform_for_exchangeable_systems():
    rng = np.random.default_rng(11)
    truth = (rng.random((120, 10)) < 0.2).astype(np.float64)
    Y, values = sp.csr_array(truth), []
    for _ in range(60):
        pair = [evaluate(Y, sp.csr_array(truth + rng.standard_normal(truth.shape)), bootstrap=0) for _ in "ab"]
        values.append(compare(*pair, metrics=["nDCG@5"], resamples=200)["nDCG@5"].p_value)
    assert np.mean(values) == pytest.approx(0.5, abs=0.13)
    assert np.mean(np.array(values) <= 0.1) <= 0.25


def test_incomparable_evaluations_are_reported(evaluations):
    with pytest.raises(DataError, match="different truths"):
        compare(evaluations[0], evaluate(*hand_worked(), bootstrap=0))
    with pytest.raises(UsageError, match="'coverage@1' cannot be compared; these metrics can: P@1"):
        compare(*evaluations, metrics=["coverage@1"])
    with pytest.raises(UsageError, match="resamples is 0"):
        compare(*evaluations, resamples=0)
    with pytest.raises(KeyError, match="'MRR' was not compared"):
        compare(*evaluations, metrics=["P@1"], resamples=2)["MRR"]


def test_comparison_is_saved(tmp_path, evaluations):
    compare(*evaluations, metrics=["P@1"], resamples=10).save(tmp_path / "comparison.json")
    read = json.loads((tmp_path / "comparison.json").read_text())
    assert read["differences"]["P@1"]["p_value"] == 1 / 11


def test_a_nan_metric_is_not_a_difference():
    nothing = sp.csr_array((3, 2))
    evaluation = evaluate(nothing, nothing, bootstrap=10)
    found = compare(evaluation, evaluation, resamples=10)
    assert np.isnan(found["micro-F1@1"].difference)
    assert found["micro-F1@1"].p_value == 1
    assert found.to_dict()["differences"]["micro-F1@1"]["low"] is None
