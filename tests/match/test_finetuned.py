"""The matcher as a whole: fitted, asked, saved and loaded; and the one that is not fine-tuned."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.config import MatcherConfig, RankerConfig
from labelwise.errors import DataError, StorageError, UsageError
from labelwise.features.normalize import unit_rows
from labelwise.match import finetuned as matcher_module
from labelwise.match.finetuned import FineTunedMatcher
from labelwise.match.frozen import FrozenMatcher
from labelwise.match.recall import recall_at
from tests.match.planted import N_CLUSTERS, documents_of, encoder_of, planted, settings


def fitted(bert, *, epochs=6.0, n_docs=64, validation=False, **changes):
    texts, M = planted(n_docs)
    encoder = encoder_of(bert)
    documents = documents_of(encoder, texts)
    judge = None
    if validation:
        more, truth = planted(32, seed=1)
        judge = (documents_of(encoder, more), truth)
    matcher = FineTunedMatcher(settings(epochs=epochs, **changes), RankerConfig(threshold=0.0))
    return matcher.fit(encoder, documents, M, validation=judge, threads=1), documents, M


def all_scores(matcher, documents):
    return matcher.match(documents, top_b=N_CLUSTERS)[1].toarray()


@pytest.mark.parametrize("linear_term", [True, False])
@pytest.mark.parametrize("init", ["zero", "linear"])
def test_fit_match_save_load(bert, tmp_path, init, linear_term):
    matcher, documents, M = fitted(bert, init=init, linear_term=linear_term, epochs=12.0, dropout=0.1)
    E, found = matcher.match(documents, top_b=3)
    assert E.shape == (64, 32)
    assert E.dtype == found.data.dtype == np.float32
    assert found.shape == (64, N_CLUSTERS)
    assert (matcher.term_ is not None) == linear_term
    assert recall_at(found, M, [3])[3] > 95
    np.testing.assert_allclose(matcher.network_.encoder.embed(documents.tokens), E, atol=1e-5)
    matcher.save(tmp_path / "matcher")
    loaded = FineTunedMatcher.load(tmp_path / "matcher", device="cpu")
    E_again, found_again = loaded.match(documents, top_b=3)
    np.testing.assert_allclose(E_again, E, atol=1e-6)
    np.testing.assert_array_equal(found_again.indices, found.indices)
    np.testing.assert_allclose(found_again.data, found.data, atol=1e-5)
    assert loaded.config == matcher.config
    assert loaded.linear == matcher.linear
    assert loaded.history_ == matcher.history_


def test_before_training_the_scores_are_those_of_the_linear_model(bert, monkeypatch):
    texts, M = planted(64)
    encoder = encoder_of(bert)
    documents = documents_of(encoder, texts)
    monkeypatch.setattr(matcher_module, "train", lambda network, *args, **options: network.eval() and None)
    for dense_weight in (1.0, 3.0):
        config = settings(init="linear", linear_term=True, dense_weight=dense_weight)
        matcher = FineTunedMatcher(config, RankerConfig(threshold=0.0)).fit(encoder, documents, M, threads=1)
        dense = unit_rows(encoder.embed(documents.tokens)) * np.float32(dense_weight)
        from labelwise.match.linear import LinearMatcher

        linear = LinearMatcher.fit(documents.X, dense, M, RankerConfig(threshold=0.0))
        expected = linear.scores(documents.X, dense)
        np.testing.assert_allclose(all_scores(matcher, documents), expected, atol=1e-2)


def test_match_gives_the_best_clusters_in_order_of_their_columns(bert, monkeypatch):
    matcher, documents, _ = fitted(bert, epochs=1.0)
    scores = all_scores(matcher, documents)
    for top_b in (1, 2, N_CLUSTERS, 50):
        E, found = matcher.match(documents, top_b=top_b, embed=False)
        assert E.shape == (0, 32)
        assert (np.diff(found.indptr) == min(top_b, N_CLUSTERS)).all()
        assert all(
            (np.diff(found.indices[a:b]) > 0).all() for a, b in zip(found.indptr, found.indptr[1:], strict=False)
        )
        rows = np.repeat(np.arange(64), min(top_b, N_CLUSTERS))
        np.testing.assert_allclose(found.data, scores[rows, found.indices], atol=1e-5)
        np.testing.assert_allclose(
            np.sort(found.data.reshape(64, -1)), np.sort(scores)[:, -min(top_b, N_CLUSTERS) :], atol=1e-5
        )
    expected = matcher.match(documents, top_b=2)
    monkeypatch.setattr(matcher_module, "DOCUMENTS_PER_PIECE", 10)  # more than fit on the device at once
    E, found = matcher.match(documents, top_b=2)
    np.testing.assert_allclose(E, expected[0], atol=1e-5)
    np.testing.assert_array_equal(found.indices, expected[1].indices)
    none = documents.take(np.arange(0))
    assert matcher.match(none, top_b=2)[1].shape == (0, N_CLUSTERS)


def test_documents_are_taken_in_order(bert):
    matcher, documents, _ = fitted(bert, epochs=1.0, linear_term=True)
    rows = np.array([5, 3, 60])
    np.testing.assert_allclose(
        all_scores(matcher, documents.take(rows)), all_scores(matcher, documents)[rows], atol=1e-5
    )


def test_validation_documents_judge(bert):
    matcher, _, _ = fitted(bert, epochs=8.0, validation=True)
    history = matcher.history_
    recalls = [point["recall"] for point in history.curve if "recall" in point]
    assert len(recalls) == 1 + 8
    assert history.best_recall == max(recalls) > recalls[0]


def test_16_bits_are_used_for_matching_and_kept_out_of_what_is_saved(bert, tmp_path):
    matcher, documents, M = fitted(bert, precision="bf16", epochs=12.0)
    assert recall_at(matcher.match(documents, top_b=3)[1], M, [3])[3] > 95
    assert {p.dtype for p in matcher.network_.parameters()} == {matcher_module.DTYPES["fp32"]}
    matcher.save(tmp_path / "matcher")
    loaded = FineTunedMatcher.load(tmp_path / "matcher", device="cpu")
    np.testing.assert_array_equal(all_scores(loaded, documents), all_scores(matcher, documents))


def test_activations_computed_again_learn_the_same(bert):
    scores = []
    for again in (False, True):
        matcher, documents, _ = fitted(bert, epochs=1.0, gradient_checkpointing=again)
        assert not matcher.network_.model.is_gradient_checkpointing
        scores.append(all_scores(matcher, documents))
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"epochs": 0.0}, "epochs is 0.0; it must be a number above 0"),
        ({"batch_size": 0}, "batch_size is 0; it must be a whole number of at least 1"),
        ({"learning_rate": -1.0}, "learning_rate is -1.0; it must be a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan; it must be a number above 0"),
        ({"max_grad_norm": 0.0}, "max_grad_norm is 0.0; it must be a number above 0"),
        ({"patience": 0}, "patience is 0; it must be a whole number of at least 1"),
        ({"warmup": 1.5}, "warmup is 1.5; it must be a number from 0 to 1"),
        ({"dropout": 1.0}, "dropout is 1.0; it must be a number from 0 to 0.99"),
        ({"micro_batch": 0}, "micro_batch is 0; it must be a whole number of at least 1 or None"),
        ({"steps": 0}, "steps is 0; it must be a whole number of at least 1 or None"),
        ({"folds": 1}, "folds is 1; it must be a whole number of at least 2"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1; it must be a number of at least 0"),
        ({"dense_weight": 0.0}, "dense_weight is 0.0; it must be a number above 0"),
        ({"loss": "l2"}, "loss is 'l2'; it must be one of 'squared-hinge', 'hinge', 'bce'"),
        ({"precision": "fp8"}, "precision is 'fp8'; it must be one of 'auto', 'fp32', 'bf16', 'fp16'"),
        ({"init": "random"}, "init is 'random'; it must be one of 'linear', 'zero'"),
    ],
)
def test_wrong_settings_are_refused_in_one_sentence(bert, changes, sentence):
    with pytest.raises(UsageError) as error:
        fitted(bert, **changes)
    assert str(error.value) == f"matcher: {sentence}"


def test_texts_and_clusters_must_match(bert):
    texts, M = planted(20)
    encoder = encoder_of(bert)
    with pytest.raises(DataError, match="there are 20 texts but 19 rows of clusters"):
        FineTunedMatcher(settings()).fit(encoder, documents_of(encoder, texts), M[:19])


def test_a_folder_that_lacks_something_is_refused(bert, tmp_path):
    matcher, _, _ = fitted(bert, epochs=1.0)
    matcher.save(tmp_path / "matcher")
    file = tmp_path / "matcher" / "head" / "config.json"
    about = json.loads(file.read_text())
    del about["config"]["history"]
    file.write_text(json.dumps(about))
    with pytest.raises(StorageError, match="is not a complete matcher"):
        FineTunedMatcher.load(tmp_path / "matcher", device="cpu", verify=False)


def test_the_frozen_matcher_is_a_linear_model_and_leaves_the_encoder_alone(bert, tmp_path):
    texts, M = planted(64)
    encoder = encoder_of(bert)
    documents = documents_of(encoder, texts)
    E = encoder.embed(documents.tokens)
    matcher = FrozenMatcher(RankerConfig(threshold=0.0), dense_weight=2.0, device="cpu")
    matcher.fit(encoder, documents, M, threads=1)
    vectors, found = matcher.match(documents, top_b=3)
    np.testing.assert_allclose(vectors, E, atol=1e-6)
    expected = matcher.linear_.scores(documents.X, unit_rows(E) * np.float32(2.0))
    rows = np.repeat(np.arange(64), 3)
    np.testing.assert_allclose(found.data, expected[rows, found.indices], atol=5e-3)
    assert recall_at(found, M, [3])[3] > 95
    np.testing.assert_array_equal(matcher.match(replace(documents, E=E), top_b=3)[1].indices, found.indices)
    assert (np.diff(matcher.match(documents, top_b=99)[1].indptr) == N_CLUSTERS).all()
    given = FrozenMatcher(RankerConfig(threshold=0.0), dense_weight=2.0).fit(encoder, replace(documents, E=E), M)
    np.testing.assert_array_equal(given.linear_.level.dense, matcher.linear_.level.dense)
    matcher.save(tmp_path / "matcher")
    loaded = FrozenMatcher.load(tmp_path / "matcher", device="cpu")
    again = loaded.match(documents, top_b=3)
    np.testing.assert_allclose(again[0], vectors, atol=1e-6)
    np.testing.assert_array_equal(again[1].indices, found.indices)
    np.testing.assert_allclose(again[1].data, found.data, atol=1e-5)
    assert (loaded.linear, loaded.dense_weight) == (matcher.linear, 2.0)


def test_recall_is_the_share_of_true_clusters_among_the_best():
    rng = np.random.default_rng(0)
    scores = np.where(rng.random((30, 12)) < 0.5, rng.normal(size=(30, 12)).round(1), 0)
    truth = rng.random((30, 12)) < 0.2
    truth[3] = False  # has none: does not count
    scores[5] = 0  # nothing found
    recalls = recall_at(sp.csr_array(scores), sp.csr_array(truth.astype(np.float32)), (1, 3, 100))
    for top in (1, 3, 100):
        shares = []
        for row in range(30):
            there = [k for k in range(12) if scores[row, k]]
            best = sorted(there, key=lambda k, row=row: (-scores[row, k], k))[:top]
            if truth[row].any():
                shares.append(truth[row, best].sum() / truth[row].sum())
        assert recalls[top] == pytest.approx(100 * np.mean(shares))
    assert recall_at(sp.csr_array(scores), sp.csr_array(np.zeros((30, 12))), [5]) == {5: 0.0}


def test_the_default_device_is_what_there_is():
    assert FineTunedMatcher(replace(MatcherConfig(), device="cpu")).device.type == "cpu"
