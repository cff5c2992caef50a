"""The nine models of the paper's ensemble: three label embeddings with each of three encoders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from common import Bench, Row
from encoders import EncoderChoice

from labelwise.systems.system import System

LABEL_EMBEDDINGS = ("pifa-tfidf", "pifa-neural", "text-emb")


def member_row(bench: Bench, label_embedding: str, encoder: EncoderChoice) -> Row:
    """One of the nine, with tf-idf and neural features in the ranker, TFN and MAN."""
    name = f"{label_embedding}, {encoder.name}"
    if encoder.missing is not None:
        return Row(name, note=f"not run: {encoder.missing}")
    return bench.row(member_system(bench, label_embedding, encoder))[0]


def member_system(bench: Bench, label_embedding: str, encoder: EncoderChoice) -> System:
    """Its settings."""
    settings = {"label_embedding": label_embedding, "features": "both", "ranker": {"negatives": "both"}}
    return bench.neural(f"{label_embedding}, {encoder.name}", encoder, **settings)


def ensemble_row(bench: Bench, name: str, encoders: Sequence[EncoderChoice], **columns: str) -> Row:
    """All nine as labelwise's Ensemble: an encoder is fine-tuned once for its three trees, weights are learnt."""
    missing = [encoder.missing for encoder in encoders if encoder.missing is not None]
    if missing:
        return Row(name, columns, note=f"not run: {missing[0]}")
    members = [member_system(bench, kind, encoder) for encoder in encoders for kind in LABEL_EMBEDDINGS]
    return bench.row(bench.ensemble(name, members), **columns)[0]


def nine_rows(
    bench: Bench, encoders: Sequence[EncoderChoice], kinds: Sequence[str] = LABEL_EMBEDDINGS
) -> dict[tuple[str, str], Row]:
    """All of them, or some, by label embedding and name of the encoder."""
    pairs = product(encoders, kinds)  # an encoder at a time: its tokens and embeddings are shared
    return {(kind, encoder.name): member_row(bench, kind, encoder) for encoder, kind in pairs}
