"""Explanations of single models: the parts add up to the scores of the model."""

from dataclasses import replace

import numpy as np
import pytest

from labelwise import explain, load_model
from labelwise.config import EncoderConfig
from labelwise.errors import UsageError
from labelwise.explanations import integrated_gradients as tokens
from labelwise.explanations.integrated_gradients import TOLERANCE, TokenReader
from labelwise.features.encoder import Encoder
from labelwise.features.normalize import unit_rows
from labelwise.models.linear_tree import LinearTree
from labelwise.models.prediction_cache import PredictionCache
from labelwise.models.xtransformer import XTransformer
from labelwise.rank.features import Features
from labelwise.rank.ranker import Inputs, Ranker
from labelwise.rank.search import BeamSearch
from tests.explanations.conftest import LINEAR
from tests.features.tiny import ARCHITECTURES, write_model

EVERY = 10_000


def total(explanation):
    """The sum of all parts of the own score."""
    neural = explanation.neural.share if explanation.neural else 0.0
    return explanation.bias + explanation.others + neural + sum(word.contribution for word in explanation.words)


def own_scores(model, text):
    """(n_trees, n_labels) every label's own score, by an exhaustive search of the model."""
    reading = PredictionCache([text], threads=1)
    if isinstance(model, XTransformer):
        X, ranker = reading.features(model.tfidf_), model.ranker_
        E, found = reading.match(model.matcher_, model.tfidf_, model.tree_.n_clusters)
        inputs = Inputs.of(model.config.features, X, E, found)
        return ranker.with_transform("ranker-only", 1.0).top(inputs, len(model.labels_)).toarray()
    alone = LinearTree(replace(model.config, score_transform="ranker-only", beam=EVERY, neighbours=EVERY))
    document = Features.of(reading.features(model.tfidf_), bias=model.config.ranker.bias)
    searches = [tree.search(model.n_features_, alone.config) for tree in model.trees_]
    return np.vstack([s.top(document, beam=EVERY, top_k=len(model.labels_)).toarray() for s in searches])


@pytest.mark.parametrize("name", LINEAR)
def test_words_add_up_and_paths_combine_to_the_score(linear, shop, name):
    model = linear(name)
    for text in shop["test"].texts[:5]:
        predicted = model.predict([text], top_k=4)[0]
        found = explain(model, text, top_k=4, words=EVERY)
        assert [(one.label, pytest.approx(one.score, abs=1e-5)) for one in found] == predicted
        own = own_scores(model, text)
        for one in found:
            column = model.labels_.index(one.label)
            assert one.listed
            assert one.probability is None
            assert total(one) == pytest.approx(one.own_score, abs=1e-9)
            assert one.own_score == pytest.approx(own[:, column].mean(), abs=1e-5)
            assert [path.steps[-1].score for path in one.paths] == pytest.approx(own[:, column], abs=1e-5)
            for path in one.paths:
                factors = [step.factor for step in path.steps]
                expected = path.steps[-1].score if None in factors else np.prod(factors)
                assert path.score == pytest.approx(expected, abs=1e-12)
            assert one.score == pytest.approx(sum(p.weight * p.score for p in one.paths if p.listed), abs=1e-12)


def test_scores_of_several_trees_are_those_of_a_prediction(linear, shop):
    model = linear("three-trees")
    for text in shop["test"].texts:
        (one,), ((label, score),) = explain(model, text, top_k=1), model.predict([text], top_k=1)[0]
        assert (one.label, one.score) == (label, pytest.approx(score, abs=1e-5))


def test_words_of_the_opening_have_a_mark(linear, shop):
    (one,) = explain(linear("opening"), shop["test"].texts[0], top_k=1, words=EVERY)
    terms = {word.term for word in one.words}
    assert any(term.startswith("^") and term[1:] in terms for term in terms)
    assert one.notes == ("^word: among the first 3 words of the text",)
    assert "note: ^word: among the first 3 words" in str(one)


