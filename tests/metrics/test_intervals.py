"""Bootstrap intervals: they hold their figures, and have the width that theory says."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.metrics import evaluate, intervals
from tests.metrics.examples import noisy_systems


def test_intervals_contain_their_figures(evaluations):
    for scores in [evaluations[0].scores, *(bucket.scores for bucket in evaluations[0].buckets.values())]:
        for name, score in scores.items():
            if name.startswith(("macro", "coverage")):
                assert score.low is None
            elif not np.isnan(score.value):
                assert score.low <= score.value <= score.high, name


def test_interval_width_is_that_of_a_mean(evaluations):
    # P@1 is a mean of n independent 0/1: its standard error is sqrt(p (1 - p) / n), its interval 3.92 of them.
    score = evaluations[0].scores["P@1"]
    p, n = score.value / 100, evaluations[0].n_docs
    assert score.high - score.low == pytest.approx(100 * 3.92 * np.sqrt(p * (1 - p) / n), rel=0.15)


def test_ratio_metrics_resample_both_sums():
    # Documents with and without labels by turns: PSP's denominator varies too. All found, so PSP is 100 throughout.
    Y = sp.csr_array(np.tile([[1.0, 0.0], [0.0, 0.0]], (20, 1)))
    score = evaluate(Y, Y, Y_train=Y, bootstrap=200).scores["PSP@1"]
    assert (score.value, score.low, score.high) == pytest.approx((100, 100, 100))


def test_same_seed_same_intervals():
    Y, good, _ = noisy_systems(n_docs=150)
    first = evaluate(Y, good, bootstrap=100, seed=4)
    assert evaluate(Y, good, bootstrap=100, seed=4).to_dict() == first.to_dict()
    other = evaluate(Y, good, bootstrap=100, seed=5)
    assert other.scores["P@1"].low != first.scores["P@1"].low


@pytest.mark.parametrize("docs_at_once", [1 << 15, 7])
def test_bootstrap_draws_are_uniform(monkeypatch, docs_at_once):
    monkeypatch.setattr(intervals, "DOCS_AT_ONCE", docs_at_once)
    rng = np.random.default_rng(0)
    each = np.eye(50)  # column j sums how often document j was drawn
    drawn = intervals._resampled_sums(each, 300, rng)
    assert drawn.shape == (300, 50)
    assert (drawn.sum(axis=1) == 50).all()
    assert drawn.mean(axis=0) == pytest.approx(1, abs=0.25)
    assert drawn.var() == pytest.approx(1, abs=0.05)  # about Poisson(1)
    halves = intervals._flipped_sums(each, 300, rng)
    assert set(np.unique(halves)) == {0, 1}
    assert halves.mean(axis=0) == pytest.approx(0.5, abs=0.15)
