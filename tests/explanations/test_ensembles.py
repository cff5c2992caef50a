"""Explanations of ensembles: the members' contributions add up to the score where the rule is a mean."""

import numpy as np
import pytest

from labelwise import explain
from labelwise.config import EnsembleConfig, HoldoutConfig
from labelwise.config.presets import load_preset
from labelwise.models.ensemble import Ensemble
from labelwise.models.ensemble.rules import RULES
from labelwise.models.prediction_cache import PredictionCache

EVERY = 10_000


@pytest.mark.parametrize("rule", RULES)
def test_members_add_up_where_the_rule_is_a_mean(ensemble, shop, rule):
    model = ensemble(rule)
    for text in shop["test"].texts[:3]:
        scores = model.scores(PredictionCache([text], threads=1), 4).toarray()[0]
        found = explain(model, text, top_k=4, words=EVERY)
        assert {one.label for one in found} == {model.labels_[at] for at in np.flatnonzero(scores)}
        for one in found:
            assert one.listed
            assert one.score == pytest.approx(scores[model.labels_.index(one.label)], abs=1e-6)
            assert len(one.members) == 3
            assert sum(member.weight for member in one.members) == pytest.approx(1)
            if rule == "round_robin":
                assert {member.contribution for member in one.members} == {None}
                assert "do not add up" in one.combine
            else:
                assert sum(member.contribution for member in one.members) == pytest.approx(one.score, abs=1e-6)
                assert f"weighted mean ({rule})" in one.combine


def test_members_are_explained_as_alone_and_words_are_their_weighted_sum(ensemble, shop):
    model, text = ensemble("average"), shop["test"].texts[0]
    (one,) = explain(model, text, top_k=1, words=EVERY)
    for member, alone in zip(one.members, model.members_, strict=True):
        (expected,) = explain(alone, text, one.label, top_k=5, words=EVERY)
        assert member.explanation == expected
        if expected.listed:
            assert member.value == pytest.approx(expected.score, abs=1e-5)
    parts = one.bias + one.neural.share + sum(word.contribution for word in one.words)
    assert parts == pytest.approx(one.own_score, abs=1e-9)
    assert one.own_score == pytest.approx(sum(m.weight * m.explanation.own_score for m in one.members))
    neural = one.neural.base + sum(word.contribution for word in one.neural.words)
    assert neural == pytest.approx(one.neural.share, abs=1e-5)
    # A word at one position is listed once, even if several members read it.
    assert len({(word.term, word.spans) for word in one.words}) == len(one.words)


def test_members_that_share_an_encoder(encoder, shop):
    train, text = shop["train"], shop["test"].texts[0]
    members = tuple(
        load_preset(
            "x-transformer",
            label_embedding=kind,
            encoder={"name": str(encoder), "max_length": 16},
            matcher={"steps": 2, "batch_size": 32, "device": "cpu"},
            index={"n_clusters": 8},
            dense_weight=1.0,
            beam=3,
            threads=1,
        )
        for kind in ("pifa-tfidf", "pifa-neural")
    )
    config = EnsembleConfig(members=members, rule="average", holdout=HoldoutConfig(share=0.2), threads=1)
    model = Ensemble(config).fit(train.texts, train.Y, label_names=train.labels)
    for one in explain(model, text, top_k=2, words=EVERY):
        assert sum(member.contribution for member in one.members) == pytest.approx(one.score, abs=1e-6)
        for member, alone in zip(one.members, model.members_, strict=True):
            scores = alone.scores(PredictionCache([text], threads=1), 120).toarray()[0]
            if member.explanation.listed:
                expected = scores[model.labels_.index(one.label)]
                assert member.explanation.score == pytest.approx(expected, abs=1e-5)
                assert member.value == pytest.approx(member.explanation.probability, abs=1e-5)


def test_labels_that_no_member_lists(ensemble, shop):
    text = shop["test"].texts[0]
    for rule, words in (("average", "what it would be otherwise"), ("rank_average", "its score is 0")):
        model = ensemble(rule)
        listed = set(model.scores(PredictionCache([text], threads=1), 120).indices.tolist())
        column = next(at for at in range(120) if at not in listed)
        (one,) = explain(model, text, model.labels_[column])
        assert not one.listed
        assert words in one.notes[0]
        expected = sum(m.weight * m.explanation.score for m in one.members) if rule == "average" else 0
        assert one.score == pytest.approx(expected)
