"""Means over random seeds."""

from statistics import fmean, stdev

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.comparison.measure import Costs
from labelwise.comparison.results import SystemResult, mean_costs, pooled
from labelwise.metrics import compare, evaluate

Y = sp.csr_array(np.array([[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]]))

FIRST = sp.csr_array(np.array([[0.9, 0.8, 0, 0], [0.9, 0, 0.8, 0], [0, 0.9, 0, 0.8]]))

SECOND = sp.csr_array(np.array([[0.9, 0, 0.8, 0], [0, 0, 0.9, 0.8], [0.9, 0, 0, 0.8]]))


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
