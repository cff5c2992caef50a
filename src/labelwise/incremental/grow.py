"""Labels into and out of a trained model, and documents that it keeps for those to come.

Everything here gives a new model and leaves the one it is given as it was; they share all parts that stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.config import IncrementalConfig
from labelwise.data import Dataset
from labelwise.errors import DataError, UsageError
from labelwise.incremental.adapters import Clusters, EncodedDocs, GrowAdapter, adapter_of
from labelwise.incremental.columns import with_children, without_children
from labelwise.incremental.examples import Examples
from labelwise.incremental.label_weights import by_text, few_shot
from labelwise.incremental.new_labels import new_labels
from labelwise.incremental.retention import remember
from labelwise.index import Tree, embed_labels
from labelwise.models.base import Model, check_fitted
from labelwise.models.exemplars import Exemplars
from labelwise.models.prediction_cache import PredictionCache
from labelwise.models.training_report import AddedLabel, TrainingReport
from labelwise.types import Csr, Ints, OnEvent

if TYPE_CHECKING:
    from labelwise.models.ensemble import Ensemble


def add_labels(
    model: Model,
    labels: Iterable[Any],
    *,
    data: Dataset | None = None,
    config: IncrementalConfig | None = None,
    on_event: OnEvent | None = None,
) -> Model:
    """A model that knows further labels; all others keep their weights, and probabilities mean what they meant.

    A label goes into that cluster, of each tree, to which the model itself sends the pifa embedding of its examples, or
    its text. With examples its weights come from the solver of training, the text being one more example; the
    negatives are documents of the cluster. With a text alone the text is the weights, scaled to the cluster's others.

    Parameters
    ----------
    labels
        `NewLabel` objects, dictionaries with label, text and examples, or bare names.
    data
        Documents with labels, such as those that the model was trained on. Those that have a new label are further
        examples of it, the others its negatives: all of the cluster's, or some where none is an example. If not given,
        the documents that the model keeps are (see `keep_documents`); labels without examples need neither.

    Examples
    --------
    >>> grown = add_labels(model, [{"label": "cycling", "examples": ["a bell for the handlebar"]}], data=train)
    """
    check_fitted(model, "labels_")
    config, new = config or IncrementalConfig(), new_labels(labels, model.labels_)
    known = None if data is None else data.with_labels([*model.labels_, *(one.label for one in new)])
    examples = Examples.of(model, new, known)
    reading = PredictionCache(examples.documents, threads=model.config.threads, on_event=on_event)

    counts = examples.counts.tolist()
    added = [AddedLabel(label=one.label, examples=count) for one, count in zip(new, counts, strict=True)]

    def note(report: TrainingReport) -> None:
        report.added = [*report.added, *added]

    return each(
        model,
        lambda member: _add(adapter_of(member), examples, reading, known, config, on_event),
        note,
    )


def remove_labels(model: Model, labels: Iterable[str]) -> Model:
    """A model without some labels; where these had been added, it predicts as it did before, to the last bit."""
    check_fitted(model, "labels_")
    names = [labels] if isinstance(labels, str) else list(dict.fromkeys(labels))
    unknown = [name for name in names if name not in set(model.labels_)]
    if unknown or not names:
        what = f"has no label {unknown[0]!r}" if unknown else "keeps all its labels if none is named"
        raise UsageError(f"the model {what}; give names of labels that it has")
    gone = np.isin(np.array(model.labels_, dtype=object), names)
    left = [one for one in added_labels(model) if one.label not in set(names)]

    def note(report: TrainingReport) -> None:
        report.added = left

    return each(model, lambda member: _remove(adapter_of(member), gone), note)


def keep_documents(
    model: Model, data: Dataset, *, config: IncrementalConfig | None = None, on_event: OnEvent | None = None
) -> Model:
    """A model that keeps some of its training documents, as features, so that labels can be added without the data."""
    check_fitted(model, "labels_")
    known, settings = data.with_labels(model.labels_), config or IncrementalConfig()

    def keep(member: Model) -> Model:
        twin = copy(member)
        twin.exemplars_ = remember(adapter_of(member), known, settings, on_event=on_event)
        return twin

    return each(model, keep, lambda report: None)


def added_labels(model: Model) -> list[AddedLabel]:
    """The labels that were added since training, oldest first, with the number of their examples."""
    return list(model.report_.added)


def each(model: Model, change: Callable[[Model], Model], note: Callable[[TrainingReport], None]) -> Model:
    """A changed model, or an ensemble of its changed members; `note` changes copies of their training reports."""
    if model.kind == "ensemble":
        whole: Ensemble = copy(model)  # type: ignore[assignment]  # the class is not imported for its name alone
        whole.members_ = [each(member, change, note) for member in whole.members_]
        whole.labels_ = whole.members_[0].labels_
        changed: Model = whole
    else:
        changed = change(model)
    changed.report_ = copy(model.report_)
    note(changed.report_)
    return changed


def _add(
    kind: GrowAdapter,
    examples: Examples,
    reading: PredictionCache,
    data: Dataset | None,
    config: IncrementalConfig,
    on_event: OnEvent | None,
) -> Model:
    seen = kind.read(reading, placing=True)
    _check_known(seen, examples)
    places = kind.place(seen, examples.owners)
    told = np.flatnonzero(examples.counts == 0)
    groups = _groups(kind, examples, places, data, config, on_event)
    stands = []
    for number, ((tree, level), clusters) in enumerate(zip(kind.stands, places, strict=True)):
        for which, memory, sampled in groups:
            options: dict[str, Any] = {"sampled": sampled, "seed": config.seed, "on_event": on_event}
            level = with_children(level, few_shot(kind, number, clusters, which, memory, seen, examples, **options))
        if len(told):
            rows = examples.texts[told]
            text = kind.features(seen.X[rows], None if seen.E is None else seen.E[rows])
            level = with_children(level, by_text(kind, number, clusters, told, text, config))
        stands.append((Tree((*tree.parents[:-1], np.concatenate((tree.clusters, clusters)))), level))
    Z: Any = embed_labels(examples.owners, seen.X, threads=kind.threads)
    grown = kind.grown(stands, [*kind.model.labels_, *(one.label for one in examples.labels)], Z)
    if kind.model.exemplars_ is not None:
        grown.exemplars_ = _remembered(kind.model.exemplars_, seen, examples, [tree for tree, _ in stands], config)
    return grown


def _groups(
    kind: GrowAdapter,
    examples: Examples,
    places: list[Clusters],
    data: Dataset | None,
    config: IncrementalConfig,
    on_event: OnEvent | None,
) -> list[tuple[Ints, Exemplars, bool]]:
    """Labels with examples, the documents that these are told apart from, and whether those are a sample.

    Where documents of the data have a label, the others are known not to have it: all of a cluster's are negatives.
    Otherwise any of them may have it without saying so, and a few will do.
    """
    groups: list[tuple[Ints, Exemplars, bool]] = []
    others = None if data is None else data.take(np.flatnonzero(~examples.in_data))
    for sampled in (False, True):
        which = np.flatnonzero((examples.counts > 0) & (examples.annotated != sampled))
        if not len(which):
            continue
        memory: Exemplars | None = kind.model.exemplars_
        if others is not None:
            clusters, most = [at[which] for at in places], None if sampled else len(others)
            memory = remember(kind, others, config, clusters=clusters, most=most, on_event=on_event)
        if memory is None:
            raise UsageError(
                f"{examples.labels[which[0]].label!r} has examples, but there are no documents to tell them from; give "
                "the training data too (data, --data), or a model that keeps documents (labelwise train --growing)"
            )
        groups.append((which, memory, sampled))
    return groups


def _check_known(seen: EncodedDocs, examples: Examples) -> None:
    """Refuse a label of which the model cannot see anything."""
    if seen.E is not None:
        return
    words = np.diff(seen.X.indptr) > 0
    blind = np.flatnonzero((examples.owners.T.tocsr() @ words.astype(np.float32)) == 0)
    if len(blind):
        what = "text" if examples.counts[blind[0]] == 0 else "examples"
        others = f" (and of {len(blind) - 1} more labels)" if len(blind) > 1 else ""
        raise DataError(
            f"the model knows no word of the {what} of {examples.labels[blind[0]].label!r}{others}; leave it out, or "
            "give examples in words that the training documents have"
        )


def _remembered(
    memory: Exemplars, seen: EncodedDocs, examples: Examples, trees: list[Tree], config: IncrementalConfig
) -> Exemplars:
    """The documents that a model keeps, with the new labels' examples, so that these are told apart from later ones."""
    n_old, n_new = memory.Y.shape[1], len(examples.labels)
    wide = memory.with_labels(
        Csr((memory.Y.data, memory.Y.indices, memory.Y.indptr), shape=(len(memory), n_old + n_new))
    )
    columns = examples.Y[: examples.n_examples].tocsc()
    first = [
        columns.indices[a:b][: config.per_cluster] for a, b in zip(columns.indptr, columns.indptr[1:], strict=False)
    ]
    rows = np.unique(np.concatenate(first))
    Y = Csr(sp.hstack((examples.Y_old[rows], examples.Y[rows]), format="csr"))
    near = tuple(
        examples.clusters(tree.clusters[:n_old], tree.clusters[n_old:], tree.n_clusters)[rows] for tree in trees
    )
    return wide.and_also(Exemplars.of(seen.X[rows], None if seen.E is None else seen.E[rows], Y, near))


def _remove(kind: GrowAdapter, gone: npt.NDArray[np.bool_]) -> Model:
    stands = []
    for tree, level in kind.stands:
        left = np.bincount(tree.clusters[~gone], minlength=tree.n_clusters)
        if not left.all():
            raise UsageError(
                f"cluster {int(np.flatnonzero(left == 0)[0])} of the label tree would have no label left; leave one of "
                "them, or train anew"
            )
        stands.append((Tree((*tree.parents[:-1], tree.clusters[~gone])), without_children(level, gone)))
    labels = [name for name, out in zip(kind.model.labels_, gone, strict=True) if not out]
    pruned = kind.pruned(stands, labels, gone)
    if pruned.exemplars_ is not None:
        memory = pruned.exemplars_.with_labels(Csr(pruned.exemplars_.Y[:, np.flatnonzero(~gone)]))
        labelled = np.flatnonzero(np.diff(memory.Y.indptr) > 0)
        pruned.exemplars_ = memory if len(labelled) == len(memory) else memory.take(labelled)
    return pruned
