"""What the metrics do where nothing is said, at the ends of their options, and what they say to wrong ones."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise import metrics
from labelwise.errors import DataError, UsageError
from labelwise.metrics import compare, evaluate, intervals
from labelwise.metrics.buckets import assign_buckets, check_buckets, describe_bucket
from labelwise.metrics.relevance import check_ks, count_labels, mark_predictions
from labelwise.metrics.tally import check_weights, ideal_dcg, percent, tally_gains
from tests.metrics.examples import COUNTS, WEIGHTS, hand_evaluation, hand_worked

AT_K = ("precision_at_k", "recall_at_k", "ndcg_at_k", "r_precision_at_k", "psp_at_k", "psndcg_at_k", "coverage_at_k")


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        *((getattr(metrics, name), {"k": 5}) for name in AT_K),
        (metrics.micro_f1, {"k": None, "threshold": None}),
        (metrics.calibration_error, {"bins": 15, "equal_mass": True}),
        (metrics.reliability_curve, {"bins": 15, "equal_mass": True}),
        (metrics.inverse_propensity, {"a": 0.55, "b": 1.5, "n_docs": None}),
        (evaluate, {"ks": (1, 3, 5), "family": "default", "bootstrap": 1000, "seed": 0, "buckets": metrics.BUCKETS}),
        (compare, {"metrics": None, "bucket": None, "names": ("first", "second"), "resamples": 1000, "seed": 0}),
    ],
)
def test_defaults_are_the_documented_ones(function, wanted):
    known = inspect.signature(function).parameters
    assert {name: known[name].default for name in wanted} == wanted


def test_constants_are_the_published_ones():
    # (a, b) of the Extreme Classification Repository; buckets as in the evaluation of PECOS' users: over 100, 6 to 100.
    assert metrics.FAMILIES == {"default": (0.55, 1.5), "wikipedia": (0.5, 0.4), "amazon": (0.6, 2.6)}
    assert dict(metrics.BUCKETS) == {"head": 101, "torso": 6, "tail": 0}


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("ks", [3, "135", None, 1.5])
def test_cut_offs_that_are_no_list(ks):
    with pytest.raises(UsageError, match=r"ks is .*; give a list of cut-offs, such as \(1, 3, 5\)"):
        check_ks(ks)


def test_cut_offs_are_sorted_and_distinct():
    assert check_ks([5, 1, 1]) == (1, 5)
    assert check_ks(np.array([3, 2])) == (2, 3)
    with pytest.raises(UsageError, match=r"ks is empty; give at least one cut-off, such as \(1, 3, 5\)"):
        check_ks([])


@pytest.mark.parametrize(
    "counts",
    [
        *([[1], [1, 2]], [[1, 2], [3, 4]], ["a", "b"], [1j], [True, False], [1, -1], 5, [None]),
    ],
)
def test_counts_that_are_none(counts):
    with pytest.raises(DataError, match="train_counts is neither a sparse label matrix nor a list of label counts"):
        count_labels(counts, name="train_counts")


def test_counts_of_labels():
    Y, _ = hand_worked()
    assert count_labels(Y).tolist() == [1, 2, 1, 1, 1]
    assert count_labels(Y[:, [0, 1]][:1] * 0).tolist() == [0, 0]
    assert count_labels([0, 2.0]).tolist() == [0, 2]


@pytest.mark.parametrize("buckets", [["head"], "head", 5, [("head", 0)]])
def test_buckets_that_are_no_mapping(buckets):
    with pytest.raises(UsageError, match=r"buckets is .*; give least numbers by name: \{'head': 101, 'tail': 0\}"):
        check_buckets(buckets)


def test_buckets_at_their_limits():
    assert check_buckets({}) == {}
    assert list(check_buckets({"b": 0, "a": 7, "c": 3}).items()) == [("a", 7), ("c", 3), ("b", 0)]
    assert len(check_buckets({str(number): number for number in range(255)})) == 255
    for wrong in ({str(number): number for number in range(256)}, {"a": 1}, {"a": 0, "b": 0}, {"a": 5, "b": -1}):
        with pytest.raises(UsageError, match="give every bucket its own least number of training documents"):
            check_buckets(wrong)
    with pytest.raises(UsageError, match="the bucket 'a'"):
        check_buckets({"a": 0.5})
    many = check_buckets({str(number): number for number in range(255)})
    assert assign_buckets(np.array([300, 254, 253, 0]), many).tolist() == [0, 0, 1, 254]


def test_buckets_in_words():
    buckets = {"many": 10, "nine": 9, "some": 2, "few": 0}
    assert [describe_bucket(name, buckets) for name in buckets] == [
        "10 or more training documents",
        "9 training documents",
        "2–8 training documents",
        "0–1 training documents",
    ]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (["a"] * 5, "holds something else than numbers; give one for each label"),
        ([[1.0], [1.0, 2.0]], "holds something else than numbers"),
        ([1, 2, 3, 4, np.inf], "holds a weight that is not a finite number above 0"),
        ([1, 2, 3, 4, 0], "holds a weight that is not a finite number above 0"),
        ([1, 2, 3, 4, -1], "holds a weight that is not a finite number above 0"),
        ([[1, 2, 3, 4, 5]], r"has shape \(1, 5\) but Y has 5 columns"),
    ],
)
def test_weights_that_are_none(weights, message):
    with pytest.raises(DataError, match=f"inverse_propensity {message}"):
        check_weights(weights, 5)
    Y, Y_pred = hand_worked()
    for function in (metrics.psp_at_k, metrics.psndcg_at_k):
        with pytest.raises(DataError, match="inverse_propensity"):
            function(Y, Y_pred, weights)


def test_propensities_at_their_limits():
    with pytest.raises(UsageError, match=r"a is 5000\.0 and b is 1\.5, which gives weights that are too large"):
        metrics.inverse_propensity([1], 5000.0, n_docs=10)
    for a, b, name in ((0, 1, "a"), (-1, 1, "a"), (1, -0.5, "b")):
        with pytest.raises(UsageError, match=f"{name} is"):
            metrics.inverse_propensity([1], a, b, n_docs=10)
    assert metrics.inverse_propensity([5, 1], n_docs=2).tolist() == [1, 1]
    # 1 + (ln 100 - 1) (b + 1)^a (N + b)^-a, with b = 0: the label of every document has the smallest weight.
    wanted = [1 + (np.log(100) - 1) * n**-0.5 for n in (1, 4, 100)]
    np.testing.assert_allclose(metrics.inverse_propensity([1, 4, 100], 0.5, 0, n_docs=100), wanted)
    for family in ("none", None, 5, ["amazon"]):
        with pytest.raises(UsageError, match="of data sets; there are default, wikipedia, amazon"):
            hand_evaluation(family=family)


def test_evaluations_refuse_wrong_options():
    Y, Y_pred = hand_worked()
    for options, message in (
        ({"seed": -1}, "seed is -1"),
        ({"threshold": "high"}, "threshold is"),
        ({"n_train_docs": 0, "train_counts": COUNTS}, "n_train_docs is 0"),
        ({"bootstrap": 1.5}, "bootstrap is 1.5"),
        ({"ks": 5}, "ks is"),
        ({"buckets": ["head"], "Y_train": Y}, "buckets is"),
    ):
        with pytest.raises(UsageError, match=message):
            evaluate(Y, Y_pred, **options)
    with pytest.raises(DataError, match=r"Y_train has 4 labels but Y has 5; both need the same labels in the same ord"):
        evaluate(Y, Y_pred, Y_train=Y[:, :4])


def test_comparisons_refuse_wrong_options():
    one = hand_evaluation(bootstrap=0)
    for options, message in (
        ({"metrics": "P@1"}, r"metrics is .*; give a list of names, such as \['P@1'\]"),
        ({"metrics": 5}, r"metrics is int \(5\); give a list"),
        ({"bucket": 5}, "bucket is 5"),
        ({"seed": -1}, "seed is -1"),
    ):
        with pytest.raises(UsageError, match=message):
            compare(one, one, **options)
    with pytest.raises(UsageError, match="second is"):
        compare(one, {"P@1": 5})
    other = evaluate(*hand_worked(), bootstrap=0)  # without buckets and propensities: what both have is compared
    found = compare(one, other, resamples=5)
    assert found.names == ("first", "second")
    assert (found.n_docs, found.resamples) == (4, 5)
    assert "PSP@1" not in found.differences
    assert "P@1" in found.differences
    assert list(compare(one, one, metrics=("R@3", "P@1"), resamples=5).differences) == ["R@3", "P@1"]


# ---------------------------------------------------------------------- small parts


def test_marked_predictions_by_hand():
    Y, Y_pred = hand_worked()
    marked = mark_predictions(Y, Y_pred, 2)
    assert (marked.n_docs, marked.n_labels, marked.longest) == (4, 5, 2)
    assert marked.best.tolist() == [0, 3, 3, 4, 0]
    assert marked.ranks.tolist() == [0, 1, 0, 1, 0]
    assert marked.hits.tolist() == [1, 0, 0, 1, 0]
    assert marked.scores.tolist() == pytest.approx([0.9, 0.8, 0.9, 0.5, 1.0])
    assert len(marked.digest) == 32
    assert mark_predictions(Y, Y_pred, None).digest == marked.digest
    assert mark_predictions(Y[[1, 0, 2, 3]], Y_pred, 2).digest != marked.digest
    assert mark_predictions(Y, sp.csr_array(Y.shape), 2).longest == 1


def test_ideal_gains_and_percents():
    assert ideal_dcg(np.array([0, 1, 2, 9]), 2).tolist() == pytest.approx(
        [1, 1, 1 + 1 / np.log2(3), 1 + 1 / np.log2(3)]
    )
    assert ideal_dcg(np.array([0]), 5).tolist() == [1]
    assert percent(1, 4) == 25
    assert percent(0, 4) == 0
    assert np.isnan(percent(0, 0))


def test_gains_without_scopes_are_those_of_one():
    Y, Y_pred = hand_worked()
    marked = mark_predictions(Y, Y_pred, 3)
    total, parts = tally_gains(marked, (1, 3))
    assert len(parts) == 1
    np.testing.assert_array_equal(total.gains, parts[0].gains)
    assert total.sizes.tolist() == parts[0].sizes.tolist() == [3, 1, 0, 2]
    assert total.counted.tolist() == [1, 1, 1, 1]
    assert parts[0].counted.tolist() == [1, 1, 0, 1]
    weighted, _ = tally_gains(marked, (1, 3), np.array(WEIGHTS))
    assert weighted.best[0].tolist() == [[4, 5, 0, 3], [7, 5, 0, 5]]


def test_intervals_of_values():
    assert intervals.interval(np.arange(1001.0)) == (25, 975)
    assert intervals.interval(np.array([np.nan, 3])) == (3, 3)
    assert np.isnan(intervals.interval(np.array([np.nan]))).all()


def test_draws_begin_with_the_seed():
    # The same numbers as numpy gives: the draws of all documents of a chunk, one resample after the other.
    columns = np.arange(12.0).reshape(2, 6)
    found = intervals._resampled_sums(columns, 3, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    rng.multinomial(6, [1.0], size=3)
    wanted = [columns[:, rng.integers(6, size=6)].sum(axis=1) for _ in range(3)]
    np.testing.assert_allclose(found, wanted)
    coins = np.random.default_rng(5).integers(256, size=(3, 1), dtype=np.uint8)
    wanted = np.unpackbits(coins, axis=1, count=6) @ columns.T
    np.testing.assert_allclose(intervals._flipped_sums(columns, 3, np.random.default_rng(5)), wanted)


def test_documents_are_drawn_in_the_same_parts_in_every_version():
    # The parts decide which numbers are drawn: with others, the intervals of a seed would be others.
    assert intervals._chunks(5) == [range(5)]
    assert intervals._chunks(65_537) == [range(32_768), range(32_768, 65_536), range(65_536, 65_537)]


@pytest.mark.parametrize("resamples", [1, 64, 65, 130])
def test_resamples_of_any_number(resamples):
    assert intervals._resampled_sums(np.ones((1, 5)), resamples, np.random.default_rng(0)).tolist() == [[5]] * resamples
    flipped = intervals._flipped_sums(np.ones((1, 50)), resamples, np.random.default_rng(0))
    assert flipped.shape == (resamples, 1)
    assert 0 < flipped.min() <= flipped.max() < 50


def test_p_values_count_the_observed_exchange():
    # One document, on which the systems differ: a flip exchanges them or not, and both are as extreme.
    place = {("", "P@1"): (0, 1)}
    one, two = (intervals.Contributions(np.array([[value], [1.0]], np.float32), place) for value in (1.0, 0.25))
    (found,) = intervals.paired_test(one, two, [("", "P@1")], 9, 0).values()
    assert (found.first, found.second, found.difference, found.p_value) == (100, 25, 75, 1)
    assert (found.low, found.high) == (75, 75)


def test_metrics_that_share_a_denominator_share_its_column():
    ones, hits, more = np.ones(3), np.array([1.0, 0, 1]), np.array([0.5, 0.5, 0.5])
    ratios = {("", "a"): (hits, ones), ("", "b"): (more, ones), ("", "none"): (hits, hits * 0)}
    found, values = intervals.collect(ratios)
    assert found.columns.dtype == np.float32
    assert found.place == {("", "a"): (0, 1), ("", "b"): (2, 1), ("", "none"): (0, 3)}
    assert found.rows(list(ratios)) == [0, 2, 0, 1, 1, 3]
    assert values[("", "a")] == pytest.approx(200 / 3)
    assert values[("", "b")] == 50
    assert np.isnan(values[("", "none")])


def test_calibration_of_one_bin_and_of_many():
    Y = sp.csr_array([[1.0, 0.0], [1.0, 0.0]])
    Y_pred = sp.csr_array([[1.0, 0.0], [0.5, 0.25]])
    for equal_mass in (True, False):
        probability, right, count = metrics.reliability_curve(Y, Y_pred, 1000, equal_mass=equal_mass)
        assert probability.tolist() == [0.25, 0.5, 1.0]
        assert right.tolist() == [0, 1, 1]
        assert count.tolist() == [1, 1, 1]
    with pytest.raises(UsageError, match="bins is 1000001"):
        metrics.reliability_curve(Y, Y_pred, 1_000_001)
    # Edges belong to the bin below them: 0.25 and 0.5 of four bins of equal width.
    assert metrics.reliability_curve(Y, Y_pred, 4, equal_mass=False)[2].tolist() == [1, 1, 1]
    assert metrics.reliability_curve(Y, Y_pred, 2, equal_mass=False)[2].tolist() == [2, 1]
    for score in (1.001, -0.001):
        with pytest.raises(DataError, match="is not a probability"):
            metrics.calibration_error(Y, sp.csr_array([[score, 0.5], [0.5, 0]]))
