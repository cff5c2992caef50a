"""A tree of linear models: trained level by level from the root, searched by a beam."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise import storage
from labelwise.config import LinearTreeConfig, Negatives, RankerConfig
from labelwise.config.score_transform import DEFAULT_TRANSFORM
from labelwise.config.settings import Count
from labelwise.engines.allocator import release_free_memory
from labelwise.index.label_embedding import embed_labels
from labelwise.index.tree import Tree
from labelwise.rank.features import Features
from labelwise.rank.level_checks import check_parents, load_level
from labelwise.rank.level_trainer import LevelTrainer
from labelwise.rank.nearest import NearestLabels, NeighbourSearch
from labelwise.rank.negatives import both, matcher_aware, teacher_forcing
from labelwise.rank.search import BeamSearch
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.storage.checks import FeatureCount, damaged
from labelwise.types import Csr, OnEvent

KIND = "linear tree levels"
# Smaller weights of centroids are dropped: they take half of the space and move a cosine by a thousandth.
_LEAST_OF_CENTROID = 0.003


@dataclass(frozen=True, eq=False)
class TrainedTree:
    """The label tree and the models of its nodes."""

    tree: Tree
    levels: tuple[LevelWeights, ...]
    """`levels[t]` holds the models of the nodes at depth t + 1; the last are the labels'."""
    nearest: NearestLabels | None = None
    """Where labels are found by their centroids: there is then one level, the labels', and the tree only says which
    of them were trained together."""

    def search(self, n_features: int, config: LinearTreeConfig) -> BeamSearch | NeighbourSearch:
        """What predicts with it."""
        if self.nearest is not None:
            return NeighbourSearch(
                self.nearest, self.levels[-1], n_neighbours=config.neighbours, score_transform=config.score_transform
            )
        return BeamSearch(self.levels, n_features=n_features, score_transform=config.score_transform)

    def save(self, path: Path | str) -> None:
        """Write a folder that `load` reads."""
        with storage.atomic_folder(path, overwrite=True) as folder:
            self.tree.save(folder / "index")
            arrays = {
                name: array for t, level in enumerate(self.levels) for name, array in level.to_arrays(f"{t}.").items()
            }
            about: dict[str, Any] = {"n_levels": len(self.levels)}
            if self.nearest is not None:
                arrays |= self.nearest.to_arrays("centroids.")
                about["n_features"] = self.nearest.n_features
            storage.save(folder / "ranker", kind=KIND, config=about, arrays=arrays)

    @classmethod
    def load(cls, path: Path | str, *, n_features: int | None = None, verify: bool = True) -> Self:
        """Read what `save` wrote; weights are mapped, not copied.

        Parameters
        ----------
        n_features
            Number of features of the model, if it is known: the weights must belong to these.
        """
        path = Path(path)
        tree = Tree.load(path / "index", verify=verify)
        saved = storage.load(path / "ranker", kind=KIND, verify=verify)
        centroids, depth = None, saved.entries.get("n_levels", Count)
        if "n_features" in saved.entries:
            known = saved.entries.get("n_features", FeatureCount)
            if n_features not in (None, known):
                raise damaged(path, f"its centroids have {known} features, not {n_features}")
            n_features = known
            centroids = load_level(saved.checked, "centroids.", n_features=n_features, n_dense=0)
        if depth != (tree.depth if centroids is None else 1):
            raise damaged(path, "the label tree and the weights do not belong together")
        levels = tuple(load_level(saved.checked, f"{t}.", n_features=n_features, n_dense=1) for t in range(depth))
        for above, level in enumerate(levels, tree.depth - depth):
            check_parents(level, tree.parents[above], tree.n_nodes(above), path)
        if centroids is None:
            return cls(tree, levels)
        check_parents(centroids, np.zeros(tree.n_labels, np.int32), 1, path)
        return cls(tree, levels, NearestLabels(centroids, n_features=known))


def train_tree(
    features: Features,
    Y: Csr,
    tree: Tree,
    config: LinearTreeConfig,
    *,
    seed: int = 0,
    on_event: OnEvent | None = None,
) -> TrainedTree:
    """Train the models of every level, from the root down.

    Parameters
    ----------
    features : of the n_docs training documents
    Y : (n_docs, n_labels)
    """
    release_free_memory()
    if config.matching == "neighbours":
        return _train_by_neighbours(features, Y, tree, config, seed=seed, on_event=on_event)
    return _train_levels(features, Y, tree, config, held_out=None, seed=seed, on_event=on_event)[0]


def train_tree_twice(
    features: Features,
    Y: Csr,
    tree: Tree,
    config: LinearTreeConfig,
    *,
    held_out: npt.NDArray[np.bool_],
    seed: int = 0,
    on_event: OnEvent | None = None,
) -> tuple[TrainedTree, TrainedTree]:
    """Train the models without the held-out documents, then with them, at little more than the cost of once.

    Parameters
    ----------
    features, Y, tree, config : as in `train_tree`
    held_out : (n_docs,) the documents that only the second models have seen
    """
    release_free_memory()
    if config.matching == "neighbours":
        rest = np.flatnonzero(~held_out)
        remaining = Features.of(Csr(_sparse(features)[rest]), bias=config.ranker.bias)
        return (
            _train_by_neighbours(remaining, Csr(Y[rest]), tree, config, seed=seed, on_event=on_event),
            _train_by_neighbours(features, Y, tree, config, seed=seed, on_event=on_event),
        )
    before, after = _train_levels(features, Y, tree, config, held_out=held_out, seed=seed, on_event=on_event)
    return before, after


