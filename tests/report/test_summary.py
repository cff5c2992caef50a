"""The head of a report: the verdict, the headline figures, the meanings of the measures."""

import pytest
import scipy.sparse as sp

from labelwise import LinearTree, generate_shop
from labelwise.metrics.tally import METRICS
from labelwise.report.split_evaluation import evaluate_split
from labelwise.report.summary import TERMS, legend, summary_part, term


@pytest.fixture(scope="module")
def shop():
    return generate_shop(300, 100)


def test_every_metric_has_a_meaning():
    assert set(METRICS) <= set(TERMS)
    assert term("P@5") == f'<abbr title="{TERMS["P"]}">P@5</abbr>'
    assert term("documents") == "<span>documents</span>"
    assert legend(["P", "unknown"]).count("<dt>") == 1


@pytest.mark.parametrize("calibrate", [True, False])
def test_the_verdict(shop, calibrate):
    model = LinearTree(calibrate=calibrate, hold_out=0.2).fit(
        shop["train"].texts, shop["train"].Y, label_names=shop["train"].labels
    )
    evaluation = evaluate_split(model, shop["test"], shop["train"], split="test", bootstrap=0)
    page = summary_part(evaluation, model, "")
    assert f"right for {evaluation.metrics.scores['P@1'].value:.0f} of 100 documents" in page
    assert ("A probability is off by" in page) == calibrate
    assert ("The model gives scores, not probabilities." in page) != calibrate
    assert ("ECE" in page) == calibrate


def test_without_a_training_split(shop):
    texts, Y = shop["train"].texts, sp.csr_array(shop["train"].Y)
    model = LinearTree().fit(texts, Y, label_names=shop["train"].labels)
    page = summary_part(evaluate_split(model, shop["test"], None, split="test", bootstrap=0), model, "")
    assert "PSP@5" not in page
    assert "rare labels" not in page
    assert "nan" not in page


def test_nothing_evaluated():
    page = summary_part(None, None, "There are no data.")
    assert "There are no data." in page
    assert "P@1" not in page
