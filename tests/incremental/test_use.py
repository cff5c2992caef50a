"""A grown model is a model like any other: it is explained, saved for the hub, and grows again."""

import numpy as np
import pytest

from labelwise import Ensemble, add_labels, explain, from_pretrained, keep_documents, remove_labels
from labelwise.config import EnsembleConfig
from tests.explanations.test_single_model import total
from tests.incremental.conftest import KINDS
from tests.incremental.test_grow import predicted


@pytest.mark.parametrize("name", KINDS)
def test_new_labels_are_explained(name, fitted, shop):
    grown = add_labels(fitted(name), shop.new(5), data=shop.train)
    for new in shop.new(5)[:2]:
        text = new.examples[0]
        (one,) = explain(grown, text, new.label, top_k=50, words=10_000)
        if name != "ensemble":
            assert total(one) == pytest.approx(one.own_score, abs=1e-6)
        scored = dict(grown.predict([text], top_k=50)[0])
        if one.listed and new.label in scored:
            assert one.probability == pytest.approx(scored[new.label], abs=1e-4)


def test_labels_are_added_again_and_again(fitted, shop):
    """Labels have the same predictions, whatever the order in which labels were added and removed."""
    model = keep_documents(fitted("three-trees"), shop.train)
    grown = model
    for name in shop.hidden[:4]:
        grown = add_labels(grown, shop.new(0, [name]))
    grown = remove_labels(grown, [shop.hidden[1], shop.hidden[3]])
    again = add_labels(add_labels(model, shop.new(0, [shop.hidden[0]])), shop.new(0, [shop.hidden[2]]))
    assert grown.labels_ == again.labels_ == [*shop.old, shop.hidden[0], shop.hidden[2]]
    first, second = (found.predict(shop.test.texts, top_k=20).matrix for found in (grown, again))
    # The median length of a cluster's weights counts labels that were there at the time.
    np.testing.assert_allclose(first.toarray(), second.toarray(), atol=0.02)


def test_models_with_the_same_added_labels_make_an_ensemble(fitted, shop):
    new = shop.new(2)
    models = [add_labels(fitted(name), new, data=shop.train) for name in ("one-tree", "hybrid")]
    both = Ensemble.of(models, EnsembleConfig(rule="average", combine_on="scores", threads=1))
    assert both.labels_ == models[0].labels_
    assert both.predict(shop.test.texts[:3])[0]


def test_members_of_a_grown_ensemble_share_their_tfidf(fitted, shop):
    grown = add_labels(fitted("ensemble"), shop.new(1), data=shop.train)
    assert len({id(member.tfidf_) for member in grown.members}) == 1


def test_kept_documents_are_saved_for_the_hub(fitted, shop, tmp_path):
    grown = add_labels(keep_documents(fitted("one-tree"), shop.train), shop.new(1))
    grown.save_pretrained(tmp_path / "hub")
    back = from_pretrained(tmp_path / "hub")
    assert predicted(back, shop.test.texts) == predicted(grown, shop.test.texts)
    assert len(back.exemplars_) == len(grown.exemplars_)