def _train_levels(
    features: Features,
    Y: Csr,
    tree: Tree,
    config: LinearTreeConfig,
    *,
    held_out: npt.NDArray[np.bool_] | None,
    seed: int,
    on_event: OnEvent | None,
) -> list[TrainedTree]:
    """The trees of one training, or, with held-out documents, of both: without these documents, then with them."""
    nodes = [Y]  # which nodes of each level a document has, from the labels up
    for level in range(tree.depth - 1, 0, -1):
        nodes.append(teacher_forcing(nodes[-1], tree.parents[level], tree.n_nodes(level)))
    nodes.append(sp.csr_array(np.ones((Y.shape[0], 1), np.float32)))
    nodes.reverse()  # nodes[t]: the nodes at depth t
    trained: list[list[LevelWeights]] = [[] for _ in range(1 if held_out is None else 2)]
    for level in range(tree.depth):
        last = level == tree.depth - 1
        stage = config.ranker if last else config.matcher
        found = None
        if level > 0 and stage.negatives != "tfn":  # by the models that have not seen the held-out documents
            search = BeamSearch(trained[0], n_features=features.n_features, score_transform=DEFAULT_TRANSFORM)
            found = search.top(features, beam=config.beam, top_k=config.beam, threads=config.threads, on_event=on_event)
        data = LevelData(features, nodes[level + 1], nodes[level], tree.parents[level], found)
        options: dict[str, Any] = {
            "seed": seed + level,
            "threads": config.threads,
            "name": "training the labels" if last else f"training level {level + 1} of {tree.depth}",
            "on_event": on_event,
        }
        if held_out is None:
            trained[0].append(train_level(data, stage, **options))
        else:
            for levels, weights in zip(trained, train_level_twice(data, stage, held_out, **options), strict=True):
                levels.append(weights)
    return [TrainedTree(tree, tuple(levels)) for levels in trained]


def _train_by_neighbours(
    features: Features, Y: Csr, tree: Tree, config: LinearTreeConfig, *, seed: int, on_event: OnEvent | None
) -> TrainedTree:
    """Train the labels alone, each on its own documents and on those that have it among their nearest labels."""
    X, index = _sparse(features), config.index
    Z = Csr(embed_labels(Y, X, normalize_documents=index.normalize_documents, threads=config.threads))
    nearest = NearestLabels.of(Z, threshold=_LEAST_OF_CENTROID, half_precision=config.ranker.half_precision)
    near = nearest.top(features, config.neighbours, threads=config.threads, on_event=on_event)
    trainer = LevelTrainer(features, Y, tree.clusters, config.ranker, seed=seed, threads=config.threads)
    level = trainer.fit_each(both(Y, matcher_aware(near)), name="training the labels", on_event=on_event)
    return TrainedTree(tree, (level,), nearest)


def _sparse(features: Features) -> Csr:
    """The sparse part of features."""
    parts = (features.data, features.indices.view(np.int32), features.indptr)
    return Csr(parts, shape=(features.n_docs, features.n_features))


@dataclass(frozen=True, eq=False)
class LevelData:
    """The documents that the models of one level are trained on."""

    features: Features
    Y: Csr
    """(n_docs, n_children) the children, labels or nodes, that each document has."""
    teacher: Csr
    """(n_docs, n_parents) the parents of these children, from `teacher_forcing`."""
    parents: npt.NDArray[np.int32]
    """(n_children,) the parent of each child."""
    found: Csr | None = None
    """(n_docs, n_parents) the parents that the matcher finds; every entry counts, whatever its score."""

    def negatives(self, kind: Negatives) -> tuple[Csr, Csr | None]:
        """The documents of each parent that are solved first, and those that join them."""
        if self.found is None or kind == "tfn":
            return self.teacher, None
        matcher = matcher_aware(self.found)
        # With "man", documents of a true cluster count only if the matcher sends them there.
        return Csr(self.teacher.multiply(matcher)) if kind == "man" else self.teacher, matcher


def train_level(
    data: LevelData,
    config: RankerConfig,
    *,
    seed: int = 0,
    threads: int | None = None,
    name: str = "training the labels",
    on_event: OnEvent | None = None,
) -> LevelWeights:
    """Train the models of one level with the negatives of the configuration."""
    trainer = LevelTrainer(data.features, data.Y, data.parents, config, seed=seed, threads=threads)
    return trainer.fit(*data.negatives(config.negatives), name=name, on_event=on_event)


def train_level_twice(
    data: LevelData,
    config: RankerConfig,
    held_out: npt.NDArray[np.bool_],
    *,
    seed: int = 0,
    threads: int | None = None,
    name: str = "training the labels",
    on_event: OnEvent | None = None,
) -> tuple[LevelWeights, LevelWeights]:
    """Train the models of one level without the held-out documents, then with them.

    Parameters
    ----------
    held_out : (n_docs,) the documents that only the second models have seen
    """
    trainer = LevelTrainer(data.features, data.Y, data.parents, config, seed=seed, threads=threads)
    return trainer.fit_twice(*data.negatives(config.negatives), held_out, name=name, on_event=on_event)
