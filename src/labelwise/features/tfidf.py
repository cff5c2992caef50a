"""Tf-idf features of raw texts: scikit-learn's values, in one parallel pass over the texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from labelwise import storage
from labelwise.config import TfidfConfig
from labelwise.config.settings import Threads, checked_value
from labelwise.engines import current_engine
from labelwise.engines.threads import map_in_order
from labelwise.errors import DataError, UsageError
from labelwise.events import Task
from labelwise.features.blocks import OPENING, Analyzer, CountedBlock, SlabAllocator, text_blocks
from labelwise.features.scripts import SAMPLE, lacks_spaces
from labelwise.features.texts import check_list
from labelwise.features.vocabulary import Vocabulary, VocabularyBuilder
from labelwise.kernels.counts import arrange, weigh
from labelwise.storage.checks import LARGEST_FACTOR
from labelwise.types import Csr, OnEvent

_NORMS = {None: 0, "l1": 1, "l2": 2}
_INT32_MAX = np.iinfo(np.int32).max


@dataclass(frozen=True)
class _StoredBlock:
    """The counts of a block, stored between the two halves of `fit_transform`."""

    block: CountedBlock
    numbers: npt.NDArray[np.int32]
    """(n_terms,) the builder's number of each of the block's terms."""


class Tfidf:
    """Turns texts into sparse, weighted term counts.

    The values are those of scikit-learn's TfidfVectorizer with the same settings; columns are the terms in
    alphabetical order. A fitted object may be used from any number of threads.

    With `opening` the first words of a text count a second time, as terms with the prefix ^: "^cat" is the word cat
    at the beginning of a text, "cat" the word anywhere.

    Examples
    --------
    >>> from labelwise import Tfidf
    >>> from labelwise.config import TfidfConfig
    >>> tfidf = Tfidf(TfidfConfig(ngram_range=(1, 2)))
    >>> X = tfidf.fit_transform(["red running shoe", "blue running shoe"])
    >>> X.shape  # 4 words and 3 pairs of words
    (2, 7)
    >>> tfidf.transform(["a blue shoe"]).nnz  # blue, shoe
    2
    """

    settings_: TfidfConfig
    """The settings with the analyzer and the n-grams that were chosen for the texts."""
    vocabulary_: Vocabulary
    idf_: npt.NDArray[np.float32]
    """(n_features,), or empty if the terms are not weighted."""

    def __init__(self, config: TfidfConfig | None = None, *, threads: int | None = None) -> None:
        self.config, self.threads = config or TfidfConfig(), threads

    # ------------------------------------------------------------------ fitting

    def fit(self, texts: Iterable[str], *, on_event: OnEvent | None = None) -> Self:
        """Learn the terms and their weights; the texts are read once and not stored."""
        self._fit(texts, keep=False, on_event=on_event)
        return self

    def fit_transform(self, texts: Iterable[str], *, on_event: OnEvent | None = None) -> Csr:
        """Learn the terms and return the features of the same texts, reading them once.

        Returns
        -------
        X : (n_docs, n_features) float32, indices sorted
        """
        kept, columns = self._fit(texts, keep=True, on_event=on_event)
        n_docs = sum(len(part.block.indptr) - 1 for part in kept)
        sizes = [np.count_nonzero((columns[part.numbers] >= 0)[part.block.term]) for part in kept]
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        indices = np.empty(starts[-1], np.int32)
        data = np.empty(starts[-1], np.float32)
        waiting = dict(enumerate(kept))
        kept.clear()  # so that the counts of a block are freed as soon as its rows are written

        def write_rows(at: int) -> npt.NDArray[np.int64]:
            part, here = waiting.pop(at), slice(starts[at], starts[at + 1])
            indptr = self._rows(part.block, columns[part.numbers], indices[here], data[here])
            indptr += starts[at]
            return indptr[1:]

        ends = list(map_in_order(write_rows, range(len(sizes)), self.threads))
        return self._matrix(data, indices, np.concatenate([np.zeros(1, np.int64), *ends]), n_docs)

    def _fit(
        self, texts: Iterable[str], *, keep: bool, on_event: OnEvent | None
    ) -> tuple[list[_StoredBlock], npt.NDArray[np.int64]]:
        """Count all texts. Returns the counts, if `keep`, and the column of each term number (-1: dropped)."""
        config = self.config.validated()
        checked_value(Threads, self.threads, "threads")
        check_list(texts)
        if config.analyzer == "auto" and not isinstance(texts, Sequence):
            waiting = iter(texts)
            head = list(islice(waiting, SAMPLE))
            config, texts = config.resolved(spaced=not lacks_spaces(head)), chain(head, waiting)
        else:
            spaced = config.analyzer != "auto" or not lacks_spaces(cast("Sequence[str]", texts))
            config = config.resolved(spaced=spaced)
        analyzer, builder = Analyzer(config), VocabularyBuilder()
        kept: list[_StoredBlock] = []
        slabs = SlabAllocator()
        n_docs = 0
        with Task(on_event, "tf-idf") as task:
            for block in current_engine().map(analyzer.count, text_blocks(_checked_texts(texts)), threads=self.threads):
                n_terms = builder.n_terms
                numbers = builder.number(block.hashes)
                builder.store_letters(*analyzer.spell(block, numbers >= n_terms))
                builder.n_docs[numbers] += np.bincount(block.term, minlength=len(numbers))
                if config.max_features is not None:
                    occurrences = np.bincount(block.term, weights=block.count, minlength=len(numbers))
                    builder.n_occurrences[numbers] += occurrences.astype(np.int64)
                if keep:
                    kept.append(_StoredBlock(block.packed(slabs), slabs.copy(numbers, np.int32)))
                n_docs += len(block.indptr) - 1
                task.advance(len(block.indptr) - 1)
        if not builder.n_terms:
            what = f"the {n_docs} texts hold no {config.analyzer} n-gram" if n_docs else "there are no texts"
            raise DataError(f"{what} to make features of; check the text column and the tf-idf settings")

        numbers = _selection(builder, n_docs, config)
        columns = np.full(builder.n_terms, -1, np.int64)
        columns[numbers] = np.arange(len(numbers))
        idf = np.empty(0, np.float32)
        if config.use_idf:
            smooth = int(config.smooth_idf)
            shares = (n_docs + smooth) / (builder.n_docs[numbers] + smooth)
            idf = (np.log(shares) + 1).astype(np.float32)
        self._set_fitted(config, builder.finish(numbers), idf)
        return kept, columns

    def _set_fitted(self, settings: TfidfConfig, vocabulary: Vocabulary, idf: npt.NDArray[np.float32]) -> None:
        """Set the fitted state."""
        self.settings_, self.vocabulary_, self.idf_, self._analyzer = settings, vocabulary, idf, Analyzer(settings)
        self._opening = np.empty(0, np.bool_)  # (n_features,) the terms of openings, if openings are counted
        if settings.opening:
            self._opening = vocabulary.beginning_with(OPENING)

    # ------------------------------------------------------------------ using

    def transform(self, texts: Iterable[str], *, threads: int | None = None, on_event: OnEvent | None = None) -> Csr:
        """Features of texts over the fitted terms; unknown terms are ignored.

        Parameters
        ----------
        threads
            Threads to use; if not given, the number that the constructor was given.

        Returns
        -------
        X : (n_docs, n_features) float32, indices sorted
        """
        self._fitted()
        threads = checked_value(Threads, self.threads if threads is None else threads, "threads")

        parts = []
        with Task(on_event, "tf-idf") as task:
            for part in current_engine().map(self._transform, text_blocks(_checked_texts(texts)), threads=threads):
                parts.append(part)
                task.advance(len(part[0]) - 1)
        if len(parts) == 1:
            indptr, indices, data = parts[0]
            return self._matrix(data, indices, indptr, len(indptr) - 1)
        starts = np.concatenate(([0], np.cumsum([len(data) for _, _, data in parts]))).astype(np.int64)
        ends = [indptr[1:] + start for (indptr, _, _), start in zip(parts, starts, strict=False)]
        indptr = np.concatenate([np.zeros(1, np.int64), *ends])
        indices = np.concatenate([np.empty(0, np.int32), *(indices for _, indices, _ in parts)])
        data = np.concatenate([np.empty(0, np.float32), *(data for _, _, data in parts)])
        return self._matrix(data, indices, indptr, len(indptr) - 1)

    def _transform(self, texts: list[str]) -> tuple[Any, Any, Any]:
        """The features of a block of texts, as the arrays of a sparse matrix."""
        block = self._analyzer.count(texts)
        columns = self.vocabulary_.find(block.hashes)
        size = len(block.term)
        if len(block.indptr) > 2:
            size = int(np.count_nonzero(columns[block.term] >= 0))
        indices, data = np.empty(size, np.int32), np.empty(size, np.float32)
        indptr = self._rows(block, columns, indices, data)
        return indptr, indices[: indptr[-1]], data[: indptr[-1]]

    def feature_names(self) -> list[str]:
        """(n_features,) the term of each column."""
        return self._fitted().terms()

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self._fitted())

    @property
    def description(self) -> str:
        """What the features are, in a few words."""
        return "tf-idf of the texts" + ("" if self.settings_.analyzer == "word" else "' characters")

    def _fitted(self) -> Vocabulary:
        if not hasattr(self, "vocabulary_"):
            raise UsageError("this Tfidf is not fitted yet; call fit or fit_transform with the training texts first")
        return self.vocabulary_

    def _rows(
        self,
        block: CountedBlock,
        columns: npt.NDArray[np.int64],
        indices_out: npt.NDArray[np.int32],
        data_out: npt.NDArray[np.float32],
    ) -> npt.NDArray[np.int64]:
        """Write the features of a counted block and return their indptr."""
        order = np.argsort(columns)
        order = order[np.count_nonzero(columns < 0) :]
        indptr: npt.NDArray[np.int64] = arrange(
            block.indptr, block.term, block.count, columns, order, indices_out, data_out
        )
        config = self.settings_
        how = (self._opening, config.opening_weight, config.sublinear_tf, _NORMS[config.norm])
        weigh(indptr, indices_out, self.idf_, *how, data_out)
        return indptr

    def _matrix(
        self,
        data: npt.NDArray[np.float32],
        indices: npt.NDArray[np.int32],
        indptr: npt.NDArray[np.int64],
        n_docs: int,
    ) -> Csr:
        if indptr[-1] <= _INT32_MAX:
            indptr = indptr.astype(np.int32)
        else:  # scipy wants one type for both
            indices = indices.astype(np.int64)
        X = Csr((data, indices, indptr), shape=(n_docs, len(self.vocabulary_)))
        X.has_sorted_indices = X.has_canonical_format = True
        return X

    # ------------------------------------------------------------------ saving and loading

    def save(self, path: Path | str) -> None:
        """Write a folder that `load` reads."""
        vocabulary = self._fitted()
        arrays: dict[str, npt.NDArray[Any]] = {
            "letters": vocabulary.letters,
            "offsets": vocabulary.offsets,
            "keys": vocabulary.keys,
            "values": vocabulary.values,
            "idf": self.idf_,
        }
        storage.save(path, kind="tfidf", config=self.settings_, arrays=arrays)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read what `save` wrote; the arrays are mapped into memory, not copied."""
        saved = storage.load(path, kind="tfidf")
        self = cls(storage.restore(TfidfConfig, saved.config, path))
        words = Vocabulary.of_arrays(saved.checked)
        idf = saved.checked.finite("idf", np.float32, (len(words) if self.config.use_idf else 0,), LARGEST_FACTOR)
        if self.config.opening and len(words) and not np.diff(words.offsets).all():
            raise saved.checked.wrong("offsets", "has a term without letters")
        self._set_fitted(self.config.resolved(), words, idf)
        return self

    @classmethod
    def from_sklearn(cls, vectorizer: Any, *, threads: int | None = None) -> Self:
        """A `Tfidf` with the terms of a fitted scikit-learn CountVectorizer or TfidfVectorizer, in its column order."""
        from labelwise.features.sklearn_import import translate

        config, vocabulary, idf = translate(vectorizer)
        self = cls(config, threads=threads)
        self._set_fitted(config, vocabulary, idf)
        return self


