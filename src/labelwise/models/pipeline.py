"""The pipeline: one method for each stage of training, from documents to a calibrated ranker.

::

    documents ─► tfidf ─► features X ──────────────────────────┐
              ─► tokens ─► embeddings E ──┐                    │
    labels Y, X or E ─► label_embedding Z ─► tree C            │
    documents, M = Y C ─► matcher g(x, k) ─► candidates ───────┤
                                             negatives ────────┼─► ranker h(x, l) ─► calibration
                                                               │
                                 linear models:  tree ─────────┴─► levels ─► calibration

Each method finds its result in the cache or computes it; `labelwise.models.stages` declares what a result depends on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelwise import storage
from labelwise.features.tfidf import Tfidf
from labelwise.features.token_store import TokenStore
from labelwise.index import Tree, build_tree
from labelwise.index.label_embedding import LABEL_EMBEDDINGS, Features
from labelwise.models import stages
from labelwise.models.calibrator import CALIBRATED_ON
from labelwise.models.fitted_ranker import FittedRanker, fit_ranker
from labelwise.models.fitted_tree import FittedTree, fit_levels
from labelwise.models.holdout import HoldoutEvaluation, evaluate_scores
from labelwise.models.stages import Stage, StageCache, Storage
from labelwise.predictions.ranking import keep_best
from labelwise.rank.negatives import teacher_forcing
from labelwise.types import Csr, Ints

if TYPE_CHECKING:  # linear models need neither torch nor what imports it
    from labelwise.features.encoder import Encoder
    from labelwise.match.base import Matcher
    from labelwise.match.documents import Documents
    from labelwise.match.finetuned import FineTunedMatcher
    from labelwise.match.frozen import FrozenMatcher
    from labelwise.match.training.distributed import Role
    from labelwise.rank.ranker import Inputs

MOST_UNKNOWN = 0.2
"""Share of the training tokens that an encoder may not know, without a warning."""
Embeddings = npt.NDArray[np.float32]
EMBEDDINGS_STORAGE: Storage[Embeddings] = Storage(
    lambda E, path: storage.save(path, kind="embeddings", arrays={"E": E}),
    lambda path: np.asarray(storage.load(path, kind="embeddings").arrays["E"]),
)


class Pipeline:
    """The stages of one model; models that are trained together share the cache.

    Parameters
    ----------
    config
        The model's configuration.
    cache
        The training data and the results that there are.
    """

    def __init__(self, config: Any, cache: StageCache) -> None:
        self.config, self.cache, self.data = config, cache, cache.data
        self.on_event = cache.on_event
        self.sharing: Sequence[Pipeline] = (self,)
        """The pipelines of the models that share this one's matcher, itself among them."""

    def with_seed(self, seed: int) -> Pipeline:
        """The stages with another random seed."""
        return Pipeline(replace(self.config, seed=seed), self.cache)

    def inputs(self, stage: Stage) -> dict[str, Any]:
        """All that the result of a stage depends on: the key of the run directory and of the cache."""
        return stages.inputs(
            stage, self.config, self.cache.identity, sharing=[pipeline.config for pipeline in self.sharing]
        )

    # ------------------------------------------------------------------ documents

    def tfidf(self) -> Tfidf | None:
        """The tf-idf vocabulary of the training texts; None where the documents are rows of features."""
        texts, config = self.data.documents.texts, self.config
        if texts is None:
            return None
        return self.cache.get(
            stages.TFIDF,
            self.inputs(stages.TFIDF),
            lambda: Tfidf(config.tfidf, threads=config.threads).fit(texts, on_event=self.on_event),
            Storage(Tfidf.save, Tfidf.load),
        )

    def features(self) -> Csr:
        """(n_docs, n_features) X: tf-idf of the training texts, or the features that were given."""
        documents, inputs = self.data.documents, self.inputs(stages.FEATURES)
        if documents.X is not None:
            return documents.X
        texts = documents.texts or []
        vocabulary, options = self.inputs(stages.TFIDF), {"on_event": self.on_event}

        def compute() -> Csr:
            if self.cache.run is None and not self.cache.has(stages.TFIDF, vocabulary):  # read the texts once
                tfidf = Tfidf(self.config.tfidf, threads=self.config.threads)
                X = tfidf.fit_transform(texts, **options)
                self.cache.put(stages.TFIDF, vocabulary, tfidf)
                return X
            return self._transform(texts)

        return self.cache.get(stages.FEATURES, inputs, compute)

    def validation_features(self) -> Csr | None:
        """(n_held, n_features) features of the validation documents; None where there are none."""
        documents = None if self.data.holdout is None else self.data.holdout.documents
        if documents is None or documents.X is not None:
            return None if documents is None else documents.X
        texts, stage = documents.texts or [], stages.VALIDATION_FEATURES
        return self.cache.get(stage, self.inputs(stage), lambda: self._transform(texts))

    def _transform(self, texts: list[str]) -> Csr:
        return cast(Tfidf, self.tfidf()).transform(texts, threads=self.config.threads, on_event=self.on_event)

    def encoder(self) -> Encoder:
        """The pretrained encoder, which no stage changes."""
        from labelwise.features.encoder import Encoder

        config = self.config.encoder
        return self.cache.get(stages.ENCODER, self.inputs(stages.ENCODER), lambda: Encoder.load(config))

    def tokens(self) -> TokenStore:
        """The tokens of the training texts."""
        return self._tokens(stages.TOKENS, self.data.documents.texts or [])

    def embeddings(self) -> Embeddings:
        """(n_docs, hidden) E: the training texts by the pretrained encoder."""
        return self._embed(stages.EMBEDDINGS, self.tokens())

    def documents(self) -> Documents:
        """The training documents as matchers read them."""
        from labelwise.match.documents import Documents

        X = self.features()
        return Documents(self.tokens(), X, self.embeddings())

    def held_out_documents(self) -> Documents | None:
        """The held-out documents as matchers read them; None where there are none."""
        from labelwise.match.documents import Documents

        holdout = self.data.holdout
        if holdout is None:
            return None
        if holdout.rows is not None:
            return self.documents().take(holdout.rows)
        assert holdout.documents is not None
        tokens = self._tokens(stages.VALIDATION_TOKENS, holdout.documents.texts or [])
        E = self._embed(stages.VALIDATION_EMBEDDINGS, tokens)
        return Documents(tokens, cast(Csr, self.validation_features()), E)

    def _tokens(self, stage: Stage, texts: list[str]) -> TokenStore:
        """The tokens of texts; a warning if the encoder knows few of them."""

        def compute() -> TokenStore:
            encoder = self.encoder()
            found = encoder.tokenize(texts, threads=self.config.threads, on_event=self.on_event)
            share = encoder.unknown_share(found)
            if share > MOST_UNKNOWN:
                self.cache.say(
                    f"{100 * share:.0f} % of the tokens are unknown to the encoder {encoder.config.name}, which cannot "
                    "read such texts well; give an encoder of their language, with its own tokenizer",
                    logging.WARNING,
                )
            return found

        return self.cache.get(stage, self.inputs(stage), compute, Storage(TokenStore.save, TokenStore.load))

    def _embed(self, stage: Stage, tokens: TokenStore) -> Embeddings:
        return self.cache.get(
            stage,
            self.inputs(stage),
            lambda: self.encoder().embed(tokens, device=self.device(), on_event=self.on_event),
            EMBEDDINGS_STORAGE,
        )

    # ------------------------------------------------------------------ semantic label indexing

    def label_embedding(self) -> Features:
        """(n_labels, d) Z: the labels by their documents or by their own texts. It is large, so nothing keeps it."""
        config = self.config
        embedder = LABEL_EMBEDDINGS[config.label_embedding]
        rows = {"features": self.features, "embeddings": self.embeddings, "label-texts": self._label_text_embeddings}
        return embedder.embed(
            self.data.Y,
            rows[embedder.source](),
            normalize_documents=config.index.normalize_documents,
            threads=config.threads,
        )

    def _label_text_embeddings(self) -> Embeddings:
        """(n_labels, hidden) the labels' own texts by the pretrained encoder."""
        stage, texts = stages.LABEL_TEXT_EMBEDDINGS, self.data.label_texts
        return self.cache.get(
            stage,
            self.inputs(stage),
            lambda: self.encoder().embed(texts, pooling="mean", device=self.device(), on_event=self.on_event),
        )

    def tree(self) -> Tree:
        """The tree of clusters above the labels."""
        config = self.config

        def compute() -> Tree:
            Z = self.label_embedding()
            return build_tree(Z, config.index, seed=config.seed, threads=config.threads, on_event=self.on_event)

        return self.cache.get(stages.TREE, self.inputs(stages.TREE), compute, Storage(Tree.save, Tree.load))

    def clusters(self) -> Tree:
        """C: the tree with its clusters right below the root, as X-Transformer's matcher scores them."""
        tree = self.tree()
        if tree.depth <= 2:
            return tree
        return self.cache.get(
            stages.CLUSTERS, self.inputs(stages.CLUSTERS), lambda: tree.collapse(*range(1, tree.depth - 1))
        )

    # ------------------------------------------------------------------ neural matching

    def device(self) -> str | None:
        """Where neural stages compute."""
        from labelwise.match.training.distributed import choose_device

        return choose_device(self.config.matcher.device)

    @property
    def role(self) -> Role:
        """Whether this process keeps results, or helps another one to fine-tune."""
        from labelwise.match.training.distributed import role

        return role()

    @property
    def _has_helpers(self) -> bool:
        from labelwise.match.training.distributed import launched_processes

        return launched_processes().count > 1

    def matcher(self) -> Matcher:
        """g(x, k), trained on the clusters of documents that are not held out; of a shared one this model's tree."""
        from labelwise.match.shared import SharedMatcherView

        matcher = self._matcher(self.data.remaining_rows, evaluate=True)
        if len(self.sharing) == 1:
            return matcher
        return SharedMatcherView(cast("FineTunedMatcher", matcher), self.sharing.index(self))

    def assist(self) -> None:
        """Help the main process with the matcher, in a helper process."""
        from labelwise.match.training.distributed import follow

        if self.config.fine_tune:
            follow(partial(self._fine_tune, self.data.remaining_rows, evaluate=True))

    def _matcher(self, rows: Ints | None, *, evaluate: bool, fold: int | None = None) -> Matcher:
        """The matcher of some training documents, of all trees that share it.

        Parameters
        ----------
        rows
            The documents that it learns from; all if None.
        evaluate
            Whether held-out documents stop the training.
        fold
            The number of the fold that it does not learn from, where it serves the out-of-fold negatives.
        """
        from labelwise.match.finetuned import FineTunedMatcher
        from labelwise.match.frozen import FrozenMatcher
        from labelwise.match.training.distributed import lead

        stage, device = stages.matcher_stage(self.config), self.device()
        inputs = self._matcher_inputs(fold)
        if not self.config.fine_tune:
            frozen: Storage[FrozenMatcher] = Storage(
                lambda matcher, path: matcher.save(path, encoder=False),
                lambda path: FrozenMatcher.load(path, device=device, encoder=self.encoder()),
            )
            return self.cache.get(stage, inputs, partial(self._fit_frozen, rows), frozen)
        kept: Storage[FineTunedMatcher] = Storage(
            FineTunedMatcher.save, lambda path: FineTunedMatcher.load(path, device=device)
        )
        fit = partial(self._fine_tune, rows, evaluate=evaluate, fold=fold)
        if self.cache.has(stage, inputs):  # helper processes take part once
            return self.cache.get(stage, inputs, fit, kept)
        return lead(lambda compute: self.cache.get(stage, inputs, compute, kept), fit)

    def _matcher_inputs(self, fold: int | None) -> dict[str, Any]:
        inputs = self.inputs(stages.matcher_stage(self.config))
        return inputs if fold is None else {**inputs, "fold": [fold, self.config.matcher.folds]}

    def _fit_frozen(self, rows: Ints | None) -> FrozenMatcher:
        from labelwise.match.frozen import FrozenMatcher

        config, documents = self.config, self.documents()
        documents = documents if rows is None else documents.take(rows)
        matcher = FrozenMatcher(config.linear, dense_weight=config.matcher.dense_weight, device=self.device())
        M = self._clusters_of(self._labels_of(rows))
        options: dict[str, Any] = {"seed": config.seed, "threads": config.threads, "on_event": self.on_event}
        return matcher.fit(self.encoder(), documents, M, **options)

    def _fine_tune(self, rows: Ints | None, *, evaluate: bool, fold: int | None = None) -> FineTunedMatcher:
        from labelwise.features.encoder import Encoder
        from labelwise.match.finetuned import FineTunedMatcher
        from labelwise.match.shared import side_by_side

        config, documents, Y = self.config, self.documents(), self._labels_of(rows)
        documents = documents if rows is None else documents.take(rows)
        learns_labels, holdout = config.matcher.learn_labels, self.data.holdout
        validation = None
        if evaluate and holdout is not None:
            known = Csr(holdout.Y[:, : Y.shape[1]])
            true = self._clusters_of(known)
            held_out = cast("Documents", self.held_out_documents())
            validation = held_out, side_by_side([true, known]) if learns_labels else true
        return FineTunedMatcher(config.matcher, config.linear).fit(
            Encoder.load(config.encoder),
            documents,
            self._clusters_of(Y),
            Y=Y if learns_labels else None,
            groups=[one.clusters().n_clusters for one in self.sharing],
            validation=validation,
            checkpoint=self.cache.scratch(stages.FINE_TUNED_MATCHER, self._matcher_inputs(fold)),
            seed=config.seed,
            threads=config.threads,
            on_event=self.on_event,
        )

    def _labels_of(self, rows: Ints | None) -> Csr:
        return self.data.Y if rows is None else Csr(self.data.Y[rows])

    def _clusters_of(self, Y: Csr) -> Csr:
        """(n_docs, clusters of all trees) M: the clusters of the documents' labels."""
        from labelwise.match.shared import side_by_side

        trees = [one.clusters() for one in self.sharing]
        return side_by_side([teacher_forcing(Y, tree.clusters, tree.n_clusters) for tree in trees])

    # ------------------------------------------------------------------ ranking

    def candidates(self) -> tuple[Embeddings, Csr]:
        """Embeddings of the training documents, and the best clusters of each by the matcher, of all trees."""
        return self._candidates(stages.CANDIDATES, self.documents)

    def _candidates(self, stage: Stage, documents: Any) -> tuple[Embeddings, Csr]:
        """What the matcher says of documents. The embeddings are large: those of one matcher stay at a time."""
        inputs, config, matcher = self.inputs(stage), self.config, self.matcher().source
        self.cache.forget(stage, but=inputs)
        options: dict[str, Any] = {"top_b": config.beam, "threads": config.threads, "on_event": self.on_event}
        return self.cache.get(stage, inputs, lambda: matcher.match(documents(), **options))

    def negatives(self) -> Csr:
        """(n_docs, clusters of all trees) the clusters that give training documents their matcher-aware negatives.

        They come from the matcher, or from matchers that have not seen the document.
        """
        stage, config = stages.NEGATIVES, self.config
        if not self.out_of_fold:
            return self.candidates()[1]

        def compute() -> Csr:
            found, rows = [], []
            for number, (learnt, held_out) in enumerate(self.folds()):
                matcher = self._matcher(learnt, evaluate=False, fold=number)
                found.append(matcher.match(self.documents().take(held_out), top_b=config.beam)[1])
                rows.append(held_out)
                self.cache.drop(stages.matcher_stage(config), self._matcher_inputs(number))  # one of them at a time
            return Csr(sp.vstack(found, format="csr"))[np.argsort(np.concatenate(rows), kind="stable")]

        inputs = self.inputs(stage)
        self.cache.forget(stage, but=inputs)
        return self.cache.get(stage, inputs, compute)

    @property
    def out_of_fold(self) -> bool:
        """Whether the negatives of a document come from a matcher that has not seen the document."""
        return bool(self.config.matcher.negatives_from == "out-of-fold")

    def folds(self) -> list[tuple[Ints, Ints]]:
        """For each fold the rows of the other folds, and its own."""
        from labelwise.match.linear import fold_of

        fold = fold_of(len(self.data.documents), self.config.matcher.folds, self.config.seed)
        return [
            (np.flatnonzero(fold != number), np.flatnonzero(fold == number))
            for number in range(self.config.matcher.folds)
        ]

    def ranker(self, depth: int = CALIBRATED_ON) -> FittedRanker:
        """h(x, l): a linear model for each label, with what held-out documents have chosen.

        Parameters
        ----------
        depth
            Labels of each held-out document whose scores are kept.
        """
        stage, matcher = stages.RANKER, self.matcher()
        inputs = {**self.inputs(stage), "depth": depth}
        if self.out_of_fold and self._has_helpers:  # they wait to take part, whether the ranker is found or not
            self.negatives()

        def compute() -> FittedRanker:
            training = self._ranker_inputs(matcher, self.candidates()[0], self.negatives(), self.features())
            return fit_ranker(
                training,
                self.data,
                self.clusters(),
                self.config,
                held_out=self._held_out_inputs(matcher, training),
                label_head=matcher.label_head,
                depth=depth,
                on_event=self.on_event,
            )

        return self.cache.get(stage, inputs, compute, Storage(FittedRanker.save, FittedRanker.load))

    def _held_out_inputs(self, matcher: Matcher, training: Inputs) -> Inputs | None:
        holdout = self.data.holdout
        if holdout is None:
            return None
        if holdout.rows is not None:
            return training.take(holdout.rows)
        E, found = self._candidates(stages.VALIDATION_CANDIDATES, self.held_out_documents)
        return self._ranker_inputs(matcher, E, found, cast(Csr, self.validation_features()))

    def _ranker_inputs(self, matcher: Matcher, E: Embeddings, found: Csr, X: Csr) -> Inputs:
        from labelwise.rank.ranker import Inputs

        return Inputs.of(self.config.features, X, E, matcher.own(found))

    def levels(self, depth: int = CALIBRATED_ON) -> FittedTree:
        """The linear models of every level of the tree, for models without an encoder.

        Parameters
        ----------
        depth
            Labels of each held-out document whose scores are kept.
        """
        stage = stages.LEVELS
        return self.cache.get(
            stage,
            {**self.inputs(stage), "depth": depth},
            lambda: fit_levels(
                self.features(),
                self.data,
                self.tree(),
                self.config,
                validation=self.validation_features(),
                depth=depth,
                on_event=self.on_event,
            ),
            Storage(FittedTree.save, FittedTree.load),
        )

    # ------------------------------------------------------------------ calibration

    def calibration(self, scores: Csr | None) -> HoldoutEvaluation | None:
        """Figures of the held-out documents and the curve from scores to probabilities; None without such documents.

        Parameters
        ----------
        scores
            (n_held, n_labels) best labels of the held-out documents, by a model that has not seen them.
        """
        if scores is None or self.data.holdout is None:
            return None
        evaluation = evaluate_scores(keep_best(scores, CALIBRATED_ON), self.data.holdout.Y)
        if evaluation.reason is not None and self.config.holdout.calibrate:
            self.cache.say(f"predictions are scores, not probabilities: {evaluation.reason}", logging.WARNING)
        return evaluation


def assist_negatives(pipelines: Iterable[Pipeline]) -> None:
    """In a helper process: help with the matchers of the out-of-fold negatives, in the order of the main process.

    Parameters
    ----------
    pipelines
        The models in the order in which the main process trains their rankers. It keeps the negatives of one model at a
        time, so models in a row with the same negatives need them once.
    """
    from labelwise.match.training.distributed import follow

    kept = None
    for pipeline in pipelines:
        if not pipeline.out_of_fold:
            continue
        inputs = pipeline.inputs(stages.NEGATIVES)
        if inputs != kept and pipeline.config.fine_tune:
            for number, (rows, _) in enumerate(pipeline.folds()):
                follow(partial(pipeline._fine_tune, rows, evaluate=False, fold=number))
        kept = inputs
