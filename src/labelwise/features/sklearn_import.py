"""Conversion of fitted scikit-learn vectorisers, without importing scikit-learn."""

from typing import Any

import numpy as np
import numpy.typing as npt

from labelwise.config import TfidfConfig
from labelwise.errors import UsageError
from labelwise.features.blocks import Analyzer
from labelwise.features.vocabulary import Vocabulary, join_letters

# The patterns whose words are runs of word characters, with the shortest word that each pattern finds.
_PATTERNS = {r"(?u)\b\w\w+\b": 2, r"\b\w\w+\b": 2, r"(?u)\b\w+\b": 1, r"\b\w+\b": 1, r"(?u)\w+": 1, r"\w+": 1}


def translate(vectorizer: Any) -> tuple[TfidfConfig, Vocabulary, npt.NDArray[np.float32]]:
    """Configuration, vocabulary and idf weights of a fitted CountVectorizer or TfidfVectorizer."""
    if not hasattr(vectorizer, "vocabulary_"):
        raise UsageError(
            f"this {type(vectorizer).__name__} has no vocabulary_; fit it first, or pass its matrix as features instead"
        )
    weighted = hasattr(vectorizer, "sublinear_tf")  # a TfidfVectorizer; a CountVectorizer has plain counts
    config = TfidfConfig(
        analyzer=vectorizer.analyzer,
        ngram_range=tuple(vectorizer.ngram_range),
        min_token_length=_shortest_word(vectorizer),
        lowercase=bool(vectorizer.lowercase),
        sublinear_tf=weighted and bool(vectorizer.sublinear_tf),
        use_idf=weighted and bool(vectorizer.use_idf),
        smooth_idf=weighted and bool(vectorizer.smooth_idf),
        norm=vectorizer.norm if weighted else None,
    )
    terms = [""] * len(vectorizer.vocabulary_)
    for term, column in vectorizer.vocabulary_.items():
        terms[column] = term
    letters, sizes = join_letters(terms)
    vocabulary = Vocabulary.build(letters, sizes, Analyzer(config).hash_terms(terms))
    idf = np.asarray(vectorizer.idf_, np.float32) if config.use_idf else np.empty(0, np.float32)
    return config, vocabulary, idf


def _shortest_word(vectorizer: Any) -> int:
    """The shortest word that the vectoriser keeps; settings without a counterpart in labelwise are refused."""
    odd = [name for name in ("tokenizer", "preprocessor", "strip_accents") if getattr(vectorizer, name) is not None]
    if vectorizer.binary:
        odd.append("binary")
    if not isinstance(vectorizer.analyzer, str):
        odd.append("analyzer")
    if vectorizer.analyzer == "word":
        if vectorizer.token_pattern not in _PATTERNS:
            odd.append("token_pattern")
        # A stop word is simply not in the vocabulary, but n-grams reach over it.
        if vectorizer.stop_words is not None and tuple(vectorizer.ngram_range) != (1, 1):
            odd.append("stop_words")
    if odd:
        settings = ", ".join(f"{name}={getattr(vectorizer, name)!r}" for name in odd)
        raise UsageError(
            f"this {type(vectorizer).__name__} was fitted with {settings}, which has no counterpart in labelwise; "
            "pass its matrix, vectorizer.transform(texts), as features instead"
        )
    return _PATTERNS.get(vectorizer.token_pattern, 1)
