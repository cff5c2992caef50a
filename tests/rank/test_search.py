"""Beam search against a plain one, document by document."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelwise.config.score_transform import TRANSFORMS
from labelwise.errors import UsageError
from labelwise.rank import search as predict
from labelwise.rank.features import Features
from labelwise.rank.search import BeamSearch, Shortlist
from labelwise.rank.sparse_weights import LevelWeights
from tests.kernels.test_beam import level_of
from tests.reference import beam as reference

TRANSFORM_NAMES = list(TRANSFORMS)


def random_tree(rng, depth, n_features):
    """[(W, parents)] with nodes of one to eleven children; weights are eighths, so that many scores are equal."""
    levels, n_above = [], 1
    for _ in range(depth):
        parents = np.repeat(np.arange(n_above), rng.integers(1, 12 if n_above < 4 else 4, n_above))
        rng.shuffle(parents)
        W = rng.integers(-4, 9, (n_features + 1, len(parents))) / 8
        W[:-1] *= rng.random((n_features, len(parents))) < rng.choice([0.1, 0.4, 1])
        levels.append((W.astype(np.float32), parents))
        n_above = len(parents)
    return levels


def random_documents(rng, n_docs, n_features):
    X = rng.choice([0.25, 0.5, 1], (n_docs, n_features)) * (rng.random((n_docs, n_features)) < rng.choice([0.1, 0.5]))
    X[rng.random(n_docs) < 0.2] = 0
    return sp.csr_array(X.astype(np.float32))


def problem(seed, *, depth=None, n_docs=None, half=False):
    rng = np.random.default_rng(seed)
    n_features = int(rng.integers(1, 30))
    tree = random_tree(rng, depth or int(rng.integers(1, 4)), n_features)
    X = random_documents(rng, int(rng.integers(0, 7)) if n_docs is None else n_docs, n_features)
    return tree, [level_of(W, parents, half=half) for W, parents in tree], X


@given(
    st.integers(0, 9999),
    st.sampled_from(TRANSFORM_NAMES),
    st.integers(1, 60),
    st.sampled_from([1, 2, 5, 300]),
    st.booleans(),
    st.booleans(),
)
def test_the_best_leaves_are_those_of_a_plain_search(seed, score_transform, beam, top_k, half, read_only):
    tree, levels, X = problem(seed, half=half)
    if read_only:
        for level in levels:
            for array in level.to_arrays("").values():
                array.flags.writeable = False
        for array in (X.indptr, X.indices, X.data):
            array.flags.writeable = False
    n_leaves = len(tree[-1][1])
    found = BeamSearch(levels, n_features=X.shape[1], score_transform=score_transform).top(
        Features.of(X), beam=beam, top_k=top_k
    )
    assert found.shape == (X.shape[0], n_leaves)
    assert found.dtype == np.float32
    assert found.has_canonical_format
    dense = np.hstack((X.toarray(), np.ones((X.shape[0], 1))))
    for i, x in enumerate(dense):
        row = found[[i]]
        assert row.nnz <= min(top_k, n_leaves)
        everything = dict(reference.search(tree, x, beam, n_leaves, score_transform))
        wanted = reference.search(tree, x, beam, top_k, score_transform)
        assert row.nnz == len(wanted)
        ours = np.sort(row.data)[::-1]
        np.testing.assert_allclose(ours, [score for _, score in wanted], rtol=1e-4, atol=1e-7)
        # The same leaves, but for those whose scores 32 bits cannot tell apart.
        for leaf, score in zip(row.indices.tolist(), row.data.tolist(), strict=True):
            assert score == pytest.approx(everything[leaf], rel=1e-4, abs=1e-7)


def plain_hinge(seed):
    """A problem whose scores are exact in float32: sums of eighths, no transform but the last level's own score."""
    tree, levels, X = problem(seed, depth=1, n_docs=5)
    return tree, BeamSearch(levels, n_features=X.shape[1], score_transform="ranker-only"), X


