"""The examples do what they say."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelwise import LinearTreeConfig, generate_shop

FILE = Path(__file__).parents[1] / "examples" / "keyword_recommendation.py"
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason="the examples are not beside the tests")


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("keyword_recommendation", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def shop():
    return generate_shop(2000, 300)


def test_reasons_add_up_to_the_score(example, shop):
    config = replace(LinearTreeConfig(), combine="ranker-only")
    recommender = example.KeywordRecommender.learn(shop["train"], config)
    recommender.model.calibrator_ = None  # the model's own scores
    for title in shop["test"].texts[:20]:
        scores = recommender.model.predict([title], top_k=5)[0]
        for suggestion, (query, score) in zip(recommender.suggest(title, top_k=5), scores, strict=True):
            assert suggestion.query == query
            assert sum(value for _, value in suggestion.words) + suggestion.bias == pytest.approx(score, abs=1e-5)


def test_suggestions_have_true_reasons(example, shop):
    train, test = shop["train"], shop["test"]
    recommender = example.KeywordRecommender.learn(train)
    title = test.texts[0]
    suggestions = recommender.suggest(title, top_k=5)
    assert [s.query for s in suggestions] == [query for query, _ in recommender.model.predict([title], 5)[0]]
    by_text = {text: {train.labels[j] for j in train.Y[[row]].indices} for row, text in enumerate(train.texts)}
    said = set(title.lower().replace(",", " ").split())
    for suggestion in suggestions:
        assert 0 <= suggestion.probability <= 1
        assert all(suggestion.query in by_text[product] for product, _ in suggestion.similar)
        likeness = [value for _, value in suggestion.similar]
        assert likeness == sorted(likeness, reverse=True)
        assert all(-1e-6 <= value <= 1 + 1e-6 for value in likeness)
        assert suggestion.query not in suggestion.cluster
        tree = recommender.model.trees_[0].tree
        places = {tree.clusters[recommender.column[name]] for name in (suggestion.query, *suggestion.cluster)}
        assert len(places) == 1
    assert any(word in said for suggestion in suggestions for word, value in suggestion.words if value > 0)
    # A hundred titles: the first suggestion is mostly right, or the reasons would be for nothing.
    found = recommender.model.predict(test.texts[:100], top_k=1).matrix
    assert np.mean([test.Y[[row]].toarray()[0, found[[row]].indices[0]] for row in range(100)]) > 0.5


def test_it_runs_as_a_command(example, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["keyword", "Red Cotton Play Mat", "--products", "1000", "--queries", "200"])
    example.main()
    out = capsys.readouterr().out
    for words in ("all made up", "Red Cotton Play Mat", "words:", "found among:", "led to:", "% alike"):
        assert words in out
