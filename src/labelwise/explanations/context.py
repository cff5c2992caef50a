"""A text to explain, with everything that is computed once for all labels and members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from labelwise.explanations.positions import term_places
from labelwise.explanations.result import EmbeddingShare, Span, Word
from labelwise.features.tfidf import Tfidf
from labelwise.models.prediction_cache import PredictionCache
from labelwise.types import Floats

if TYPE_CHECKING:
    from labelwise.explanations.integrated_gradients import TokenReader
    from labelwise.features.encoder_folder import TextEncoder


class ExplainContext:
    """One text, for any number of models."""

    def __init__(self, text: str, reading: PredictionCache) -> None:
        self.text, self.reading = text, reading
        self._made: dict[tuple[str, int], Any] = {}

    def words(self, tfidf: Tfidf, added: dict[int, float]) -> tuple[Word, ...]:
        """Terms with their contributions and their positions in the text."""
        key = ("places", id(tfidf))
        if key not in self._made:
            self._made[key] = term_places(tfidf, self.text)
        places: dict[int, tuple[Span, ...]] = self._made[key]
        return tuple(
            Word(tfidf.vocabulary_.term(column), value, places.get(column, ())) for column, value in added.items()
        )

    def embedding_shares(self, encoder: TextEncoder, weights: Floats, shares: Sequence[float]) -> list[EmbeddingShare]:
        """The embedding's shares of several labels' scores, divided over the words; see `TokenReader.attribute`."""
        if not encoder.trainable:
            method = "not divided: an exported encoder has no gradients"
            return [EmbeddingShare(share, share, (), 0.0, 0.0, method) for share in shares]
        from labelwise.explanations.integrated_gradients import TokenReader

        key = ("tokens", id(encoder))
        if key not in self._made:
            self._made[key] = TokenReader(encoder, self.text)  # type: ignore[arg-type]  # a trainable one is an Encoder
        reader: TokenReader = self._made[key]
        return reader.attribute(weights, shares)
