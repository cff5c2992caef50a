"""Labels added to and removed from a trained model, and documents that a model keeps for labels to come.

Every function returns a new model and leaves the given one unchanged. Both models share all parts that stay the same.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise.config import IncrementalConfig
from labelwise.config.settings import checked_value
from labelwise.data import Dataset
from labelwise.data.label_names import check_name
from labelwise.errors import DataError, UsageError
from labelwise.features.texts import is_collection, type_and_value
from labelwise.incremental.examples import LabelExamples
from labelwise.incremental.label_weights import weights_from_examples, weights_from_texts
from labelwise.incremental.new_labels import new_labels
from labelwise.incremental.retention import exemplars_of
from labelwise.index import Tree, embed_labels
from labelwise.models.base import Model, check_fitted
from labelwise.models.exemplars import Exemplars
from labelwise.models.growth import Clusters, EncodedDocs, GrowthAdapter
from labelwise.models.prediction_cache import PredictionCache
from labelwise.models.training_report import AddedLabel, TrainingReport
from labelwise.rank.level_columns import with_children, without_children
from labelwise.types import Csr, Ints, OnEvent


def add_labels(
    model: Model,
    labels: Iterable[Any],
    *,
    data: Dataset | None = None,
    config: IncrementalConfig | None = None,
    on_event: OnEvent | None = None,
) -> Model:
    """A model with further labels. All other labels keep their weights, and probabilities keep their meaning.

    In each tree, a new label joins the cluster that the model finds for the PIFA embedding of the label's examples, or
    for its text. The weights of a label with examples come from the solver of training: the examples and the text are
    positive, documents of the cluster are negative. The weights of a label without examples are its text, scaled to
    the weights of the cluster's other labels.

    Parameters
    ----------
    labels
        `NewLabel` objects, dictionaries with label, text and examples, or names.
    data
        Documents with labels, such as the training documents. Documents that have a new label are further examples of
        it. The other documents are its negatives: all documents of the cluster, or a sample of them where no document
        of the data has the label. If not given, the documents that the model keeps are the negatives (see
        `keep_documents`). Labels without examples need neither.

    Examples
    --------
    >>> from labelwise import Dataset, LinearTree, add_labels
    >>> texts = ["red running shoe", "blue running shoe", "red coffee mug", "blue coffee mug"]
    >>> labels = [["shoe", "red"], ["shoe", "blue"], ["mug", "red"], ["mug", "blue"]]
    >>> data = Dataset.from_frame({"text": texts, "labels": labels})
    >>> model = LinearTree().fit(texts, labels)
    >>> grown = add_labels(model, [{"label": "sport", "examples": ["running shoe"]}], data=data)
    >>> [name for name, score in grown.predict(["running"], top_k=2)[0]]
    ['shoe', 'sport']
    """
    check_fitted(model, "labels_")
    config = _checked(config)
    new = new_labels(labels, model.labels_)
    if data is not None:
        checked_value(Dataset, data, "data")
    known = None if data is None else data.with_labels([*model.labels_, *(one.label for one in new)])
    examples = LabelExamples.of(model, new, known)
    reading = model.reading(examples.documents, on_event=on_event)

    counts = examples.counts.tolist()
    added = [AddedLabel(label=one.label, examples=count) for one, count in zip(new, counts, strict=True)]

    def record(report: TrainingReport) -> None:
        report.added = [*report.added, *added]

    return with_changed_members(
        model,
        lambda member: _with_new_labels(member.growth(), examples, reading, known, config, on_event),
        record,
    )


def remove_labels(model: Model, labels: Iterable[str]) -> Model:
    """A model without some labels. Without all added labels, it predicts exactly as before they were added.

    Examples
    --------
    >>> from labelwise import LinearTree, remove_labels
    >>> texts = ["red running shoe", "blue running shoe", "red coffee mug", "blue coffee mug"]
    >>> labels = [["shoe", "red"], ["shoe", "blue"], ["mug", "red"], ["mug", "blue"]]
    >>> model = LinearTree().fit(texts, labels)
    >>> remove_labels(model, ["red", "blue"]).labels_
    ['shoe', 'mug']
    """
    check_fitted(model, "labels_")
    names = [labels] if isinstance(labels, str) else _names(labels)
    unknown = [name for name in names if name not in set(model.labels_)]
    if unknown or not names:
        what = f"has no label {unknown[0]!r}" if unknown else "keeps all its labels if none is named"
        close = difflib.get_close_matches(unknown[0], model.labels_, 1) if unknown else []
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UsageError(f"the model {what}; {hint}give names of labels that it has")
    removed = np.isin(np.array(model.labels_, dtype=object), names)
    remaining = [one for one in added_labels(model) if one.label not in set(names)]

    def record(report: TrainingReport) -> None:
        report.added = remaining

    return with_changed_members(model, lambda member: _without_labels(member.growth(), removed), record)


def _checked(config: IncrementalConfig | None) -> IncrementalConfig:
    """The settings given, or the defaults."""
    if config is None:
        return IncrementalConfig()
    if not isinstance(config, IncrementalConfig):
        raise UsageError(f"config is {type_and_value(config)}; it must be of class IncrementalConfig")
    return config.validated()


def _names(labels: Any) -> list[str]:
    """Names of labels, each once."""
    if isinstance(labels, Mapping) or not is_collection(labels):
        raise UsageError(f"labels is {type_and_value(labels)}; give a list of label names")
    names = list(labels)
    for name in names:
        check_name(name)
    return list(dict.fromkeys(names))


def keep_documents(
    model: Model, data: Dataset, *, config: IncrementalConfig | None = None, on_event: OnEvent | None = None
) -> Model:
    """A model that keeps the features of some training documents, so that labels can be added without the data.

    Examples
    --------
    >>> from labelwise import Dataset, LinearTree, add_labels, keep_documents
    >>> texts = ["red running shoe", "blue running shoe", "red coffee mug", "blue coffee mug"]
    >>> labels = [["shoe", "red"], ["shoe", "blue"], ["mug", "red"], ["mug", "blue"]]
    >>> data = Dataset.from_frame({"text": texts, "labels": labels})
    >>> model = keep_documents(LinearTree().fit(texts, labels), data)
    >>> grown = add_labels(model, [{"label": "sport", "examples": ["running shoe"]}])
    >>> grown.labels_
    ['shoe', 'red', 'blue', 'mug', 'sport']
    """
    check_fitted(model, "labels_")
    settings = _checked(config)
    checked_value(Dataset, data, "data")
    known = data.with_labels(model.labels_)

    def with_exemplars(member: Model) -> Model:
        changed = copy(member)
        changed.exemplars_ = exemplars_of(member.growth(), known, settings, on_event=on_event)
        return changed

    return with_changed_members(model, with_exemplars, lambda report: None)


def added_labels(model: Model) -> list[AddedLabel]:
    """The labels that were added since training, oldest first, with the number of their examples."""
    return list(model.report_.added)


def with_changed_members(
    model: Model, change: Callable[[Model], Model], record: Callable[[TrainingReport], None]
) -> Model:
    """A model with changed members; `record` changes copies of the training reports of the members and the model."""

    def recorded(changed: Model) -> Model:
        changed.report_ = copy(changed.report_)
        record(changed.report_)
        return changed

    changed = model.map_members(lambda member: recorded(change(member)))
    return changed if model.members == (model,) else recorded(changed)


def _with_new_labels(
    adapter: GrowthAdapter,
    examples: LabelExamples,
    reading: PredictionCache,
    data: Dataset | None,
    config: IncrementalConfig,
    on_event: OnEvent | None,
) -> Model:
    docs = adapter.encoded_docs(reading, all_clusters=True)
    _check_known(docs, examples)
    clusters_of_labels = adapter.clusters_of_labels(docs, examples.owners)
    without_examples = np.flatnonzero(examples.counts == 0)
    groups = _groups(adapter, examples, clusters_of_labels, data, config, on_event)
    label_trees = []
    for number, ((tree, level), clusters) in enumerate(zip(adapter.label_trees, clusters_of_labels, strict=True)):
        for which, negatives, sampled in groups:
            options: dict[str, Any] = {"sampled": sampled, "seed": config.seed, "on_event": on_event}
            blocks = weights_from_examples(adapter, number, clusters, which, negatives, docs, examples, **options)
            level = with_children(level, blocks)
        if len(without_examples):
            rows = examples.texts[without_examples]
            texts = adapter.features(docs.X[rows], None if docs.E is None else docs.E[rows])
            level = with_children(level, weights_from_texts(adapter, number, clusters, without_examples, texts, config))
        label_trees.append((Tree((*tree.parents[:-1], np.concatenate((tree.clusters, clusters)))), level))
    Z: Any = embed_labels(examples.owners, docs.X, threads=adapter.threads)
    names = [*adapter.model.labels_, *(one.label for one in examples.labels)]
    grown = adapter.with_new_labels(label_trees, names, Z)
    if adapter.model.exemplars_ is not None:
        trees = [tree for tree, _ in label_trees]
        grown.exemplars_ = _with_examples(adapter.model.exemplars_, docs, examples, trees, config)
    return grown


def _groups(
    adapter: GrowthAdapter,
    examples: LabelExamples,
    clusters_of_labels: list[Clusters],
    data: Dataset | None,
    config: IncrementalConfig,
    on_event: OnEvent | None,
) -> list[tuple[Ints, Exemplars, bool]]:
    """Labels with examples, the documents that are their negatives, and whether these are a sample.

    Where documents of the data have a label, the other documents are known not to have it: all documents of the
    cluster are negatives. Otherwise any document may have the label without saying so, and a sample is enough.
    """
    groups: list[tuple[Ints, Exemplars, bool]] = []
    others = None if data is None else data.take(np.flatnonzero(~examples.in_data))
    for sampled in (False, True):
        which = np.flatnonzero((examples.counts > 0) & (examples.annotated != sampled))
        if not len(which):
            continue
        negatives: Exemplars | None = adapter.model.exemplars_
        if others is not None:
            clusters, most = [each[which] for each in clusters_of_labels], None if sampled else len(others)
            negatives = exemplars_of(adapter, others, config, clusters=clusters, most=most, on_event=on_event)
        if negatives is None:
            raise UsageError(
                f"{examples.labels[which[0]].label!r} has examples, but there are no documents without the label; give "
                "the training data too (data, --data), or a model that keeps documents (labelwise train --growing)"
            )
        groups.append((which, negatives, sampled))
    return groups


def _check_known(docs: EncodedDocs, examples: LabelExamples) -> None:
    """Refuse a label whose documents have no feature that the model knows."""
    if docs.E is not None:
        return
    has_words = np.diff(docs.X.indptr) > 0
    unseen = np.flatnonzero((examples.owners.T.tocsr() @ has_words.astype(np.float32)) == 0)
    if len(unseen):
        what = "text" if examples.counts[unseen[0]] == 0 else "examples"
        others = f" (and of {len(unseen) - 1} more labels)" if len(unseen) > 1 else ""
        raise DataError(
            f"the model knows no word of the {what} of {examples.labels[unseen[0]].label!r}{others}; leave the label "
            "out, or give examples in words that the training documents have"
        )


def _with_examples(
    exemplars: Exemplars, docs: EncodedDocs, examples: LabelExamples, trees: list[Tree], config: IncrementalConfig
) -> Exemplars:
    """The documents that a model keeps, with examples of the new labels, which are negatives of later labels."""
    n_old, n_new = exemplars.Y.shape[1], len(examples.labels)
    wide = exemplars.with_labels(
        Csr((exemplars.Y.data, exemplars.Y.indices, exemplars.Y.indptr), shape=(len(exemplars), n_old + n_new))
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
    return wide.followed_by(Exemplars.of(docs.X[rows], None if docs.E is None else docs.E[rows], Y, near))


def _without_labels(adapter: GrowthAdapter, removed: npt.NDArray[np.bool_]) -> Model:
    label_trees = []
    for tree, level in adapter.label_trees:
        sizes = np.bincount(tree.clusters[~removed], minlength=tree.n_clusters)
        if not sizes.all():
            raise UsageError(
                f"cluster {int(np.flatnonzero(sizes == 0)[0])} of the label tree would have no label; keep one of its "
                "labels, or train a new model"
            )
        label_trees.append((Tree((*tree.parents[:-1], tree.clusters[~removed])), without_children(level, removed)))
    labels = [name for name, out in zip(adapter.model.labels_, removed, strict=True) if not out]
    pruned = adapter.without_labels(label_trees, labels, removed)
    if pruned.exemplars_ is not None:
        exemplars = pruned.exemplars_.with_labels(Csr(pruned.exemplars_.Y[:, np.flatnonzero(~removed)]))
        labelled = np.flatnonzero(np.diff(exemplars.Y.indptr) > 0)
        pruned.exemplars_ = exemplars if len(labelled) == len(exemplars) else exemplars.take(labelled)
    return pruned
