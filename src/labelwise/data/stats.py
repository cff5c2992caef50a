"""What a data set looks like: the paper's Table 2, the long tail, and what to beware of."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labelwise.config.settings import checked_value
from labelwise.data.dataset import Dataset
from labelwise.errors import UsageError
from labelwise.features.scripts import MOST, SOME, unspaced_share
from labelwise.features.texts import type_and_value
from labelwise.types import Ints

if TYPE_CHECKING:
    from rich.table import Table

HEAD_DOCUMENTS = 100
"""A label with more training documents than this belongs to the head (the paper's Figure 1)."""
TAIL_DOCUMENTS = 5
SPLIT_SHARE = 0.05
"""From this share on, documents that are probably split into rows of one label are told."""
PERCENTILES = (5, 25, 50, 75, 95, 99, 100)


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Numbers about the splits of a data set; those about words are None where there are no texts."""

    n_train: int
    """Training documents."""
    n_validation: int
    """Validation documents."""
    n_test: int
    """Test documents."""
    train_words: int | None
    """Words of the training texts, separated by white space."""
    test_words: int | None
    """Words of the test texts."""
    n_features: int | None
    """Features, where the data come with some."""
    n_labels: int
    """Labels, the unused ones included."""
    n_labels_train: int
    """Labels with at least one training document."""
    labels_per_document: float
    """Mean number of labels of a training document."""
    documents_per_label: float
    """Mean number of training documents of a label, over all labels."""
    n_head_labels: int
    """Labels with more than 100 training documents."""
    head_share: float
    """Their share of all labels."""
    n_tail_labels: int
    """Labels with one to five training documents."""
    n_single_labels: int
    """Labels with exactly one training document."""
    n_unseen_labels: int
    """Labels of test documents that no training document has."""
    unseen_share: float
    """Their share of all label occurrences in the test split."""
    n_unlabelled_train: int
    """Training documents without labels."""
    n_unlabelled_test: int
    """Test documents without labels."""
    n_duplicates_train: int | None
    """Training documents whose very text occurred before."""
    n_split_documents: int | None
    """Of these, the documents with another label, if every training document has one label at most: the rows are
    probably pairs of a document and a label."""
    n_duplicates_test: int | None
    """Test documents whose very text is among the training texts."""
    unspaced_share: float | None
    """Share of the letters, in a sample of the training texts, of scripts without spaces between words."""
    word_percentiles: dict[str, int] | None
    """Words of a training document, by percentile; 100 is the longest."""

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values, for JSON."""
        return asdict(self)


def describe(splits: Mapping[str, Dataset]) -> Statistics:
    """Statistics of the splits that `load_splits` gives; "train" has to be among them.

    Examples
    --------
    >>> from labelwise import describe, generate_shop
    >>> statistics = describe(generate_shop(500, 100))
    >>> statistics.n_train, statistics.n_test, statistics.n_labels
    (450, 50, 100)
    >>> print(f"{statistics.labels_per_document:.2f} labels per document")
    4.59 labels per document
    """
    if not isinstance(splits, Mapping):
        raise UsageError(f"splits is {type_and_value(splits)}; give a dict of Datasets, as load_splits makes it")
    for name, split in splits.items():
        checked_value(Dataset, split, str(name))
    if "train" not in splits:
        there = ", ".join(splits) or "none"
        raise UsageError(f"statistics are about the training split, which is not there; there are: {there}")
    train, test = splits["train"], splits.get("test")
    if any(dataset.n_labels != train.n_labels for dataset in splits.values()):
        raise UsageError("the splits have different label lists; load them together with load_splits")
    counts = label_counts(train)
    n_labels = max(train.n_labels, 1)
    words = None if train.texts is None else word_counts(train.texts)
    test_words = None if test is None or test.texts is None else word_counts(test.texts)
    n_unseen, unseen_share = _unseen(counts, test)
    digests = None if train.texts is None else [_digest(text) for text in train.texts]
    known = set(digests or ())
    n_head = int((counts > HEAD_DOCUMENTS).sum())
    return Statistics(
        n_train=len(train),
        n_validation=len(splits["validation"]) if "validation" in splits else 0,
        n_test=0 if test is None else len(test),
        train_words=None if words is None else int(words.sum()),
        test_words=None if test_words is None else int(test_words.sum()),
        n_features=None if train.features is None else int(train.features.shape[1]),
        n_labels=train.n_labels,
        n_labels_train=int((counts > 0).sum()),
        labels_per_document=float(train.Y.nnz / max(len(train), 1)),
        documents_per_label=float(train.Y.nnz / n_labels),
        n_head_labels=n_head,
        head_share=n_head / n_labels,
        n_tail_labels=int(((counts > 0) & (counts <= TAIL_DOCUMENTS)).sum()),
        n_single_labels=int((counts == 1).sum()),
        n_unseen_labels=n_unseen,
        unseen_share=unseen_share,
        n_unlabelled_train=_n_unlabelled(train),
        n_unlabelled_test=0 if test is None else _n_unlabelled(test),
        n_duplicates_train=None if digests is None else len(digests) - len(known),
        n_split_documents=None if digests is None else _n_split(train, digests),
        n_duplicates_test=_n_known(test, known) if digests is not None else None,
        unspaced_share=None if train.texts is None else unspaced_share(train.texts),
        word_percentiles=None if words is None or not words.size else _percentiles(words),
    )


def _n_split(train: Dataset, digests: Sequence[bytes]) -> int:
    """Documents whose text occurred before with another label; 0 where a document has several labels."""
    if not len(train) or np.diff(train.Y.indptr).max() > 1:
        return 0
    rows, labels = train.Y.nonzero()
    first: dict[bytes, int] = {}
    return sum(
        first.setdefault(digests[row], label) != label
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True)
    )


