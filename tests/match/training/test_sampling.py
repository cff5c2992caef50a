"""Samples of clusters: true clusters always, others with equal probability; the expected gradient is that of all."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from labelwise.errors import UsageError
from labelwise.match.finetuned import FineTunedMatcher
from labelwise.match.losses import LOSSES, document_losses
from labelwise.match.training.device_data import DeviceData
from labelwise.match.training.loop import Criteria, train
from labelwise.match.training.sampling import sample
from tests.match.planted import batch_of, documents_of, encoder_of, planted, problem, recall_of, settings
from tests.match.training.test_step import make

TRUE = torch.tensor([[3, 7], [7, 20], [20, 20]])  # the last of 20 clusters does not exist: no cluster


def test_true_clusters_are_always_sampled_and_the_weights_sum_to_all_clusters() -> None:
    torch.manual_seed(0)
    counts = torch.zeros(20)
    for _ in range(3000):
        chosen = sample(TRUE, 20, 8)
        assert len(set(chosen.clusters.tolist())) == 8
        counts[chosen.clusters] += 1
        true = torch.isin(chosen.clusters, torch.tensor([3, 7]))
        assert chosen.weights[true].tolist() == [1.0, 1.0]
        np.testing.assert_allclose(chosen.weights[~true], 18 / 6)
        assert float(chosen.weights.sum()) == pytest.approx(20)
        np.testing.assert_array_equal(chosen.place[chosen.clusters], np.arange(8))
        assert int(chosen.place[20]) == 8
    assert counts[[3, 7]].tolist() == [3000, 3000]
    others = np.delete(counts.numpy(), [3, 7]) / 3000
    assert np.abs(others - 6 / 18).max() < 6 * (2 / 9 / 3000) ** 0.5


def test_more_true_clusters_than_places_still_give_a_finite_sample() -> None:
    chosen = sample(torch.arange(10).reshape(2, 5), 10, 4)
    assert torch.isfinite(chosen.weights).all()
    assert chosen.weights.tolist() == [1.0] * 4


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("kind", LOSSES)
def test_the_mean_loss_and_gradient_are_those_of_all_clusters(kind: str, mean: bool) -> None:
    rng = torch.Generator().manual_seed(1)
    values = torch.randn((3, 20), generator=rng)
    signs = torch.full((3, 21), -1.0).scatter_(1, TRUE, 1.0)[:, :20]

    def loss_and_gradient(clusters: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
        scores = values.clone().requires_grad_()
        losses = document_losses(scores[:, clusters], signs[:, clusters], kind, mean=mean, weights=weights)  # type: ignore[arg-type]
        losses.sum().backward()
        assert scores.grad is not None
        return torch.cat((losses.detach(), scores.grad.reshape(-1)))

    exact = loss_and_gradient(torch.arange(20), None)
    torch.manual_seed(2)
    draws = torch.stack([loss_and_gradient(*sample(TRUE, 20, 8)[:2]) for _ in range(2000)])
    error = draws.std(0) / len(draws) ** 0.5
    assert ((draws.mean(0) - exact).abs() <= 5 * error + 1e-4).all()


def test_a_step_of_sampled_clusters_has_in_the_mean_the_gradient_of_the_whole(bert) -> None:
    rows = np.arange(2)
    network, corpus, weights, step = make(bert, batch_size=2)
    torch.nn.init.normal_(network.head.weight)
    step._learn(torch.from_numpy(rows), batch_of(corpus, rows).shape)
    exact = network.head.weight.grad.clone()
    found = []
    torch.manual_seed(0)
    step.config = replace(step.config, max_clusters_per_step=5)
    for _ in range(400):
        weights.zero_gradients()
        step._learn(torch.from_numpy(rows), batch_of(corpus, rows).shape)
        found.append(network.head.weight.grad.clone())
    draws = torch.stack(found)
    assert float(draws.std(0).max()) > 0
    assert ((draws.mean(0) - exact).abs() <= 5 * draws.std(0) / 20 + 1e-3).all()


def test_training_on_samples_finds_the_planted_clusters(bert) -> None:
    network, corpus, constant = problem(bert)
    train(network, corpus, settings(max_clusters_per_step=4, batch_size=2, epochs=20.0), Criteria(constant))
    assert recall_of(network, corpus) > 99


def test_the_linear_term_is_sampled_too(bert) -> None:
    texts, M = planted()
    encoder = encoder_of(bert)
    config = settings(max_clusters_per_step=5, batch_size=4, epochs=3.0, init="linear", linear_term=True)
    matcher = FineTunedMatcher(config).fit(encoder, documents_of(encoder, texts), M)
    assert matcher.history_.restarts == []
    rows = torch.tensor([5, 0, -1])
    corpus_term = torch.randn(len(texts), M.shape[1])
    corpus = DeviceData(encoder, encoder.tokenize(texts), M, term=corpus_term.numpy(), device=torch.device("cpu"))
    chosen = corpus.sample(rows, 5)
    assert chosen is not None
    torch.testing.assert_close(corpus.term(rows, chosen), corpus_term[rows.clamp(min=0)][:, chosen.clusters])
    whole = corpus.signs(rows)
    torch.testing.assert_close(corpus.signs(rows, chosen), whole[:, chosen.clusters])
    assert corpus.sample(rows, 6) is None


def test_a_sample_of_no_cluster_is_an_error(bert) -> None:
    texts, M = planted()
    encoder = encoder_of(bert)
    with pytest.raises(UsageError, match="max_clusters_per_step is 0; it must be a whole number of at least 1"):
        FineTunedMatcher(settings(max_clusters_per_step=0)).fit(encoder, documents_of(encoder, texts), M)