def test_nodes_on_the_path_have_the_scores_of_their_level(linear, shop):
    model, text = linear("one-tree"), shop["test"].texts[0]
    trained = model.trees_[0]
    (one,) = explain(model, text, top_k=1)
    (path,) = one.paths
    label = model.labels_.index(one.label)
    assert tuple(step.node for step in path.steps) == trained.tree.path(label)[1:]
    assert [step.kind for step in path.steps] == ["node", "cluster", "label"]
    document = Features.of(model.tfidf_.transform([text]), bias=1.0)
    for depth, step in enumerate(path.steps):
        search = BeamSearch(trained.levels[: depth + 1], n_features=model.n_features_, score_transform="ranker-only")
        scores = search.top(document, beam=EVERY, top_k=EVERY).toarray()[0]
        assert step.score == pytest.approx(scores[step.node], abs=1e-5)
        assert step.factor == pytest.approx(np.exp(-(max(0, 1 - scores[step.node]) ** 3)), abs=1e-5)
    clusters = trained.tree.clusters
    assert path.steps[1].n_labels == np.count_nonzero(clusters == clusters[label])
    assert path.steps[0].n_labels == np.count_nonzero(trained.tree.parents[1][clusters] == path.steps[0].node)
    # The other labels of the cluster that are shown have the best scores.
    own = own_scores(model, text)[0]
    others = [at for at in np.argsort(-own) if clusters[at] == clusters[label] and at != label]
    assert list(path.steps[1].among) == [model.labels_[at] for at in others[:3]]


def test_the_strongest_words_are_listed_and_the_others_are_summed(linear, shop):
    model, text = linear("one-tree"), shop["test"].texts[1]
    (full,), (few,) = (explain(model, text, top_k=1, words=words) for words in (EVERY, 2))
    sizes = [abs(word.contribution) for word in full.words]
    assert sizes == sorted(sizes, reverse=True)
    assert few.words == full.words[:2]
    assert few.others == pytest.approx(sum(word.contribution for word in full.words[2:]))
    assert total(few) == pytest.approx(total(full), abs=1e-12)


def test_labels_that_the_search_does_not_reach_are_explained_too(linear, shop):
    model, text = linear("three-trees"), shop["test"].texts[0]
    wide = LinearTree(replace(model.config, beam=EVERY))
    vars(wide).update({name: value for name, value in vars(model).items() if name != "config"})
    reached = set(model.scores(PredictionCache([text]), top_k=120).indices.tolist())
    narrow = next(at for at in range(len(model.labels_)) if at not in reached)
    (one,) = explain(model, text, model.labels_[narrow])
    assert not one.listed
    assert "does not reach this label" in one.notes[0]
    assert one.score == pytest.approx(wide.scores(PredictionCache([text]), top_k=120).toarray()[0, narrow], abs=1e-5)
    assert [one.label for one in explain(model, text, model.labels_[:3])] == model.labels_[:3]


def test_probabilities_are_those_of_the_model(linear, shop):
    model = LinearTree(LINEAR["one-tree"])
    vars(model).update(vars(linear("one-tree")))
    model.calibrate(shop["test"])
    text = shop["test"].texts[3]
    for one, (label, probability) in zip(explain(model, text), model.predict([text], top_k=3)[0], strict=True):
        assert (one.label, one.probability) == (label, pytest.approx(probability, abs=1e-6))


