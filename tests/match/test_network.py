"""The network: its start, its precision, and gradients of the head worked out by hand."""

import numpy as np
import pytest
import torch

from labelwise.config import RankerConfig
from labelwise.match.linear import LinearMatcher
from labelwise.match.losses import document_losses
from labelwise.match.network import Network
from tests.match.planted import bag_of_words, encoder_of, planted


def slopes_by_hand(scores, signs, kind):
    """Of each cluster's loss by its score."""
    margin = scores * signs
    if kind == "squared-hinge":
        return -2 * signs * np.maximum(0, 1 - margin)
    return -signs * (margin < 1) if kind == "hinge" else -signs / (1 + np.exp(margin))


@pytest.mark.parametrize("kind", ["squared-hinge", "hinge", "bce"])
def test_gradients_of_the_head_are_those_of_the_formula(bert, kind):
    rng = np.random.default_rng(1)
    encoder = encoder_of(bert)
    network = Network(encoder, 4, dropout=0.0).double()
    E, signs = rng.normal(size=(6, 32)), np.where(rng.random((6, 4)) < 0.4, 1.0, -1.0)
    network.set_head(rng.normal(size=(4, 32)), rng.normal(size=4))
    scores = network.score(torch.tensor(E))
    document_losses(scores, torch.tensor(signs), kind, mean=False).sum().backward()
    unit = E / np.linalg.norm(E, axis=1, keepdims=True) * 32**0.5
    W, b = network.head.weight.detach().numpy(), network.head.bias.detach().numpy()
    slopes = slopes_by_hand(unit @ W.T + b, signs, kind)
    np.testing.assert_allclose(network.head.weight.grad, slopes.T @ unit, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(network.head.bias.grad, slopes.sum(0), rtol=1e-4, atol=1e-4)


def test_a_new_network_says_no_to_everything(bert):
    network = Network(encoder_of(bert), 3)
    assert network.score(torch.randn(5, 32)).tolist() == [[-1.0] * 3] * 5


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_the_head_starts_as_the_linear_model(bert, scale):
    texts, M = planted(40)
    encoder = encoder_of(bert)
    E = encoder.embed(texts)
    unit = E / np.linalg.norm(E, axis=1, keepdims=True)
    model = LinearMatcher.fit(bag_of_words(texts)[:, :0], unit, M, RankerConfig(cost=10.0))
    network = Network(encoder, M.shape[1], dropout=0.0)
    network.set_head(*model.head())
    with torch.no_grad():  # the length of an embedding does not matter
        scores = network.score(torch.from_numpy(E * np.float32(scale))).numpy()
    weight, bias = model.head()
    assert np.abs(scores).max() > 0.5
    np.testing.assert_allclose(scores, unit @ weight.T + bias, atol=1e-4)
    np.testing.assert_allclose(scores, model.scores(bag_of_words(texts)[:, :0], unit), atol=2e-2)
    with torch.no_grad():  # the term is added as it is
        more = network.score(torch.from_numpy(E), torch.ones(scores.shape, dtype=torch.float16)).numpy()
    np.testing.assert_allclose(more, scores + 1, atol=1e-5)


def test_precision_is_that_of_the_weights_alone(bert):
    network = Network(encoder_of(bert), 3)
    network.model.register_buffer("frequencies", torch.tensor([1.0 + 2.0**-20]))
    network.cast(torch.bfloat16)
    assert {p.dtype for p in network.parameters()} == {torch.bfloat16}
    assert network.model.frequencies.item() == 1.0 + 2.0**-20
