"""The evaluation of a model on one split, as the page shows it: metrics, labels, examples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelwise.data import Dataset
from labelwise.events import Task
from labelwise.metrics import Evaluation, calibration_error, evaluate, reliability_curve
from labelwise.metrics.relevance import MarkedPredictions, mark_predictions
from labelwise.metrics.tally import count_by_label
from labelwise.models.base import Model
from labelwise.models.calibrator import CALIBRATED_ON
from labelwise.predictions import Predictions
from labelwise.types import Floats, Ints, OnEvent

KS = (1, 3, 5)
BINS = 15
N_EXAMPLES = 3
"""Number of examples of each kind."""
N_PREDICTED = 6
"""Number of predicted labels of an example."""
MIN_SUPPORT = 5
"""Labels with fewer test documents are not among the best and worst labels, unless all labels have fewer."""


@dataclass(frozen=True)
class LabelScore:
    """Precision, recall and F1 of one label."""

    name: str
    n_train: int | None
    """Number of training documents; None if it is not known."""
    support: int
    """Number of test documents with the label."""
    precision: float
    """In percent, as recall and F1."""
    recall: float
    f1: float


@dataclass(frozen=True)
class Example:
    """A document with its predicted and its true labels."""

    kind: str
    name: str
    text: str | None
    predicted: list[tuple[str, float, bool]]
    """(label, probability or score, whether it is correct), best first."""
    missed: list[str]
    """True labels that are not among the predicted ones."""


@dataclass(frozen=True, eq=False)
class SplitEvaluation:
    """Everything that the page shows about the predictions for one split."""

    split: str
    metrics: Evaluation
    calibration: tuple[float, Floats, Floats, Ints] | None
    """Calibration error in percent; mean probability, share of correct predictions and size of each bin of equal width.
    None if the model gives scores."""
    cut: int
    """A label counts as predicted for a document if it is among this many best labels: the mean number of labels of a
    document."""
    labels: list[LabelScore]
    """Labels that occur in the truth, best F1 first."""
    n_unseen: int
    """Number of these labels that no training document has; 0 if it is not known."""
    examples: list[Example]

    def ranked_labels(self) -> list[LabelScore]:
        """The labels with at least `MIN_SUPPORT` test documents, best first; all labels if there are none."""
        enough = [label for label in self.labels if label.support >= MIN_SUPPORT]
        return enough or self.labels


def evaluate_split(
    model: Model,
    truth: Dataset,
    train: Dataset | None,
    *,
    split: str,
    bootstrap: int = 1000,
    seed: int = 0,
    on_event: OnEvent | None = None,
) -> SplitEvaluation:
    """Predict a split and evaluate the predictions.

    Parameters
    ----------
    truth, train
        The split that is predicted, and the training split over the same labels if there is one.
    """
    predictions = model.predict(model.inputs(truth), CALIBRATED_ON, ids=truth.ids, on_event=on_event)
    predictions = predictions.with_labels(truth.labels)
    with Task(on_event, "evaluating", total=len(truth)) as task:
        metrics = evaluate(
            truth.Y,
            predictions,
            ks=KS,
            Y_train=None if train is None else train.Y,
            bootstrap=bootstrap,
            seed=seed,
        )
        task.advance(len(truth))
    calibration = None
    if model.calibrator_ is not None:
        curve = reliability_curve(truth.Y, predictions, BINS, equal_mass=False)
        calibration = (calibration_error(truth.Y, predictions), *curve)
    marked = mark_predictions(truth.Y, predictions, CALIBRATED_ON)
    cut = max(1, min(CALIBRATED_ON, round(truth.Y.nnz / len(truth))))
    labels = _label_scores(marked, truth, train, cut)
    return SplitEvaluation(
        split=split,
        metrics=metrics,
        calibration=calibration,
        cut=cut,
        labels=labels,
        n_unseen=sum(label.n_train == 0 for label in labels),
        examples=_examples(marked, predictions, truth, seed),
    )


def _label_scores(marked: MarkedPredictions, truth: Dataset, train: Dataset | None, cut: int) -> list[LabelScore]:
    counts = count_by_label(marked, cut)
    n_train = None if train is None else np.bincount(train.Y.indices, minlength=train.n_labels)
    scores = []
    for i in np.flatnonzero(counts.true[: truth.n_labels]).tolist():
        true, predicted, correct = (int(count[i]) for count in (counts.true, counts.predicted, counts.correct))
        scores.append(
            LabelScore(
                name=truth.labels[i],
                n_train=None if n_train is None else int(n_train[i]),
                support=true,
                precision=100 * correct / predicted if predicted else 0.0,
                recall=100 * correct / true,
                f1=200 * correct / (predicted + true),
            )
        )
    return sorted(scores, key=lambda label: (-label.f1, -label.support, label.name))


def _examples(marked: MarkedPredictions, predictions: Predictions, truth: Dataset, seed: int) -> list[Example]:
    """Some documents of each kind; no document is taken twice."""
    n_docs = marked.n_docs
    starts, sizes = marked.best_indptr[:-1], np.diff(marked.best_indptr)
    true = np.diff(marked.indptr)
    rows = np.flatnonzero((sizes > 0) & (true > 0))
    top = np.full(n_docs, -np.inf)
    top[rows] = marked.scores[starts[rows]]
    hit = np.zeros(n_docs, bool)
    hit[rows] = marked.hits[starts[rows]].astype(bool)
    shown = marked.ranks < N_PREDICTED
    doc_of = np.repeat(np.arange(n_docs), sizes)
    correct = np.bincount(doc_of[shown], weights=marked.hits[shown], minlength=n_docs)
    missed = true - correct
    shuffled = np.random.default_rng(seed).permutation(n_docs)
    orders = {
        "drawn at random": shuffled,
        "wrong with high confidence": np.array(sorted(rows[~hit[rows]], key=lambda i: (-top[i], i)), dtype=np.int64),
        "most labels missed": np.array(
            sorted(rows[missed[rows] > 0], key=lambda i: (-missed[i] / true[i], -true[i], i)), dtype=np.int64
        ),
        "all labels found": np.array(
            sorted(rows[missed[rows] == 0], key=lambda i: (-true[i], -top[i], i)), dtype=np.int64
        ),
    }
    used: set[int] = set()
    examples = []
    for kind, order in orders.items():
        chosen = [int(i) for i in order[: N_EXAMPLES + len(used)] if int(i) not in used][:N_EXAMPLES]
        used.update(chosen)
        examples += [_example(kind, i, marked, predictions, truth) for i in chosen]
    return examples


def _example(kind: str, row: int, marked: MarkedPredictions, predictions: Predictions, truth: Dataset) -> Example:
    here = slice(marked.best_indptr[row], min(marked.best_indptr[row + 1], marked.best_indptr[row] + N_PREDICTED))
    best = marked.best[here].tolist()
    true = marked.truth[marked.indptr[row] : marked.indptr[row + 1]].tolist()
    marks = zip(best, marked.scores[here].tolist(), marked.hits[here].tolist(), strict=True)
    return Example(
        kind=kind,
        name=str(row) if truth.ids is None else truth.ids[row],
        text=None if truth.texts is None else truth.texts[row],
        predicted=[(predictions.labels[i], score, bool(hit)) for i, score, hit in marks],
        missed=[truth.labels[i] for i in true if i not in best],
    )
