"""The documents that models are fitted on, and what has been made of them: models that share a bench share that."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from labelwise.config import TfidfConfig
from labelwise.features.tfidf import Tfidf
from labelwise.models.base import fit_tfidf
from labelwise.models.fitting.source import Source
from labelwise.storage.run_directory import RunDirectory
from labelwise.types import Csr, OnEvent

T = TypeVar("T")


class Workbench:
    """A source, the run directory where there is one, and what models give each other."""

    def __init__(self, source: Source, run: RunDirectory | None = None, on_event: OnEvent | None = None) -> None:
        self.source, self.run = source, run
        self.on_event = on_event if run is None else run.on_event
        self._made: dict[Hashable, Any] = {}

    def tfidf(self, config: TfidfConfig, threads: int | None) -> Tfidf | None:
        """The vocabulary of the training texts; None where the documents are rows of features."""
        if self.source.X is not None:
            return None
        return self.once(
            ("tfidf", config),
            lambda: fit_tfidf(config, self.source.texts, self.run, threads=threads, on_event=self.on_event),
        )

    def features(self, config: TfidfConfig, threads: int | None, *, judged: bool = False) -> Csr:
        """(n_docs, n_features) tf-idf of the training documents, or of those of the validation split."""
        source, tfidf = self.source, self.tfidf(config, threads)
        rows, texts = (source.judged_features, source.judged) if judged else (source.X, source.texts)
        if tfidf is None:
            assert rows is not None
            return rows
        return self.once(
            ("features", judged, config), lambda: tfidf.transform(texts or [], threads=threads, on_event=self.on_event)
        )

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made by whichever model asks first."""
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    def forget(self, kind: str, *, but: Any = None) -> None:
        """Let go of what was made of a kind: keys are tuples that begin with it."""
        for key in [key for key in self._made if isinstance(key, tuple) and key[0] == kind and key[1] is not but]:
            del self._made[key]

    def say(self, sentence: str) -> None:
        """A remark to whoever listens."""
        if self.on_event is not None:
            self.on_event("remark", {"text": sentence})
