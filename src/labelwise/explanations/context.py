"""A text that is asked about, with what models make of it; everything is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from labelwise.explanations.positions import term_places
from labelwise.explanations.result import EmbeddingShare, Span, Word
from labelwise.features.tfidf import Tfidf
from labelwise.models.prediction_cache import PredictionCache
from labelwise.types import Csr, Floats

if TYPE_CHECKING:
    from labelwise.explanations.integrated_gradients import TokenReader
    from labelwise.features.encoder_folder import TextEncoder
    from labelwise.models.xtransformer import XTransformer


class ExplainContext:
    """One text, read by any number of models."""

    def __init__(self, text: str, reading: PredictionCache | None = None) -> None:
        self.text, self.reading = text, reading or PredictionCache([text])
        self._made: dict[tuple[str, int], Any] = {}

    def match(self, model: XTransformer) -> tuple[Floats, Csr]:
        """(1, hidden) the embedding, and (1, n_clusters) the scores of all clusters."""
        key = ("match", id(model))
        if key not in self._made:
            self._made[key] = self.reading.match(model.matcher_, model.tfidf_, model.tree_.n_clusters)
        found: tuple[Floats, Csr] = self._made[key]
        return found

    def words(self, tfidf: Tfidf, added: dict[int, float]) -> tuple[Word, ...]:
        """Terms by what they add, with their places."""
        key = ("places", id(tfidf))
        if key not in self._made:
            self._made[key] = term_places(tfidf, self.text)
        places: dict[int, tuple[Span, ...]] = self._made[key]
        return tuple(
            Word(tfidf.vocabulary_.term(column), value, places.get(column, ())) for column, value in added.items()
        )

    def neural(self, encoder: TextEncoder, weights: Floats, shares: Sequence[float]) -> list[EmbeddingShare]:
        """The embedding's shares of several labels' scores over the words; see `TokenReader.attribute`."""
        if not encoder.trainable:
            method = "not divided: an exported encoder has no gradients"
            return [EmbeddingShare(share, share, (), 0.0, 0.0, method) for share in shares]
        from labelwise.explanations.integrated_gradients import TokenReader

        key = ("tokens", id(encoder))
        if key not in self._made:
            self._made[key] = TokenReader(encoder, self.text)  # type: ignore[arg-type]  # what can be trained is one
        reader: TokenReader = self._made[key]
        return reader.attribute(weights, shares)
