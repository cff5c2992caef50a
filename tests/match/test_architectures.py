"""Encoders of every kind can be fine-tuned, in 32 bits and in 16."""

import numpy as np
import pytest
import torch

from labelwise.match.finetuned import FineTunedMatcher
from labelwise.match.training.batches import Shape
from labelwise.match.training.device_data import DeviceData
from tests.features.tiny import ARCHITECTURES, write_model
from tests.match.planted import N_CLUSTERS, documents_of, encoder_of, planted, settings, weights_of

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script`")  # by DeBERTa's module in transformers


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    return lambda kind: root / kind if (root / kind).exists() else write_model(root / kind, kind)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_every_architecture_learns(folders, tmp_path, kind, precision):
    texts, M = planted(32)
    encoder = encoder_of(folders(kind))
    documents = documents_of(encoder, texts)
    before = weights_of(encoder.model)
    buffers = {name: value.clone() for name, value in encoder.model.named_buffers()}
    matcher = FineTunedMatcher(settings(epochs=20.0, batch_size=8, precision=precision)).fit(encoder, documents, M)
    losses = [point["loss"] for point in matcher.history_.curve]
    assert losses[-1] < 0.7 * losses[0]
    assert matcher.history_.restarts == []
    after = weights_of(encoder.model)
    assert (after - before).abs().max() > 1e-3
    assert torch.isfinite(after).all()
    for name, value in encoder.model.named_buffers():  # as they were, to the last bit
        assert torch.equal(value, buffers[name]), name
    scores = matcher.match(documents, top_b=N_CLUSTERS)[1].toarray()
    matcher.save(tmp_path / "matcher")
    loaded = FineTunedMatcher.load(tmp_path / "matcher", device="cpu")
    np.testing.assert_allclose(loaded.match(documents, top_b=N_CLUSTERS)[1].toarray(), scores, atol=1e-5)


def test_what_a_corpus_gives(bert):
    texts, M = planted(10)
    dense = M.toarray()
    dense[4] = 0  # has no cluster at all
    from labelwise.types import Csr

    M = Csr(dense)
    encoder = encoder_of(bert)
    store = encoder.tokenize(texts)
    term = np.random.default_rng(0).normal(size=dense.shape).astype(np.float16)
    corpus = DeviceData(encoder, store, M, term=term, device=torch.device("cpu"))
    rows = torch.tensor([4, 0, 9, 0])
    np.testing.assert_array_equal(corpus.signs(rows), 2 * dense[rows] - 1)
    np.testing.assert_array_equal(corpus.term(rows), term[rows])
    width = corpus.longest + 2
    inputs = corpus.inputs(rows, Shape("padded", width))
    for at, row in enumerate(rows.tolist()):
        n = len(store[row])
        assert inputs["input_ids"][at].tolist() == [*store[row].tolist(), *[encoder.pad_id] * (width - n)]
        assert inputs["attention_mask"][at].sum() == n
    longest = torch.tensor([int(np.argmax(store.lengths))])
    assert "attention_mask" not in corpus.inputs(longest, Shape("full", corpus.longest))
    with torch.no_grad():  # -1 stands for no document: finite all the same
        inputs = corpus.inputs(torch.tensor([-1, 3]), Shape("padded", width))
        assert torch.isfinite(encoder.forward(inputs)[1]).all()
    assert corpus.signs(torch.tensor([-1])).shape == (1, N_CLUSTERS)
