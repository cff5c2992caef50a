"""Measures labels that are added to a trained model: hides a tenth of the labels, and adds them again.

    python benchmarks/growing.py DATA/eurlex57k [--split test] [--preset default] [--share 0.1] [--seed 0]

A linear model is trained and calibrated without the hidden labels; it keeps exemplars (`keep_documents`). The hidden
labels are added with 0 examples (the name alone), 1, 5 and 20 examples, drawn from the training documents that have
them, or all if there are fewer; then with all training documents as data. For comparison, models are trained from
scratch: on the same few examples of the hidden labels, and on all training documents.

Columns for the added labels: P@1 and R@5 in a ranking of the added labels alone, and R@10 in the ranking of all labels,
over documents that have an added label; the calibration error of their predictions among the best 20 of a document, the
mean probability and the share that is correct. Columns for the old labels: P@1 in a ranking of the old labels alone;
P@1 of the whole ranking if a document's new labels count as wrong ("strict"); P@1 of the whole ranking with all labels.
CPU seconds are those of training or adding, without compilation.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelwise import (
    Dataset,
    LinearTree,
    NewLabel,
    add_labels,
    keep_documents,
    load_dataset,
    load_preset,
    precision_at_k,
    remove_labels,
)
from labelwise.metrics import calibration_error, recall_at_k
from labelwise.models.calibrator import CALIBRATED_ON
from labelwise.predictions.ranking import keep_best

DEPTH = 100
"""Length of the ranking of all labels."""
COUNTS = (0, 1, 5, 20)
HEAD = ("", "P@1", "R@5", "R@10 in all", "error", "mean p", "right", "old P@1", "strict", "all P@1", "CPU s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--split", default="test")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    Experiment(args).run()


class Experiment:
    """The data sets with hidden labels, and the measurements on them."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.preset = load_preset(args.preset)
        train = load_dataset(args.data, "train")
        self.validation, self.test = (
            load_dataset(args.data, split, labels=train.labels).with_labels(train.labels)
            for split in ("validation", args.split)
        )
        frequency = np.bincount(train.Y.indices, minlength=train.n_labels)
        known = np.flatnonzero(frequency)
        self.random = np.random.default_rng(args.seed)
        hidden = np.sort(self.random.choice(known, int(len(known) * args.share), replace=False))
        self.hidden = [train.labels[at] for at in hidden]
        self.old = [name for name in train.labels if name not in set(self.hidden)]
        self.train = train.with_labels([*self.old, *self.hidden])
        counts = frequency[hidden]
        quartiles = ", ".join(f"{value:.0f}" for value in np.quantile(counts, (0.25, 0.5, 0.75)))
        print(f"{args.data.name}, {args.preset}, seed {args.seed}: {len(self.hidden)} of {len(known)} labels hidden")
        print(f"quartiles of their training documents: {quartiles}; with fewer than 20: {(counts < 20).sum()}")
        print("evaluated on", args.split, f"({len(self.test):,} documents)", flush=True)

    def run(self) -> None:
        n_old = len(self.old)
        stripped = self._with(self.train, self.train.Y[:, :n_old], self.old)
        stripped = stripped.take(np.flatnonzero(np.diff(stripped.Y.indptr)))
        base, seconds = timed(lambda: self.fit(stripped))
        base = keep_documents(base, stripped)
        add_labels(base, [{"label": "warm up", "examples": stripped.texts[:1]}])  # compiles
        print(f"documents kept for new labels: {len(base.exemplars_)}")
        print("| " + " | ".join(HEAD) + " |")
        print("|" + "---|" * len(HEAD))
        self.show("before", base, seconds)
        before = base.predict(self.test.texts, top_k=DEPTH).matrix
        order = self._shuffled()
        for count in COUNTS:
            new = [NewLabel(name, None, self._texts(rows[:count])) for name, rows in order.items()]
            seen = [one for one in new if one.examples or base.tfidf_.transform([one.label]).nnz]
            if len(seen) < len(new):
                print(f"| labels whose name has no known word: {len(new) - len(seen)}, not added |")
            grown, seconds = timed(lambda: add_labels(base, seen))  # noqa: B023
            self.show(f"added, {count} examples", grown, seconds)
            after = remove_labels(grown, [one.label for one in seen]).predict(self.test.texts, top_k=DEPTH).matrix
            same = (after.data == before.data).all() and (after.indices == before.indices).all()
            assert same, "removing the labels does not give the old model back"
        grown, seconds = timed(lambda: add_labels(base, self.hidden, data=self.train))
        self.show("added, all that is known", grown, seconds)
        for count in COUNTS[1:]:
            Y = self.train.Y.tolil()
            Y[:, n_old:] = 0
            for at, rows in enumerate(order.values()):
                Y[rows[:count], n_old + at] = 1
            few = self._with(self.train, sp.csr_array(Y.tocsr()), self.train.labels)
            few = few.take(np.flatnonzero(np.diff(few.Y.indptr)))
            model, seconds = timed(lambda: self.fit(few))  # noqa: B023
            self.show(f"trained from scratch, {count} examples", model, seconds)
        model, seconds = timed(lambda: self.fit(self.train))
        self.show("trained from scratch, all that is known", model, seconds)

    def fit(self, train: Dataset) -> Any:
        """A model that is trained on these documents and calibrated on the labels that it has."""
        validation = self.validation.with_labels(train.labels)
        kept = self._with(validation, validation.Y[:, : train.n_labels], train.labels)
        return LinearTree(self.preset).fit(train.texts, train.Y, label_names=train.labels, validation=kept)

    def show(self, name: str, model: Any, seconds: float) -> None:
        """Print a line of the table."""
        labels, n_old = [*self.old, *self.hidden], len(self.old)
        truth = self.test.with_labels(labels).Y[:, : len(labels)]
        found = model.predict(self.test.texts, top_k=DEPTH).with_labels(labels).matrix[:, : len(labels)]
        old, new = sp.csr_array(truth[:, :n_old]), sp.csr_array(truth[:, n_old:])
        there = np.flatnonzero(np.diff(new.indptr))
        among, best = sp.csr_array(found[there][:, n_old:]), keep_best(found, CALIBRATED_ON)
        shown = sp.csr_array(best[:, n_old:])
        in_all = recall(keep_best(sp.csr_array(found[there]), 10)[:, n_old:], new[there])
        cells = [
            precision_at_k(new[there], among, k=1),
            recall_at_k(new[there], among, k=5),
            in_all,
            calibration_error(new, shown) if shown.nnz else np.nan,
            100 * shown.data.mean() if shown.nnz else np.nan,
            100 * hits(shown, new) / shown.nnz if shown.nnz else np.nan,
            precision_at_k(old, sp.csr_array(found[:, :n_old]), k=1),
            precision_at_k(sp.csr_array(sp.hstack((old, new * 0)).tocsr()), found, k=1),
            precision_at_k(truth, found, k=1),
            seconds,
        ]
        print("| " + " | ".join([name, *(f"{value:.2f}" for value in cells)]) + " |", flush=True)

    def _shuffled(self) -> dict[str, Any]:
        """The training documents of each hidden label, in a random order."""
        columns = self.train.Y.tocsc()
        first = len(self.old)
        return {
            name: self.random.permutation(columns.indices[columns.indptr[first + at] : columns.indptr[first + at + 1]])
            for at, name in enumerate(self.hidden)
        }

    def _texts(self, rows: Any) -> list[str]:
        assert self.train.texts is not None
        return [self.train.texts[row] for row in rows.tolist()]

    @staticmethod
    def _with(data: Dataset, Y: Any, labels: list[str]) -> Dataset:
        return Dataset(Y=sp.csr_array(Y), labels=labels, texts=data.texts)


def recall(found: Any, truth: Any) -> float:
    """The mean share of a document's labels that are found."""
    right = (found != 0).multiply(truth).sum(axis=1)
    return 100 * float(np.mean(np.asarray(right).ravel() / np.diff(truth.indptr)))


def hits(found: Any, truth: Any) -> float:
    return float((found != 0).multiply(truth).sum())


def timed(work: Any) -> tuple[Any, float]:
    begin = time.process_time()
    return work(), time.process_time() - begin


if __name__ == "__main__":
    main()