def label_counts(dataset: Dataset) -> Ints:
    """(n_labels,) documents of each label."""
    return np.bincount(dataset.Y.indices, minlength=dataset.n_labels)


def word_counts(texts: Sequence[str]) -> Ints:
    """(n_docs,) words of each text, separated by white space."""
    return np.fromiter((len(text.split()) for text in texts), dtype=np.int64, count=len(texts))


def _unseen(counts: Ints, test: Dataset | None) -> tuple[int, float]:
    if test is None:
        return 0, 0.0
    test_counts = label_counts(test)
    unseen = (test_counts > 0) & (counts == 0)
    return int(unseen.sum()), float(test_counts[unseen].sum() / max(test.Y.nnz, 1))


def _n_unlabelled(dataset: Dataset) -> int:
    return int((np.diff(dataset.Y.indptr) == 0).sum())


def _n_known(test: Dataset | None, known: set[bytes]) -> int | None:
    if test is None or test.texts is None:
        return None
    return sum(_digest(text) in known for text in test.texts)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _percentiles(words: Ints) -> dict[str, int]:
    values = np.percentile(words, PERCENTILES, method="nearest")
    return {str(p): int(v) for p, v in zip(PERCENTILES, values, strict=True)}


def statistics_table(stats: Statistics, *, title: str | None = None) -> "Table":
    """The statistics as a table for the terminal."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    title = None if title is None else escape(title)
    table = Table(title=title, box=box.SIMPLE_HEAD, show_header=False, pad_edge=False, title_justify="left")
    table.add_column("what")
    table.add_column("number", justify="right", style="bold")
    table.add_column("remark", style="dim")
    for section in _sections(stats):
        for what, number, remark in section:
            table.add_row(what, number, remark)
        table.add_section()
    return table


def _sections(stats: Statistics) -> list[list[tuple[str, str, str]]]:
    """Rows of (what, number, remark), in groups; those that say nothing are left out."""
    documents = [("training documents", f"{stats.n_train:,}", _words(stats.train_words, stats.n_train))]
    if stats.n_validation:
        documents.append(("validation documents", f"{stats.n_validation:,}", ""))
    if stats.n_test:
        documents.append(("test documents", f"{stats.n_test:,}", _words(stats.test_words, stats.n_test)))
    if stats.n_features is not None:
        documents.append(("features", f"{stats.n_features:,}", ""))
    if stats.word_percentiles is not None:
        p = stats.word_percentiles
        middle = f"half between {p['25']:,} and {p['75']:,}; 95 % up to {p['95']:,}; longest {p['100']:,}"
        documents.append(("words of a document, median", f"{p['50']:,}", middle))
    labels = [
        ("labels", f"{stats.n_labels:,}", f"{stats.n_labels_train:,} of them in training"),
        ("labels per document", f"{stats.labels_per_document:.2f}", "mean, training"),
        ("documents per label", f"{stats.documents_per_label:.2f}", "mean, training"),
    ]
    tail = [
        ("labels with > 100 documents", f"{stats.n_head_labels:,}", f"{stats.head_share:.1%} of the labels"),
        ("labels with 1–5 documents", f"{stats.n_tail_labels:,}", f"{stats.n_single_labels:,} with a single one"),
    ]
    if stats.n_test:
        share = f"{stats.unseen_share:.2%} of the test labels given"
        tail.append(("test labels unseen in training", f"{stats.n_unseen_labels:,}", share))
    care = []
    if stats.n_unlabelled_train or stats.n_unlabelled_test:
        unlabelled = stats.n_unlabelled_train, stats.n_unlabelled_test
        care.append(("documents without labels", f"{sum(unlabelled):,}", "{:,} train, {:,} test".format(*unlabelled)))
    if stats.n_duplicates_train is not None:
        share = f"{stats.n_duplicates_train / max(stats.n_train, 1):.1%} of the training documents"
        care.append(("texts repeated within training", f"{stats.n_duplicates_train:,}", share))
    if stats.n_split_documents and stats.n_split_documents >= SPLIT_SHARE * stats.n_train:
        remedy = "give a row for a document, with all labels"
        care.append(("… with another label", f"{stats.n_split_documents:,}", remedy))
    if stats.n_duplicates_test is not None:
        share = f"{stats.n_duplicates_test / max(stats.n_test, 1):.1%} of the test documents"
        care.append(("test texts found in training", f"{stats.n_duplicates_test:,}", share))
    if stats.unspaced_share is not None and stats.unspaced_share >= SOME:
        counted = "characters" if stats.unspaced_share >= MOST else "words, unless you pass --analyzer char"
        letters = f"{stats.unspaced_share:.1%}"
        care.append(("letters of scripts without spaces", letters, f"train counts {counted}"))
    return [section for section in (documents, labels, tail, care) if section]


def _words(words: int | None, n_docs: int) -> str:
    return "" if words is None else f"{words:,} words, {words / max(n_docs, 1):,.0f} each"
