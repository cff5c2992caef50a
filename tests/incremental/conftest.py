"""Small models of every kind over a generated shop in which some queries are hidden, fitted once."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from labelwise import Dataset, NewLabel, generate_shop
from labelwise.config import EnsembleConfig, IndexConfig, LinearTreeConfig, RankerConfig
from labelwise.config.presets import load_preset
from labelwise.models.ensemble import Ensemble
from labelwise.models.linear_tree import LinearTree
from labelwise.models.xtransformer import XTransformer
from tests.features.tiny import write_model

TWO_LEVELS = IndexConfig(n_clusters=16, branching=4)
LINEAR = {
    "one-tree": LinearTreeConfig(index=TWO_LEVELS, threads=1),
    "three-trees": LinearTreeConfig(index=TWO_LEVELS, n_trees=3, threads=1),
    "both": LinearTreeConfig(
        index=TWO_LEVELS, ranker=RankerConfig(negatives="tfn+man", half_precision=False), threads=1
    ),
    "flat": LinearTreeConfig(index=IndexConfig(method="none"), score_transform="ranker-only", threads=1),
    "neighbours": LinearTreeConfig(matching="neighbours", neighbours=30, score_transform="sigmoid", threads=1),
}
NEURAL = ("hybrid", "x-transformer")
KINDS = (*LINEAR, *NEURAL, "ensemble")
HIDDEN = 12


class Shop:
    """Products over the queries that models are trained on, and the hidden queries with their products."""

    def __init__(self):
        train, test = generate_shop(900, 150).values()
        often = np.argsort(-np.bincount(train.Y.indices, minlength=train.n_labels), kind="stable")
        self.hidden = [train.labels[at] for at in often[10 : 10 + 4 * HIDDEN : 4]]
        self.old = [name for name in train.labels if name not in set(self.hidden)]
        self.all = train.with_labels([*self.old, *self.hidden])
        self.test = test.with_labels([*self.old, *self.hidden])
        Y = sp.csr_array(self.all.Y[:, : len(self.old)])
        rows = np.flatnonzero(np.diff(Y.indptr))
        self.train = Dataset(Y=Y, labels=self.old, texts=self.all.texts).take(rows)
        known = Dataset(Y=sp.csr_array(self.test.Y[:, : len(self.old)]), labels=self.old, texts=self.test.texts)
        self.known = known

    def new(self, count, names=None):
        """The hidden labels with `count` examples each."""
        columns, found = self.all.Y.tocsc(), []
        for name in names or self.hidden:
            at = self.all.labels.index(name)
            rows = columns.indices[columns.indptr[at] : columns.indptr[at + 1]][:count]
            found.append(NewLabel(name, None, [self.all.texts[row] for row in rows]))
        return found


@pytest.fixture(scope="package", autouse=True)
def one_thread():
    """Tiny networks are quicker without threads that wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="package")
def shop():
    return Shop()


@pytest.fixture(scope="package")
def fitted(shop, tmp_path_factory):
    """A model by its name in KINDS."""
    train, made = shop.train, {}
    encoder = write_model(tmp_path_factory.mktemp("encoder") / "tiny", "bert")

    def make(name):
        if name in LINEAR:
            model = LinearTree(LINEAR[name])
            return model.fit(train.texts, train.Y, label_names=train.labels, validation=shop.known)
        if name == "ensemble":
            config = EnsembleConfig(rule="average", weights="equal", threads=1)
            return Ensemble.of([get("one-tree"), get("both"), get("hybrid")], config, validation=shop.known)
        config = load_preset(
            name,
            encoder={"name": str(encoder), "max_length": 16},
            matcher={"steps": 3, "batch_size": 32, "device": "cpu"},
            index={"n_clusters": 8},
            dense_weight=0.5,
            beam=3,
            threads=1,
        )
        return XTransformer(config).fit(train.texts, train.Y, label_names=train.labels, validation=shop.known)

    def get(name):
        if name not in made:
            made[name] = make(name)
        return made[name]

    return get