@pytest.mark.parametrize("seed", range(3))
def test_documents_alone_and_nodes_of_many_documents_agree(seed):
    """More nodes than a word has bits; in the batch some nodes have many documents, others one or none."""
    rng = np.random.default_rng(seed)
    parents = np.repeat(np.arange(150), 9)
    tree = [
        (rng.normal(size=(201, len(above))).astype(np.float32) * (rng.random((201, len(above))) < share), above)
        for above, share in ((np.zeros(150, int), 0.5), (rng.permutation(parents), 0.1))
    ]
    X = sp.csr_array(np.where(rng.random((60, 200)) < 0.1, rng.random((60, 200)), 0).astype(np.float32))
    X = sp.csr_array(sp.vstack([X, *[X[[0]]] * 40]))
    search = BeamSearch([level_of(W, above) for W, above in tree], n_features=200)
    whole = search.top(Features.of(X), beam=12, top_k=20)
    for some in (slice(0, 1), slice(59, 60), slice(2, 5), slice(10, 30)):
        same(search.top(Features.of(X[some]), beam=12, top_k=20), whole[some])
    for i in (0, 1, 59):
        wanted = reference.search(tree, np.append(X[[i]].toarray(), 1), 12, 20, "l3-hinge")
        np.testing.assert_allclose(np.sort(whole[[i]].data)[::-1], [score for _, score in wanted], rtol=1e-4)


@given(st.integers(0, 9999), st.integers(1, 9))
def test_equal_scores_go_to_the_lower_label(seed, top_k):
    tree, search, X = plain_hinge(seed)
    found = search.top(Features.of(X), beam=1, top_k=top_k)
    for i, x in enumerate(X.toarray()):
        wanted = reference.search(tree, np.append(x, 1), 1, top_k, "ranker-only")
        row = found[[i]]
        assert dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) == dict(wanted)


def same(a, b):
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("score_transform", TRANSFORM_NAMES)
@pytest.mark.parametrize("half", [False, True])
def test_batches_threads_and_single_documents_agree(score_transform, half, monkeypatch):
    _, levels, X = problem(11, depth=3, n_docs=40, half=half)
    search = BeamSearch(levels, n_features=X.shape[1], score_transform=score_transform)
    whole = search.top(Features.of(X), beam=4, top_k=5, threads=1)
    for i in range(0, 40, 7):
        same(search.top(Features.of(X[[i]]), beam=4, top_k=5), whole[[i]])
    for size in (1, 3, 1000):
        monkeypatch.setattr(predict, "_SCORES_PER_BATCH", size)
        for threads in (1, 3):
            same(search.top(Features.of(X), beam=4, top_k=5, threads=threads), whole)


def test_a_wide_beam_finds_the_best_of_all_labels():
    tree, levels, X = problem(5, depth=3, n_docs=6)
    search = BeamSearch(levels, n_features=X.shape[1])
    n_leaves = len(tree[-1][1])
    found = search.top(Features.of(X), beam=10_000, top_k=10_000)
    np.testing.assert_array_equal(np.diff(found.indptr), n_leaves)
    np.testing.assert_array_equal(found.indices.reshape(6, -1), np.tile(np.arange(n_leaves), (6, 1)))


def test_scores_by_hand():
    # Two clusters at 0.5 and 1 (bias alone); labels 0, 1 below the first at 1 and 0, label 2 below the second at -1.
    above = level_of(np.array([[0, 0], [0.5, 1]], np.float32), np.array([0, 0]))
    labels = level_of(np.array([[0, 2, 0], [1, 0, -1]], np.float32), np.array([0, 0, 1]))
    documents = Features.of(sp.csr_array(np.array([[0], [1]], np.float32)))
    gap = {"l1-hinge": 1, "l2-hinge": 2, "l3-hinge": 3, "l4-hinge": 4}
    for score_transform, p in gap.items():
        found = (
            BeamSearch([above, labels], n_features=1, score_transform=score_transform)
            .top(documents, beam=2, top_k=3)
            .toarray()
        )
        first = np.exp(-(0.5**p))
        wanted = [[first, first * np.exp(-1), np.exp(-(2**p))], [first, first, np.exp(-(2**p))]]
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    found = (
        BeamSearch([above, labels], n_features=1, score_transform="sigmoid").top(documents, beam=2, top_k=3).toarray()
    )
    sigmoid = [1 / (1 + np.exp(-score)) for score in (0.5, 1, 0, -1)]
    np.testing.assert_allclose(
        found[0], [sigmoid[0] * sigmoid[1], sigmoid[0] * sigmoid[2], sigmoid[1] * sigmoid[3]], rtol=1e-5
    )
    found = BeamSearch([above, labels], n_features=1, score_transform="ranker-only").top(documents, beam=2, top_k=3)
    assert found.toarray().tolist() == [[1, 0, -1], [1, 2, -1]]
    assert found.nnz == 6  # a score of 0 is a score
    found = BeamSearch([above, labels], n_features=1, score_transform="ranker-only").top(documents, beam=1, top_k=3)
    assert found.indices.tolist() == [2, 2]  # the better cluster's only label


