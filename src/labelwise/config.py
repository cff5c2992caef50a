"""One frozen dataclass per stage. A default lives here, once; the string under a field is its documentation.

A field with `compare=False` cannot change a result (threads, say), so it is no part of a stage's identity.
"""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class TfidfConfig:
    """How texts become sparse features."""

    analyzer: Literal["word", "char", "char_wb"] = "word"
    """What an n-gram is made of: words, characters, or characters inside word boundaries."""
    ngram_range: tuple[int, int] = (1, 1)
    """Shortest and longest n-gram."""
    min_token_length: int = 1
    """Words shorter than this many characters are skipped (scikit-learn's default is 2)."""
    lowercase: bool = True
    """Fold upper case to lower case first, as str.lower does."""
    min_df: int | float = 1
    """Drop terms in fewer documents than this: a count, or a share of the documents if a float."""
    max_df: int | float = 1.0
    """Drop terms in more documents than this: a count, or a share of the documents if a float."""
    max_features: int | None = None
    """Keep only this many terms, the most frequent ones."""
    sublinear_tf: bool = True
    """Use 1 + ln(tf) instead of tf."""
    use_idf: bool = True
    """Weigh terms by their inverse document frequency."""
    smooth_idf: bool = True
    """Count one more document that holds every term, so that no weight is infinite."""
    norm: Literal["l1", "l2"] | None = "l2"
    """Scale every document to length one in this norm."""
    threads: int | None = field(default=None, compare=False)
    """Threads to use; all cores if not given. The result does not depend on it."""
