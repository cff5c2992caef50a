"""Texts without padding: every text has the embedding and the gradients that it has alone."""

import numpy as np
import pytest
import torch
from torch import nn
from transformers.modeling_utils import AttentionInterface

from labelwise.config import EncoderConfig
from labelwise.features import packing
from labelwise.features.encoder import Encoder
from labelwise.features.packing import make_packer
from tests.features.tiny import ARCHITECTURES, write_model

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script`")  # by DeBERTa's module in transformers

TEXTS = [
    "the law of fishing quotas in northern waters",
    "a cheap red shoe",
    "",
    "running",
    "children in the waters of the law for a shoe running in cheap quotas of fishing",
]
# Window attention (ModernBERT), left padding (XLNet) and attention of their own making cannot be packed.
PACKED = ("bert", "roberta", "distilbert")


@pytest.fixture(autouse=True)
def _one_thread():
    """Tiny tensors are not worth sharing out."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")

    def load(kind, pooling="mean"):
        folder = root / kind if (root / kind).exists() else write_model(root / kind, kind)
        encoder = Encoder.load(EncoderConfig(name=str(folder), pooling=pooling, max_length=16))
        for module in encoder.model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        return encoder

    return load


def tokens_of(encoder, texts=TEXTS):
    store = encoder.tokenize(texts)
    tokens = torch.from_numpy(store.tokens.astype(np.int32))
    return tokens, torch.from_numpy(store.indptr[:-1]), torch.from_numpy(store.lengths)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_packed_text_has_its_own_embedding_or_the_model_is_not_packed(load, kind, pooling):
    encoder = load(kind, pooling)
    before = encoder.model.config._attn_implementation
    encoder.model.train()
    packer = make_packer(encoder)
    assert encoder.model.training
    encoder.model.eval()
    assert encoder.model.config._attn_implementation == before
    assert (packer is not None) == (kind in PACKED)
    if packer is None:
        return
    tokens, starts, lengths = tokens_of(encoder)
    expected = encoder.embed(TEXTS)
    n = int(lengths.sum())
    with torch.no_grad():
        for width in (n, n + 1, n + 70):
            found = packer.forward(packer.batch(tokens, starts, lengths, width, 16), len(TEXTS))
            np.testing.assert_allclose(found, expected, atol=1e-5)
        order = torch.tensor([3, 1, 4])
        found = packer.forward(packer.batch(tokens, starts[order], lengths[order], 64, 16), 3)
        np.testing.assert_allclose(found, expected[order], atol=1e-5)
    assert encoder.model.config._attn_implementation == before
    np.testing.assert_array_equal(encoder.embed(TEXTS), expected)  # the model works as before


def test_a_pooler_is_not_packed(tmp_path):
    folder = write_model(tmp_path / "bert", "bert")
    encoder = Encoder.load(EncoderConfig(name=str(folder), pooling="pooler", max_length=16))
    assert make_packer(encoder) is None


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("kind", PACKED)
def test_empty_rows_and_filling_are_finite_and_change_no_other_row(load, kind, pooling):
    encoder = load(kind, pooling)
    packer = make_packer(encoder)
    tokens, starts, lengths = tokens_of(encoder)
    expected = encoder.embed(TEXTS)
    lengths = torch.where(torch.tensor([False, True, False, True, False]), 0, lengths)
    batch = packer.batch(tokens, starts, lengths, 200, 16)
    assert int(batch["cu_seq_lens_q"][-1]) == 200
    assert int(batch["cu_seq_lens_q"].diff().max()) <= 16
    found = packer.forward(batch, 5)
    found.square().sum().backward()
    assert torch.isfinite(found).all()
    assert all(torch.isfinite(p.grad).all() for p in encoder.model.parameters() if p.grad is not None)
    np.testing.assert_allclose(found.detach()[[0, 2, 4]], expected[[0, 2, 4]], atol=1e-5)
    with torch.no_grad():  # nothing at all
        assert torch.isfinite(packer.forward(packer.batch(tokens, starts, lengths * 0, 64, 16), 5)).all()


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("kind", PACKED)
def test_gradients_of_packed_and_padded_texts_are_the_same(load, kind, pooling):
    encoder = load(kind, pooling)
    packer = make_packer(encoder)
    encoder.model.train()
    tokens, starts, lengths = tokens_of(encoder)
    targets = torch.randn(len(TEXTS), encoder.hidden_size, generator=torch.Generator().manual_seed(0))

    def gradients(embedding):
        encoder.model.zero_grad()
        (embedding - targets).square().mean().backward()
        return torch.cat([p.grad.reshape(-1) for p in encoder.model.parameters() if p.grad is not None])

    padded = gradients(encoder.forward(encoder.batch(tokens, starts, lengths, 16)))
    packed = gradients(packer.forward(packer.batch(tokens, starts, lengths, 80, 16), len(TEXTS)))
    assert padded.abs().max() > 1e-2
    torch.testing.assert_close(packed, padded, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("ours", [True, False])
def test_texts_that_attend_to_each_other_are_detected_with_small_embeddings_too(load, monkeypatch, ours):
    def whole(module, query, key, value, mask, scaling=None, **kwargs):
        found = nn.functional.scaled_dot_product_attention(query, key, value, scale=scaling)
        return found.transpose(1, 2), None

    encoder = load("bert")
    norm = encoder.model.encoder.layer[-1].output.LayerNorm
    with torch.no_grad():
        norm.weight.mul_(1e-6)
        norm.bias.mul_(1e-6)
    assert make_packer(encoder) is not None
    if ours:
        monkeypatch.setattr(packing, "packed_attention", whole)
    else:  # the model does not ask our function at all
        register = AttentionInterface.register
        monkeypatch.setattr(AttentionInterface, "register", lambda name, function: register(name, whole))
    assert make_packer(encoder) is None