def test_very_low_scores_are_no_nan():
    level = level_of(np.array([[0, 0, 0], [-1e4, -50, 200]], np.float32), np.array([0, 0, 0]))
    documents = Features.of(sp.csr_array((1, 1), dtype=np.float32))
    for score_transform in TRANSFORM_NAMES:
        found = BeamSearch([level], n_features=1, score_transform=score_transform).top(documents, beam=1, top_k=3)
        assert np.isfinite(found.data).all()
        assert found.indices.tolist() == [0, 1, 2]
        assert found.data.argmax() == 2


def test_dense_features_beside_sparse_ones():
    rng = np.random.default_rng(4)
    tree = random_tree(rng, 2, 9)
    X = random_documents(rng, 8, 9)
    mixed = [level_of(W, parents, n_dense=4) for W, parents in tree]  # the last three features, and the bias
    whole = BeamSearch([level_of(W, parents) for W, parents in tree], n_features=9).top(Features.of(X), beam=3, top_k=4)
    split = Features.of(sp.csr_array(X[:, :6]), X[:, 6:].toarray())
    found = BeamSearch(mixed, n_features=6).top(split, beam=3, top_k=4)
    np.testing.assert_array_equal(found.indices, whole.indices)
    np.testing.assert_allclose(found.data, whole.data, rtol=1e-5)


def test_columns_in_any_order():
    _, levels, X = problem(11, depth=2, n_docs=10)
    search = BeamSearch(levels, n_features=X.shape[1])
    mixed = X.copy()
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        mixed.indices[a:b], mixed.data[a:b] = X.indices[a:b][::-1], X.data[a:b][::-1]
    mixed.has_sorted_indices = False
    found, wanted = (search.top(Features.of(rows), beam=4, top_k=5) for rows in (mixed, X))
    np.testing.assert_allclose(found.toarray(), wanted.toarray(), rtol=1e-5)


def test_progress_is_told():
    _, levels, X = problem(11, depth=2, n_docs=10)
    events = []
    BeamSearch(levels, n_features=X.shape[1]).top(
        Features.of(X), beam=4, top_k=5, on_event=lambda name, values: events.append(values)
    )
    assert events[-1]["finished"]
    assert events[-1]["done"] == events[-1]["total"] == 10


def test_what_makes_no_sense_is_refused():
    _, levels, X = problem(11, depth=2, n_docs=1)
    with pytest.raises(UsageError, match="unknown score_transform 'mean'; there are: l1-hinge"):
        BeamSearch(levels, n_features=X.shape[1], score_transform="mean")
    search = BeamSearch(levels, n_features=X.shape[1])
    for beam, top_k in ((0, 1), (1, 0)):
        with pytest.raises(UsageError, match=f"beam is {beam} and top_k is {top_k}"):
            search.top(Features.of(X), beam=beam, top_k=top_k)


def test_levels_without_a_single_weight():
    level = level_of(np.zeros((3, 4), np.float32), np.array([0, 0, 0, 0]))
    assert isinstance(level, LevelWeights)
    found = BeamSearch([level], n_features=2).top(
        Features.of(sp.csr_array(np.eye(2, dtype=np.float32))), beam=1, top_k=2
    )
    np.testing.assert_array_equal(found.indices, [0, 1, 0, 1])


