"""evaluate: totals and buckets, options, JSON."""

import json
from math import log2

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

from labelwise import metrics
from labelwise.errors import DataError, UsageError
from labelwise.metrics import evaluate
from labelwise.metrics.buckets import assign_buckets, describe_bucket
from labelwise.predictions import Predictions
from tests.metrics.examples import COUNTS, hand_evaluation, hand_worked, noisy_systems, problems
from tests.reference import metrics as reference


def test_buckets_by_hand():
    evaluation = hand_evaluation(bootstrap=0)
    head, torso, tail = evaluation.buckets.values()
    assert list(evaluation.buckets) == ["head", "torso", "tail"]
    assert [(part.n_labels, part.n_docs, part.fewest) for part in (head, torso, tail)] == [
        (1, 1, 101),  # label 0 of document 0
        (2, 2, 6),  # labels 1 and 2 of documents 0 and 3
        (2, 2, 0),  # labels 3 and 4 of documents 1 and 3
    ]
    d2, d3 = 1 / log2(3), 1 / log2(4)
    # Right: label 0 at rank 1 and label 1 at rank 3 of document 0, label 4 at rank 2 of document 1.
    assert [part.scores["P@3"].value for part in (head, torso, tail)] == pytest.approx([100 / 12] * 3)
    # Means over the documents with labels of the bucket: head 1 of 1; torso 1 of 2 and 0 of 1; tail 1 of 1, 0 of 1.
    assert [part.scores["R@3"].value for part in (head, torso, tail)] == pytest.approx([100, 25, 50])
    assert torso.scores["nDCG@3"].value == pytest.approx(100 * (d3 / (1 + d2)) / 2)
    assert tail.scores["RP@1"].value == 0
    # Tail predictions: 3 for document 0, 3 and 4 for document 1; true: 4, 3. One right.
    assert tail.scores["micro-F1@3"].value == pytest.approx(100 * 2 / (3 + 2))
    # F1 of label 1: one right of 1 predicted and 2 true; of label 2: 0.
    assert torso.scores["macro-F1@3"].value == pytest.approx(100 * (2 / 3) / 2)
    assert tail.scores["coverage@3"].value == 50


@given(problems())
def test_total_and_buckets_equal_the_reference(problem):
    truth, scores, n_labels, Y, Y_pred = problem
    counts = np.array([0, 5, 6, 100, 101, 3, 50, 1000])[:n_labels]
    found = evaluate(Y, Y_pred, ks=(5, 1, 3), train_counts=counts, n_train_docs=2000, bootstrap=0, threshold=0.25)
    weights = metrics.inverse_propensity(counts, n_docs=2000)
    assert found.ks == (1, 3, 5)
    for k in found.ks:
        assert found[f"P@{k}"] == pytest.approx(reference.precision(truth, scores, k))
        assert found[f"PSP@{k}"] == pytest.approx(reference.psp(truth, scores, k, weights), nan_ok=True)
        assert found[f"PSnDCG@{k}"] == pytest.approx(reference.psndcg(truth, scores, k, weights), nan_ok=True)
        for metric in ("P", "PSP", "PSnDCG"):  # buckets add up to the whole
            parts = [bucket.scores[f"{metric}@{k}"].value for bucket in found.buckets.values()]
            assert sum(parts) == pytest.approx(found[f"{metric}@{k}"], nan_ok=True)
    bounds = {"head": (101, np.inf), "torso": (6, 100), "tail": (0, 5)}
    for name, (low, high) in bounds.items():
        labels = {label for label in range(n_labels) if low <= counts[label] <= high}
        inside = reference.within(truth, labels)
        part, k = found.buckets[name].scores, 3
        some = reference.only_with_labels(inside, scores)
        for metric, twin in (("R", reference.recall), ("nDCG", reference.ndcg), ("RP", reference.r_precision)):
            assert part[f"{metric}@{k}"].value == pytest.approx(twin(*some, k), nan_ok=True)
        # Ranks are those of the whole list, so cut first and then look at the bucket.
        cut = [{label: row[label] for label in reference.ranking(row, k) if label in labels} for row in scores]
        assert part[f"micro-F1@{k}"].value == pytest.approx(reference.micro_f1(inside, cut), nan_ok=True)
        assert part[f"macro-F1@{k}"].value == pytest.approx(reference.macro_f1(inside, cut), nan_ok=True)
        assert part[f"coverage@{k}"].value == pytest.approx(reference.coverage(inside, cut, k), nan_ok=True)
        above = [{label: score for label, score in row.items() if label in labels} for row in scores]
        for metric, twin in (("micro-F1", reference.micro_f1), ("macro-F1", reference.macro_f1)):
            expected = twin(inside, above, threshold=0.25)
            assert part[f"{metric}>=0.25"].value == pytest.approx(expected, nan_ok=True)
    assert found["micro-F1>=0.25"] == pytest.approx(reference.micro_f1(truth, scores, threshold=0.25), nan_ok=True)


