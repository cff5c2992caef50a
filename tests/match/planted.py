"""A problem whose answer is known: a text has the clusters whose words it contains."""

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn

from labelwise.config import EncoderConfig, MatcherConfig
from labelwise.features.encoder import Encoder
from labelwise.match.finetuned import Documents
from labelwise.match.losses import constant_loss
from labelwise.match.network import Network
from labelwise.match.training.batches import Batch
from labelwise.match.training.device_data import DeviceData
from tests.features.tiny import WORDS

SIGNAL = ("law", "fishing", "quotas", "northern", "waters", "cheap")
NOISE = ("the", "of", "in", "a", "for", "running", "children")
N_CLUSTERS = len(SIGNAL)
PAIRS = np.kron(np.eye(3, dtype=np.float32), np.ones((2, 1), np.float32))
"""Three coarse clusters, each of two of the others."""


def planted(n_docs=96, seed=0):
    """Texts and M: (n_docs, n_clusters)."""
    rng = np.random.default_rng(seed)
    has = np.zeros((n_docs, N_CLUSTERS), bool)
    texts = []
    for row in range(n_docs):
        clusters = rng.choice(N_CLUSTERS, rng.integers(1, 3), replace=False)
        has[row, clusters] = True
        words = [SIGNAL[cluster] for cluster in clusters] + list(rng.choice(NOISE, rng.integers(1, 7)))
        texts.append(" ".join(rng.permutation(words)))
    return texts, sp.csr_array(has.astype(np.float32))


def paired(M):
    """(n_docs, 3) the coarse clusters of documents."""
    return sp.csr_array((M @ PAIRS > 0).astype(np.float32))


def bag_of_words(texts):
    """(n_docs, n_words) rows of length one."""
    counts = np.array([[text.split().count(word) for word in WORDS] for text in texts], np.float32)
    return sp.csr_array(counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9))


def documents_of(encoder, texts):
    return Documents(encoder.tokenize(texts), bag_of_words(texts))


def encoder_of(folder, *, pooling="mean", dropout=None):
    encoder = Encoder.load(EncoderConfig(name=str(folder), pooling=pooling, max_length=16))
    if dropout is not None:
        for module in encoder.model.modules():
            if isinstance(module, nn.Dropout):
                module.p = dropout
    return encoder


def settings(**changes):
    """Of training that takes a second on a tiny model."""
    given = {
        "batch_size": 16,
        "epochs": 5.0,
        "learning_rate": 2e-3,
        "head_learning_rate": 2e-2,
        "dropout": 0.0,
        "init": "zero",
        "linear_term": False,
        "device": "cpu",
        "precision": "fp32",
    }
    return MatcherConfig(**{**given, **changes})


def problem(folder, *, n_docs=96, dropout=0.0, pack=False, seed=0, pooling="mean"):
    """A network that knows nothing, the documents to learn from, and the loss of one answer for all."""
    from labelwise.features.packing import make_packer

    torch.manual_seed(1)
    texts, M = planted(n_docs, seed)
    encoder = encoder_of(folder, dropout=dropout, pooling=pooling)
    network = Network(encoder, N_CLUSTERS, dropout=dropout)
    packer = make_packer(encoder) if pack else None
    assert packer is not None or not pack
    corpus = DeviceData(encoder, encoder.tokenize(texts), M, packer=packer, device=torch.device("cpu"))
    return network, corpus, constant_loss(M, "squared-hinge", mean=False)


def recall_of(network, corpus):
    """The share of true clusters whose score is above all others', in percent."""
    from labelwise.match.training.batches import Shape

    network.eval()
    with torch.no_grad():
        rows = torch.arange(len(corpus))
        scores = network.score(network.embed(corpus.inputs(rows, Shape("padded", corpus.longest))))
        true = corpus.signs(rows) > 0
    ranks = (-scores).argsort(dim=1).argsort(dim=1)
    return 100 * float((ranks[true] < true.sum(dim=1).repeat_interleave(true.sum(dim=1))).float().mean())


def weights_of(network):
    return torch.cat([p.detach().float().reshape(-1) for p in network.parameters()])


def batch_of(corpus, rows, packed=False):
    from labelwise.match.training.batches import Shape

    shape = Shape("packed", 512, 64) if packed else Shape("padded", corpus.longest)
    return Batch(shape, np.asarray(rows))
