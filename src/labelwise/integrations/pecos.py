"""A PECOS XR-Linear model folder as a `LinearTree`: the same weights, the same tree, the same scores.

The folder holds ``ranker/param.json`` and, from the root down, ``ranker/N.model`` with ``param.json`` (bias, beam,
post-processor), ``W.npz`` (features by nodes, the bias as a last row) and ``C.npz`` (nodes by nodes above them).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelwise.config import LinearTreeConfig, RankerConfig
from labelwise.config.score_transform import DEFAULT_TRANSFORM, TRANSFORMS, ScoreTransform
from labelwise.config.settings import shown
from labelwise.data.label_names import distinct
from labelwise.errors import DataError, StorageError
from labelwise.events import Task
from labelwise.features.tfidf import Tfidf
from labelwise.index.tree import Tree
from labelwise.models.linear_tree import LinearTree
from labelwise.models.training_report import TrainingReport
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.rank.tree import TrainedTree
from labelwise.storage import read_json
from labelwise.storage.npz import load_npz
from labelwise.storage.paths import checked_path
from labelwise.types import Csr, OnEvent

log = logging.getLogger(__name__)
LARGEST_WEIGHT = 1e15
"""Largest weight in absolute value, so that scores stay finite."""
DEFAULT_BEAM = 10


@dataclass
class _Level:
    W: Csr
    """(n_features, n_nodes)"""
    bias: npt.NDArray[np.float32]
    """(n_nodes,) what is added to a node's score."""
    parents: npt.NDArray[np.int32]
    """(n_nodes,)"""
    n_above: int
    beam: int
    score_transform: ScoreTransform


def load_xr_linear(
    folder: Path | str,
    *,
    label_names: Sequence[str] | None = None,
    tfidf: Tfidf | None = None,
    on_event: OnEvent | None = None,
) -> LinearTree:
    """The model that PECOS saved; its predictions are PECOS's own.

    Beam and post-processor are those saved with the model. A post-processor that answers with logarithms (log-…) gives
    the numbers themselves here. noop is `ranker-only`, whose scores are the same; below more than one level
    its clusters can differ, since ours are chosen by the whole path.

    Parameters
    ----------
    folder
        What `XLinearModel.save` wrote.
    label_names
        (n_labels,) names of the labels in PECOS's order; their numbers if not given.
    tfidf
        What makes the model's features of texts, so that the model reads texts.

    Examples
    --------
    >>> model = load_xr_linear("pecos-model", label_names=names)
    >>> model.predict(X, top_k=5)[0]
    """
    place = checked_path(folder)
    ranker = place / "ranker" if (place / "ranker").is_dir() else place
    about = _param(ranker, "HierarchicalMLModel")
    depth = about.get("depth", len(list(ranker.glob("*.model"))))
    if not isinstance(depth, int) or depth < 1:
        raise StorageError(f"{ranker} has no levels (0.model and so on); give what XLinearModel.save wrote")
    levels: list[_Level] = []
    with Task(on_event, "reading the levels", total=depth) as task:
        for number in range(depth):
            levels.append(_read_level(ranker / f"{number}.model", levels[-1] if levels else None))
            task.advance(1)
    _drop_childless(levels)
    n_features, n_labels = levels[-1].W.shape
    names = [str(label) for label in range(n_labels)] if label_names is None else distinct(label_names)
    if len(names) != n_labels:
        raise DataError(f"{place} has {n_labels} labels but there are {len(names)} label names; they must match")
    if tfidf is not None and tfidf.n_features != n_features:
        raise DataError(f"{place} has {n_features} features but the tf-idf makes {tfidf.n_features}; they must match")
    model = LinearTree(_config(levels, ranker))
    model.tfidf_, model.labels_, model.n_features_, model.calibrator_ = tfidf, names, n_features, None
    tree = Tree(tuple(level.parents for level in levels))
    model.trees_ = (TrainedTree(tree, tuple(map(_weights, levels))),)
    model.report_ = TrainingReport(preset="none: read from a PECOS XR-Linear model")
    model._searches = model._make_searches()
    return model


def _param(folder: Path, kind: str) -> dict[str, Any]:
    try:
        about = read_json(folder / "param.json")
    except StorageError as err:
        raise StorageError(f"{folder} has no readable param.json; give what XLinearModel.save wrote") from err
    if not isinstance(about, dict) or about.get("model") != kind:
        found = about.get("model") if isinstance(about, dict) else None
        raise StorageError(f"{folder} holds {found}, not {kind}; give the folder of a PECOS XR-Linear model")
    if about.get("is_mmap"):
        raise StorageError(
            f"{folder} is compiled for memory mapping, which only PECOS can read; give the npz model it was made of"
        )
    return about