def _checked_texts(texts: Iterable[str]) -> Iterator[str]:
    check_list(texts)
    return iter(texts)


def _selection(builder: VocabularyBuilder, n_docs: int, config: TfidfConfig) -> npt.NDArray[np.int64]:
    """(n_features,) the terms kept by min_df, max_df and max_features, in alphabetical order."""
    least, most = (share if isinstance(share, int) else share * n_docs for share in (config.min_df, config.max_df))
    if most < least:
        raise UsageError(
            f"max_df={config.max_df} allows {math.floor(most)} documents but min_df={config.min_df} asks for {least}; "
            "lower min_df or raise max_df"
        )
    counts = builder.n_docs[: builder.n_terms]
    enough = counts >= least
    if config.opening:
        enough &= ~builder.beginning_with(OPENING) | (counts >= config.opening_min_df)
    numbers = builder.in_order(np.flatnonzero(enough & (counts <= most)))
    if not len(numbers):
        raise DataError(
            f"min_df={config.min_df} and max_df={config.max_df} leave none of the {builder.n_terms} terms; "
            "lower min_df or raise max_df"
        )
    if config.max_features is not None and len(numbers) > config.max_features:
        by_occurrences = np.argsort(-builder.n_occurrences[numbers], kind="stable")
        numbers = numbers[np.sort(by_occurrences[: config.max_features])]
    return numbers
