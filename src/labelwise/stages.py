"""The stages of X-Transformer as `XTransformer.fit` runs them, each kept in the run directory where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from labelwise import storage
from labelwise.config import XTransformerConfig
from labelwise.errors import UsageError
from labelwise.features.encoder import Encoder
from labelwise.features.tfidf import Tfidf
from labelwise.features.tokens import TokenStore
from labelwise.index import Tree, build_tree, embed_labels
from labelwise.index.embed import unit_rows
from labelwise.match.frozen import FrozenMatcher
from labelwise.match.matcher import Documents, Matcher
from labelwise.match.processes import joined, local_device
from labelwise.match.start import fold_of
from labelwise.rank.negatives import teacher_forcing
from labelwise.rank.ranker import Inputs
from labelwise.run import RunDirectory, kept
from labelwise.types import Csr, OnEvent

T = TypeVar("T")


class _Work(NamedTuple):
    """How a stage is named, made and kept."""

    name: str
    inputs: Mapping[str, Any]
    compute: Callable[[], Any]
    save: Callable[[Any, Path], None]
    load: Callable[[Path], Any]


@dataclass(frozen=True, eq=False)
class Part:
    """Documents as all stages see them."""

    documents: Documents
    E: npt.NDArray[np.float32]
    """(n_docs, hidden) the pretrained encoder's embeddings."""
    Y: Csr
    """(n_docs, n_labels)"""

    def __len__(self) -> int:
        return len(self.documents)

    def take(self, rows: Any) -> Part:
        """Some of them, in this order."""
        return Part(self.documents.take(rows), self.E[rows], self.Y[rows])


