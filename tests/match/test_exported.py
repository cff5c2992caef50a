"""The matcher of an exported model against scores that are added up by hand."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelwise.config import MatcherConfig, RankerConfig
from labelwise.errors import StorageError
from labelwise.features.token_store import TokenStore
from labelwise.match.documents import Documents
from labelwise.match.exported import ExportedMatcher
from labelwise.match.heads import Head, History
from labelwise.match.linear import LinearMatcher
from labelwise.match.shared import SharedMatcherView

GROUPS = [5, 3]


class Fixed:
    """An encoder that knows the vectors already."""

    hidden_size = 4

    def __init__(self, E):
        self.E = E

    def embed(self, texts, *, on_event=None):
        assert len(texts) == len(self.E)
        return self.E


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    X = sp.csr_array(np.where(rng.random((9, 12)) < 0.5, rng.random((9, 12)), 0).astype(np.float32))
    M = sp.csr_array((rng.random((9, 8)) < 0.4).astype(np.float32))
    term = LinearMatcher.fit(X, None, M, RankerConfig(threshold=0, half_precision=False)).sparse_part()
    E, weight, bias = (rng.normal(size=shape).astype(np.float32) for shape in ((9, 4), (8, 4), 8))
    E[4] = 0
    store = TokenStore(np.zeros(18, np.uint16), np.arange(0, 19, 2))
    W = np.zeros((12, 8), np.float32)
    level = term.level
    row_ends = level.row_end.tolist()
    for row, (begin, end) in enumerate(zip([0, *row_ends[:-1]], row_ends, strict=True)):
        W[level.row_feature[row], level.child_ids[level.entry_child[begin:end]]] = level.entry_value[begin:end]
    lengths = np.maximum(np.linalg.norm(E, axis=1, keepdims=True), 1e-12)
    g = 2 * (E / lengths) @ weight.T + bias  # the head reads vectors of length sqrt(4)
    return (
        Documents(store, X),
        E,
        Head(MatcherConfig(), RankerConfig(), weight, bias, term, GROUPS, History()),
        g,
        X @ W,
    )


@pytest.mark.parametrize("with_term", [True, False])
@pytest.mark.parametrize("top_b", [1, 2, 4, 99])
def test_the_best_clusters_of_every_tree(problem, with_term, top_b):
    documents, E, head, g, added = problem
    if with_term:
        g = g + added
    else:
        head = Head(head.config, head.linear, head.weight, head.bias, None, GROUPS, head.history)
    matcher = ExportedMatcher(head, Fixed(E))
    given, found = matcher.match(documents, top_b=top_b, threads=1)
    np.testing.assert_array_equal(given, E)
    assert matcher.match(documents, top_b=top_b, embed=False)[0].shape == (0, 4)
    for i, row in enumerate(g):
        parts = (range(5), range(5, 8))
        wanted = sorted(k for part in parts for k in sorted(part, key=lambda k: -row[k])[:top_b])
        own = slice(found.indptr[i], found.indptr[i + 1])
        assert found.indices[own].tolist() == wanted
        np.testing.assert_allclose(found.data[own], row[wanted], atol=2e-3)  # the term's scores have 16 bits
    _, second = SharedMatcherView(matcher, 1).match(documents, top_b=top_b)
    np.testing.assert_array_equal(second.toarray(), found.toarray()[:, 5:])


def test_a_head_is_kept_whole(problem, tmp_path):
    head = problem[2]
    head.save(tmp_path / "head")
    again = Head.load(tmp_path / "head")
    np.testing.assert_array_equal(again.weight, head.weight)
    np.testing.assert_array_equal(again.bias, head.bias)
    assert (again.config, again.linear, again.groups, again.history) == (head.config, head.linear, GROUPS, History())
    X = problem[0].X
    np.testing.assert_array_equal(again.term.scores(X), head.term.scores(X))
    (tmp_path / "head" / "arrays.safetensors").unlink()
    with pytest.raises(StorageError):
        Head.load(tmp_path / "head")