def test_single_functions_agree_with_evaluate():
    Y, good, _ = noisy_systems(n_docs=200)
    found = evaluate(Y, good, Y_train=Y, bootstrap=0, threshold=1.0)
    weights = metrics.inverse_propensity(Y)
    for k in (1, 3, 5):
        assert found[f"P@{k}"] == metrics.precision_at_k(Y, good, k)
        assert found[f"R@{k}"] == metrics.recall_at_k(Y, good, k)
        assert found[f"nDCG@{k}"] == metrics.ndcg_at_k(Y, good, k)
        assert found[f"RP@{k}"] == metrics.r_precision_at_k(Y, good, k)
        assert found[f"PSP@{k}"] == metrics.psp_at_k(Y, good, weights, k)
        assert found[f"PSnDCG@{k}"] == metrics.psndcg_at_k(Y, good, weights, k)
        assert found[f"micro-F1@{k}"] == metrics.micro_f1(Y, good, k=k)
        assert found[f"macro-F1@{k}"] == metrics.macro_f1(Y, good, k=k)
        assert found[f"coverage@{k}"] == metrics.coverage_at_k(Y, good, k)
    assert found["macro-F1>=1"] == metrics.macro_f1(Y, good, threshold=1.0)


def test_figures_equal_those_of_the_peers():
    rng = np.random.default_rng(7)
    truth = (rng.random((80, 40)) < 0.08).astype(np.int64)  # some documents without labels
    scores = rng.permuted(np.tile(np.arange(1.0, 41), (80, 1)), axis=1) + 25 * truth
    scores[scores < 37] = 0  # few predictions: some rows have less than five
    counts = rng.integers(0, 300, size=40)
    top = np.argsort(-scores, axis=1, kind="stable")[:, :6]
    top[np.take_along_axis(scores, top, axis=1) == 0] = -1
    assert (top[:, 4] < 0).any()
    assert (truth.sum(axis=1) == 0).any()
    found = evaluate(sp.csr_array(truth), sp.csr_array(scores), train_counts=counts, n_train_docs=1000, bootstrap=0)
    for name, value in reference.peers_quality(top, truth, counts, 1000).items():
        assert found[name] == pytest.approx(value), name


def test_labels_unknown_to_the_truth_count_as_wrong_tail_predictions():
    Y, Y_pred = hand_worked()
    predictions = Predictions(Y_pred, ["a", "b", "c", "d", "e"]).with_labels(["d", "e"])
    found = evaluate(Y[:, [3, 4]], predictions, train_counts=[200, 0], n_train_docs=300, bootstrap=10)
    assert found.n_labels == 2
    # d is head, e is tail; a and b, predicted three times, are unknown. Of e: one right, 1 predicted, 1 true.
    assert found.buckets["tail"].scores["micro-F1@3"].value == pytest.approx(100 * 2 / ((1 + 3) + 1))
    assert found["coverage@3"] == 50