class Stages:
    """Computes stages, or finds them."""

    def __init__(self, config: XTransformerConfig, run: RunDirectory | None, on_event: OnEvent | None) -> None:
        self.config, self.run, self.on_event = config, run, on_event

    def part(self, tfidf: Tfidf, encoder: Encoder, texts: list[str], Y: Csr) -> Part:
        """Texts as tf-idf, tokens and pretrained embeddings."""
        config, hook = self.config, self.on_event
        tokens = kept(
            self.run,
            "tokens",
            {"encoder": config.encoder, "texts": texts},
            lambda: encoder.tokenize(texts, threads=config.threads, on_event=hook),
            TokenStore.save,
            TokenStore.load,
        )
        E = kept(
            self.run,
            "embeddings",
            {"encoder": config.encoder, "tokens": tokens.tokens, "indptr": tokens.indptr},
            lambda: encoder.embed(tokens, device=self.device(), on_event=hook),
            lambda E, path: storage.save(path, kind="embeddings", arrays={"E": E}),
            lambda path: np.asarray(storage.load(path, kind="embeddings").arrays["E"]),
        )
        return Part(Documents(tokens, tfidf.transform(texts, on_event=hook)), E, Y)

    def index(self, part: Part, encoder: Encoder, label_texts: Sequence[str]) -> Tree:
        """The tree of labels, flat: clusters right below the root."""
        config = self.config
        index = replace(config.index, seed=config.seed, threads=config.threads)
        kind = config.label_embedding
        inputs: dict[str, Any] = {"config": index, "kind": kind, "Y": part.Y}
        if kind == "text-emb":
            inputs |= {"encoder": config.encoder, "texts": list(label_texts)}
        else:
            inputs["rows"] = part.documents.X if kind == "pifa-tfidf" else part.E

        def compute() -> Tree:
            options: dict[str, Any] = {"normalize_documents": index.normalize_documents, "threads": config.threads}
            if kind == "pifa-tfidf":
                Z = embed_labels(part.Y, part.documents.X, **options)
            elif kind == "pifa-neural":
                Z = embed_labels(part.Y, unit_rows(part.E), **options)
            else:
                Z = unit_rows(
                    encoder.embed(list(label_texts), pooling="mean", device=self.device(), on_event=self.on_event)
                )
            tree = build_tree(Z, index, on_event=self.on_event)
            return tree.collapse(*range(1, tree.depth - 1)) if tree.depth > 2 else tree

        return kept(self.run, "index", inputs, compute, Tree.save, Tree.load)

    def matcher(self, encoder: Encoder, learn: Part, tree: Tree, judge: Part | None) -> Matcher | FrozenMatcher:
        """g, fine-tuned or frozen. Of several processes this is for the first; the others `take_part`."""
        work, processes = self._matching(encoder, learn, tree, judge), joined()
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

    def take_part(self, encoder: Encoder, learn: Part, tree: Tree, judge: Part | None) -> None:
        """Train the matcher with the first process, which keeps the result, if it has to be trained."""
        if self.config.fine_tune and joined().agree(0.0, local_device() or torch.device("cpu")) > 0:
            self._matching(encoder, learn, tree, judge).compute()

    def _matching(self, encoder: Encoder, learn: Part, tree: Tree, judge: Part | None) -> _Work:
        config, hook = self.config, self.on_event
        M = teacher_forcing(learn.Y, tree.clusters, tree.n_clusters)
        inputs: dict[str, Any] = {
            "encoder": config.encoder,
            "linear": config.linear,
            "dense_weight": config.matcher.dense_weight,
            "X": learn.documents.X,
            "tokens": learn.documents.tokens.tokens,
            "M": M,
        }
        device = self.device()
        if not config.fine_tune:
            return _Work(
                "frozen-matcher",
                {**inputs, "seed": config.seed},
                lambda: FrozenMatcher(config.linear, dense_weight=config.matcher.dense_weight, device=device).fit(
                    encoder, learn.documents, M, E=learn.E, seed=config.seed, threads=config.threads, on_event=hook
                ),
                FrozenMatcher.save,
                lambda path: FrozenMatcher.load(path, device=device),
            )
        settings = replace(config.matcher, seed=config.seed)
        validation = None
        if judge is not None:
            validation = (judge.documents, teacher_forcing(judge.Y, tree.clusters, tree.n_clusters))
            inputs |= {"judged by": judge.documents.tokens.tokens, "judged clusters": validation[1]}

        def compute() -> Matcher:
            return Matcher(settings, config.linear).fit(
                encoder,
                learn.documents,
                M,
                E=learn.E,
                validation=validation,
                checkpoint=None if self.run is None else self.run.scratch("matcher", {**inputs, "config": settings}),
                threads=config.threads,
                on_event=hook,
            )

        return _Work(
            "matcher",
            {**inputs, "config": settings},
            compute,
            Matcher.save,
            lambda path: Matcher.load(path, device=device),
        )

    def inputs(self, matcher: Matcher | FrozenMatcher, part: Part, *, tree: Tree | None = None) -> Inputs:
        """What the ranker reads: features, and the matcher's clusters.

        With a tree the documents are training documents: their clusters come, if the configuration says so, from
        matchers that did not see them.
        """
        config = self.config
        options: dict[str, Any] = {"top_b": config.beam, "threads": config.threads, "on_event": self.on_event}
        if isinstance(matcher, FrozenMatcher):
            options["E"] = part.E
        E, found = matcher.match(part.documents, **options)
        if tree is not None and config.matcher.negatives_from == "out-of-fold":
            found = self._unseen_clusters(part, tree)
        return Inputs.of(config.features, part.documents.X, E, found)

    def _unseen_clusters(self, part: Part, tree: Tree) -> Csr:
        """The best clusters of each document by matchers that did not see it."""
        rows = self._folds(part)
        found = []
        for aside in rows:
            learn = part.take(np.setdiff1d(np.arange(len(part)), aside))
            matcher = self.matcher(Encoder.load(self.config.encoder), learn, tree, None)
            found.append(matcher.match(part.documents.take(aside), top_b=self.config.beam)[1])
        order = np.argsort(np.concatenate(rows), kind="stable")
        return Csr(sp.vstack(found, format="csr"))[order]

    def take_part_unseen(self, part: Part, tree: Tree) -> None:
        """Train the matchers of `inputs` with the first process."""
        if self.config.matcher.negatives_from == "out-of-fold":
            for aside in self._folds(part):
                learn = part.take(np.setdiff1d(np.arange(len(part)), aside))
                self.take_part(Encoder.load(self.config.encoder), learn, tree, None)

    def _folds(self, part: Part) -> list[npt.NDArray[np.int64]]:
        folds = self.config.matcher.folds
        fold = fold_of(len(part), folds, self.config.seed)
        return [np.flatnonzero(fold == number) for number in range(folds)]

    def device(self) -> str | None:
        """Where neural parts compute: as the launcher or the configuration says, or the GPU if there is one."""
        wanted = self.config.matcher.device
        if wanted is not None and wanted.startswith("cuda") and not torch.cuda.is_available():
            raise UsageError(f"the device is {wanted}, but torch finds no GPU here; leave the device out, or use cpu")
        launched = local_device()
        if launched is not None:
            return str(launched)
        return wanted or ("cuda" if torch.cuda.is_available() else None)
