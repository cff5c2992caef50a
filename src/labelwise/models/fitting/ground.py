"""What the stages of X-Transformer stand on: texts as tf-idf, tokens and embeddings, and the tree of labels.

Each is kept in the run directory where there is one, and models that are fitted on the same documents share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from labelwise import storage
from labelwise.config import XTransformerConfig
from labelwise.errors import UsageError
from labelwise.features.encoder import Encoder
from labelwise.features.normalize import unit_rows
from labelwise.features.tfidf import Tfidf
from labelwise.features.token_store import TokenStore
from labelwise.index import Tree, build_tree, embed_labels
from labelwise.match.documents import Documents
from labelwise.match.training.distributed import local_device
from labelwise.models.fitting.workbench import Workbench
from labelwise.storage.run_directory import kept
from labelwise.types import Csr


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


class Ground:
    """Computes what one model stands on, or finds it."""

    def __init__(self, config: XTransformerConfig, bench: Workbench) -> None:
        self.config, self.bench = config, bench
        self.source, self.run, self.on_event = bench.source, bench.run, bench.on_event

    def tfidf(self) -> Tfidf:
        """The vocabulary of the training texts."""
        tfidf = self.bench.tfidf(self.config.tfidf, self.config.threads)
        assert tfidf is not None  # X-Transformer is given texts
        return tfidf

    def encoder(self) -> Encoder:
        """The encoder as it was pretrained; nobody changes it."""
        return self.bench.once(("encoder", self.config.encoder), lambda: Encoder.load(self.config.encoder))

    def train(self) -> Part:
        """All training documents."""
        return self._part(self.source.texts, self.source.Y, judged=False)

    def judge(self) -> Part | None:
        """The held-out documents, None where there are none."""
        source = self.source
        if source.aside is not None:
            return self.train().take(source.aside)
        if source.judged is None or source.truth is None:
            return None
        return self._part(source.judged, Csr(source.truth[:, : len(source.labels)]), judged=True)

    def learn(self) -> Part:
        """The training documents that are not held out."""
        train, aside = self.train(), self.source.aside
        return train if aside is None else train.take(np.setdiff1d(np.arange(len(train)), aside))

    def _part(self, texts: list[str], Y: Csr, *, judged: bool) -> Part:
        """Texts as tf-idf, tokens and pretrained embeddings."""
        config, hook = self.config, self.on_event
        encoder = self.encoder()

        def read() -> tuple[TokenStore, npt.NDArray[np.float32]]:
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
            return tokens, E

        X = self.bench.features(config.tfidf, config.threads, judged=judged)
        tokens, E = self.bench.once(("read", judged, config.encoder), read)
        return Part(Documents(tokens, X), E, Y)

    def index(self) -> Tree:
        """The tree of labels, flat: clusters right below the root."""
        config, part, encoder, label_texts = self.config, self.train(), self.encoder(), self.source.label_texts
        index = config.index
        kind = config.label_embedding
        inputs: dict[str, Any] = {"config": index, "seed": config.seed, "kind": kind, "Y": part.Y}
        if kind == "text-emb":
            inputs |= {"encoder": config.encoder, "texts": label_texts}
        else:
            inputs["rows"] = part.documents.X if kind == "pifa-tfidf" else part.E

        def compute() -> Tree:
            options: dict[str, Any] = {"normalize_documents": index.normalize_documents, "threads": config.threads}
            if kind == "pifa-tfidf":
                Z = embed_labels(part.Y, part.documents.X, **options)
            elif kind == "pifa-neural":
                Z = embed_labels(part.Y, unit_rows(part.E), **options)
            else:
                Z = unit_rows(encoder.embed(label_texts, pooling="mean", device=self.device(), on_event=self.on_event))
            tree = build_tree(Z, index, seed=config.seed, threads=config.threads, on_event=self.on_event)
            return tree.collapse(*range(1, tree.depth - 1)) if tree.depth > 2 else tree

        read = config.tfidf if kind == "pifa-tfidf" else config.encoder
        return self.bench.once(
            ("index", index, config.seed, kind, read),
            lambda: kept(self.run, "index", inputs, compute, Tree.save, Tree.load),
        )

    # ------------------------------------------------------------------ around

    def device(self) -> str | None:
        """Where neural parts compute; see `choose_device`."""
        return choose_device(self.config.matcher.device)


def choose_device(wanted: str | None) -> str | None:
    """Where neural parts compute: as the launcher or the configuration says, or the GPU if there is one."""
    if wanted is not None and wanted.startswith("cuda") and not torch.cuda.is_available():
        raise UsageError(f"the device is {wanted}, but torch finds no GPU here; leave the device out, or use cpu")
    launched = local_device()
    if launched is not None:
        return str(launched)
    return wanted or ("cuda" if torch.cuda.is_available() else None)
