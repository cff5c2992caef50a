"""Documents that models keep: bounded, the same every time, as the model sees them."""

import numpy as np
import pytest

from labelwise import keep_documents, load_model
from labelwise.config import IncrementalConfig
from labelwise.errors import StorageError
from labelwise.incremental.adapters import adapter_of
from labelwise.incremental.retention import remember
from tests.incremental.conftest import KINDS
from tests.incremental.test_grow import members


@pytest.mark.parametrize("name", KINDS)
def test_every_cluster_has_its_documents(name, fitted, shop, tmp_path):
    config = IncrementalConfig(per_cluster=6)
    kept = keep_documents(fitted(name), shop.train, config=config)
    kept.save(tmp_path / "kept")
    for member, loaded in zip(members(kept), members(load_model(tmp_path / "kept")), strict=True):
        kind, memory = adapter_of(member), member.exemplars_
        clusters = sum(tree.n_clusters for tree, _ in kind.stands)
        assert len(memory) <= 6 * clusters
        whole = [set(row.nonzero()[0]) for row in shop.train.Y.toarray()]
        assert all(set(row.nonzero()[0]) in whole for row in memory.Y.toarray())
        for (tree, _), near in zip(kind.stands, memory.near, strict=True):
            there = np.zeros((len(shop.train), tree.n_clusters), bool)
            rows = np.repeat(np.arange(len(shop.train)), np.diff(shop.train.Y.indptr))
            there[rows, tree.clusters[shop.train.Y.indices]] = True
            counts = np.asarray((near != 0).sum(axis=0)).ravel()
            assert (counts >= np.minimum(6, there.sum(axis=0))).all()
            mine = np.zeros((len(memory), tree.n_clusters), bool)
            rows = np.repeat(np.arange(len(memory)), np.diff(memory.Y.indptr))
            mine[rows, tree.clusters[memory.Y.indices]] = True
            if kind.ranker.negatives == "tfn":
                np.testing.assert_array_equal(near.toarray() > 0, mine)
            else:  # the matcher's clusters too
                assert ((near.toarray() > 0) >= mine).all()
                assert near.nnz > mine.sum()
        assert (memory.E is None) == (member.kind == "linear-tree")
        again = loaded.exemplars_
        np.testing.assert_array_equal(again.features().toarray(), memory.features().toarray())
        np.testing.assert_array_equal(again.Y.toarray(), memory.Y.toarray())
        if memory.E is not None:
            np.testing.assert_array_equal(again.E, memory.E)
            np.testing.assert_allclose(np.linalg.norm(memory.E.astype(float), axis=1), 1, atol=1e-2)


def test_the_same_seed_draws_the_same_documents(fitted, shop):
    kind = adapter_of(fitted("three-trees"))
    first, again, other = (
        remember(kind, shop.train, IncrementalConfig(per_cluster=3, seed=seed)).features().toarray()
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert first.shape != other.shape or (first != other).any()


def test_a_new_fit_keeps_nothing_of_the_old_one(fitted, shop):
    kept = keep_documents(fitted("one-tree"), shop.train)
    assert kept.fit(shop.train.texts, shop.train.Y, label_names=shop.old).exemplars_ is None


def test_a_damaged_memory_is_told(fitted, shop, tmp_path):
    keep_documents(fitted("one-tree"), shop.train).save(tmp_path / "kept")
    file = tmp_path / "kept" / "memory" / "arrays.safetensors"
    file.write_bytes(file.read_bytes()[:-9] + b"otherwise")
    with pytest.raises(StorageError, match="is damaged"):
        load_model(tmp_path / "kept")
