"""Parabel on other features than tf-idf: the lower block of the paper's Table 3."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from common import TOP_K, Bench, Row
from encoders import EncoderChoice

from labelwise.config import EncoderConfig
from labelwise.features.tfidf import Tfidf
from labelwise.index.embed import unit_rows
from labelwise.model import LinearTree
from labelwise.predictions import Predictions
from labelwise.presets import load_linear_preset
from labelwise.systems.measure import Clock, Costs
from labelwise.systems.system import System
from labelwise.types import Csr

if TYPE_CHECKING:
    from labelwise.features.encoder import Encoder


def pretrained_row(bench: Bench, encoder: EncoderChoice, length: int) -> Row:
    """Parabel on the encoder's own embeddings, nothing else."""
    name = f"pretrained {encoder.name} + Parabel"
    if encoder.missing is not None:
        return Row(name, note=f"not run: {encoder.missing}")
    config = EncoderConfig(name=encoder.folder, max_length=length)

    def compute() -> tuple[Predictions, Costs]:
        from labelwise.features.encoder import Encoder

        clock = Clock()
        loaded = Encoder.load(config)
        parts = [dense(embed(loaded, part.texts or [])) for part in (bench.splits.train, bench.splits.test)]
        return parabel(bench, parts, clock)

    return bench.special(name, {"encoder": config, **identity(bench)}, compute)


def tuned_row(bench: Bench, encoder: EncoderChoice, tuned: Callable[[], Encoder] | None, system: System | None) -> Row:
    """Parabel on the embeddings of a fine-tuned encoder beside tf-idf; `tuned` gives the encoder of a system."""
    name = f"fine-tuned {encoder.name} ⊕ tf-idf + Parabel"
    if tuned is None or system is None:
        return Row(name, note=f"not run: {encoder.missing or 'X-Transformer, whose encoder it takes, failed'}")

    def compute() -> tuple[Predictions, Costs]:
        clock, reader = Clock(), tuned()
        train, test = bench.splits.train.texts or [], bench.splits.test.texts or []
        tfidf = Tfidf()
        parts = []
        for X, texts in ((tfidf.fit_transform(train), train), (tfidf.transform(test), test)):
            # Both of length one, then again, as the paper's code joins them.
            parts.append(Csr(sp.hstack([X, dense(embed(reader, texts))], format="csr") * 0.5**0.5))
        return parabel(bench, parts, clock)

    return bench.special(name, {**system.identity(bench.splits), **identity(bench)}, compute)


def identity(bench: Bench) -> dict[str, Any]:
    """What Parabel's part of the result depends on."""
    return {"parabel": load_linear_preset("parabel", seed=bench.options.seed)}


def parabel(bench: Bench, parts: list[Csr], clock: Clock) -> tuple[Predictions, Costs]:
    """Trained on the first matrix, predictions for the second."""
    train, test = bench.splits.train, bench.splits.test
    config = load_linear_preset("parabel", seed=bench.options.seed, threads=bench.options.threads)
    model = LinearTree(config).fit(parts[0], train.Y, label_names=train.labels, on_event=bench.run.on_event)
    costs = clock.costs()
    return model.predict(parts[1], top_k=TOP_K, ids=test.ids), costs


def embed(encoder: Any, texts: list[str]) -> Any:
    """(n_docs, hidden)"""
    import torch

    return encoder.embed(texts, device="cuda" if torch.cuda.is_available() else None)


def dense(E: Any) -> Csr:
    """Rows of length one in the form that linear trees read."""
    return Csr(unit_rows(np.asarray(E, np.float32)))
