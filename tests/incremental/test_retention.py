"""Documents that models keep: their number, their choice by the seed, and their features."""

import numpy as np
import pytest

from labelwise import keep_documents, load_model
from labelwise.config import IncrementalConfig
from labelwise.errors import StorageError
from labelwise.incremental.retention import exemplars_of
from tests.incremental.conftest import KINDS


@pytest.mark.parametrize("name", KINDS)
def test_every_cluster_has_its_documents(name, fitted, shop, tmp_path):
    config = IncrementalConfig(per_cluster=6)
    kept = keep_documents(fitted(name), shop.train, config=config)
    kept.save(tmp_path / "kept")
    for member, loaded in zip(kept.members, load_model(tmp_path / "kept").members, strict=True):
        adapter, exemplars = member.growth(), member.exemplars_
        clusters = sum(tree.n_clusters for tree, _ in adapter.label_trees)
        assert len(exemplars) <= 6 * clusters
        whole = [set(row.nonzero()[0]) for row in shop.train.Y.toarray()]
        assert all(set(row.nonzero()[0]) in whole for row in exemplars.Y.toarray())
        for (tree, _), near in zip(adapter.label_trees, exemplars.near, strict=True):
            there = np.zeros((len(shop.train), tree.n_clusters), bool)
            rows = np.repeat(np.arange(len(shop.train)), np.diff(shop.train.Y.indptr))
            there[rows, tree.clusters[shop.train.Y.indices]] = True
            counts = np.asarray((near != 0).sum(axis=0)).ravel()
            assert (counts >= np.minimum(6, there.sum(axis=0))).all()
            mine = np.zeros((len(exemplars), tree.n_clusters), bool)
            rows = np.repeat(np.arange(len(exemplars)), np.diff(exemplars.Y.indptr))
            mine[rows, tree.clusters[exemplars.Y.indices]] = True
            if adapter.ranker.negatives == "tfn":
                np.testing.assert_array_equal(near.toarray() > 0, mine)
            else:  # the matcher's clusters too
                assert ((near.toarray() > 0) >= mine).all()
                assert near.nnz > mine.sum()
        assert (exemplars.E is None) == (member.encoder is None)
        again = loaded.exemplars_
        np.testing.assert_array_equal(again.features().toarray(), exemplars.features().toarray())
        np.testing.assert_array_equal(again.Y.toarray(), exemplars.Y.toarray())
        if exemplars.E is not None:
            np.testing.assert_array_equal(again.E, exemplars.E)
            np.testing.assert_allclose(np.linalg.norm(exemplars.E.astype(float), axis=1), 1, atol=1e-2)


def test_the_same_seed_draws_the_same_documents(fitted, shop):
    adapter = fitted("three-trees").growth()
    first, again, other = (
        exemplars_of(adapter, shop.train, IncrementalConfig(per_cluster=3, seed=seed)).features().toarray()
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert first.shape != other.shape or (first != other).any()


def test_a_new_fit_drops_the_kept_documents(fitted, shop):
    kept = keep_documents(fitted("one-tree"), shop.train)
    assert kept.fit(shop.train.texts, shop.train.Y, label_names=shop.old).exemplars_ is None


def test_damaged_exemplars_are_refused(fitted, shop, tmp_path):
    keep_documents(fitted("one-tree"), shop.train).save(tmp_path / "kept")
    file = tmp_path / "kept" / "memory" / "arrays.safetensors"
    file.write_bytes(file.read_bytes()[:-9] + b"otherwise")
    with pytest.raises(StorageError, match="is damaged"):
        load_model(tmp_path / "kept")
