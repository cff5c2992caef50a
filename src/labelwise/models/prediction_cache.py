"""Documents as models read them: what several models have in common is computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import scipy.sparse as sp

from labelwise.config.settings import Threads, checked_value
from labelwise.data.frames import plain_documents
from labelwise.errors import UsageError
from labelwise.features.matrices import feature_matrix
from labelwise.features.texts import text_list
from labelwise.features.tfidf import Tfidf
from labelwise.types import Csr, Floats, OnEvent

if TYPE_CHECKING:
    from labelwise.features.encoder_folder import TextEncoder
    from labelwise.match.base import Matcher
    from labelwise.match.documents import Documents

T = TypeVar("T")


class PredictionCache:
    """Texts, or rows of features, with what models make of them on the way to labels.

    Two models share what comes from the same object: tf-idf from a `Tfidf`, tokens from a tokenizer, embeddings from an
    encoder, clusters from a matcher of several trees.
    """

    def __init__(self, documents: Any, *, threads: int | None = None, on_event: OnEvent | None = None) -> None:
        given = plain_documents(documents)
        self.documents: Any = feature_matrix(given) if sp.issparse(given) else text_list(given)
        self.threads, self.on_event = checked_value(Threads, threads, "threads"), on_event
        self._made: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def __len__(self) -> int:
        return len(self.documents) if isinstance(self.documents, list) else int(self.documents.shape[0])

    def features(self, tfidf: Tfidf | None) -> Csr:
        """(n_docs, n_features) tf-idf, or the features themselves where these are the documents."""
        if not isinstance(self.documents, list):
            X: Csr = self.documents
            return X
        if tfidf is None:
            raise UsageError("this model was fitted on features, not on texts; pass a sparse matrix of features")
        return self._once(
            tfidf, "tf-idf", lambda: tfidf.transform(self.documents, threads=self.threads, on_event=self.on_event)
        )

    def match(self, matcher: Matcher, tfidf: Tfidf, top_b: int) -> tuple[Floats, Csr]:
        """(n_docs, hidden) embeddings and (n_docs, n_clusters) the best clusters: see `Matcher.match`."""
        encoder, source, documents = matcher.encoder_, matcher.source, self._read(matcher.encoder_, tfidf)
        if matcher.reads_pretrained:
            device, tokens = matcher.device, documents.tokens
            E = self._once(encoder, "embeddings", lambda: encoder.embed(tokens, device=device, on_event=self.on_event))
            documents = replace(documents, E=E)
        options: dict[str, Any] = {"top_b": top_b, "threads": self.threads, "on_event": self.on_event}
        if source is matcher:
            return matcher.match(documents, **options)
        E, found = self._once(source, ("clusters", id(tfidf), top_b), lambda: source.match(documents, **options))
        return E, matcher.own(found)

    def _read(self, encoder: TextEncoder, tfidf: Tfidf) -> Documents:
        from labelwise.match.documents import Documents

        tokens = self._once(
            encoder.tokenizer,
            ("tokens", encoder.config.max_length),
            lambda: encoder.tokenize(self.documents, threads=self.threads, on_event=self.on_event),
        )
        return Documents(tokens, self.features(tfidf))

    def _once(self, source: Any, what: Any, make: Callable[[], T]) -> T:
        """What `make` gives, made once for a source, which is kept so that no other takes its identity."""
        key = (id(source), what)
        if key not in self._made:
            self._made[key] = (source, make())
        made: T = self._made[key][1]
        return made
