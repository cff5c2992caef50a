"""New documents for a trained model: the models of the clusters that they have labels in go on learning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labelwise.data import Dataset
from labelwise.errors import DataError
from labelwise.incremental.adapters import EncodedDocs, GrowAdapter, adapter_of
from labelwise.incremental.columns import with_blocks
from labelwise.incremental.grow import each
from labelwise.models.base import Model, check_fitted
from labelwise.models.prediction_cache import PredictionCache
from labelwise.models.training_report import TrainingReport, Update
from labelwise.rank.level_trainer import LevelTrainer
from labelwise.rank.sparse_weights import LevelWeights
from labelwise.types import Csr, Ints, OnEvent


def update(model: Model, data: Dataset, *, on_event: OnEvent | None = None) -> Model:
    """A model that has also learnt from further documents; the one that is given stays as it was.

    Labels of a cluster that the documents have labels in go on from their weights: of all weights that suit the new
    documents those nearest to the present ones are taken. Labels of other clusters, and what finds clusters, keep
    theirs bit for bit.

    Parameters
    ----------
    data
        Documents with labels of the model; other labels are passed over (`add_labels` adds them).
    """
    check_fitted(model, "labels_")
    n_labels = len(model.labels_)
    known = data.with_labels(model.labels_)
    rows = np.flatnonzero(np.diff(known.Y[:, :n_labels].indptr) > 0)
    if not len(rows):
        raise DataError(
            "none of the documents has a label of the model; give some that have, or add their labels first"
        )
    learnt = known.take(rows)
    Y = Csr(learnt.Y[:, :n_labels])
    reading = PredictionCache(model.inputs(learnt), threads=model.config.threads, on_event=on_event)

    def go_on(member: Model) -> Model:
        kind = adapter_of(member)
        seen = kind.read(reading)
        stands = [(tree, _go_on(kind, number, seen, Y, on_event)) for number, (tree, _) in enumerate(kind.stands)]
        return kind.rebuilt(stands, kind.model.labels_)

    def note(report: TrainingReport) -> None:
        sizes = Update(documents=len(rows), pairs=int(Y.nnz), labels=len(np.unique(Y.indices)))
        report.updates = [*report.updates, sizes]

    return each(model, go_on, note)


def _go_on(kind: GrowAdapter, number: int, seen: EncodedDocs, Y: Csr, on_event: OnEvent | None) -> LevelWeights:
    """The label models of one tree, those of some clusters solved further."""
    tree, level = kind.stands[number]
    touched = np.unique(tree.clusters[Y.indices])
    start, ids = _some(level, touched)
    trainer = LevelTrainer(
        kind.features(seen.X, seen.E),
        Csr(Y[:, ids]),
        np.repeat(np.arange(len(touched), dtype=np.int32), np.diff(start.child_indptr)),
        replace(kind.ranker, half_precision=level.entry_value.dtype == np.float16),
        seed=kind.model.config.seed,
        threads=kind.threads,
        start=start,
    )
    near = Csr(kind.near(seen, Y)[number][:, touched])
    solved = trainer.fit(near, name="learning from the new documents", on_event=on_event)
    return with_blocks(
        level,
        {
            int(cluster): (solved.block(at), level.child_ids[level.children(int(cluster))])
            for at, cluster in enumerate(touched)
        },
    )


def _some(level: LevelWeights, parents: Ints) -> tuple[LevelWeights, Ints]:
    """The models of some parents' children, numbered as they lie, and what their numbers were."""
    ids = [level.child_ids[level.children(int(parent))] for parent in parents]
    indptr = np.concatenate(([0], np.cumsum([len(one) for one in ids]))).astype(np.int64)
    every = np.concatenate(ids)
    return LevelWeights.join([level.block(int(parent)) for parent in parents], indptr, np.arange(len(every))), every
