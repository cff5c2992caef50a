"""Training on further documents: the clusters in which these documents have labels are updated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labelwise.config.settings import checked_value
from labelwise.data import Dataset
from labelwise.errors import DataError
from labelwise.incremental.grow import with_changed_members
from labelwise.models.base import Model, check_fitted
from labelwise.models.growth import EncodedDocs, GrowthAdapter
from labelwise.models.training_report import RecordedUpdate, TrainingReport
from labelwise.rank.level_columns import with_blocks
from labelwise.rank.level_trainer import LevelTrainer
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.types import Csr, Ints, OnEvent


def update(model: Model, data: Dataset, *, on_event: OnEvent | None = None) -> Model:
    """A model that has also learnt from further documents; the given model stays as it was.

    The labels of a cluster change if a document has a label in this cluster. The solver starts from their present
    weights: of all weights that fit the new documents, it takes the nearest to the present ones. Labels of other
    clusters, and all weights that find clusters, stay the same bit for bit.

    Parameters
    ----------
    data
        Documents with labels of the model. Other labels are ignored (`add_labels` adds them).

    Examples
    --------
    >>> from labelwise import Dataset, LinearTree, update
    >>> texts = ["red running shoe", "blue running shoe", "red coffee mug", "blue coffee mug"]
    >>> labels = [["shoe", "red"], ["shoe", "blue"], ["mug", "red"], ["mug", "blue"]]
    >>> model = LinearTree().fit(texts, labels)
    >>> model.predict(["coffee to go"], top_k=1)[0]
    [('mug', 0.9...)]
    >>> further = Dataset.from_frame({"text": ["coffee cup", "coffee pot"], "labels": [["red"], ["red"]]})
    >>> [name for name, score in update(model, further).predict(["coffee to go"], top_k=1)[0]]
    ['red']
    """
    check_fitted(model, "labels_")
    checked_value(Dataset, data, "data")
    n_labels = len(model.labels_)
    known = data.with_labels(model.labels_)
    rows = np.flatnonzero(np.diff(known.Y[:, :n_labels].indptr) > 0)
    if not len(rows):
        raise DataError(
            "none of the documents has a label of the model; give documents with such labels, or add their labels first"
        )
    labelled = known.take(rows)
    Y = Csr(labelled.Y[:, :n_labels])
    reading = model.reading(model.inputs(labelled), on_event=on_event)

    def updated(member: Model) -> Model:
        adapter = member.growth()
        docs = adapter.encoded_docs(reading)
        label_trees = [
            (tree, _updated_level(adapter, number, docs, Y, on_event))
            for number, (tree, _) in enumerate(adapter.label_trees)
        ]
        return adapter.with_label_trees(label_trees, member.labels_)

    def record(report: TrainingReport) -> None:
        sizes = RecordedUpdate(documents=len(rows), pairs=int(Y.nnz), labels=len(np.unique(Y.indices)))
        report.updates = [*report.updates, sizes]

    changed = with_changed_members(model, updated, record)
    if changed.seen_ is not None:
        changed.seen_ = changed.seen_.with_more(reading.documents)
    return changed


def _updated_level(
    adapter: GrowthAdapter, number: int, docs: EncodedDocs, Y: Csr, on_event: OnEvent | None
) -> LevelWeights:
    """The label weights of one tree, solved further in the clusters that the documents have labels in."""
    tree, level = adapter.label_trees[number]
    touched = np.unique(tree.clusters[Y.indices])
    start, ids = _blocks_of(level, touched)
    trainer = LevelTrainer(
        adapter.features(docs.X, docs.E),
        Csr(Y[:, ids]),
        np.repeat(np.arange(len(touched), dtype=np.int32), np.diff(start.child_indptr)),
        replace(adapter.ranker, half_precision=level.entry_value.dtype == np.float16),
        seed=adapter.model.config.seed,
        threads=adapter.threads,
        start=start,
    )
    teacher = Csr(adapter.training_clusters(docs, Y)[number][:, touched])
    solved = trainer.fit(teacher, name="learning from the new documents", on_event=on_event)
    return with_blocks(
        level,
        {
            int(cluster): (solved.block(at), level.child_ids[level.children(int(cluster))])
            for at, cluster in enumerate(touched)
        },
    )


def _blocks_of(level: LevelWeights, parents: Ints) -> tuple[LevelWeights, Ints]:
    """The weights of some parents' children as a level of their own, and the former numbers of these children."""
    ids = [level.child_ids[level.children(int(parent))] for parent in parents]
    indptr = np.concatenate(([0], np.cumsum([len(one) for one in ids]))).astype(np.int64)
    every = np.concatenate(ids)
    return LevelWeights.join([level.block(int(parent)) for parent in parents], indptr, np.arange(len(every))), every
