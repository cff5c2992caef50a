"""Documents as models read them: what several models have in common is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import scipy.sparse as sp

from labelwise.data.frames import plain_documents
from labelwise.data.targets import canonical
from labelwise.errors import UsageError
from labelwise.features.tfidf import Tfidf
from labelwise.types import Csr, OnEvent

if TYPE_CHECKING:
    from labelwise.features.encoder_folder import TextEncoder
    from labelwise.match.documents import Documents
    from labelwise.match.exported import ExportedMatcher
    from labelwise.match.finetuned import FineTunedMatcher
    from labelwise.match.frozen import FrozenMatcher
    from labelwise.match.shared import SharedMatcherView

    AnyMatcher: TypeAlias = FineTunedMatcher | ExportedMatcher | FrozenMatcher | SharedMatcherView

T = TypeVar("T")


class PredictionCache:
    """Texts, or rows of features, with what models make of them on the way to labels.

    Two models share what comes from the same object: tf-idf from a `Tfidf`, tokens from a tokenizer, embeddings from an
    encoder, clusters from a matcher of several trees.
    """

    def __init__(self, documents: Any, *, threads: int | None = None, on_event: OnEvent | None = None) -> None:
        self.documents, self.threads, self.on_event = plain_documents(documents), threads, on_event
        self._made: dict[tuple[Any, ...], tuple[Any, Any]] = {}

    def features(self, tfidf: Tfidf | None) -> Csr:
        """(n_docs, n_features) tf-idf, or the features themselves where these are the documents."""
        if sp.issparse(self.documents):
            return self._once(None, "features", lambda: canonical(self.documents))
        if tfidf is None:
            raise UsageError("this model was fitted on features, not on texts; pass a sparse matrix of features")
        return self._once(
            tfidf, "tf-idf", lambda: tfidf.transform(self.documents, threads=self.threads, on_event=self.on_event)
        )

    def match(self, matcher: AnyMatcher, tfidf: Tfidf, top_b: int) -> tuple[Any, Csr]:
        """(n_docs, hidden) embeddings and (n_docs, n_clusters) the best clusters: see `FineTunedMatcher.match`."""
        from labelwise.match.frozen import FrozenMatcher
        from labelwise.match.shared import SharedMatcherView

        encoder = matcher.encoder_
        documents = self._read(encoder, tfidf)
        options: dict[str, Any] = {"top_b": top_b, "threads": self.threads}
        if isinstance(matcher, FrozenMatcher):
            E = self._once(
                encoder,
                "embeddings",
                lambda: encoder.embed(documents.tokens, device=matcher.device, on_event=self.on_event),
            )
            return matcher.match(documents, E=E, **options)
        options["on_event"] = self.on_event
        if isinstance(matcher, SharedMatcherView):
            shared = matcher.joint
            E, found = self._once(shared, ("clusters", id(tfidf), top_b), lambda: shared.match(documents, **options))
            return E, matcher.own(found)
        return matcher.match(documents, **options)

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
