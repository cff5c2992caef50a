"""X-Transformer: the three stages in a row. It composes them and holds no algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from labelwise import storage
from labelwise.base import CALIBRATED_ON, Model, check_fitted, fit_tfidf
from labelwise.calibrate import Calibrator
from labelwise.card import render_card
from labelwise.config import XTransformerConfig
from labelwise.data import Dataset
from labelwise.data.split import split_rows
from labelwise.errors import DataError, UsageError
from labelwise.features.encoder import Encoder
from labelwise.features.tfidf import Tfidf
from labelwise.index import Tree
from labelwise.match.frozen import FrozenMatcher
from labelwise.match.matcher import Documents, Matcher
from labelwise.match.processes import joined
from labelwise.match.recall import recall_at
from labelwise.predictions import Predictions
from labelwise.rank.negatives import teacher_forcing
from labelwise.rank.predict import Combine
from labelwise.rank.ranker import COMBINES, WEIGHTS, Inputs, Ranker, choose_ranker
from labelwise.run import RunDirectory
from labelwise.stages import Part, Stages
from labelwise.targets import targets
from labelwise.types import Csr, OnEvent
from labelwise.validation import measure

RECALL_AT = (1, 5, 10, 20)


class XTransformer(Model):
    """Labels for texts: an encoder finds clusters of labels, linear models on tf-idf and embeddings rank the labels.

    >>> model = XTransformer().fit(train.texts, train.Y, label_names=train.labels, validation=validation)
    >>> model.predict(["council regulation on fishing quotas"], top_k=3)[0]
    [('fishery management', 0.93), ...]
    """

    kind = "x-transformer"
    config: XTransformerConfig
    tfidf_: Tfidf
    tree_: Tree
    matcher_: Matcher | FrozenMatcher
    ranker_: Ranker

    def __init__(self, config: XTransformerConfig | None = None) -> None:
        self.config = config or XTransformerConfig()

    # ------------------------------------------------------------------ fitting

    def fit(
        self,
        texts: Sequence[str],
        labels_or_Y: Sequence[Sequence[str]] | Csr,
        *,
        label_names: Sequence[str] | None = None,
        label_texts: Sequence[str] | None = None,
        validation: Dataset | None = None,
        run_dir: Path | str | None = None,
        on_event: OnEvent | None = None,
    ) -> Self:
        """Train on texts with lists of label names, or with a label matrix.

        Parameters
        ----------
        texts
            (n_docs,) texts.
        labels_or_Y
            (n_docs,) lists of label names or (n_docs, n_labels) 0/1 matrix.
        label_names
            (n_labels,) what the columns of a label matrix are called; their numbers if not given.
        label_texts
            (n_labels,) what the labels mean, for the label embedding text-emb; their names if not given.
        validation
            Documents that say when to stop fine-tuning, how to weigh and combine scores, and what scores mean. If not
            given, a share of the training documents does (`hold_out`); the ranker then learns from all of them.
        run_dir
            Keep the stages' results there, and find them again.

        Of several processes that a launcher started the first gets a fitted model; the others help to fine-tune.
        """
        config = _checked(self.config)
        Y, labels = targets(labels_or_Y, label_names)
        texts = _texts(texts)
        for name, given, wanted in (("texts", texts, Y.shape[0]), ("label texts", label_texts, len(labels))):
            if given is not None and len(given) != wanted:
                raise DataError(f"there are {len(given)} {name} but {wanted} are needed, one for each")
        with RunDirectory(run_dir, purpose="fit", on_event=on_event) if run_dir else nullcontext() as run:
            stages = Stages(config, run, run.on_event if run else on_event)
            stages.device()  # say before the work that there is none
            tfidf = fit_tfidf(replace(config.tfidf, threads=config.threads), texts, run, on_event=stages.on_event)
            encoder = Encoder.load(config.encoder)
            train = stages.part(tfidf, encoder, texts, Y)
            learn: Part = train
            judge: Part | None = None
            aside: Any = None
            truth: Csr | None = None
            if validation is not None:
                known = validation.with_labels(labels)
                judge = stages.part(tfidf, encoder, _texts(known.texts), Csr(known.Y[:, : len(labels)]))
                truth = known.Y
            elif config.hold_out > 0 and len(texts) * config.hold_out >= 1:
                rest, aside = split_rows(Y, config.hold_out, seed=config.seed)
                learn, judge = train.take(rest), train.take(aside)
                truth = judge.Y

            tree = stages.index(train, encoder, label_texts or labels)
            if not joined().first:
                stages.take_part(encoder, learn, tree, judge)
                stages.take_part_unseen(train, tree)
                return self
            matcher = stages.matcher(encoder, learn, tree, judge)
            everything = stages.inputs(matcher, train, tree=tree)
            held = (
                None
                if judge is None
                else everything.take(aside)
                if aside is not None
                else stages.inputs(matcher, judge)
            )
            M = teacher_forcing(Y, tree.clusters, tree.n_clusters)
            ranker, calibrator, report = self._rank(everything, Y, M, tree, held, truth, aside, stages)
            # Nothing of an earlier fit is touched before all is trained.
            self.tfidf_, self.labels_, self.tree_ = tfidf, labels, tree
            self.matcher_, self.ranker_, self.calibrator_ = matcher, ranker, calibrator
            self.report_ = {"documents": int(Y.shape[0]), "pairs": int(Y.nnz), **report}
        return self

    def _rank(
        self,
        everything: Inputs,
        Y: Csr,
        M: Csr,
        tree: Tree,
        held: Inputs | None,
        truth: Csr | None,
        aside: Any,
        stages: Stages,
    ) -> tuple[Ranker, Calibrator | None, dict[str, Any]]:
        """The ranker with what validation documents choose, what its scores mean, and what the card tells of it."""
        config = self.config
        options: dict[str, Any] = {"seed": config.seed, "threads": config.threads, "on_event": stages.on_event}
        settings: dict[str, Any] = {
            "dense_weight": config.dense_weight or 1.0,
            "combine": config.combine or "l3-hinge",
            "matcher_weight": 1.0 if config.matcher_weight is None else config.matcher_weight,
        }
        fixed = None not in (config.dense_weight, config.combine, config.matcher_weight)
        if held is None or truth is None or (aside is not None and fixed and not config.calibrate):
            ranker = Ranker.fit(everything, Y, M, tree.clusters, config.ranker, **settings, **options)
            return ranker, None, {"chosen": settings}
        rest = np.setdiff1d(np.arange(Y.shape[0]), aside) if aside is not None else np.arange(Y.shape[0])
        learn = (everything.take(rest), Y[rest], M[rest]) if aside is not None else (everything, Y, M)
        known = Csr(truth[:, : Y.shape[1]])
        ranker, trials = choose_ranker(
            learn,
            (held, known),
            tree.clusters,
            config.ranker,
            weights=WEIGHTS if config.dense_weight is None else [config.dense_weight],
            combines=_combines(config),
            **options,
        )
        measured = measure(ranker.top(held, CALIBRATED_ON, threads=config.threads), truth)
        clusters = teacher_forcing(known, tree.clusters, tree.n_clusters)
        report: dict[str, Any] = {
            "recall": recall_at(held.found, clusters, [top for top in RECALL_AT if top <= config.beam]),
            "chosen": {
                "dense_weight": ranker.dense_weight,
                "combine": ranker.combine,
                "matcher_weight": ranker.matcher_weight,
            },
            "trials": trials,
            "tuning": {"trials": len(trials), "metric": "the mean of P@1, P@3 and P@5"},
        }
        kind = {"kind": "split"} if aside is None else {"kind": "share", "share": config.hold_out}
        report["validation"] = {**kind, **measured.to_dict()}
        if aside is not None:  # all is chosen: the documents that chose it are learnt from too
            ranker = Ranker.fit(everything, Y, M, tree.clusters, config.ranker, **report["chosen"], **options)
        return ranker, measured.calibrator if config.calibrate else None, report

    # ------------------------------------------------------------------ using

    def inputs(self, dataset: Dataset) -> list[str]:
        """What the model reads of a data set: its texts."""
        if dataset.texts is None:
            raise DataError("the model reads texts, but the data have only features")
        return dataset.texts

    def predict(
        self,
        texts_or_X: Sequence[str],
        top_k: int = 10,
        *,
        min_probability: float = 0.0,
        ids: Sequence[str] | None = None,
        on_event: OnEvent | None = None,
    ) -> Predictions:
        """The best labels of each text, with probabilities if the model is calibrated.

        Parameters
        ----------
        min_probability
            Leave out labels below this: a text may then have no label at all.
        ids
            The texts' own ids, passed on to the predictions.
        """
        check_fitted(self, "ranker_")
        config, texts = self.config, _texts(texts_or_X)
        tokens = self.matcher_.encoder_.tokenize(texts, threads=config.threads, on_event=on_event)
        documents = Documents(tokens, self.tfidf_.transform(texts, on_event=on_event))
        E, found = self.matcher_.match(documents, top_b=config.beam, threads=config.threads, on_event=on_event)
        inputs = Inputs.of(config.features, documents.X, E, found)
        matrix = self.ranker_.top(inputs, top_k, threads=config.threads, on_event=on_event)
        return self._answer(matrix, min_probability, ids)

    def title(self) -> str:
        """What it is, in a few words."""
        kind = "X-Transformer" if self.config.fine_tune else "A frozen encoder beside tf-idf"
        return f"{kind} ({Path(self.config.encoder.name).name})"

    def facts(self) -> Iterator[tuple[str, str]]:
        """What it is made of."""
        config, report = self.config, self.report_
        yield "labels", f"{len(self.labels_):,} in {self.tree_.n_clusters:,} clusters by {config.label_embedding}"
        tuned = "fine-tuned on the clusters" if config.fine_tune else "as it was pretrained"
        yield "encoder", f"{Path(config.encoder.name).name}, {config.encoder.max_length} tokens of a text, {tuned}"
        if "recall" in report:
            found = ", ".join(f"{value:.1f} % among {top}" for top, value in report["recall"].items())
            yield "true clusters found", f"{found} (held-out documents)"
        if "chosen" in report:
            chosen = report["chosen"]
            weights = f"weights: embedding {chosen['dense_weight']:g}, cluster {chosen['matcher_weight']:g}"
            yield "scores combined by", f"{chosen['combine']}; {weights}"

    # ------------------------------------------------------------------ keeping

    def save(self, path: Path | str) -> None:
        """Write a self-contained folder from which `load` makes the same model."""
        check_fitted(self, "ranker_")
        with storage.atomic_folder(path, overwrite=True) as folder:
            self.tfidf_.save(folder / "tfidf")
            self.tree_.save(folder / "index")
            self.matcher_.save(folder / "matcher")
            self.ranker_.save(folder / "ranker")
            self._save_common(folder, render_card(self))

    @classmethod
    def load(cls, path: Path | str, *, verify: bool = True) -> Self:
        """Read what `save` wrote; weights are mapped into memory, nothing in the folder is executed."""
        path = Path(path)
        about = storage.read_description(path, kind=cls.kind)["config"]
        config = storage.restore(XTransformerConfig, about["config"], path)
        # Where it was trained says nothing of where it is used.
        self = cls(replace(config, matcher=replace(config.matcher, device=None)))
        self._load_common(path, about)
        self.tfidf_ = Tfidf.load(path / "tfidf")
        self.tree_ = Tree.load(path / "index", verify=verify)
        kind: Any = Matcher if self.config.fine_tune else FrozenMatcher
        self.matcher_ = kind.load(path / "matcher", device=Stages(self.config, None, None).device(), verify=verify)
        self.ranker_ = Ranker.load(path / "ranker", verify=verify)
        return self


def _texts(texts: Any) -> list[str]:
    if texts is None or not hasattr(texts, "__iter__") or isinstance(texts, str) or hasattr(texts, "tocsr"):
        raise DataError("X-Transformer reads texts: give a list of strings, not features")
    return list(texts)


def _combines(config: XTransformerConfig) -> list[tuple[Combine, float]]:
    """The ways to combine scores that are left to choose from."""
    if config.combine is not None and config.matcher_weight is not None:
        return [(config.combine, config.matcher_weight)]
    if config.combine is not None:
        return [pair for pair in COMBINES if pair[0] == config.combine] or [(config.combine, 1.0)]
    if config.matcher_weight is not None:
        return [(combine, config.matcher_weight) for combine in dict.fromkeys(pair[0] for pair in COMBINES)]
    return list(COMBINES)


def _checked(config: XTransformerConfig) -> XTransformerConfig:
    if config.beam < 1:
        raise UsageError(f"beam is {config.beam}; it must be at least 1")
    if not 0 <= config.hold_out < 1:
        raise UsageError(f"hold_out is {config.hold_out}; it must be a share between 0 and 1")
    if config.dense_weight is not None and config.dense_weight <= 0:
        raise UsageError(f"dense_weight is {config.dense_weight}; it must be above 0")
    return config
