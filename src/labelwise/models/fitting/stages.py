"""The stages of X-Transformer on its ground: matcher and ranker, each kept in the run directory where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from labelwise.config import HoldoutConfig, IndexConfig, TfidfConfig
from labelwise.features.encoder import Encoder
from labelwise.index import Tree
from labelwise.match.finetuned import FineTunedMatcher
from labelwise.match.frozen import FrozenMatcher
from labelwise.match.linear import fold_of
from labelwise.match.shared import SharedMatcherView, side_by_side
from labelwise.match.training.distributed import joined, local_device
from labelwise.models.base import CALIBRATED_ON
from labelwise.models.fitting.ground import Ground, Part
from labelwise.models.fitting.ranked import Ranked, rank
from labelwise.rank.negatives import teacher_forcing
from labelwise.rank.ranker import Inputs
from labelwise.storage.run_directory import kept
from labelwise.types import Csr, Ints

if TYPE_CHECKING:
    from labelwise.models.prediction_cache import AnyMatcher


class _Work(NamedTuple):
    """How a stage is named, made and kept."""

    name: str
    inputs: Mapping[str, Any]
    compute: Callable[[], Any]
    save: Callable[[Any, Path], None]
    load: Callable[[Path], Any]


class Stages:
    """Computes the matcher and the ranker of one model, or finds them."""

    def __init__(self, ground: Ground) -> None:
        self.ground, self.config, self.run, self.on_event = ground, ground.config, ground.run, ground.on_event

    # ------------------------------------------------------------------ the matcher

    def matcher(self, trees: Sequence[Tree]) -> FineTunedMatcher | FrozenMatcher:
        """g, fine-tuned on the clusters of all these trees, or frozen, of one tree.

        Of several processes this is for the first; the others `take_part`.
        """
        return self._matcher(trees, self.ground.learn(), self.ground.judge())

    def _matcher(self, trees: Sequence[Tree], learn: Part, judge: Part | None) -> FineTunedMatcher | FrozenMatcher:
        work, processes = self._matching(trees, learn, judge), joined()
        if processes.count == 1 or not self.config.fine_tune:
            return kept(self.run, *work)  # type: ignore[no-any-return]  # one of the two
        device, called = local_device() or torch.device("cpu"), False

        def together() -> Any:
            nonlocal called
            called = True
            processes.agree(1.0, device)
            return work.compute()

        found = kept(self.run, *work._replace(compute=together))
        if not called:  # it was in the run directory: the others wait to be told
            processes.agree(0.0, device)
        return found  # type: ignore[no-any-return]  # as above

    def take_part(self, trees: Sequence[Tree]) -> None:
        """Train the matcher with the first process, which keeps the result, if it has to be trained."""
        self._take_part(trees, self.ground.learn(), self.ground.judge())

    def take_part_unseen(self, trees: Sequence[Tree]) -> None:
        """Train the matchers that did not see a part of the documents with the first process."""
        if self._unseen_wanted:
            for _, learn in self._folds():
                self._take_part(trees, learn, None)

    def _take_part(self, trees: Sequence[Tree], learn: Part, judge: Part | None) -> None:
        if self.config.fine_tune and joined().agree(0.0, local_device() or torch.device("cpu")) > 0:
            self._matching(trees, learn, judge).compute()

    def _matching(self, trees: Sequence[Tree], learn: Part, judge: Part | None) -> _Work:
        config, hook, device = self.config, self.on_event, self.ground.device()
        M = _clusters(learn.Y, trees)
        inputs: dict[str, Any] = {
            "encoder": config.encoder,
            "linear": config.linear,
            "dense_weight": config.matcher.dense_weight,
            "X": learn.documents.X,
            "tokens": learn.documents.tokens.tokens,
            "M": M,
        }
        if not config.fine_tune:
            frozen = FrozenMatcher(config.linear, dense_weight=config.matcher.dense_weight, device=device)
            options: dict[str, Any] = {"seed": config.seed, "threads": config.threads, "on_event": hook}
            return _Work(
                "frozen-matcher",
                {**inputs, "seed": config.seed},
                lambda: frozen.fit(self.ground.encoder(), learn.documents, M, E=learn.E, **options),
                lambda matcher, path: matcher.save(path, encoder=False),
                lambda path: FrozenMatcher.load(path, device=device, encoder=self.ground.encoder()),
            )
        settings, groups = config.matcher, [tree.n_clusters for tree in trees]
        Y = learn.Y if settings.learn_labels else None
        if Y is not None:
            inputs["Y"] = Y
        inputs |= {"config": settings, "seed": config.seed} | ({"groups": groups} if len(groups) > 1 else {})
        validation = None
        if judge is not None:
            true = _clusters(judge.Y, trees)
            validation = (judge.documents, true if Y is None else side_by_side([true, judge.Y]))
            inputs |= {"judged by": judge.documents.tokens.tokens, "judged clusters": validation[1]}

        def compute() -> FineTunedMatcher:
            return FineTunedMatcher(settings, config.linear).fit(
                Encoder.load(config.encoder),
                learn.documents,
                M,
                Y=Y,
                E=learn.E,
                groups=groups,
                validation=validation,
                checkpoint=None if self.run is None else self.run.scratch("matcher", inputs),
                seed=config.seed,
                threads=config.threads,
                on_event=hook,
            )

        return _Work(
            "matcher", inputs, compute, FineTunedMatcher.save, lambda path: FineTunedMatcher.load(path, device=device)
        )

    # ------------------------------------------------------------------ the ranker

    def ranked(self, matcher: AnyMatcher, trees: Sequence[Tree], depth: int = CALIBRATED_ON) -> Ranked:
        """The ranker below a matcher, or below one tree's share of it.

        Parameters
        ----------
        trees
            All trees of the matcher.
        depth
            Labels of each held-out document that are kept.
        """
        config, source, train, judge = self.config, self.ground.source, self.ground.train(), self.ground.judge()
        tree = trees[matcher.group if isinstance(matcher, SharedMatcherView) else 0]
        joint = matcher.joint if isinstance(matcher, SharedMatcherView) else matcher
        # What these say is in the features, in the trees, or in who is held out.
        settings = replace(
            config,
            tfidf=TfidfConfig(),
            index=IndexConfig(),
            label_embedding="pifa-neural",
            holdout=HoldoutConfig(calibrate=config.holdout.calibrate),
        )
        inputs: dict[str, Any] = {
            "config": settings,
            "depth": depth,
            "X": train.documents.X,
            "tokens": train.documents.tokens.tokens,
            "Y": source.Y,
            "trees": [tree.clusters for tree in trees],
            "tree": tree.clusters,
            "aside": source.aside,
            "truth": source.truth,
        }
        if judge is not None:
            inputs |= {"judged X": judge.documents.X, "judged tokens": judge.documents.tokens.tokens}

        def compute() -> Ranked:
            everything, held = self._inputs(matcher, trees, "train"), None
            if source.aside is not None:
                held = everything.take(source.aside)
            elif source.judged is not None:
                held = self._inputs(matcher, trees, "judge")
            return rank(
                everything,
                source.Y,
                tree,
                config,
                labels=None if isinstance(joint, FrozenMatcher) else joint.labels_,
                held=held,
                truth=source.truth,
                aside=source.aside,
                depth=depth,
                on_event=self.on_event,
            )

        if self._unseen_wanted and joined().count > 1:  # the others wait to help, whether the ranker is found or not
            self._unseen(joint, trees)
        return kept(self.run, "ranker", inputs, compute, Ranked.save, Ranked.load, version=2)

    def _inputs(self, matcher: AnyMatcher, trees: Sequence[Tree], which: str) -> Inputs:
        """What the ranker reads: features, and the matcher's clusters.

        The clusters of training documents come, if the configuration says so, from matchers that did not see them.
        """
        config = self.config
        part = self.ground.train() if which == "train" else self.ground.judge()
        assert part is not None
        options: dict[str, Any] = {"top_b": config.beam, "threads": config.threads}
        if isinstance(matcher, FrozenMatcher):
            E, found = matcher.match(part.documents, E=part.E, **options)
            if which == "train" and self._unseen_wanted:
                found = self._unseen(matcher, trees)
            return Inputs.of(config.features, part.documents.X, E, found)
        joint = matcher.joint if isinstance(matcher, SharedMatcherView) else matcher

        def match() -> tuple[npt.NDArray[np.float32], Csr]:
            E, found = joint.match(part.documents, **options, on_event=self.on_event)
            return E, self._unseen(joint, trees) if which == "train" and self._unseen_wanted else found

        self.ground.bench.forget("matched", but=joint)  # embeddings of one matcher at a time
        E, found = self.ground.bench.once(("matched", joint, which), match)
        own = matcher.own(found) if isinstance(matcher, SharedMatcherView) else found
        return Inputs.of(config.features, part.documents.X, E, own)

    @property
    def _unseen_wanted(self) -> bool:
        return self.config.matcher.negatives_from == "out-of-fold"

    def _unseen(self, matcher: AnyMatcher, trees: Sequence[Tree]) -> Csr:
        """The best clusters of each training document by matchers like this one that did not see it."""

        def find() -> Csr:
            found, rows = [], []
            for aside, learn in self._folds():
                other = self._matcher(trees, learn, None)
                found.append(other.match(self.ground.train().documents.take(aside), top_b=self.config.beam)[1])
                rows.append(aside)
            return Csr(sp.vstack(found, format="csr"))[np.argsort(np.concatenate(rows), kind="stable")]

        return self.ground.bench.once(("unseen", matcher), find)

    def _folds(self) -> list[tuple[Ints, Part]]:
        """Rows of the training documents in parts, each with all other documents."""
        train, folds = self.ground.train(), self.config.matcher.folds
        fold = fold_of(len(train), folds, self.config.seed)
        return [(np.flatnonzero(fold == number), train.take(np.flatnonzero(fold != number))) for number in range(folds)]


def _clusters(Y: Csr, trees: Sequence[Tree]) -> Csr:
    """(n_docs, clusters of all trees) which of them the documents have."""
    return side_by_side([teacher_forcing(Y, tree.clusters, tree.n_clusters) for tree in trees])
