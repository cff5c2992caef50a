"""Labels that the matcher learns beside their clusters: where they begin, what is learnt, what becomes of it."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from labelwise.config import RankerConfig
from labelwise.errors import UsageError
from labelwise.features.normalize import unit_rows
from labelwise.match.finetuned import FineTunedMatcher
from labelwise.match.heads import MARGIN, LabelHead
from labelwise.match.label_init import fit_labels
from labelwise.match.losses import constant_loss, document_losses
from labelwise.match.network import Network
from labelwise.match.shared import side_by_side
from labelwise.match.training.device_data import DeviceData
from labelwise.match.training.distributed import Processes
from labelwise.match.training.optimizer import MixedPrecisionOptimizer
from labelwise.match.training.step import TrainStep
from tests.match.planted import N_CLUSTERS, documents_of, encoder_of, paired, planted, settings

N_LABELS = N_CLUSTERS


@pytest.fixture(scope="module")
def trained(bert):
    texts, Y = planted(96)
    encoder = encoder_of(bert)
    documents = documents_of(encoder, texts)
    more, truth = planted(48, seed=1)
    judge = documents_of(encoder, more), side_by_side([paired(truth), truth])
    matcher = FineTunedMatcher(
        settings(epochs=10.0, init="linear", linear_term=True, learn_labels=True), RankerConfig(threshold=0.0)
    )
    matcher.fit(encoder, documents, paired(Y), Y=Y, validation=judge, threads=1)
    return matcher, documents, judge


def label_scores(matcher, documents):
    E, _ = matcher.match(documents, top_b=3)
    return unit_rows(E) @ matcher.label_head.weight.astype(np.float32).T + matcher.label_head.bias.astype(np.float32)


def test_labels_are_learnt_and_leave_the_clusters_alone(trained):
    matcher, _, (documents, truth) = trained
    assert matcher.groups_ == [3]
    assert matcher.network_.head.out_features == 3
    _, found = matcher.match(documents, top_b=3)
    assert found.shape == (48, 3)
    true = truth[:, 3:].toarray() > 0
    scores = label_scores(matcher, documents)
    assert scores.shape == true.shape
    assert np.mean((scores > 0) == true) > 0.85
    assert matcher.history_.best_step > 0, "fine-tuning must have helped"


def test_they_are_kept_with_the_matcher(trained, tmp_path):
    matcher, documents, _ = trained
    matcher.save(tmp_path / "matcher")
    loaded = FineTunedMatcher.load(tmp_path / "matcher", device="cpu")
    np.testing.assert_array_equal(loaded.label_head.weight, matcher.label_head.weight)
    np.testing.assert_allclose(label_scores(loaded, documents), label_scores(matcher, documents), atol=1e-4)


def test_a_matcher_of_clusters_has_none(bert, tmp_path):
    texts, Y = planted(32)
    encoder = encoder_of(bert)
    matcher = FineTunedMatcher(settings(epochs=1.0)).fit(encoder, documents_of(encoder, texts), paired(Y), threads=1)
    assert matcher.label_head is None
    matcher.save(tmp_path / "matcher")
    assert FineTunedMatcher.load(tmp_path / "matcher", device="cpu").label_head is None


def test_a_label_head_gives_the_networks_scores_in_margins(bert):
    torch.manual_seed(0)
    network = Network(encoder_of(bert), 3 + N_LABELS, dropout=0.0)
    torch.nn.init.normal_(network.head.weight)
    torch.nn.init.normal_(network.head.bias)
    embedding = torch.randn(5, network.head.in_features)
    before = network.score(embedding).detach().numpy()
    head = LabelHead.of(*network.split_head(3))
    np.testing.assert_allclose(network.score(embedding).detach().numpy(), before[:, :3], atol=1e-5)
    found = unit_rows(embedding.numpy()) @ head.weight.astype(np.float32).T + head.bias.astype(np.float32)
    np.testing.assert_allclose(found, before[:, 3:] / MARGIN, atol=0.02)  # kept in 16 bits


def test_the_linear_term_is_of_the_clusters_alone(bert):
    network = Network(encoder_of(bert), 3 + N_LABELS, dropout=0.0)
    embedding, term = torch.randn(4, network.head.in_features), torch.randn(4, 3)
    difference = network.score(embedding, term) - network.score(embedding)
    torch.testing.assert_close(difference[:, :3], term)
    torch.testing.assert_close(difference[:, 3:], torch.zeros(4, N_LABELS))


@pytest.mark.parametrize("mean", [False, True])
def test_the_loss_is_hinge_for_clusters_and_cross_entropy_for_labels(bert, mean):
    texts, Y = planted(32)
    encoder = encoder_of(bert, dropout=0.0)
    config = settings(learn_labels=True, mean_loss=mean)
    network = Network(encoder, 3 + N_LABELS, dropout=0.0)
    M = side_by_side([paired(Y), Y])
    corpus = DeviceData(encoder, encoder.tokenize(texts), M, n_labels=N_LABELS, device=torch.device("cpu"))
    step = TrainStep(network, corpus, MixedPrecisionOptimizer(network, config, "fp32", Processes()), config, 32)
    scores, signs = torch.randn(32, 3 + N_LABELS), torch.from_numpy(2 * M.toarray() - 1)
    summed = np.mean if mean else np.sum
    margins = (scores * signs).numpy()
    expected = summed(np.maximum(0, 1 - margins[:, :3]) ** 2, axis=1) + summed(
        np.log1p(np.exp(-margins[:, 3:])), axis=1
    )
    np.testing.assert_allclose(step._losses(scores, signs, None).numpy(), expected, rtol=1e-5)


def test_the_start_is_a_logistic_model_of_the_embeddings():
    rng = np.random.default_rng(0)
    E = unit_rows(rng.normal(size=(400, 8)).astype(np.float32))
    Y = sp.csr_array((E @ rng.normal(size=(8, 5)) > 0.4).astype(np.float32))
    weight, bias = fit_labels(E, Y, device=torch.device("cpu"))
    scores = torch.from_numpy(8**0.5 * E @ weight.T + bias)
    loss = document_losses(scores, torch.from_numpy(2 * Y.toarray() - 1), "bce", mean=False).mean()
    assert float(loss) < 0.95 * constant_loss(Y, "bce", mean=False)
    again = fit_labels(E, Y, device=torch.device("cpu"))
    np.testing.assert_array_equal(again[0], weight)


def test_labels_without_documents_get_a_clear_no():
    E = unit_rows(np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32))
    Y = sp.csr_array(np.eye(50, 3, dtype=np.float32)[:, [0, 1, 2]])
    Y = sp.csr_array(sp.hstack([Y, sp.csr_array((50, 1))]))
    _, bias = fit_labels(E, Y, device=torch.device("cpu"))
    assert np.isfinite(bias).all()
    assert bias[3] < bias[:3].min()


@pytest.mark.parametrize(
    ("changes", "given", "message"),
    [
        ({}, False, "no labels are given"),
        ({"max_clusters_per_step": 5}, True, "6 labels and 3 clusters are more than max_clusters_per_step"),
    ],
)
def test_what_cannot_be_learnt(bert, changes, given, message):
    texts, Y = planted(16)
    encoder = encoder_of(bert)
    matcher = FineTunedMatcher(settings(learn_labels=True, **changes))
    with pytest.raises(UsageError, match=message):
        matcher.fit(encoder, documents_of(encoder, texts), paired(Y), Y=Y if given else None)