def test_a_huge_cut_off_needs_no_memory():
    Y, Y_pred = hand_worked()
    assert evaluate(Y, Y_pred, ks=(10**12,), bootstrap=0, Y_train=Y)[f"R@{10**12}"] == pytest.approx(100 * 5 / 12)


def test_without_training_labels_there_are_no_propensities_and_no_buckets():
    evaluation = evaluate(*hand_worked(), bootstrap=0)
    assert not evaluation.buckets
    assert not any(name.startswith("PS") for name in evaluation.scores)
    with pytest.raises(KeyError, match=r"'PSP@5' was not measured; there are P@1"):
        evaluation["PSP@5"]


def test_buckets_can_be_chosen():
    found = hand_evaluation(bootstrap=0, buckets={"rare": 0, "seen": 1})
    assert list(found.buckets) == ["seen", "rare"]
    assert found.buckets["rare"].n_labels == 1
    assert not hand_evaluation(bootstrap=0, buckets=None).buckets
    assert assign_buckets(np.array([101, 100, 6, 5, 0]), metrics.BUCKETS).tolist() == [0, 1, 1, 2, 2]
    assert describe_bucket("torso", metrics.BUCKETS) == "6–100 training documents"
    assert describe_bucket("rare", found_floors(found)) == "0 training documents"
    for wrong in ({"head": 10}, {"a": 0, "b": 0}):
        with pytest.raises(UsageError, match="least number of training documents"):
            hand_evaluation(buckets=wrong)


def found_floors(evaluation):
    return {name: bucket.fewest for name, bucket in evaluation.buckets.items()}


def test_family_changes_the_weights():
    values = {hand_evaluation(bootstrap=0, family=family)["PSP@3"] for family in metrics.FAMILIES}
    assert len(values) == 3
    assert hand_evaluation(bootstrap=0, family="amazon").settings["b"] == 2.6
    with pytest.raises(UsageError, match="there are default, wikipedia, amazon"):
        hand_evaluation(family="shop")


def test_bad_options_are_named():
    Y, Y_pred = hand_worked()
    with pytest.raises(UsageError, match="ks is empty"):
        evaluate(Y, Y_pred, ks=())
    with pytest.raises(UsageError, match="k is -1; it must be a whole number of at least 1"):
        evaluate(Y, Y_pred, ks=(1, -1))
    with pytest.raises(UsageError, match="pass one of them"):
        evaluate(Y, Y_pred, Y_train=Y, train_counts=COUNTS)
    with pytest.raises(UsageError, match="pass n_docs"):
        evaluate(Y, Y_pred, train_counts=COUNTS)
    with pytest.raises(DataError, match="train_counts has 4 labels but Y has 5"):
        evaluate(Y, Y_pred, train_counts=COUNTS[:4], n_train_docs=9)
    with pytest.raises(DataError, match="train_counts is neither"):
        evaluate(Y, Y_pred, train_counts=[-1] * 5, n_train_docs=9)
    with pytest.raises(UsageError, match="bootstrap is -1"):
        evaluate(Y, Y_pred, bootstrap=-1)


def test_saved_as_json(tmp_path):
    evaluation = hand_evaluation(bootstrap=20, ks=(1, 2))
    evaluation.save(tmp_path / "evaluation.json")
    read = json.loads((tmp_path / "evaluation.json").read_text())
    assert read == json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert read["scores"]["P@1"]["value"] == 25
    assert read["scores"]["coverage@1"] == {"value": 20, "low": None, "high": None}
    assert read["settings"] == {"family": "default", "a": 0.55, "b": 1.5, "bootstrap": 20, "seed": 0}
    assert [path.name for path in tmp_path.iterdir()] == ["evaluation.json"]
    empty = evaluate(sp.csr_array((2, 3)), sp.csr_array((2, 3)), bootstrap=5)
    json.dumps(empty.to_dict(), allow_nan=False)