def _read_level(folder: Path, above: _Level | None) -> _Level:
    about = _param(folder, "MLModel")
    options, bias = about.get("pred_kwargs") or {}, about.get("bias", -1)
    if not isinstance(options, dict) or not _is_number(bias, -LARGEST_WEIGHT, LARGEST_WEIGHT):
        raise StorageError(f"{folder}: bias or pred_kwargs in param.json is none; copy the model again")
    beam = options.get("only_topk") or DEFAULT_BEAM
    if not _is_number(beam, 1, 1 << 31) or int(beam) != beam:
        raise StorageError(f"{folder}: only_topk is {shown(beam)}; it must be a number of nodes")
    for name in ("W.npz", "C.npz"):
        if not (folder / name).is_file():
            raise StorageError(f"{folder / name} is missing; the model is incomplete, copy it again")
    W, C = load_npz(folder / "W.npz"), load_npz(folder / "C.npz")
    C.eliminate_zeros()
    if W.shape[1] == 0 or (W.nnz and np.abs(W.data).max() > LARGEST_WEIGHT):
        raise StorageError(f"{folder}: W has no nodes, or weights above {LARGEST_WEIGHT:g}; copy the model again")
    n_above = 1 if above is None else len(above.parents)
    if C.shape != (W.shape[1], n_above) or (above is not None and W.shape[0] - (bias > 0) != above.W.shape[0]):
        raise StorageError(
            f"{folder}: W is {W.shape[0]} x {W.shape[1]} and C {C.shape[0]} x {C.shape[1]}, which does not fit the "
            f"{n_above} nodes above; the files do not belong together, copy them again"
        )
    wrong = np.flatnonzero(np.diff(C.indptr) != 1)
    if len(wrong):
        n_clusters = int(C.indptr[wrong[0] + 1] - C.indptr[wrong[0]])
        raise StorageError(
            f"{folder}: node {wrong[0]} lies in {n_clusters} clusters, but only trees can be read, where every node "
            "lies in one; train with a tree of disjoint clusters"
        )
    constant = np.zeros(W.shape[1], np.float32)
    if bias > 0:
        constant = (W[[-1]].toarray()[0] * np.float32(bias)).astype(np.float32)
        W = Csr(W[:-1])
    score_transform = _score_transform(options.get("post_processor", True), folder)
    return _Level(W, constant, C.indices.astype(np.int32), n_above, int(beam), score_transform)


def _is_number(value: Any, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _score_transform(name: Any, folder: Path) -> ScoreTransform:
    """Our name of a post-processor; older folders have True for the default and False or None for noop."""
    names = {transform.pecos: ours for ours, transform in TRANSFORMS.items()}
    if name is True:
        return DEFAULT_TRANSFORM
    found = str(name or "noop").removeprefix("log-")
    if found not in names:
        raise StorageError(f"{folder}: the post-processor is {name!r}; those that can be read are {', '.join(names)}")
    return names[found]


def _drop_childless(levels: list[_Level]) -> None:
    """Leave out nodes that no label lies below, from the labels up."""
    for at in range(len(levels) - 1, 0, -1):
        level, above = levels[at], levels[at - 1]
        used, numbers = np.unique(level.parents, return_inverse=True)
        level.parents, level.n_above = numbers.astype(np.int32), len(used)
        above.W, above.bias, above.parents = Csr(above.W[:, used]), above.bias[used], above.parents[used]


def _config(levels: list[_Level], folder: Path) -> LinearTreeConfig:
    score_transform, beams = levels[-1].score_transform, {level.beam for level in levels[:-1]}
    if len({level.score_transform for level in levels}) > 1:
        log.warning(
            "%s: levels differ in their post-processors; that of the labels, %s, serves all", folder, score_transform
        )
    if len(beams) > 1:
        log.warning("%s: levels differ in their beams (%s); the widest serves all", folder, sorted(beams))
    if not TRANSFORMS[score_transform].bounded and len(levels) > 1:
        log.warning("%s: noop scores of labels are kept, but other clusters than PECOS's may be searched", folder)
    biased = any(level.bias.any() for level in levels)
    # Weights are kept as they are: PECOS has pruned them, and its scores are 32-bit.
    stage = RankerConfig(bias=1.0 if biased else 0.0, threshold=0.0, half_precision=False)
    return LinearTreeConfig(beam=max(beams, default=10), score_transform=score_transform, matcher=stage, ranker=stage)


def _weights(level: _Level) -> LevelWeights:
    """The weights parent after parent, each block by features."""
    n_above, order = level.n_above, np.argsort(level.parents, kind="stable")
    child_indptr = _ends(level.parents, n_above)
    local = np.empty(len(order), np.int64)
    local[order] = np.arange(len(order)) - child_indptr[level.parents[order]]
    entries = level.W.tocoo()
    feature, child = entries.coords
    parent = level.parents[child]
    by_block = np.lexsort((local[child], feature, parent))
    feature, child, parent = feature[by_block], child[by_block], parent[by_block]
    entry_indptr = _ends(parent, n_above)
    last = np.ones(len(feature), np.bool_)  # of its row
    last[:-1] = (feature[1:] != feature[:-1]) | (parent[1:] != parent[:-1])
    ends = np.flatnonzero(last)
    widest = int(np.diff(child_indptr).max())
    number = np.uint8 if widest <= 1 << 8 else np.uint16 if widest <= 1 << 16 else np.uint32
    return LevelWeights(
        child_indptr=child_indptr,
        child_ids=order.astype(np.int32),
        row_indptr=_ends(parent[ends], n_above),
        row_feature=feature[ends].astype(np.uint32),
        row_end=(ends + 1 - entry_indptr[parent[ends]]).astype(np.uint32),
        entry_indptr=entry_indptr,
        entry_child=local[child].astype(number),  # type: ignore[arg-type]
        entry_value=entries.data[by_block].astype(np.float32),
        dense=level.bias[order][:, None],
    )


def _ends(block: npt.NDArray[Any], n_blocks: int) -> npt.NDArray[np.int64]:
    """(n_blocks + 1,) where each block begins."""
    return np.concatenate(([0], np.cumsum(np.bincount(block, minlength=n_blocks)))).astype(np.int64)