@pytest.mark.parametrize(
    ("preset", "overrides"),
    [
        ("x-transformer", {}),
        ("hybrid", {}),
        ("hybrid", {"score_transform": "sigmoid", "matcher_weight": 0.3}),
        ("hybrid", {"features": "neural"}),
        ("hybrid", {"features": "tfidf", "score_transform": "ranker-only"}),
    ],
)
def test_words_bias_and_embedding_add_up(neural, shop, preset, overrides):
    model = neural(preset, **overrides)
    ranker: Ranker = model.ranker_
    for text in shop["test"].texts[:3]:
        found = explain(model, text, top_k=3, words=EVERY)
        reading = PredictionCache([text], threads=1)
        scores = model.scores(reading, 3).toarray()[0]
        E, g = reading.match(model.matcher_, model.tfidf_, model.tree_.n_clusters)
        own = own_scores(model, text)[0]
        for one in found:
            column = model.labels_.index(one.label)
            assert one.listed
            assert one.score == pytest.approx(scores[column], abs=1e-5)
            assert one.own_score == pytest.approx(own[column], abs=1e-5)
            assert total(one) == pytest.approx(one.own_score, abs=1e-9)
            assert one.probability == pytest.approx(float(model.calibrator_.transform([scores[column]])[0]), abs=1e-4)
            cluster, label = one.paths[0].steps
            assert (cluster.kind, cluster.node) == ("cluster", model.tree_.clusters[column])
            assert cluster.score == pytest.approx(g.toarray()[0, cluster.node], abs=1e-6)
            assert label.score == one.own_score
            if overrides.get("features") == "tfidf":
                assert one.neural is None
                continue
            at = int(np.flatnonzero(ranker.level.child_ids == column)[0])
            share = unit_rows(E)[0] @ ranker.level.dense[at, :-1] * ranker.dense_weight
            assert one.neural.share == pytest.approx(share, abs=1e-5)
            parts = one.neural.base + one.neural.others + sum(word.contribution for word in one.neural.words)
            assert parts == pytest.approx(one.neural.share, abs=TOLERANCE)


def test_loaded_models_have_the_same_explanations(neural, linear, shop, tmp_path):
    text = shop["test"].texts[2]
    for model in (neural("x-transformer"), neural("hybrid"), linear("three-trees")):
        model.save(tmp_path / "model")
        for one, again in zip(explain(model, text), explain(load_model(tmp_path / "model"), text), strict=True):
            assert again.label == one.label
            assert again.own_score == pytest.approx(one.own_score, abs=1e-5)
            assert [w.spans for w in again.words] == [w.spans for w in one.words]


def test_labels_outside_of_the_clusters_found_are_not_listed(neural, shop):
    model, text = neural("x-transformer"), shop["test"].texts[0]
    reading = PredictionCache([text], threads=1)
    reached = {model.tree_.clusters[at] for at in model.scores(reading, 120).indices}
    column = next(at for at, cluster in enumerate(model.tree_.clusters) if cluster not in reached)
    (one,) = explain(model, text, model.labels_[column])
    E, found = reading.match(model.matcher_, model.tfidf_, model.tree_.n_clusters)
    inputs = Inputs.of(model.config.features, reading.features(model.tfidf_), E, found)
    assert not one.listed
    assert one.score == pytest.approx(model.ranker_.top(inputs, 120).toarray()[0, column], abs=1e-5)


# ---------------------------------------------------------------------- the embedding's words


@pytest.fixture(scope="module")
def reader(encoder):
    return Encoder.load(EncoderConfig(name=str(encoder), max_length=32))


def test_contributions_and_baseline_add_up_to_the_share(reader):
    text = "a cheap red shoe for running children in northern waters"
    asked = TokenReader(reader, text)
    e = unit_rows(reader.embed([text]))[0]
    W = np.random.default_rng(0).normal(size=(5, 32)).astype(np.float32)
    (masked,) = unit_rows(reader.embed([" ".join("[MASK]" for _ in text.split())]))
    found = asked.attribute(W, (W @ e).tolist())
    for neural, weights in zip(found, W, strict=True):
        assert neural.share == pytest.approx(float(e @ weights), abs=1e-6)
        assert neural.base == pytest.approx(float(masked @ weights), abs=1e-5)
        assert neural.base + sum(word.contribution for word in neural.words) == pytest.approx(neural.share, abs=1e-6)
        assert neural.error < 0.05
    assert [text[a:b] for word in neural.words for a, b in word.spans] == text.split()
    assert [word.term for word in neural.words] == text.split()