@pytest.mark.parametrize("score_transform", TRANSFORM_NAMES)
def test_a_search_may_begin_at_a_shortlist(score_transform):
    """The nodes of the first level, found and scored elsewhere, lead to the leaves that a whole search finds."""
    tree, levels, X = problem(11, depth=2, n_docs=9)
    whole = BeamSearch(levels, n_features=X.shape[1], score_transform=score_transform).top(
        Features.of(X), beam=3, top_k=5
    )
    raw = np.hstack((X.toarray(), np.ones((9, 1)))) @ tree[0][0]
    kept = np.argsort(-raw, kind="stable", axis=1)[:, :3]
    found = sp.csr_array(raw.shape, dtype=np.float32).tolil()
    for i, nodes in enumerate(kept):
        for node in nodes:
            found[i, node] = raw[i, node] if raw[i, node] else 1e-30  # a score of 0 is a score
    start = Shortlist.of(sp.csr_array(found.tocsr()), score_transform)
    ranker = BeamSearch(levels[1:], n_features=X.shape[1], score_transform=score_transform)
    got = ranker.top(Features.of(X), beam=1, top_k=5, start=start)
    np.testing.assert_array_equal(got.indices, whole.indices)
    np.testing.assert_allclose(got.data, whole.data, rtol=1e-5)


def test_a_search_without_a_root_needs_a_shortlist_of_its_documents():
    _, levels, X = problem(11, depth=2, n_docs=9)
    search = BeamSearch(levels[1:], n_features=X.shape[1])
    with pytest.raises(UsageError, match="say where, by a shortlist"):
        search.top(Features.of(X), beam=1, top_k=5)
    start = Shortlist.of(sp.csr_array((8, levels[1].n_parents), dtype=np.float32), "l3-hinge")
    with pytest.raises(UsageError, match="of 8 documents, not of these 9"):
        search.top(Features.of(X), beam=1, top_k=5, start=start)


@pytest.mark.parametrize("seed", range(3))
def test_of_very_many_features_only_those_with_weights_take_memory(seed):
    _, levels, X = problem(seed, depth=2, n_docs=9)
    wanted = BeamSearch(levels, n_features=X.shape[1]).top(Features.of(X), beam=3, top_k=4)
    n_features = (1 << 31) - 1
    wide = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
    more = sp.csr_array((np.ones(9, np.float32), (np.arange(9), np.full(9, n_features - 1))), shape=wide.shape)
    search = BeamSearch(levels, n_features=n_features)
    for documents in (wide, sp.csr_array(wide + more)):  # a feature that has no weights
        found = search.top(Features.of(documents), beam=3, top_k=4)
        same(found, wanted)
        same(search.top(Features.of(documents[[4]]), beam=3, top_k=4), wanted[[4]])


def test_rows_of_a_lopsided_level_are_not_written_out_in_full(monkeypatch):
    rng = np.random.default_rng(0)
    parents = np.repeat(np.arange(21), [400, *[10] * 20])
    tree = [(rng.normal(size=(31, len(above))).astype(np.float32), above) for above in (np.zeros(21, int), parents)]
    levels = [level_of(W, above) for W, above in tree]
    X = sp.csr_array(rng.random((8, 30)).astype(np.float32))
    usual = BeamSearch(levels, n_features=30)
    monkeypatch.setattr("labelwise.rank.search.FULL_CELLS", 0)
    monkeypatch.setattr("labelwise.rank.search.CELLS_PER_ENTRY", 2)
    lopsided = BeamSearch(levels, n_features=30)
    assert usual._lookups[1][4].size > 30 * 400 * 20
    assert lopsided._lookups[1][4].size == 0
    assert lopsided._lookups[0][4].size == usual._lookups[0][4].size
    for beam in (2, 30):
        found, wanted = (search.top(Features.of(X), beam=beam, top_k=5) for search in (lopsided, usual))
        assert found.indices.tolist() == wanted.indices.tolist()
        np.testing.assert_allclose(found.data, wanted.data, rtol=1e-5)
