"""The linear models of a label tree as a stage of training: trained, with their scores of the held-out documents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from labelwise import storage
from labelwise.config import LinearTreeConfig
from labelwise.index import Tree
from labelwise.models.calibrator import CALIBRATED_ON
from labelwise.models.training_data import TrainingData
from labelwise.rank.features import Features
from labelwise.rank.tree import TrainedTree, train_tree, train_tree_twice
from labelwise.types import Csr, OnEvent

KIND = "fitted tree"


@dataclass(frozen=True, eq=False)
class FittedTree:
    """A tree of linear models, with its scores of the held-out documents."""

    tree: TrainedTree
    """Trained on all training documents."""
    held_out_scores: Csr | None
    """(n_held, n_labels) scores of the held-out documents' best labels, by models that have not seen them."""

    def save(self, path: Path | str) -> None:
        """Write a folder that `load` reads."""
        with storage.atomic_folder(path, overwrite=True) as folder:
            self.tree.save(folder / "tree")
            matrices = {} if self.held_out_scores is None else {"held-out": self.held_out_scores}
            storage.save(folder / "scores", kind=KIND, matrices=matrices)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read what `save` wrote."""
        path = Path(path)
        matrices = storage.load(path / "scores", kind=KIND).matrices
        return cls(TrainedTree.load(path / "tree"), matrices.get("held-out"))


def labels_per_tree(top_k: int, n_trees: int) -> int:
    """How many labels each of several trees lists, so that the first five of their mean do not depend on `top_k`."""
    return top_k if n_trees == 1 else 2 * max(top_k, CALIBRATED_ON)


def fit_levels(
    X: Csr,
    data: TrainingData,
    tree: Tree,
    config: LinearTreeConfig,
    *,
    validation: Csr | None = None,
    depth: int = CALIBRATED_ON,
    on_event: OnEvent | None = None,
) -> FittedTree:
    """Train the linear models of all levels.

    Held-out rows of the training documents are scored by models that have not seen them; the final models go on with
    these rows.

    Parameters
    ----------
    X : (n_docs, n_features) features of the training documents
    validation : (n_held, n_features) features of held-out documents that are not training documents
    depth : labels of each held-out document whose scores are kept
    """
    features, holdout = Features.of(X, bias=config.ranker.bias), data.holdout
    if holdout is not None and holdout.rows is not None:
        held_out = np.zeros(len(data.documents), np.bool_)
        held_out[holdout.rows] = True
        documents: Csr | None = Csr(X[holdout.rows])
        evaluated, final = train_tree_twice(
            features, data.Y, tree, config, held_out=held_out, seed=config.seed, on_event=on_event
        )
    else:
        evaluated = final = train_tree(features, data.Y, tree, config, seed=config.seed, on_event=on_event)
        documents = validation
    if documents is None:
        return FittedTree(final, None)
    scores = evaluated.search(X.shape[1], config).top(
        Features.of(documents, bias=config.ranker.bias), beam=config.beam, top_k=depth, threads=config.threads
    )
    return FittedTree(final, scores)