def test_the_number_of_points_at_once_changes_nothing(reader, monkeypatch):
    text, weights = "the law of fishing quotas", np.random.default_rng(3).normal(size=(2, 32)).astype(np.float32)
    shares = (weights @ unit_rows(reader.embed([text]))[0]).tolist()
    first = TokenReader(reader, text).attribute(weights, shares)
    monkeypatch.setattr(tokens, "TOKENS_AT_ONCE", 30)
    for one, again in zip(first, TokenReader(reader, text).attribute(weights, shares), strict=True):
        assert [w.contribution for w in again.words] == pytest.approx([w.contribution for w in one.words], abs=1e-6)


@pytest.mark.filterwarnings("ignore:`torch.jit.script`")  # by DeBERTa's module in transformers
@pytest.mark.parametrize("kind", ARCHITECTURES)
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_integrated_gradients_work_for_every_architecture(kind, pooling, tmp_path):
    reader = Encoder.load(EncoderConfig(name=str(write_model(tmp_path / kind, kind)), max_length=32, pooling=pooling))
    text, masked = "red shoe for children", " ".join([reader.tokenizer.mask_token] * 4)
    weights = np.random.default_rng(2).normal(size=32).astype(np.float32)
    share, base = (unit_rows(reader.embed([text, masked])) @ weights).tolist()
    (neural,) = TokenReader(reader, text).attribute(weights[None], [share])
    assert neural.base == pytest.approx(base, abs=1e-4)
    assert neural.error < 0.1
    assert neural.base + sum(word.contribution for word in neural.words) == pytest.approx(share, abs=TOLERANCE)
    assert [word.term for word in neural.words] == text.split()


def test_a_word_without_influence_has_no_contribution(reader):
    # One of the two words is masked already, so the whole difference comes from the other word.
    asked = TokenReader(reader, "shoe [MASK]")
    weights = np.random.default_rng(1).normal(size=32).astype(np.float32)
    share = float(unit_rows(reader.embed(["shoe [MASK]"]))[0] @ weights)
    (neural,) = asked.attribute(weights[None], [share])
    by_word = {word.term: word.contribution for word in neural.words}
    assert by_word["[MASK]"] == pytest.approx(0, abs=1e-7)
    assert by_word["shoe"] == pytest.approx(share - neural.base, abs=1e-6)


def test_tokens_of_a_word_are_joined_and_truncated_words_are_left_out(encoder):
    text = "laws  Shoe red red"
    asked = TokenReader(Encoder.load(EncoderConfig(name=str(encoder), max_length=5)), text)
    assert asked.read.owner.tolist() == [-1, 0, 0, 1, -1]  # [CLS] law ##s shoe [SEP]
    assert asked.read.words == (("laws", ((0, 4),)), ("Shoe", ((6, 10),)))


def test_a_text_without_words_has_no_contributions(neural, linear):
    for model in (neural("hybrid"), linear("one-tree")):
        for text in ("", " \n"):
            for one in explain(model, text, top_k=2):
                assert one.words == ()
                assert total(one) == pytest.approx(one.own_score, abs=1e-9)
                if one.neural is not None:
                    assert (one.neural.words, one.neural.base) == ((), one.neural.share)


# ---------------------------------------------------------------------- errors


def test_wrong_requests_are_refused(linear, shop):
    model, text = linear("one-tree"), shop["test"].texts[0]
    label = model.labels_[0]
    with pytest.raises(UsageError, match=r"the model has no label .*; did you mean"):
        explain(model, text, f"{label}x")
    with pytest.raises(UsageError, match=r"the model has no label '§§'; it has 120, the first is"):
        explain(model, text, "§§")
    with pytest.raises(UsageError, match="text is of class list, not a string; explain one text at a time"):
        explain(model, [text])
    for options in ({"top_k": 0}, {"words": 0}):
        with pytest.raises(UsageError, match=r"is 0; it must be a whole number of at least 1"):
            explain(model, text, **options)
    with pytest.raises(UsageError, match="not fitted yet"):
        explain(LinearTree(), text)
    features = LinearTree(LINEAR["one-tree"]).fit(model.tfidf_.transform(shop["train"].texts), shop["train"].Y)
    with pytest.raises(UsageError, match="fitted on features, not on texts, so there are no words"):
        explain(features, text)
